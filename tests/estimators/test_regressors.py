"""Regressors: scikit-learn's checks, tables of every kind, files, and a search inside the ball."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import derand
from derand import AdditiveRegressor, StumpClassifier, StumpRegressor, Threat, load, save
from derand.estimators import REGRESSORS, CertifiedRegressor
from tests.storage.models import as_bytes, set_field, write_changed

VARIANTS = [
    AdditiveRegressor(radius=0.0),
    AdditiveRegressor(radius=0.1, groups="auto", regularization=1.0),
    AdditiveRegressor(radius=0.1, rule="vote", noise="laplace:0.2", norm=1, regularization=0.1),
    StumpRegressor(noise="uniform:0.5", rule="mean", scaling="range", n_rounds=1),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([kind(regularization=1.0) for kind in REGRESSORS.values()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Every check that scikit-learn has for regressors passes."""
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([*(kind() for kind in REGRESSORS.values()), *VARIANTS])
def test_scikit_learn_checks_with_other_options(estimator: Any, check: Any) -> None:
    """The same with cross-validation, other rules, noises, norms and groups."""
    check(estimator)


def make_table(n_rows: int = 150) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 200, n_rows),
            "age": rng.uniform(0, 90, n_rows),
            "place": rng.choice(["town", "land", "coast"], n_rows),
        }
    )
    price = 3 * frame["size"] - frame["age"] + frame["place"].map({"town": 80.0, "land": 0.0, "coast": 120.0})
    frame.loc[rng.random(n_rows) < 0.15, "age"] = np.nan
    return frame, (price + 10 * rng.normal(size=n_rows)).to_numpy()


@pytest.fixture(scope="module")
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X, y


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_is_exported(name: str) -> None:
    """A row of the registry is a regressor that the package exports."""
    kind = REGRESSORS[name]
    assert issubclass(kind, CertifiedRegressor)
    assert getattr(derand, kind.__name__) is kind


@pytest.mark.parametrize("kind", REGRESSORS.values(), ids=REGRESSORS)
def test_frames_with_categories_and_gaps(kind: type[CertifiedRegressor]) -> None:
    """Names, categories, missing numbers: it learns from them, and certifies against changes of all."""
    frame, price = make_table()
    reg = kind().fit(frame, price)
    assert reg.score(frame, price) > 0.9
    few = frame[:8]
    ball = reg.certify_interval(few, 0.1)
    np.testing.assert_array_equal(ball.value, reg.predict(few))
    assert (ball.low <= ball.value).all()
    assert (ball.value <= ball.high).all()
    more = reg.certify_interval(few, 0.1, l0=1)
    assert (more.width > ball.width + 50).all()
    frozen = reg.certify_interval(few, 0.1, threat=Threat(l0=1, frozen=["place"]))
    np.testing.assert_allclose(frozen.width, ball.width)
    named = reg.certify_interval(few, 0.1, threat=Threat(l0=1, may_become={"place": ["land"]}))
    assert (named.high <= more.high).all()
    gone = reg.certify_interval(few, 0.1, threat=Threat(missing=1))
    assert (gone.width >= ball.width).all()
    swapped = few.assign(place="coast")
    answers = reg.predict(swapped)
    assert (more.low <= answers).all()
    assert (answers <= more.high).all()
    radii = reg.certify_radius(few, tolerance=30.0)
    assert (radii.radius > 0).any()
    limits = reg.certify_interval(few, None, threat=Threat(norm=None, limits={"size": "5%"}))
    moved = reg.predict(few.assign(size=few["size"] * 1.05))
    assert (moved <= limits.high + 1e-9).all()
    deployed = reg.certify_interval(few, 0.1, rule="mean", noise="none")
    assert (deployed.low <= deployed.high).all()


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_no_attack_leaves_the_interval_and_means_reach_their_ends(rule: str, diabetes: Any) -> None:
    """Descending the answer by coordinates inside the ball comes close to both ends, and never beyond."""
    X, y = diabetes
    reg = AdditiveRegressor(radius=0.25, scaling="standard", rule=rule, regularization=1.0).fit(X[:300], y[:300])
    rows, radius, units = X[300:306], 0.25, np.array(reg.units)
    found = reg.certify_interval(rows, radius)
    rng = np.random.default_rng(0)
    reached = np.stack([found.value, found.value])
    for side, sign in enumerate((-1, 1)):
        best = np.zeros(rows.shape)
        slopes = np.stack(
            [
                reg.predict(rows + 0.1 * units * axis) - reg.predict(rows - 0.1 * units * axis)
                for axis in np.eye(X.shape[1])
            ],
            axis=1,
        )
        starts = [sign * slopes, *(sign * slopes + 0.3 * np.abs(slopes).max() * rng.normal(size=slopes.shape),) * 1]
        for attempt in range(60 if rule == "mean" else 20):  # votes are slow, and need not reach their ends
            way = starts[attempt] if attempt < len(starts) else best + 0.1 * rng.normal(size=best.shape)
            way = way / np.maximum(np.linalg.norm(way, axis=1), 1e-12)[:, None] * radius * (1 - 1e-9)
            answers = reg.predict(rows + way * units)
            assert (found.low <= answers).all()
            assert (answers <= found.high).all()
            better = sign * (answers - reached[side]) > 0
            best[better], reached[side, better] = way[better], answers[better]
    if rule == "mean":
        share = (reached[1] - reached[0]) / found.width
        assert np.median(share) > 0.9


