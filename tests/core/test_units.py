"""Units by name, and noise as a number: what people write first."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from derand import (
    AdditiveClassifier,
    AdditiveEnsemble,
    AdditiveRegressor,
    Gaussian,
    Laplace,
    StumpClassifier,
    Threat,
    Uniform,
    certify,
    load,
    parse_noise,
    save,
)
from derand._core.units import NamedUnits, look_up
from derand.app.jobs import audit_file, certify_file
from derand.noise import as_noise

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"income": RNG.normal(0, 1000, 60), "age": RNG.normal(40, 5, 60), "job": ["cook", "clerk"] * 30})
Y = (FRAME["income"] / 1000 + (FRAME["age"] - 40) / 5 > 0).astype(int)
BY_NAME = {"age": 5, "income": 1000}
BY_NUMBER = (1000.0, 5.0, 1.0)
MODEL = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)


def test_units_by_name_are_those_by_number(tmp_path: Path) -> None:
    named = StumpClassifier(noise=Gaussian(0.25, units=BY_NAME)).fit(FRAME, Y)
    numbered = StumpClassifier(noise=Gaussian(0.25, units=BY_NUMBER)).fit(FRAME, Y)
    assert named.units == numbered.units == BY_NUMBER
    np.testing.assert_array_equal(named.certify(FRAME).radius, numbered.certify(FRAME).radius)
    save(named, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.units == BY_NUMBER
    assert loaded.get_params()["noise"] == Gaussian(0.25, units=BY_NAME)
    np.testing.assert_array_equal(clone(loaded).fit(FRAME, Y).certify(FRAME).radius, numbered.certify(FRAME).radius)


def test_columns_that_are_not_named_keep_the_scaling_or_one() -> None:
    noise = Gaussian(0.25, units={"age": 5})
    assert StumpClassifier(noise=noise).fit(FRAME, Y).units == (1.0, 5.0, 1.0)
    scaled = StumpClassifier(scaling="standard").fit(FRAME, Y).units
    assert scaled is not None
    assert StumpClassifier(noise=noise, scaling="standard").fit(FRAME, Y).units == (scaled[0], 5.0, scaled[2])


def test_units_by_name_when_certifying() -> None:
    clf = StumpClassifier(scaling="standard").fit(FRAME, Y)
    assert clf.units is not None
    units = (clf.units[0], 5.0, clf.units[2])
    assert clf.certify(FRAME, threat=Threat(units={"age": 5})).threat.units == units
    assert clf.certify(FRAME, noise=Gaussian(0.25, units={"age": 5})).noise.units == units  # type: ignore[union-attr]
    assert clf.attack(FRAME[:2], threat=Threat(units={"age": 5})).threat.units == units
    reg = AdditiveRegressor().fit(FRAME, Y.astype(float))
    assert reg.certify_interval(FRAME[:2], 0.1, threat=Threat(units={"age": 5})).threat.units[1] == 5.0


def test_a_threat_to_train_for_takes_units_by_name(tmp_path: Path) -> None:
    clf = AdditiveClassifier(radius=0.1, threat=Threat(units=BY_NAME)).fit(FRAME, Y)
    assert clf.certify(FRAME).threat.units[:2] == BY_NUMBER[:2]
    save(clf, tmp_path / "model.json")
    assert load(tmp_path / "model.json").threat == Threat(units=BY_NAME)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"dir": 0.05}, "names the column 'dir', which does not exist: the columns are income, age, job"),
        ({"incom": 0.05}, "names the column 'incom', which does not exist; did you mean 'income'"),
    ],
)
def test_units_of_columns_that_do_not_exist(units: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"`units` of the noise {message}"):
        StumpClassifier(noise=Gaussian(0.25, units=units)).fit(FRAME, Y)
    with pytest.raises(ValueError, match=f"`units` of Threat {message}"):
        StumpClassifier().fit(FRAME, Y).certify(FRAME, threat=Threat(units=units))


@pytest.mark.parametrize("make", [lambda units: Gaussian(1.0, units=units), lambda units: Threat(units=units)])
def test_units_that_are_none(make: Any) -> None:
    with pytest.raises(ValueError, match=r"`units` of \w+ for 'age' must be positive and finite"):
        make({"age": -1})
    with pytest.raises(TypeError, match=r"`units` of \w+ for 'age' must be a positive number, got 'x'"):
        make({"age": "x"})
    with pytest.raises(TypeError, match=r"`units` of \w+ as a dict must name columns by their names, got 1"):
        make({1: 2.0})
    with pytest.raises(TypeError, match=r"must be one positive number per column, or a dict of column name to number"):
        make("age")


def test_the_core_knows_no_names() -> None:
    with pytest.raises(ValueError, match="`units` of the noise must be one positive number per column here"):
        certify(MODEL, [[0.0]], Gaussian(0.25, units={"age": 5}))
    with pytest.raises(ValueError, match="`units` of Threat must be one positive number per column here"):
        certify(MODEL, [[0.0]], Gaussian(0.25), threat=Threat(units={"age": 5}))
    with pytest.raises(ValueError, match="`units` of the noise must be one positive number per column here"):
        Gaussian(0.25, units={"age": 5}).sample([[0.0]], 1)
    with pytest.raises(ValueError, match="by column name need a table with names"):
        StumpClassifier(noise=Gaussian(0.25, units={"age": 5})).fit(FRAME[["income", "age"]].to_numpy(), Y)


def test_units_by_name_are_equal_only_to_themselves() -> None:
    units = NamedUnits({"a": 1.0, "b": 2.0})
    assert units == NamedUnits({"b": 2.0, "a": 1.0})
    assert units != (1.0, 2.0)
    assert units != NamedUnits({"b": 1.0, "a": 2.0})
    for twin in (copy.deepcopy(units), pickle.loads(pickle.dumps(units))):
        assert twin == units
        assert hash(twin) == hash(units)
    assert "'a': 1.0" in repr(Gaussian(1.0, units=units))


def test_a_number_is_a_noise_of_the_kind_that_the_norm_asks_for() -> None:
    assert as_noise(0.25) == as_noise("0.25") == parse_noise("0.25") == Gaussian(0.25)
    assert as_noise(0.25, norm=1) == as_noise("0.25", norm=1) == Laplace(0.25)
    assert as_noise(1, norm=np.inf) == as_noise(1, norm=None) == Gaussian(1.0)
    for norm, kind in ((2, Gaussian), (1, Laplace)):
        certificates = certify(MODEL, [[0.0]], 0.25, threat=Threat(norm=norm))
        assert certificates.noise == kind(0.25)  # type: ignore[abstract]
    assert StumpClassifier(noise=0.5).fit(FRAME, Y).noise_ == Gaussian(0.5)
    assert AdditiveClassifier(noise=0.1, norm=1, radius=0.1, scaling=None).fit(FRAME, Y).noise_ == Laplace(0.1)


def test_a_number_when_certifying_keeps_the_kind_of_the_estimator(tmp_path: Path) -> None:
    clf = StumpClassifier(noise=Uniform(2.0)).fit(FRAME, Y)
    assert clf.certify(FRAME[:2], noise=1.5).noise == Uniform(1.5)
    assert clf.certify(FRAME[:2], noise="1.5", threat=Threat(norm=1)).noise == Uniform(1.5)
    assert clf.certify(FRAME[:2], noise=1.5, threat=Threat(norm=2)).noise == Gaussian(1.5)
    clf = StumpClassifier(noise=0.5).fit(FRAME, Y)
    save(clf, tmp_path / "model.json")
    assert load(tmp_path / "model.json").noise == 0.5


@pytest.mark.parametrize("noise", [0, -1.0, float("nan"), float("inf"), "-1", "nan"])
def test_a_number_that_is_no_noise(noise: Any) -> None:
    with pytest.raises(ValueError, match="`noise` as a number, the magnitude of a noise, must be positive and finite"):
        as_noise(noise)


@pytest.mark.parametrize("noise", [True, [0.25], object()])
def test_what_is_no_noise_at_all(noise: Any) -> None:
    with pytest.raises(TypeError, match=r"or a number such as 0\.25"):
        as_noise(noise)


@pytest.mark.parametrize("field", ["noise", "threat"])
def test_records_and_audits_know_no_names(field: str, tmp_path: Path) -> None:
    """Names in another order than columns would be another claim."""
    pytest.importorskip("flint")
    clf = StumpClassifier(noise=Gaussian(0.25, units=(1000.0, 5.0, 1.0))).fit(FRAME, Y)
    save(clf, tmp_path / "model.json")
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    paths = [tmp_path / name for name in ("model.json", "data.csv", "out.csv")]
    certify_file(*paths)
    record = json.loads((tmp_path / "out.csv.json").read_text())
    named = {"job": 1000.0, "age": 5.0, "income": 1.0}
    record[field]["units"] = named if field == "noise" else {"dict": [[name, unit] for name, unit in named.items()]}
    (tmp_path / "out.csv.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="must have `units` of one number per column"):
        audit_file(*paths, rows=1)
    forged = replace(clf.certify(FRAME[:1]), noise=Gaussian(0.25, units=named))
    with pytest.raises(ValueError, match="`units` of the noise must be one positive number per column here"):
        clf.audit(FRAME[:1], forged)


def test_names_that_are_hardly_alike_are_not_suggested() -> None:
    with pytest.raises(ValueError, match="'age', which does not exist: the columns are garage, income"):
        look_up("age", {"garage": 0, "income": 1}, "`units`")
    for slip in ("Income", "incme"):
        with pytest.raises(ValueError, match="did you mean 'income'"):
            look_up(slip, {"garage": 0, "income": 1}, "`units`")
