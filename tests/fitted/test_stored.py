"""A stored model certifies as the estimator that was saved, to the last bit, and needs no scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from derand import AdditiveClassifier, AdditiveRegressor, Threat, from_model, save
from derand.estimators import REGRESSORS, TRAINERS
from derand.fitted import (
    CLASSIFIERS,
    answers_numbers,
    certify_encoded,
    certify_interval_encoded,
    certify_radius_encoded,
    choose_radius,
    compute_probabilities,
    encode_rows,
)
from derand.fitted import REGRESSORS as STORED_REGRESSORS
from derand.storage import load_stored

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] + X[:, 1] > 0
FAST = {"additive": {"regularization": 0.1}, "ada-boost": {"n_estimators": 2}}


def store(model: Any, folder: Path) -> Any:
    save(model, folder / "model.json")
    return load_stored(folder / "model.json")


def test_every_trainer_can_be_stored() -> None:
    """The names that a file may hold are those of the trainers, and of what was imported."""
    assert {*CLASSIFIERS} == {kind.__name__ for kind in TRAINERS.values()} | {"ImportedClassifier"}
    assert {*STORED_REGRESSORS} == {kind.__name__ for kind in REGRESSORS.values()} | {"ImportedRegressor"}


@pytest.mark.parametrize("name", sorted(TRAINERS))
def test_stored_classifiers_certify_alike(name: str, tmp_path: Path) -> None:
    """Rows, threat, noise, labels and radii are those of the estimator."""
    model = TRAINERS[name](**FAST.get(name, {})).fit(X, Y)
    stored = store(model, tmp_path)
    assert stored.default_threat == model.default_threat
    assert stored.units == model.units
    assert not answers_numbers(stored)
    rows = encode_rows(stored, X)
    assert rows.tobytes() == encode_rows(model, X).tobytes()
    mine, own = (certify_encoded(one, rows, [one.default_threat])[0] for one in (stored, model))
    assert (mine.label == own.label).all()
    assert mine.radius.tobytes() == own.radius.tobytes()


def test_stored_probabilities_and_costs(tmp_path: Path) -> None:
    """Calibrated probabilities, of two classes and of several, with a threshold that was moved."""
    model = AdditiveClassifier(regularization=0.1, rule="mean", cost={"false_positive": 1, "false_negative": 4})
    stored = store(model.fit(X, Y), tmp_path)
    assert compute_probabilities(stored, X).tobytes() == model.predict_proba(X).tobytes()
    assert stored._costs == model._costs
    several = AdditiveClassifier(regularization=0.1, rule="mean").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    stored = store(several, tmp_path)
    assert compute_probabilities(stored, X).tobytes() == several.predict_proba(X).tobytes()


def test_stored_regressors_certify_alike(tmp_path: Path) -> None:
    """Intervals of the radius that was trained for, and radii of a tolerance."""
    model = AdditiveRegressor(radius=0.25, regularization=0.1, norm=2).fit(X, X[:, 0])
    stored = store(model, tmp_path)
    assert answers_numbers(stored)
    threat = stored.default_threat
    assert choose_radius(stored, threat, None) == 0.25
    mine = certify_interval_encoded(stored, encode_rows(stored, X), 0.25, threat)
    assert mine.low.tobytes() == model.certify_interval(X).low.tobytes()
    radii = certify_radius_encoded(stored, encode_rows(stored, X), 0.5, threat, rule=None)
    assert radii.radius.tobytes() == model.certify_radius(X, 0.5).radius.tobytes()
    with pytest.raises(ValueError, match="was not trained for one"):
        choose_radius(store(REGRESSORS["stumps"]().fit(X, X[:, 0]), tmp_path), Threat(), None)


def test_imported_trees_keep_their_norm(tmp_path: Path) -> None:
    """Trees that join columns are certified in norm inf."""
    wide = RNG.normal(size=(80, 6))
    forest = RandomForestClassifier(n_estimators=4, max_depth=4, random_state=0).fit(wide, wide.sum(axis=1) > 0)
    model = from_model(forest)
    assert store(model, tmp_path).default_threat == model.default_threat
    assert model.default_threat == Threat(norm=np.inf)


def test_a_file_is_certified_without_scikit_learn(tmp_path: Path) -> None:
    """Nor are pandas and SciPy's special functions loaded: they take longer than certifying a small file."""
    save(TRAINERS["stumps"]().fit(X, Y), tmp_path / "model.json")
    header = ",".join(f"x{at}" for at in range(3))
    np.savetxt(tmp_path / "rows.csv", X[:20], delimiter=",", header=header, comments="")
    code = (
        "import sys; from derand.app.jobs import certify_file, audit_file; certify_file('model.json', 'rows.csv', "
        "'out.csv'); print(sorted({'sklearn', 'pandas', 'scipy.special', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
