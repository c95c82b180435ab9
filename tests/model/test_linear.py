"""Lines: slopes times numbers, beside categories alone, with errors that grow with the numbers of a row."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, LinearTerm, StepFunction, WeightedVote, load, save
from derand.model import Argmax, CategoryShape, Line, Value, read_shapes

TABLE = CategoryTable(1, [0, 1], [-3, 3], other=1)


def test_a_line_is_a_slope_times_a_number() -> None:
    """Of several outputs, one slope each; the difference of two is a line whose error covers both."""
    line = LinearTerm(0, [2.0, -0.5, 0.1], [0.0, 0.25, 0.5])
    assert line.evaluate([2.0]).tolist() == [[4.0, -1.0, 0.2]]
    duel = line.subtract(2, 1)
    assert duel.slopes.tolist() == [0.6]
    assert duel.errors is not None
    assert Fraction(float(duel.errors[0])) >= Fraction(3, 4) + abs(Fraction(0.1) + Fraction(1, 2) - Fraction(0.6))


def test_it_says_that_it_has_neither_cells_nor_a_range() -> None:
    """Whoever takes it for a function with cells gets an error, and never a wrong sum."""
    line = LinearTerm(0, [2.0])
    for ask in (lambda: line.scores, line.score_range, lambda: line.cell_scores):
        with pytest.raises(TypeError, match="line of feature 0"):
            ask()
    with pytest.raises(ValueError, match="NaN"):
        line.evaluate([np.nan])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-1, [1.0]), "column number"),
        ((0, [np.nan]), "`slopes` of LinearTerm"),
        ((0, [[1.0]]), "`slopes` of LinearTerm"),
        ((0, []), "`slopes` of LinearTerm"),
        ((0, [1e200]), "within"),
        ((0, [1.0], [-1.0]), "`errors` of LinearTerm"),
        ((0, [1.0], [0.0, 0.0]), "`errors` of LinearTerm"),
        ((0, [1.0], None, [0.0, 1.0]), "`missing` of LinearTerm must hold 1 numbers"),
        ((0, [1.0], None, np.nan), "`missing` of LinearTerm"),
        ((0, [1.0], None, 1.0, -1.0), "`missing_errors` of LinearTerm"),
        ((0, [1.0], None, None, 1.0), "`missing_errors` of LinearTerm must be None"),
    ],
)
def test_bad_lines_are_refused(arguments: tuple[object, ...], says: str) -> None:
    """By the name of what was wrong."""
    with pytest.raises(ValueError, match=says):
        LinearTerm(*arguments)  # type: ignore[arg-type]


def test_a_missing_number_has_a_score_of_its_own() -> None:
    """Where the line has one: subtracted like slopes are, with an error that counts in rows with that gap alone."""
    line = LinearTerm(0, [2.0, -0.5, 0.1], None, (4.0, 0.1, -0.2), [0.0, 0.25, 0.5])
    assert line.takes_missing
    assert line.evaluate([np.nan, 1.0]).tolist() == [[4.0, 0.1, -0.2], [2.0, -0.5, 0.1]]
    assert line.evaluate([]).shape == (0, 3)
    duel = line.subtract(2, 1)
    assert (duel.missing, duel.slopes.tolist()) == (-0.2 - 0.1, [0.6])
    assert duel.missing_errors is not None
    exact = Fraction(-0.2) - Fraction(0.1)
    assert Fraction(float(duel.missing_errors[0])) >= Fraction(3, 4) + abs(exact - Fraction(-0.2 - 0.1))
    model = AdditiveEnsemble([LinearTerm(0, [1.5], [0.5], -7.25, [0.125]), TABLE], 0, 2)
    assert (model.refuses_missing, model.missing_features) == ((), (0,))
    assert model.score([[np.nan, 1.0], [2.0, 1.0]]).tolist() == [-4.25, 6.0]
    np.testing.assert_allclose(model.bound_errors(np.array([[np.nan, 1.0], [2.0, 1.0]])), [0.125, 1.0])


def test_a_model_with_lines_is_linear_throughout() -> None:
    """Categories may stand beside lines, step functions not; votes have no linear members."""
    model = AdditiveEnsemble([LinearTerm(0, [1.5]), TABLE], 0, 2)
    assert model.is_linear
    assert (model.numerical_features, model.categorical_features, model.refuses_missing) == ((0,), (1,), (0,))
    assert model.score([[2.0, 1.0], [1.0, 7.0]]).tolist() == [6.0, 2.5]
    assert not AdditiveEnsemble([TABLE], 0, 2).is_linear
    with pytest.raises(ValueError, match="linear throughout: feature 2"):
        AdditiveEnsemble([LinearTerm(0, [1.5]), TABLE, StepFunction(2, [0.0], [0, 1])], 0, 3)
    with pytest.raises(ValueError, match="must not be linear"):
        WeightedVote((model,), [1.0])


def test_lines_come_through_the_one_door() -> None:
    """Slopes are multiplied by the levels and not rounded; tables and intercepts are."""
    tables = [CategoryShape(1, np.array([0, 1]), np.array([0.1, -0.2]))]
    asked = {"n_features": 2, "levels": 8}
    two = AdditiveEnsemble.from_shapes([], tables, intercept=0.3, lines=[Line(0, 0.3)], **asked)  # type: ignore[arg-type]
    assert (two.terms[0].describe(), two.threshold, two.score_error) == ({"feature": 0, "slopes": [2.4]}, -3, 0.0)
    meant = AdditiveEnsemble.from_number_shapes(
        [], tables, intercept=0.3, lines=[Line(0, 0.3, 0.5)], arithmetic_error=0.25, **asked
    )
    assert meant.decision == Value(2)
    assert 4.0 <= float(meant.slopes[0].errors[0]) <= 4.0 + 1e-12
    assert 2.0 + 1.5 <= meant.score_error <= 3.5 + 1e-12
    line = Line(0, 0.3, 0.5, -0.2, 0.25)
    gaps = AdditiveEnsemble.from_shapes([], [], lines=[line], arithmetic_error=0.25, **asked)  # type: ignore[arg-type]
    assert gaps.terms[0].missing == -0.2 * 8
    assert 2.0 <= float(gaps.terms[0].describe()["missing_errors"][0]) <= 2.0 + 1e-12
    (back,) = read_shapes(gaps.terms, 8).lines
    assert (back.missing, back.feature) == (-0.2, 0)
    several = AdditiveEnsemble.from_shapes([], [], intercept=[0.0, 1.0], lines=[Line(0, np.array([1.0, 2.0]))], **asked)  # type: ignore[arg-type]
    assert several.decision == Argmax((0, 8))
    assert several.score([[1.0, 0.0]]).tolist() == [[8.0, 16.0]]
    with pytest.raises(ValueError, match="`slope` of the line of feature 0"):
        AdditiveEnsemble.from_shapes([], [], intercept=[0.0, 1.0], lines=[Line(0, 1.0)], **asked)  # type: ignore[arg-type]


def test_it_comes_back_from_a_file(tmp_path: Path) -> None:
    """To the last bit, with its errors where it has some."""
    lines = [LinearTerm(0, [0.1], [1e-17]), LinearTerm(2, [-1e20]), LinearTerm(3, [1.0], None, 1 / 3, [1e-18])]
    model = AdditiveEnsemble([*lines, LinearTerm(4, [1.0], None, 0.0), TABLE], 0, 5)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert [term.describe() for term in again.terms] == [term.describe() for term in model.terms]
    assert [term.missing for term in again.terms] == [None, None, 1 / 3, 0.0, None]


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4),
    st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4),
)
def test_scores_lie_within_their_bound_of_the_exact_sum(slopes: list[float], x: list[float]) -> None:
    """Whatever is multiplied: `bound_errors` covers the rounding of `score`, too."""
    model = AdditiveEnsemble([LinearTerm(at, [slope]) for at, slope in enumerate(slopes)], 0, 4, score_error=0.5)
    rows = np.array([x])
    exact = sum(Fraction(slope) * Fraction(value) for slope, value in zip(slopes, x, strict=True))
    off = abs(Fraction(float(model.score(rows)[0])) - exact)
    assert off + Fraction(1, 2) <= Fraction(float(model.bound_errors(rows)[0]))
