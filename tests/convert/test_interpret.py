"""EBMs of interpret: raw scores on every cut and beside it, the user's own categories, and what is refused."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import Threat, from_model, load, save
from derand.convert import compare_scores, is_explained, probe_rows, read_model

glassbox = pytest.importorskip("interpret.glassbox")

N_PROBES = 6_000
KINDS = ["continuous", "continuous", "nominal", "nominal", "ordinal", "nominal", "continuous"]
QUICK = {"outer_bags": 2, "max_rounds": 40, "random_state": 1, "n_jobs": 1}


@cache
def make_frame() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with gaps, text with gaps, booleans, whole and other numbers as categories, and digits as text."""
    rng = np.random.default_rng(3)
    n_rows = 500
    frame = pd.DataFrame({"age": rng.normal(40, 10, n_rows), "debt": rng.exponential(size=n_rows)})
    frame["job"] = rng.choice(["cook", "clerk", "10", "2"], n_rows)
    frame["owner"] = rng.random(n_rows) < 0.5
    frame["grade"] = rng.integers(0, 12, n_rows)
    frame["size"] = rng.choice([0.5, 1.0, 2.5], n_rows)
    frame["hours"] = rng.integers(0, 60, n_rows)
    score = (frame["age"] > 42) + frame["debt"] * (frame["age"] > 30) - (frame["job"] == "cook") + frame["grade"] / 6
    y = (score + rng.normal(scale=0.5, size=n_rows) > 1.6).to_numpy()
    frame.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "job"] = None
    return frame, y


@cache
def train(kind: str) -> Any:
    frame, y = make_frame()
    settings = {**QUICK, "feature_types": KINDS, "max_bins": 24}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # interpret says that an order of categories should be given
        if kind == "plain":
            return glassbox.ExplainableBoostingClassifier(interactions=0, **settings).fit(frame, y)
        if kind == "pairs":  # two pairs with a column in common, whose cuts are other ones than those of the column
            pairs = [(0, 1), (6, 1)]
            return glassbox.ExplainableBoostingClassifier(interactions=pairs, max_interaction_bins=9, **settings).fit(
                frame, y
            )
        if kind == "classes":
            three = np.where(y, 2, np.where(frame["owner"], 1, 0))
            return glassbox.ExplainableBoostingClassifier(interactions=[(0, 1)], **settings).fit(frame, three)
        target = frame["debt"] + 3.0 * y
        return glassbox.ExplainableBoostingRegressor(interactions=[(0, 1)], **settings).fit(frame, target)


@pytest.mark.parametrize("kind", ["plain", "pairs", "classes", "regressor"])
def test_raw_scores_are_the_library_s(kind: str) -> None:
    """On every cut, a step beside it, missing values and unseen categories: nothing but rounding to the grid."""
    reading = read_model(train(kind))
    model = reading.build()
    rows = probe_rows(reading, model, N_PROBES)
    edges = {axis.feature: axis.edges for term in model.terms for axis in term.axes}
    assert all(np.isin(own, rows[:, feature]).all() for feature, own in edges.items())
    assert np.isnan(rows[:, 0]).any()
    assert all((rows[:, column] == -1).any() and np.isnan(rows[:, column]).any() for column in (2, 3, 4, 5))
    found = compare_scores(reading, model, rows)
    assert found <= model.score_error / model.levels < 1e-9


def test_cuts_belong_to_the_bin_above() -> None:
    """The neighbour below a cut has another score: edges that are a step off would be seen."""
    reading = read_model(train("plain"))
    model = reading.build()
    age = next(term for term in model.terms if term.features == (0,))
    edges = age.axes[0].edges
    rows = np.zeros((2 * edges.size, 7))
    rows[:, 0] = np.concatenate([edges, np.nextafter(edges, -np.inf)])
    assert reading.raw_scores is not None
    on, below = reading.raw_scores(rows).reshape(2, -1)
    assert (on != below).sum() > edges.size // 2
    assert np.sign(np.round(on - below, 9)).tolist() == np.sign(np.diff(age.scores[: edges.size + 1, 0])).tolist()


def test_pairs_are_joined_with_their_columns() -> None:
    """Two pairs with a column in common are one function of three columns; all others stand alone."""
    model = read_model(train("pairs")).build()
    assert {term.features for term in model.terms} == {(0, 1, 6), (2,), (3,), (4,), (5,)}


@pytest.mark.parametrize("kind", ["plain", "pairs", "classes"])
def test_labels_and_probabilities_are_the_library_s(kind: str, tmp_path: Path) -> None:
    """Of the user's own table: text, booleans, whole and broken numbers as categories, gaps; saved and loaded."""
    frame, _ = make_frame()
    theirs = train(kind)
    model: Any = from_model(theirs, frame)
    assert model.encoding_.categories[3] == (False, True)
    assert model.encoding_.categories[4] == tuple(range(12))
    assert model.encoding_.categories[5] == (0.5, 1, 2.5)
    assert (model.predict(frame) == theirs.predict(frame)).all()
    assert np.allclose(model.predict_proba(frame), theirs.predict_proba(frame), rtol=0, atol=1e-9)
    odd = frame.assign(job="pilot", grade=99, size=7.25, age=np.nan)
    assert np.allclose(model.predict_proba(odd), theirs.predict_proba(odd), rtol=0, atol=1e-9)
    save(model, tmp_path / "model.json")
    assert (load(tmp_path / "model.json").predict(odd) == theirs.predict(odd)).all()


def test_numbers_are_the_library_s() -> None:
    frame, _ = make_frame()
    theirs = train("regressor")
    assert np.allclose(from_model(theirs, frame).predict(frame), theirs.predict(frame), rtol=0, atol=1e-9)