def test_training_for_a_radius_and_plain(diabetes: Any) -> None:
    """Accuracy stays near that of a plain model, and intervals are narrower."""
    X, y = diabetes
    plain = AdditiveRegressor(radius=0.0, noise="gaussian:0.125", scaling="standard").fit(X[:300], y[:300])
    robust = AdditiveRegressor(radius=0.25, scaling="standard").fit(X[:300], y[:300])
    errors = [np.sqrt(np.mean((reg.predict(X[300:]) - y[300:]) ** 2)) for reg in (plain, robust)]
    widths = [reg.certify_interval(X[300:], 0.25).width.mean() for reg in (plain, robust)]
    assert max(errors) < 57
    assert widths[1] < 0.9 * widths[0]


@pytest.mark.parametrize("kind", REGRESSORS.values(), ids=REGRESSORS)
def test_files_pickles_and_clones(kind: type[CertifiedRegressor], tmp_path: Path) -> None:
    """All that `fit` found comes back, to the bit."""
    frame, price = make_table()
    reg = kind(noise="gaussian:0.5", n_jobs=1).fit(frame, price)
    save(reg, tmp_path / "model.json")
    for other in (load(tmp_path / "model.json"), pickle.loads(pickle.dumps(reg)), clone(reg).fit(frame, price)):
        assert type(other) is kind
        left_out = {"_seen", "training_"}  # files do not hold counts of rows, nor how a model was trained
        assert vars(other).keys() - left_out == vars(reg).keys() - left_out
        assert other.get_params() == reg.get_params()
        assert other.path_ == reg.path_
        np.testing.assert_array_equal(other.predict(frame), reg.predict(frame))
        assert as_bytes(other.ensemble_) == as_bytes(reg.ensemble_)


def test_files_that_are_no_regressors(tmp_path: Path) -> None:
    """A regressor's file whose model tells classes apart is refused, and so is the other way round."""
    X = np.arange(12.0)[:, None]
    reg, clf = StumpRegressor(n_jobs=1).fit(X, X[:, 0]), StumpClassifier(n_jobs=1).fit(X, X[:, 0] > 5)
    path = tmp_path / "model.json"
    place = ("model", "ensemble", "model", "decision")
    write_changed(path, reg, set_field(*place, value={"kind": "threshold", "level": 3}))
    with pytest.raises(ValueError, match="must have a number as its answer"):
        load(path)
    write_changed(path, clf, set_field(*place, value={"kind": "value", "offset": 3}))
    with pytest.raises(ValueError, match="must tell classes apart"):
        load(path)
    with pytest.raises(ValueError, match="must be fitted"):
        save(StumpRegressor(), tmp_path / "model.json")


@pytest.mark.parametrize("kind", REGRESSORS.values(), ids=REGRESSORS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0], "NaN"),
        ([1.0, np.inf, 2.0], "infinity"),
        ([1.0, 2.0], "inconsistent numbers of samples"),
        (["a", "b", "c"], "`y` must hold numbers"),
        ([1.0, "b", None], "`y` must hold a number in every row"),
        ([1.0, 2.0, 1e200], "`y` must lie within"),
        ([1 + 2j, 2.0, 3.0], "`y` must hold numbers"),
        (None, "requires y to be passed"),
    ],
)
def test_targets_that_are_no_finite_numbers_are_refused(kind: type[CertifiedRegressor], y: Any, message: str) -> None:
    """In one sentence, and the estimator stays as it was."""
    reg = kind()
    with pytest.raises(ValueError, match=message):
        reg.fit([[0.0], [1.0], [2.0]], y)
    assert not hasattr(reg, "ensemble_")


