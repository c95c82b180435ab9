"""TrainingTable: its parts, and the units of its columns."""

from __future__ import annotations

import numpy as np
import pytest

from derand.train import SCALINGS, TrainingTable, measure_units

TABLE = TrainingTable(
    np.array([[0.0, 1.0, 5.0], [2.0, np.nan, 5.0], [4.0, 0.0, 5.0]]),
    np.array([0, 1, 1], dtype=np.uint8),
    np.array([1.0, 2.0]),
    np.array([0.5, 1.0, 1.5]),
    {1: 2},
    ("a", "b", "c"),
)


def test_weights_of_rows_are_products() -> None:
    """A row weighs its sample weight times its class weight; without sample weights the latter."""
    assert TABLE.row_weight.tolist() == [0.5, 2.0, 3.0]
    assert TrainingTable(TABLE.X, TABLE.target, np.array([1.0, 2.0])).row_weight.tolist() == [1.0, 2.0, 2.0]
    assert TABLE.weigh(np.array([3.0, 2.0, 1.0])).row_weight.tolist() == [3.0, 2.0, 1.0]


def test_rows_are_taken_with_labels_and_weights() -> None:
    """Some of the rows keep their order, labels, weights and columns."""
    part = TABLE.take(np.array([0, 2]))
    assert part.X[:, 0].tolist() == [0.0, 4.0]
    assert part.target.tolist() == [0, 1]
    assert part.row_weight.tolist() == [0.5, 3.0]
    assert (part.n_features, part.numerical.tolist(), part.name(1)) == (3, [0, 2], "b")


def test_units_are_weighted_deviations_or_ranges() -> None:
    """Constant and categorical columns have the unit 1; deviations count the rows' weights."""
    mean = (0.5 * 0 + 1 * 2 + 1.5 * 4) / 3
    deviation = np.sqrt((0.5 * mean**2 + (2 - mean) ** 2 + 1.5 * (4 - mean) ** 2) / 3)
    np.testing.assert_allclose(measure_units(TABLE, "standard"), [deviation, 1.0, 1.0])
    assert measure_units(TABLE, "range").tolist() == [4.0, 1.0, 1.0]


def make_column(values: list[float], weights: list[float] | None = None) -> TrainingTable:
    target = np.arange(len(values), dtype=np.uint8) % 2
    return TrainingTable(
        np.array(values)[:, None], target, sample_weight=None if weights is None else np.array(weights)
    )


def test_robust_units_are_interquartile_ranges() -> None:
    """An outlier does not stretch them; where they are 0 the deviation counts, 1 where the column is constant."""
    assert measure_units(make_column([1.0, 2.0, 3.0, 4.0, 1e6]), "robust").tolist() == [2.0]
    mostly_one = [0.0] * 9 + [5.0]
    assert measure_units(make_column(mostly_one), "robust").tolist() == [np.std(mostly_one)]
    assert measure_units(make_column([3.0, 3.0]), "robust").tolist() == [1.0]
    weighted = make_column([0.0, 1.0, 2.0, 1e6], [1.0, 98.0, 98.0, 1.0])
    assert measure_units(weighted, "robust")[0] == 1.0  # as of two rows, 1 and 2


@pytest.mark.parametrize("scaling", SCALINGS)
def test_units_count_finite_cells_alone(scaling: str) -> None:
    """A gap changes nothing, with or without weights; a column of gaps has the unit 1."""
    values, weights = [1.0, 2.0, 4.0, 7.0, 20.0], [1.0, 3.0, 1.0, 0.5, 2.0]
    for some in (None, weights):
        gap = make_column([*values, np.nan], None if some is None else [*some, 9.0])
        assert measure_units(gap, scaling).tolist() == measure_units(make_column(values, some), scaling).tolist()
    assert measure_units(make_column([np.nan, np.nan]), scaling).tolist() == [1.0]


def test_missing_numbers_are_found_and_left_out_of_units() -> None:
    """Units are those of the numbers that are there, with their weights; categories are no gaps."""
    gaps = np.array([[0.0, 1.0, np.nan], [np.nan, np.nan, 5.0], [4.0, 0.0, 5.0], [2.0, 0.0, np.nan]])
    weights = np.array([0.5, 7.0, 1.5, 1.0])
    table = TrainingTable(gaps, np.array([0, 1, 1, 0], dtype=np.uint8), np.ones(2), weights, {1: 2})
    assert table.list_missing() == (0, 2)
    there = TrainingTable(gaps[[0, 2, 3]], table.target[[0, 2, 3]], np.ones(2), weights[[0, 2, 3]], {1: 2})
    assert measure_units(table, "standard")[0] == measure_units(there, "standard")[0]
    assert measure_units(table, "range").tolist() == [4.0, 1.0, 1.0]


def test_units_of_huge_numbers_do_not_overflow() -> None:
    """Their squares do; the deviation itself is a number like any other."""
    values = np.append(np.zeros(9), 1e300)
    table = TrainingTable(values[:, None], np.array([0, 1] * 5, dtype=np.uint8))
    for scaling in ("standard", "robust"):
        assert measure_units(table, scaling) == pytest.approx(np.std(values / 1e300) * 1e300)