def test_categories_of_digits_are_text_where_the_table_says_so() -> None:
    """EBMs keep the text of categories alone: "10" is a number unless the table holds text; the order changes."""
    rng = np.random.default_rng(0)
    words = np.where(rng.random(300) < 0.5, rng.choice(["10", "9", "8"], 300), "7")
    frame = pd.DataFrame({"x": rng.normal(size=300), "code": words})
    y = (frame["x"] + frame["code"].astype(float) > 8).to_numpy()
    theirs = glassbox.ExplainableBoostingClassifier(
        interactions=0, feature_types=["continuous", "nominal"], **QUICK
    ).fit(frame, y)
    guessed: Any = from_model(theirs)
    assert guessed.encoding_.categories[1] == (7, 8, 9, 10)
    model: Any = from_model(theirs, frame)
    assert model.encoding_.categories[1] == ("10", "7", "8", "9")
    want = theirs.decision_function(frame)
    assert np.allclose(model.decision_function(frame), want, rtol=0, atol=1e-9)
    numbers = frame.assign(code=frame["code"].astype(int))
    assert np.allclose(guessed.decision_function(numbers), want, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="column 'code' of `X` holds text now and held numbers then"):
        guessed.certify(frame)


def test_columns_without_names_have_none() -> None:
    """interpret makes names up for arrays; tables need not bear them."""
    frame, y = make_frame()
    rows = frame[["debt", "hours"]].to_numpy(dtype=float)
    theirs = glassbox.ExplainableBoostingClassifier(interactions=0, **QUICK).fit(rows, y)
    model: Any = from_model(theirs)
    assert model.encoding_.names is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (model.predict(rows) == theirs.predict(rows)).all()
    assert from_model(theirs, frame[["debt", "hours"]]).encoding_.names == ("debt", "hours")


def test_private_and_merged_models_are_read() -> None:
    """The differentially private sibling, and a merged model, whose bins are those of both."""
    privacy = pytest.importorskip("interpret.privacy")
    frame, y = make_frame()
    rows = frame[["debt", "hours"]].to_numpy(dtype=float)
    bounds = np.array([[0.0, 8.0], [0.0, 60.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = privacy.DPExplainableBoostingClassifier(max_rounds=20, privacy_bounds=bounds, random_state=1)
        models = [private.fit(rows, y)]
        parts = [
            glassbox.ExplainableBoostingClassifier(interactions=0, **QUICK).fit(rows[at], y[at])
            for at in (slice(0, 250), slice(250, 500))
        ]
        models.append(glassbox.merge_ebms(parts))
    for theirs in models:
        model: Any = from_model(theirs, rows)
        assert np.allclose(model.decision_function(rows), theirs.decision_function(rows), rtol=0, atol=1e-9)


QUESTIONS: dict[str, dict[str, Any]] = {
    "limits": {"threat": Threat(norm=None, limits={"age": "5%"}, frozen=["debt"])},
    "mean": {"noise": "gaussian:0.25"},
    "vote": {"noise": "gaussian:0.25", "rule": "vote"},
}


@pytest.mark.parametrize("asked", QUESTIONS)
def test_certificates_hold_against_attacks_and_audits(asked: str) -> None:
    """As deployed within limits, and smoothed by both rules; `audit` proves the same again."""
    frame, _ = make_frame()
    model: Any = from_model(train("plain"), frame, scaling="standard")
    rows = frame.iloc[:8]
    question = QUESTIONS[asked]
    found = model.certify(rows, **question)
    assert (found.radius > 0).mean() > 0.5
    model.attack(rows, **question).require_outside(found)
    assert (model.audit(rows, found).verdict == "proven").all()


def make_refused() -> dict[str, tuple[Any, str]]:
    frame, y = make_frame()
    classifier, regressor = glassbox.ExplainableBoostingClassifier, glassbox.ExplainableBoostingRegressor
    few = {**QUICK, "max_rounds": 3}
    return {
        "unfitted": (classifier(), "must be fitted, got an ExplainableBoostingClassifier"),
        "link": (regressor(objective="poisson_deviance", **few).fit(frame, y + 1), "link 'log'"),
        "one class": (classifier(**few).fit(frame, np.zeros(len(y))), "two classes or more apart, got 1"),
    }


def test_what_cannot_be_read_is_refused_by_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = make_refused()
    for theirs, message in cases.values():
        with pytest.raises(ValueError, match=message):
            from_model(theirs)


def test_any_pairs_are_read() -> None:
    """A chain of pairs, and pairs of numbers and categories, become trees; what is in no pair stays a function."""
    frame, y = make_frame()
    few = {**QUICK, "max_rounds": 30}
    numbers = frame[["age", "debt", "hours"]].assign(more=frame["debt"] + frame["hours"], most=frame["debt"] * 2)
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table, pairs, joined in ((numbers, chain, (0, 1, 2, 3, 4)), (frame, [(0, 2)], (0, 2))):
            theirs = glassbox.ExplainableBoostingClassifier(interactions=pairs, **few).fit(table, y)
            imported = from_model(theirs, table)
            trees = [term for term in imported.ensemble_.terms if term.is_tree]
            assert [term.features for term in trees] == [joined]
            np.testing.assert_allclose(imported.decision_function(table), theirs.decision_function(table), atol=1e-12)
            reading = read_model(theirs)
            model = reading.build()
            assert is_explained(reading, model, probe_rows(reading, model, N_PROBES))
            assert model.bound_errors(np.zeros((1, table.shape[1]))).max() / model.levels < 1e-10
