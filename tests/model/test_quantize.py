"""The one door for rounding: stumps become one exact grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import AdditiveEnsemble
from derand.model import Argmax, CategoryShape, Shape

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


def test_stumps_of_several_classes_are_merged_by_column() -> None:
    model = AdditiveEnsemble.from_stumps(
        [0, 0, 1],
        [1.0, 2.0, 0.0],
        [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.5, 0.5, 0.0]],
        [[0.6, 0.2, 0.2], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]],
        n_features=3,
        tables=[(2, [0, 1], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], [0.25, 0.25, 0.5])],
    )
    assert model.decision == Argmax((0, 0, 0))
    assert model.score([[0.0, 5.0, 0.0]]).tolist() == [[30 + 50 + 100, 40 + 50, 130]]
    assert model.score([[1.5, 5.0, 1.0]]).tolist() == [[70 + 50, 30 + 50 + 50, 100 + 50]]
    assert model.score([[2.0, 5.0, 7.0]]).tolist() == [[90 + 50 + 25, 50 + 50 + 25, 60 + 50]]


def test_a_missing_number_has_a_leaf_per_class() -> None:
    leaves = {"left": [[0.2, 0.3, 0.5]], "right": [[0.6, 0.2, 0.2]]}
    model = AdditiveEnsemble.from_stumps([0], [1.0], **leaves, n_features=1, missing=[[0.1, 0.2, 0.7]])
    assert model.score([[np.nan]]).tolist() == [[10, 20, 70]]
    with pytest.raises(ValueError, match="`missing` must have shape"):
        AdditiveEnsemble.from_stumps([0], [1.0], **leaves, n_features=1, missing=[0.1])
    with pytest.raises(ValueError, match="one entry per stump"):
        AdditiveEnsemble.from_stumps([0, 1], [1.0], **leaves, n_features=2)


def test_shapes_of_several_classes_leave_out_what_is_constant() -> None:
    shapes = [
        Shape(0, np.array([1.0]), np.array([[0.5, 0.0, -0.5], [0.5, 0.0, -0.5]])),
        Shape(1, np.array([1.0, 2.0]), np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]) @ np.eye(2, 3), np.ones(3)),
    ]
    table = CategoryShape(2, np.array([0, 1]), np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.1]]), np.zeros(3), None)
    model = AdditiveEnsemble.from_shapes(shapes, [table], intercept=[0.1, 0.0, 0.0], n_features=3, levels=10)
    assert model.decision == Argmax((6, 0, -5))
    assert [term.features for term in model.terms] == [(1,), (2,)]
    assert model.score([[0.0, 2.0, 0.0], [0.0, np.nan, 9.0]]).tolist() == [[11, 2, 3], [10, 10, 10]]


@pytest.mark.parametrize(
    ("values", "intercept", "text"),
    [
        ([[0.0, 1.0]], [0.0, 0.0, 0.0], "one number per cell and class, 3"),
        ([[0.0, np.nan, 1.0]], [0.0, 0.0, 0.0], "must be finite"),
        ([[0.0, 1.0, 1.0]], [0.0, np.inf, 0.0], "`intercept` must be finite"),
    ],
)
def test_wrong_shapes_of_several_classes_are_refused(
    values: list[list[float]], intercept: list[float], text: str
) -> None:
    shape = Shape(0, np.empty(0), np.array(values))
    with pytest.raises(ValueError, match=text):
        AdditiveEnsemble.from_shapes([shape], intercept=intercept, n_features=1, levels=10)


@pytest.mark.parametrize(("intercept", "threshold"), [(0.25, -3), (-0.25, 2), (0.2, -2), (0.0, 0)])
def test_the_threshold_is_the_largest_score_that_is_not_above_zero(intercept: float, threshold: int) -> None:
    """Between two scores of the grid the lower one: a sum just above zero is class 1."""
    shape = Shape(0, np.array([0.0]), np.array([-1.0, 1.0]))
    assert AdditiveEnsemble.from_shapes([shape], intercept=intercept, n_features=1, levels=10).threshold == threshold
