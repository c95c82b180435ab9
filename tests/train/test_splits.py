"""Split search: against plain sums over all rows and candidates, and against dense searches for the minimum."""

from __future__ import annotations

import numpy as np
import pytest

from derand import Gaussian, Laplace, Noise, Uniform
from derand.train import histogram as _histograms
from derand.train.histogram import tabulate
from derand.train.splits import (
    MAX_CANDIDATES,
    SplitGrid,
    Splits,
    measure_entropy,
    measure_left,
    search_minimum,
    search_splits,
    split_columns,
)
from derand.train.table import TrainingTable
from experiments.baselines.plain_training import train_plainly

NOISES = [Gaussian(0.3), Gaussian(0.01), Uniform(0.7), Laplace(0.2)]
BOTH = np.ones(2)


def draw(seed: int, n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Columns of several kinds: continuous, whole numbers, skewed, two values, constant."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, n_rows)
    X = np.stack(
        [
            rng.normal(target, 1.0),
            rng.integers(0, 5, n_rows) - 0.7 * target,
            rng.exponential(1.0 + target),
            (rng.random(n_rows) < 0.3 + 0.4 * target).astype(float),
            np.full(n_rows, 3.0),
        ],
        axis=1,
    )
    return X, target.astype(np.uint8)


def balance(target: np.ndarray) -> np.ndarray:
    return target.size / (2 * np.bincount(target))


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_rows_left_of_candidates_are_plain_sums(noise: Noise) -> None:
    """The expected rows on the left equal the sum over all rows of their probabilities."""
    X, target = draw(0)
    weights = np.random.default_rng(5).random(target.size)
    candidates = np.linspace(-3, 12, 701)
    for histogram in tabulate(X, np.arange(5), target, weights, np.ones(5), 0.001):
        left = measure_left(histogram, candidates, noise)
        for row, column in enumerate(histogram.columns):
            offsets = X[:, column] - X[:, column].min()
            share = noise.cdf((candidates - offsets[:, None]) / noise.magnitude)
            for label in (0, 1):
                expected = (weights * (target == label)) @ share
                np.testing.assert_allclose(left[row, label], expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("noise", [Gaussian(0.3), Gaussian(0.1), Uniform(0.7), Laplace(0.2)], ids=str)
def test_grid_search_equals_the_plain_loop(noise: Noise) -> None:
    """Thresholds, leaves and entropy are those of the paper's loop over candidates and rows."""
    X, target = draw(1)
    splits = search_splits(
        X, np.arange(4), target, noise, SplitGrid.around(noise, 0.01), class_weight=balance(target), n_threads=2
    )
    plain = train_plainly(X, target, noise, range(4))
    np.testing.assert_allclose(splits.thresholds, [stump.threshold for stump in plain], atol=1e-9)
    np.testing.assert_allclose(splits.entropy, [stump.entropy for stump in plain], atol=1e-12)
    np.testing.assert_allclose(splits.left, [stump.left for stump in plain], atol=1e-9)
    np.testing.assert_allclose(splits.right, [stump.right for stump in plain], atol=1e-9)


def test_units_scale_the_search() -> None:
    """Noise with units finds the split that scaling the column by hand finds, in the column's own units."""
    X, target = draw(2)
    units = np.array([4.0, 0.5, 3.0, 2.0, 1.0])
    grid = SplitGrid.around(Gaussian(0.3), 0.01)
    with_units = search_splits(X, np.arange(5), target, Gaussian(0.3, tuple(units)), grid, class_weight=BOTH)
    by_hand = search_splits(X / units, np.arange(5), target, Gaussian(0.3), grid, class_weight=BOTH)
    np.testing.assert_allclose(with_units.thresholds, by_hand.thresholds * units, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(with_units.entropy, by_hand.entropy, rtol=1e-12)


def test_bins_come_close_to_the_exact_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """With values put into bins the split moves by a step at most and the entropy by next to nothing."""
    X, target = draw(3, 5000)
    noise = Gaussian(0.25)
    grid = SplitGrid.around(noise, 0.01)

    def search() -> Splits:
        return search_splits(X, np.array([0, 2]), target, noise, grid, class_weight=BOTH)

    exact = search()
    monkeypatch.setattr(_histograms, "MAX_LEVELS", 1000)
    binned = search()
    assert (exact.thresholds != binned.thresholds).any() or (exact.left != binned.left).any()
    np.testing.assert_allclose(binned.thresholds, exact.thresholds, atol=0.0101)
    np.testing.assert_allclose(binned.entropy, exact.entropy, atol=1e-5)
    np.testing.assert_allclose(binned.left, exact.left, atol=1e-3)


def test_threads_change_nothing() -> None:
    """One thread and four find the same splits, to the last bit."""
    rng = np.random.default_rng(4)
    X, target = rng.integers(0, 256, (500, 200)) / 255, rng.integers(0, 2, 500).astype(np.uint8)
    noise = Gaussian(0.25)
    grid = SplitGrid.around(noise, 0.01)
    one, four = (
        search_splits(X, np.arange(200), target, noise, grid, class_weight=BOTH, n_threads=threads)
        for threads in (1, 4)
    )
    for name in ("columns", "thresholds", "left", "right", "entropy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))


def test_splits_come_in_the_order_of_the_columns() -> None:
    """Columns may be named in any order, and each gets its own split."""
    X, target = draw(6)
    noise = Gaussian(0.3)
    grid = SplitGrid.around(noise, 0.01)
    forward, backward = (
        search_splits(X, columns, target, noise, grid, class_weight=BOTH)
        for columns in (np.arange(5), np.array([3, 1, 4, 0, 2]))
    )
    np.testing.assert_array_equal(backward.columns, [3, 1, 4, 0, 2])
    np.testing.assert_allclose(backward.thresholds, forward.thresholds[[3, 1, 4, 0, 2]], atol=1e-12)


@pytest.mark.parametrize("noise", [Gaussian(0.3), Uniform(0.7), Laplace(0.2)], ids=str)
def test_no_denser_grid_beats_the_minimum(noise: Noise) -> None:
    """The refined search is at least as good as the grid and as a grid a hundred times denser around the best."""
    X, target = draw(7, 60)
    grid = SplitGrid.around(noise, 0.01)
    columns = np.arange(4)
    coarse = search_splits(X, columns, target, noise, grid, class_weight=BOTH)
    exact = search_splits(X, columns, target, noise, grid, class_weight=BOTH, search=search_minimum)
    assert (exact.entropy <= coarse.entropy + 1e-15).all()
    assert (exact.entropy < coarse.entropy).any()
    for histogram in tabulate(X, columns, target, None, np.ones(4), 0.001):
        totals = histogram.counts.sum(axis=2).astype(np.float64)
        dense = np.arange(-1.0, histogram.spans.max() + 1.0, 0.0001)
        least = measure_entropy(measure_left(histogram, dense, noise), totals).min(axis=1)
        assert (exact.entropy[histogram.columns] <= least + 1e-13).all()


def test_a_constant_column_has_no_split() -> None:
    """A constant column comes back with span 0 and the entropy of the labels."""
    X, target = draw(8)
    noise = Gaussian(0.3)
    splits = search_splits(X, np.array([4]), target, noise, SplitGrid.around(noise, 0.01), class_weight=balance(target))
    assert splits.spans[0] == 0
    np.testing.assert_allclose(splits.entropy, np.log(2))


def test_the_step_grows_where_candidates_are_too_many() -> None:
    """A huge range is searched with the largest number of candidates, over the whole of it."""
    grid = SplitGrid.around(Gaussian(0.25), 0.01)
    step, usual = grid.compute_steps(np.array([10_000.0, 100.0])).tolist()
    candidates = SplitGrid(grid.below, grid.above, step).candidates(10_000.0)
    assert candidates.size == MAX_CANDIDATES
    assert candidates[0] == -0.5
    assert candidates[-1] >= 10_000.0
    assert usual == 0.01


def test_the_first_minimum_wins() -> None:
    """Between two splits of the same entropy the smaller one is taken."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    target = np.array([0, 1, 1, 0], dtype=np.uint8)
    noise = Gaussian(0.05)
    splits = search_splits(X, np.array([0]), target, noise, SplitGrid(0.25, 0.25, 0.25), class_weight=BOTH)
    assert splits.thresholds[0] == 0.5


def test_entropy_of_pure_and_empty_leaves() -> None:
    """Pure leaves have entropy 0, an empty leaf adds nothing, and an even leaf has ln 2."""
    left = np.array([[[4.0, 0.0, 2.0], [0.0, 0.0, 2.0]]])
    entropy = measure_entropy(left, np.array([[4.0, 4.0]]))
    np.testing.assert_allclose(entropy, [[0.0, np.log(2), np.log(2)]], atol=1e-300)


@pytest.mark.parametrize("noise", [Gaussian(0.25), Laplace(0.3), Uniform(0.5)], ids=str)
def test_columns_that_are_searched_together_are_split_as_alone(noise: Noise) -> None:
    """Many columns of different ranges, constant ones and gaps among them: to the last bit as each by itself."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 500).astype(np.uint8)
    X = rng.normal(size=(500, 80)) * 10.0 ** rng.integers(-2, 4, 80) + target[:, None] * rng.random(80)
    X[:, 7], X[:, 9] = 3.0, rng.integers(0, 4, 500)
    X[rng.random(500) < 0.3, 11] = np.nan
    X[:, 20:24] = rng.integers(0, 5, (500, 4))
    grid = SplitGrid.around(noise, 0.01)
    together = search_splits(X, np.arange(80), target, noise, grid, class_weight=BOTH)
    for column in [*range(20), *range(24, 80)]:  # 20 to 23 share their levels, and so the order of sums
        alone = search_splits(X, np.array([column]), target, noise, grid, class_weight=BOTH)
        for field in ("thresholds", "left", "right", "entropy", "spans", "steps"):
            assert getattr(alone, field)[0] == getattr(together, field)[column], (column, field)


def test_a_class_against_the_rest_is_a_split_of_two_classes() -> None:
    """Of three classes each is told from the others as if there were these two alone, with their own weights."""
    X, _ = draw(3)
    target = np.digitize(X[:, 0], [-0.5, 1.0]).astype(np.uint8)
    noise, columns, weights = Gaussian(0.3), np.arange(5), np.array([[1.0, 2.0], [1.0, 1.0], [3.0, 1.0]])
    grid = SplitGrid.within(noise, 0.1)
    table = TrainingTable(X, target, np.ones(3))
    found = split_columns(table, columns, noise, grid, rest_weight=weights)
    for code, one in enumerate(found):
        alone = search_splits(X, columns, (target == code).astype(np.uint8), noise, grid, class_weight=weights[code])
        for name in ("thresholds", "left", "right", "entropy"):
            np.testing.assert_allclose(getattr(one, name), getattr(alone, name), rtol=1e-12, err_msg=name)
