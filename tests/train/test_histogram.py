"""Histograms: exact counts, bins where there are too many values, sharing of levels, and parts of tables joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.train import histogram as module
from derand.train.histogram import (
    MAX_LEVELS,
    SHARED_LEVELS,
    Histogram,
    cut_into_blocks,
    merge_histograms,
    tabulate,
)


def tabulate_all(X: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> list[Histogram]:
    columns = np.arange(X.shape[1])
    return tabulate(X, columns, target.astype(np.uint8), weights, np.ones(columns.size), 0.001)


@pytest.mark.parametrize("order", ["C", "F"])
def test_counts_are_those_of_the_distinct_values(order: str) -> None:
    """Levels and counts equal those found with numpy, whatever the layout of the table in memory."""
    rng = np.random.default_rng(0)
    X = np.asarray(rng.integers(-3, 4, (200, 5)) / 7, order=order)
    target = rng.integers(0, 2, 200)
    seen = 0
    for histogram in tabulate_all(X, target):
        assert histogram.counts.dtype == np.int64
        for row, column in enumerate(histogram.columns):
            seen += 1
            for label in (0, 1):
                values, counts = np.unique(X[target == label, column], return_counts=True)
                held = histogram.counts[row, label] > 0
                np.testing.assert_array_equal(histogram.levels[held], values - X[:, column].min())
                np.testing.assert_array_equal(histogram.counts[row, label, held], counts)
    assert seen == 5


def test_parts_add_up_to_the_whole() -> None:
    """The counts of two halves of a table add up, exactly, to the counts of the table."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (400, 3)).astype(np.float64)
    target = rng.integers(0, 2, 400)
    whole, first, second = (tabulate_all(X[rows], target[rows])[0] for rows in (np.s_[:], np.s_[:150], np.s_[150:]))
    np.testing.assert_array_equal(first.levels, whole.levels)
    np.testing.assert_array_equal(first.counts + second.counts, whole.counts)


def test_weights_are_added_up() -> None:
    """With weights, a count is the sum of the weights of its rows."""
    X = np.array([[1.0], [1.0], [2.0], [2.0]])
    histogram = tabulate_all(X, np.array([0, 1, 1, 1]), np.array([0.5, 1.0, 1.25, 1.5]))[0]
    np.testing.assert_array_equal(histogram.counts[0], [[0.5, 0.0], [1.0, 2.75]])


def test_negative_zero_is_zero() -> None:
    """A negative and a positive zero are one level."""
    histogram = tabulate_all(np.array([[0.0], [-0.0], [1.0]]), np.array([0, 1, 1]))[0]
    np.testing.assert_array_equal(histogram.levels, [0.0, 1.0])


def test_many_values_are_binned() -> None:
    """A column with too many distinct values is counted on a regular grid, its values moved by half a bin at most."""
    rng = np.random.default_rng(2)
    X = np.stack([rng.uniform(5, 6, MAX_LEVELS + 1), rng.integers(0, 9, MAX_LEVELS + 1)], axis=1)
    target = rng.integers(0, 2, MAX_LEVELS + 1)
    exact, binned = sorted(tabulate_all(X, target), key=lambda histogram: -int(histogram.columns[0]))
    np.testing.assert_array_equal(exact.levels, np.arange(9.0))
    np.testing.assert_allclose(np.diff(binned.levels), 0.001)
    assert binned.counts.sum() == MAX_LEVELS + 1
    below = np.cumsum(binned.counts.sum(axis=(0, 1)))
    truth = np.searchsorted(np.sort(X[:, 0]) - X[:, 0].min(), binned.levels + 0.0005)
    np.testing.assert_allclose(below, truth, atol=1)


def test_as_many_values_as_allowed_are_exact() -> None:
    """A column with exactly MAX_LEVELS distinct values is not binned."""
    X = np.sqrt(np.arange(MAX_LEVELS, dtype=np.float64))[:, None]
    histogram = tabulate_all(X, np.arange(MAX_LEVELS) % 2)[0]
    np.testing.assert_array_equal(histogram.levels, X[:, 0])


