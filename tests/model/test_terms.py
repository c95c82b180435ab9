"""Terms: they hold where their edges say, and say what noise and changes can do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from derand import CategoryTable, StepFunction
from tests.model.models import make_mixed


def test_step_function_holds_from_its_lower_edge() -> None:
    """A score holds on [edge, next edge): the edge itself and -0.0 belong to the right cell."""
    step = StepFunction(0, [0.0, 1.0], [10, 20, 30])
    below_zero, below_one = math.nextafter(0.0, -1.0), math.nextafter(1.0, 0.0)
    assert step.evaluate([below_zero, -0.0, 0.0, below_one, 1.0]).tolist() == [10, 20, 20, 20, 30]


def test_step_function_without_edges_is_constant() -> None:
    """One cell covers everything."""
    assert StepFunction(3, [], [7]).evaluate([-1e308, 0.0, 1e308]).tolist() == [7, 7, 7]


def test_category_table_knows_its_codes_and_the_rest() -> None:
    """A code in the table has its score; any other, a missing one too, has the score of `other`."""
    table = CategoryTable(0, [1, 4], [-2, 9], other=5)
    assert table.evaluate([1, 4, 0, 3.5, math.nan, math.inf]).tolist() == [-2, 9, 5, 5, 5, 5]
    assert table.score_range(unseen=True) == (-2, 9)
    assert CategoryTable(0, [1, 4], [2, 9], other=-5).score_range(unseen=True) == (-5, 9)
    assert CategoryTable(0, [1, 4], [2, 9], other=-5).score_range(unseen=False) == (2, 9)
    assert CategoryTable(0, [], [], other=3).evaluate([0, math.nan]).tolist() == [3, 3]
    assert CategoryTable(0, [], [], other=3).score_range(unseen=False) == (3, 3)


def test_terms_are_frozen() -> None:
    """Arrays of a model cannot be written, and the caller's array is not the model's."""
    edges = np.array([1.0, 2.0])
    step = StepFunction(0, edges, [0, 1, 2])
    edges[0] = 7.0
    assert step.edges.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        step.edges[0] = 7.0
    with pytest.raises(AttributeError):
        step.feature = 2  # type: ignore[misc]
    scores = np.array([0, 1, 2], dtype=np.int64)
    step = StepFunction(0, [1.0, 2.0], scores)
    scores[0] = 9
    assert step.scores.ravel().tolist() == [0, 1, 2]


def test_a_term_says_what_noise_and_changes_can_do() -> None:
    """Axes with edges for numbers, codes for categories, and the range of scores that can be reached."""
    step, _, table = make_mixed().terms
    (axis,) = step.axes
    assert (axis.feature, axis.edges.tolist(), step.codes.size) == (3, [0.5], 0)
    assert (table.axes, table.codes.tolist()) == ((), [0.0, 1.0])
    assert (step.score_range(), table.score_range(), table.score_range(unseen=False)) == ((0, 4), (-3, 3), (-3, 3))
    assert step.cell_scores.tolist() == [0, 4]
    assert step.score_rows(np.zeros((2, 4))).tolist() == [0, 0]


def test_a_missing_number_has_a_cell_of_its_own_or_is_refused() -> None:
    """NaN gets the score of `missing`, which counts in the range; without one it is an error that says how."""
    step = StepFunction(0, [1.0], [-2, 5], missing=9)
    assert step.evaluate([0.0, math.nan, 1.0]).tolist() == [-2, 9, 5]
    assert (step.score_range(), step.takes_missing) == ((-2, 9), True)
    assert step.describe() == {"feature": 0, "edges": [1.0], "scores": [[-2], [5]], "missing": 9}
    assert not StepFunction(0, [1.0], [-2, 5]).takes_missing
    assert "missing" not in StepFunction(0, [1.0], [-2, 5]).describe()
    with pytest.raises(ValueError, match=r"got NaN for feature 0.* give it a score with `missing`"):
        StepFunction(0, [1.0], [-2, 5]).evaluate([math.nan])


def test_a_missing_category_is_an_unseen_one_or_has_a_score_of_its_own() -> None:
    """Without `missing` as before; with it, told apart from codes that are not in the table."""
    table = CategoryTable(0, [1, 4], [2, 9], other=5, missing=-7)
    assert table.evaluate([1, math.nan, 3]).tolist() == [2, -7, 5]
    assert (table.score_range(unseen=True), table.score_range(unseen=False)) == ((-7, 9), (2, 9))
    assert CategoryTable(0, [], [], other=3, missing=4).evaluate([0, math.nan]).tolist() == [3, 4]
    assert CategoryTable(0, [], [], other=3, missing=4).score_range(unseen=False) == (3, 4)
    assert "missing" not in CategoryTable(0, [1], [2], other=5).describe()


@pytest.mark.parametrize("missing", [0.5, math.nan, "much", 2**60])
def test_the_score_of_a_missing_value_is_a_whole_number(missing: object) -> None:
    """Whatever else is given is refused by the name of the parameter."""
    with pytest.raises(ValueError, match=r"`missing`|could not convert"):
        StepFunction(0, [1.0], [-2, 5], missing=missing)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`missing`|could not convert"):
        CategoryTable(0, [1], [-2], 5, missing=missing)  # type: ignore[arg-type]
