"""The one door for rounding: stumps become one exact grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import AdditiveEnsemble

leaves = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0, 0.005, 0.015])
stumps = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.3, 2.0]), leaves, leaves), max_size=8)


@given(stumps, st.sampled_from([1, 10, 100, 200]))
def test_from_stumps_is_the_mean_of_the_stumps(drawn: list[tuple[int, float, float, float]], levels: int) -> None:
    """Score and threshold decide as the mean of the rounded leaves does: the model is defined on its grid."""
    features, thresholds, left, right = (list(column) for column in zip(*drawn, strict=True)) if drawn else ([],) * 4
    model = AdditiveEnsemble.from_stumps(features, thresholds, left, right, n_features=3, levels=levels)
    assert len({term.feature for term in model.terms}) == len(model.terms)
    rows = np.array([[a, b, c] for a in (-2, -1, 0, 0.3, 5) for b in (-1.0, 2.0) for c in (0.1, 0.3)])
    scores = model.score(rows)
    for row, score in zip(rows, scores, strict=True):
        chosen = [r if row[f] >= t else le for f, t, le, r in zip(features, thresholds, left, right, strict=True)]
        rounded = [round(float(leaf * levels)) for leaf in chosen]  # Python, too, rounds halves to even
        assert score == sum(rounded)
        assert (score > model.threshold) == (2 * sum(rounded) > levels * len(chosen))
    assert model.score_error == 0


def test_from_stumps_merges_stumps_of_a_feature() -> None:
    """Equal thresholds add their jumps, jumps that cancel leave no edge, and every stump counts in the mean."""
    model = AdditiveEnsemble.from_stumps(
        [1, 1, 1, 1], [2.0, 1.0, 2.0, 3.0], [0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.9], n_features=2
    )
    (term,) = model.terms
    assert term.edges.tolist() == [3.0]
    assert term.scores.ravel().tolist() == [100, 150]
    assert model.threshold == 200


def test_from_stumps_takes_category_tables() -> None:
    """A category table counts as one stump; leaves of 3/8 are exact on a grid of 200 and not on one of 100."""
    tables = [(1, [0, 1], [0.375, 0.625], 0.5)]
    fine = AdditiveEnsemble.from_stumps([0], [1.0], [0.4], [0.7], n_features=2, levels=200, tables=tables)
    assert fine.terms[1].scores.ravel().tolist() == [75, 125]
    assert (fine.terms[1].other, fine.threshold) == (100, 200)
    coarse = AdditiveEnsemble.from_stumps([0], [1.0], [0.4], [0.7], n_features=2, levels=100, tables=tables)
    assert coarse.terms[1].scores.ravel().tolist() == [38, 62]  # halves go to even
    assert coarse.score_error == fine.score_error == 0


def test_no_stumps_at_all() -> None:
    """An ensemble without stumps has score 0 and threshold 0, hence class 0."""
    model = AdditiveEnsemble.from_stumps([], [], [], [], n_features=2)
    assert model.terms == ()
    assert (model.score(np.zeros((3, 2))) > model.threshold).tolist() == [False] * 3


def test_from_stumps_adds_up_the_leaves_of_missing_numbers() -> None:
    """One leaf per stump, rounded like any other; a feature without any refuses NaN."""
    model = AdditiveEnsemble.from_stumps(
        [0, 1, 0], [1.0, 0.0, 2.0], [0.1, 0.2, 0.3], [0.4, 0.9, 0.6], n_features=2, missing=[0.504, None, 0.7]
    )
    assert [term.missing for term in model.terms] == [120, None]
    assert model.score([[np.nan, 0.0]]).tolist() == [210]
    assert model.refuses_missing == (1,)
    constant = AdditiveEnsemble.from_stumps([0], [1.0], [0.4], [0.4], n_features=1, missing=[0.9])
    assert constant.score([[np.nan], [0.0]]).tolist() == [90, 40]
    table = (1, [0, 1], [0.2, 0.8], 0.5, 0.25)
    mixed = AdditiveEnsemble.from_stumps([0], [1.0], [0.1], [0.6], n_features=2, tables=[table], missing=[0.3])
    assert mixed.score([[np.nan, np.nan], [np.nan, 7]]).tolist() == [55, 80]


def test_from_stumps_refuses_leaves_of_missing_numbers_that_make_no_sense() -> None:
    """Out of range, of another number than stumps, or of some stumps of a feature alone."""
    of_one = [0, 0], [1.0, 2.0], [0.1, 0.1], [0.4, 0.9]
    with pytest.raises(ValueError, match=r"`missing` must hold leaves in \[0, 1\], got 1.5"):
        AdditiveEnsemble.from_stumps(*of_one, n_features=1, missing=[1.5, 0.2])
    with pytest.raises(ValueError, match=r"`missing` must have one leaf per stump, 2 in all, got 1"):
        AdditiveEnsemble.from_stumps(*of_one, n_features=1, missing=[0.2])
    with pytest.raises(ValueError, match=r"for every stump of a feature or for none, got some for feature 0"):
        AdditiveEnsemble.from_stumps(*of_one, n_features=1, missing=[0.2, np.nan])