def test_columns_with_the_same_values_share_levels() -> None:
    """Columns over one small set of values come in one histogram; columns with many values of their own do not."""
    rng = np.random.default_rng(3)
    alike = np.r_[np.zeros((1, 40)), rng.integers(0, 256, (3000, 40)) / 255]
    assert len(tabulate_all(alike, np.arange(3001) % 2)) == 1
    different = np.r_[np.zeros((1, 3)), rng.random((SHARED_LEVELS, 3))]
    assert len(tabulate_all(different, np.arange(SHARED_LEVELS + 1) % 2)) == 3


def test_a_column_that_does_not_fit_leaves_no_trace() -> None:
    """A shared dictionary that a column would overflow forgets it, and still serves the columns after it."""
    rng = np.random.default_rng(4)
    small = np.r_[0.0, rng.integers(0, 50, 2 * SHARED_LEVELS)].astype(np.float64)
    large = np.r_[0.0, rng.random(2 * SHARED_LEVELS)]
    target = np.arange(small.size) % 2
    found = {
        int(column): (histogram.levels[histogram.counts[row].sum(axis=0) > 0])
        for histogram in tabulate_all(np.stack([small, large, small], axis=1), target)
        for row, column in enumerate(histogram.columns)
    }
    for column, values in ((0, small), (1, large), (2, small)):
        np.testing.assert_array_equal(found[column], np.unique(values))


def test_blocks_hold_every_column_once() -> None:
    """Blocks are a partition of the columns, of fewer columns where there are many rows."""
    columns = np.arange(3, 150)
    for n_rows in (10, 10**6, 10**8):
        np.testing.assert_array_equal(np.concatenate(cut_into_blocks(columns, n_rows)), columns)
    assert max(block.size for block in cut_into_blocks(columns, 10**6)) == 4


RESOLUTION = 0.01


def as_parts(histograms: Iterable[Histogram]) -> list[tuple[Any, ...]]:
    """Everything that histograms hold, down to the bits."""
    return [
        tuple(
            None if array is None else (array.dtype, array.shape, array.tobytes())
            for array in (one.columns, one.lows, one.highs, one.units, one.values, one.levels, one.counts, one.spans)
        )
        for one in histograms
    ]


