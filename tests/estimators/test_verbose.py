"""`verbose` of every estimator: lines on standard error, kept in files, and the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from derand import AdditiveClassifier, SmoothedClassifier, from_model, load, save
from derand.estimators import REGRESSORS, TRAINERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
ALL = {**{f"{name} of numbers": kind for name, kind in REGRESSORS.items()}, **TRAINERS}


@pytest.mark.parametrize("name", ALL)
def test_every_estimator_tells_what_it_does(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is asked for; the model is the same, and files keep the choice."""
    quiet = ALL[name]().fit(X, Y)
    quiet.predict(X)
    assert capsys.readouterr() == ("", "")
    loud = ALL[name](verbose=True).fit(X, Y)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("derand: read 60 rows; columns: 3 of numbers, 0 of categories\n")
    np.testing.assert_array_equal(loud.predict(X), quiet.predict(X))
    ask = loud.certify if hasattr(loud, "certify") else lambda rows: loud.certify_interval(rows, 0.1)
    ask(X)
    assert "derand: certifying 60 rows\n" in capsys.readouterr().err
    for model in (quiet, loud):
        save(model, tmp_path / "model.json")
        assert load(tmp_path / "model.json").get_params() == model.get_params()


def test_training_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Which penalty is tried, and when the model itself is fitted; audits and attacks tell, too."""
    clf = AdditiveClassifier(verbose=True).fit(X, Y)
    told = capsys.readouterr().err
    assert "derand: training: penalty 1 of 5 at most\n" in told
    assert "derand: training: fitting 60 rows at penalty" in told
    certificates = clf.certify(X)
    clf.audit(X, certificates, rows=2)
    clf.attack(X[:2])
    told = capsys.readouterr().err
    assert "derand: auditing 2 rows\n" in told
    assert "derand: attacking 2 rows\n" in told


def test_models_of_others_tell_when_they_certify(capsys: pytest.CaptureFixture[str]) -> None:
    """A parameter like any other."""
    model = from_model(GradientBoostingClassifier(max_depth=1, n_estimators=3).fit(X, Y))
    model.set_params(verbose=True).certify(X)
    assert "derand: certifying 60 rows\n" in capsys.readouterr().err
    inner = GradientBoostingClassifier(max_depth=1, n_estimators=3)
    SmoothedClassifier(inner, augment=2, verbose=True).fit(X, Y)
    assert "derand: read 60 rows" in capsys.readouterr().err


def test_what_is_no_choice_is_refused() -> None:
    """As every other parameter."""
    with pytest.raises(ValueError, match="`verbose` must be True or False, got 'yes'"):
        AdditiveClassifier(verbose="yes").fit(X, Y)  # type: ignore[arg-type]