@pytest.mark.parametrize(
    ("reg", "message"),
    [
        (StumpRegressor(n_rounds=0), "`n_rounds` must be a whole number"),
        (StumpRegressor(regularization="much"), "`regularization` must be 'cv' or a number"),
        (StumpRegressor(regularization=0.0), "`regularization` must be positive"),
        (StumpRegressor(noise="none"), "`noise` of StumpRegressor must be a noise"),
        (StumpRegressor(rule="median"), "`rule`"),
        (AdditiveRegressor(radius=-1.0), "`radius` must be a finite number, 0 or larger"),
        (AdditiveRegressor(norm=0), "`norm` of AdditiveRegressor must be 1, 2 or inf"),
        (AdditiveRegressor(n_cuts="many"), "`n_cuts` must be 'auto'"),
        (AdditiveRegressor(n_cuts=0), "`n_cuts` must be a whole number"),
        (AdditiveRegressor(radius=0, rule="vote"), "`noise` must not be 'none' under the rule 'vote'"),
        (AdditiveRegressor(threat=Threat(), l0=1), "Give `l0` or `threat`, got both"),
        (AdditiveRegressor(frozen=["nothing"]), "`frozen` of Threat"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(reg: CertifiedRegressor, message: str) -> None:
    """By `fit`, in one sentence that names the parameter."""
    with pytest.raises(ValueError, match=message):
        reg.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])


def test_life_with_the_tools_of_scikit_learn(diabetes: Any) -> None:
    """Cross-validation, grid search, sample weights."""
    X, y = diabetes[0][:150], diabetes[1][:150]
    assert cross_val_score(StumpRegressor(noise="gaussian:0.5"), X, y, cv=3).mean() > 0.2
    search = GridSearchCV(AdditiveRegressor(scaling="standard", regularization=1.0), {"radius": [0.0, 0.2]}, cv=2)
    assert search.fit(X, y).best_params_["radius"] in (0.0, 0.2)
    twice = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    weights = np.ones(150)
    weights[:40] = 2
    one = StumpRegressor(regularization=1.0).fit(*twice).predict(X)
    np.testing.assert_allclose(StumpRegressor(regularization=1.0).fit(X, y, weights).predict(X), one, atol=0.5)
    assert math.isfinite(one.sum())


def test_intervals_at_the_radius_of_training(diabetes: Any) -> None:
    """Where none is given; without one it says what to give, as it does in norm 0."""
    X, y = diabetes
    reg = AdditiveRegressor(radius=0.2, regularization=1.0).fit(X, y)
    assert reg.certify_interval(X[:5]).radius == 0.2
    assert (reg.certify_interval(X[:5]).low == reg.certify_interval(X[:5], 0.2).low).all()
    reg.attack_interval(X[:2]).require_inside(reg.certify_interval(X[:2]))
    assert reg.certify_interval(X[:5], threat=Threat(norm=None, limits={0: 0.1})).radius is None
    with pytest.raises(ValueError, match="`radius` must be given in norm 0"):
        reg.certify_interval(X, threat=Threat(norm=0))
    for other in (StumpRegressor(regularization=1.0), AdditiveRegressor(radius=0, regularization=1.0)):
        with pytest.raises(ValueError, match=f"this {type(other).__name__} was not trained for one"):
            other.fit(X, y).certify_interval(X)


def test_methods_of_classifiers_are_pointed_at_their_own() -> None:
    """An AttributeError, as for any other name, that says which method there is."""
    reg = StumpRegressor()
    for name, instead in (("certify", "certify_interval"), ("attack", "attack_interval")):
        assert not hasattr(reg, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': its answers are numbers.*{instead}"):
            getattr(reg, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'weight'$"):
        reg.weight  # noqa: B018


def test_infinite_values_are_told_what_to_do(diabetes: Any) -> None:
    """In `fit`, and in `predict` of models that take missing numbers and of those that do not."""
    X, y = (part[:60].copy() for part in diabetes)
    reg = StumpRegressor(regularization=1.0).fit(X, y)
    X[3, 2] = np.inf
    for ask in (lambda: reg.predict(X), lambda: StumpRegressor(regularization=1.0).fit(X, y)):
        with pytest.raises(ValueError, match=r"infinity in column 2 \(1 rows\): .*finite number"):
            ask()
    X[3, 2] = np.nan
    gaps = StumpRegressor(regularization=1.0).fit(X, y)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="replace it by a finite number, or by NaN where it stands for a missing one"):
        gaps.predict(X)


def test_explanations_start_at_the_mean_prediction(tmp_path: Path) -> None:
    """Of the training rows, also under noise and from a file; pushes add up to the answer from there."""
    frame, y = make_table()
    for regressor in (
        AdditiveRegressor(regularization=1.0, noise="none"),
        StumpRegressor(noise="gaussian:0.3", rule="mean"),
    ):
        fitted = regressor.set_params(scaling="standard").fit(frame, y)
        told = fitted.explain(frame.iloc[3], 0.1)
        assert told.base == pytest.approx(fitted.predict(frame).mean(), rel=1e-9)
        assert told.base + math.fsum(one.size for one in told.pushes) + told.rest == pytest.approx(told.value)
        assert "on average over training rows" in str(told)
        save(fitted, tmp_path / "model.json")
        assert load(tmp_path / "model.json").explain(frame.iloc[3], 0.1).base == told.base
        del fitted.term_means_
        assert "on average over all steps" in str(fitted.explain(frame.iloc[3], 0.1))