def draw_table(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that share levels, columns that do not, one that is constant, negative zeros, tiny differences."""
    base = rng.choice([0.1, 0.2, 0.1 + 0.2, 0.3, 1e300, -1e-300, -0.0, 0.0], n_rows)
    X = np.stack(
        [
            rng.integers(0, 4, n_rows) / 3,
            rng.integers(0, 5, n_rows) / 3,
            rng.normal(size=n_rows),
            np.full(n_rows, 7.0),
            base,
            1e9 + rng.integers(0, 3, n_rows) * 2.0**-22,
        ],
        axis=1,
    )
    return X, rng.integers(0, 2, n_rows).astype(np.uint8)


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 60), n_cuts=st.integers(0, 5), weighted=st.booleans())
def test_a_table_cut_anywhere_and_merged_gives_the_histogram_of_the_whole(
    seed: int, n_rows: int, n_cuts: int, weighted: bool
) -> None:
    """Rows in any order, cut at any places, parts in any order, empty ones among them: the same bits."""
    rng = np.random.default_rng(seed)
    X, target = draw_table(rng, n_rows)
    weights = rng.integers(1, 9, n_rows) / 4 if weighted else None  # their sums are exact
    units = rng.choice([0.1, 1.0, 3.0], X.shape[1])
    columns = np.arange(X.shape[1])
    whole = tabulate(X, columns, target, weights, units, RESOLUTION)
    pieces = np.split(rng.permutation(n_rows), np.sort(rng.integers(0, n_rows + 1, n_cuts)))
    parts = [
        tabulate(X[rows], columns, target[rows], None if weights is None else weights[rows], units, RESOLUTION)
        for rows in pieces
    ]
    assert as_parts(merge_histograms(parts, RESOLUTION)) == as_parts(whole)


@given(seed=st.integers(0, 10**6))
def test_columns_are_grouped_as_those_of_the_whole(seed: int) -> None:
    """Where parts share levels that the whole does not share, or the reverse, the merged groups are the whole's."""
    rng = np.random.default_rng(seed)
    X = np.r_[np.zeros((1, 5)), rng.integers(0, 12, (40, 5)) * rng.choice([1.0, 0.5], 5)]
    target = rng.integers(0, 2, 41).astype(np.uint8)
    columns = np.array([2, 3, 5, 8, 9])
    wide = np.full((41, 10), np.nan)
    wide[:, columns] = X
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARED_LEVELS", 14)
        cut = rng.integers(1, 40)
        whole, *parts = (
            tabulate(wide[rows], columns, target[rows], None, np.ones(5), RESOLUTION)
            for rows in (np.s_[:], np.s_[:cut], np.s_[cut:])
        )
        assert as_parts(merge_histograms(parts, RESOLUTION)) == as_parts(whole)


def test_weights_that_round_are_added_up_part_by_part() -> None:
    """Levels are the whole's to the bit; sums of arbitrary weights differ by the rounding of their order alone."""
    rng = np.random.default_rng(5)
    X, target = draw_table(rng, 500)
    weights = rng.random(500)
    whole, *parts = (
        tabulate(X[rows], np.arange(6), target[rows], weights[rows], np.ones(6), RESOLUTION)
        for rows in (np.s_[:], np.s_[:200], np.s_[200:300], np.s_[300:])
    )
    for one, other in zip(merge_histograms(parts, RESOLUTION), whole, strict=True):
        assert as_parts([one])[0][:6] == as_parts([other])[0][:6]
        np.testing.assert_allclose(one.counts, other.counts, rtol=500 * 2.0**-53, atol=0)


@given(seed=st.integers(0, 10**6), n_cuts=st.integers(0, 4), weighted=st.booleans())
def test_bins_of_parts_with_common_limits_are_those_of_the_whole(seed: int, n_cuts: int, weighted: bool) -> None:
    """Columns with too many values, in the parts or only together, are joined on the grid of the whole table."""
    rng = np.random.default_rng(seed)
    n_rows = 200
    X = np.stack([rng.normal(size=n_rows), rng.integers(0, 60, n_rows) / 7, 9 * rng.random(n_rows)], axis=1)
    X[rng.random(n_rows) < 0.5, 0] = 0.25  # parts with few values among them
    target = rng.integers(0, 2, n_rows).astype(np.uint8)
    weights = rng.integers(1, 9, n_rows) / 4 if weighted else None
    limits = X.min(axis=0), X.max(axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LEVELS", 50)
        whole, *parts = (
            tabulate(
                X[rows],
                np.arange(3),
                target[rows],
                None if weights is None else weights[rows],
                np.array([1.0, 1.0, 0.5]),
                RESOLUTION,
                limits=limits,
            )
            for rows in (np.arange(n_rows), *np.split(rng.permutation(n_rows), np.sort(rng.integers(0, 200, n_cuts))))
        )
        assert any(one.values is None for one in whole)
        assert as_parts(merge_histograms(parts, RESOLUTION)) == as_parts(whole)


def test_values_that_are_too_many_only_together_are_binned_without_limits() -> None:
    """Parts that are exact each need no limits: their values are known and are put into the whole's bins."""
    rng = np.random.default_rng(8)
    X, target = rng.normal(size=(MAX_LEVELS + 5, 1)), rng.integers(0, 2, MAX_LEVELS + 5).astype(np.uint8)
    whole, *parts = (
        tabulate(X[rows], np.array([0]), target[rows], None, np.ones(1), RESOLUTION)
        for rows in (np.s_[:], np.s_[:20_000], np.s_[20_000:])
    )
    assert [part[0].values is None for part in (whole, *parts)] == [True, False, False]
    assert as_parts(merge_histograms(parts, RESOLUTION)) == as_parts(whole)


def test_bins_of_different_grids_are_refused() -> None:
    """Bins that start at each part's own smallest value cannot be joined; the message says what to do."""
    rng = np.random.default_rng(9)
    X, target = rng.normal(size=(2 * MAX_LEVELS + 2, 1)), np.tile([0, 1], MAX_LEVELS + 1).astype(np.uint8)
    parts = [
        tabulate(X[rows], np.array([0]), target[rows], None, np.ones(1), RESOLUTION)
        for rows in (np.s_[: MAX_LEVELS + 1], np.s_[MAX_LEVELS + 1 :])
    ]
    with pytest.raises(ValueError, match=r"same bins in column 0.*tabulate every part with the `limits`"):
        merge_histograms(parts, RESOLUTION)


def test_parts_of_different_tables_are_refused() -> None:
    """Other columns, other units, or weights in one part only are errors that say so."""
    X, target = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0], dtype=np.uint8)

    def count(columns: list[int], weights: np.ndarray | None = None, unit: float = 1.0) -> list[Histogram]:
        return tabulate(X, np.array(columns), target, weights, np.full(len(columns), unit), RESOLUTION)

    with pytest.raises(ValueError, match=r"same columns, got \[0, 1\] in the first and \[0\] in part 1"):
        merge_histograms([count([0, 1]), count([0])], RESOLUTION)
    for other in (count([0, 1], np.ones(3)), count([0, 1], unit=2.0)):
        with pytest.raises(ValueError, match="part 1 differs from the first in column 0"):
            merge_histograms([count([0, 1]), other], RESOLUTION)
    with pytest.raises(ValueError, match="at least one part"):
        merge_histograms([], RESOLUTION)


