"""Histograms: exact counts, bins where there are too many values, sharing of levels."""

from __future__ import annotations

import numpy as np
import pytest

from derand.learn.histogram import MAX_LEVELS, SHARED_LEVELS, Histogram, cut_into_blocks, tabulate


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