def test_limits_must_hold_the_values() -> None:
    """Limits that some value exceeds, or of another size, are refused."""
    X, target = np.array([[1.0], [2.0]]), np.array([0, 1], dtype=np.uint8)
    for limits, message in (
        ((np.array([1.5]), np.array([9.0])), "column 0 has values beyond"),
        ((np.ones(2), np.ones(2)), "two numbers for each of 1 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            tabulate(X, np.array([0]), target, None, np.ones(1), RESOLUTION, limits=limits)


def test_histograms_cannot_be_changed() -> None:
    """Arrays of a histogram are read-only."""
    histogram = tabulate_all(np.array([[0.0], [1.0]]), np.array([0, 1]))[0]
    for array in (histogram.counts, histogram.levels, histogram.values, histogram.lows, histogram[:1].counts):
        assert array is not None
        assert not array.flags.writeable


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_count_nowhere(weighted: bool) -> None:
    """The histogram of a column with gaps is that of the rows that have a value there."""
    rng = np.random.default_rng(9)
    X, target = rng.integers(0, 6, (60, 3)).astype(float), rng.integers(0, 2, 60).astype(np.uint8)
    X[rng.random(X.shape) < 0.3] = np.nan
    weights = rng.uniform(0.5, 2, 60) if weighted else None
    found = tabulate(X, np.arange(3), target, weights, np.ones(3), 0.01)
    for histogram in found:
        for row, column in enumerate(histogram.columns.tolist()):
            rows = ~np.isnan(X[:, column])
            part = None if weights is None else weights[rows]
            (alone,) = tabulate(X[rows], np.array([column]), target[rows], part, np.ones(1), 0.01)
            own = histogram.counts[row].any(axis=0)
            assert histogram.values is not None
            assert alone.values is not None
            np.testing.assert_array_equal(histogram.values[own], alone.values)
            np.testing.assert_array_equal(histogram.counts[row][:, own], alone.counts[0])
            assert (histogram.lows[row], histogram.highs[row]) == (alone.lows[0], alone.highs[0])
