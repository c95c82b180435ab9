"""Tables as bins: codes by plain comparison, missing values apart, and weights that count as repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.train import TrainingTable, bin_table


def make_table(columns: list[list[float]], weights: list[float] | None = None) -> TrainingTable:
    X = np.array(columns, dtype=np.float64).T
    target = (np.arange(len(X)) % 2).astype(np.uint8)
    return TrainingTable(X, target, sample_weight=None if weights is None else np.array(weights))


numbers = st.floats(-1e300, 1e300, allow_nan=False) | st.sampled_from([0.0, 1.0, 5e-324, -5e-324, 1.0000000000000002])


@given(st.lists(numbers, min_size=2, max_size=60), st.sampled_from([2, 3, 254]))
def test_codes_count_the_edges_that_are_not_above(values: list[float], n_bins: int) -> None:
    binned = bin_table(make_table([values]), n_bins=n_bins)
    if not binned.numbers:
        assert len(set(values)) == 1
        return
    (bins,) = binned.numbers
    expected = np.searchsorted(bins.edges, values, side="right")
    assert binned.codes[:, 0].tolist() == expected.tolist()
    assert bins.centers.size <= max(n_bins, 2)
    assert (np.diff(bins.edges) > 0).all()
    assert (bins.centers[1:] >= bins.edges).all()
    assert (bins.centers[:-1] < bins.edges).all()
    assert bins.shares.sum() == pytest.approx(1)


def test_missing_numbers_and_categories_have_the_last_code() -> None:
    X = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, np.nan], [1.0, 1.0]])
    table = TrainingTable(X, np.array([0, 1, 0, 1], dtype=np.uint8), n_categories={1: 2})
    binned = bin_table(table)
    assert binned.codes.tolist() == [[0, 0], [2, 1], [1, 2], [0, 1]]
    assert binned.numbers[0].missing == pytest.approx(0.25)
    assert binned.sizes.tolist() == [3, 3]


def test_constant_columns_are_left_out() -> None:
    binned = bin_table(make_table([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))
    assert [one.feature for one in binned.numbers] == [1]
    assert binned.codes.shape == (3, 1)


def test_many_categories_take_wider_codes() -> None:
    X = np.arange(1000.0)[:, None]
    table = TrainingTable(X, (np.arange(1000) % 2).astype(np.uint8), n_categories={0: 1000})
    assert bin_table(table).codes[:, 0].tolist() == list(range(1000))


def test_a_weight_counts_as_so_many_rows() -> None:
    rng = np.random.default_rng(0)
    values, repeats = rng.normal(size=400), rng.integers(1, 5, size=400)
    weighted = bin_table(make_table([values.tolist()], (repeats / repeats.mean()).tolist()), n_bins=16)
    repeated = bin_table(make_table([np.repeat(values, repeats).tolist()]), n_bins=16)
    assert weighted.numbers[0].edges.tolist() == repeated.numbers[0].edges.tolist()
    assert weighted.numbers[0].choose_cuts(5).tolist() == repeated.numbers[0].choose_cuts(5).tolist()


def test_keys_tell_rows_apart_and_not_their_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 2)).astype(float)
    target = rng.integers(0, 2, size=300).astype(np.uint8)
    binned = bin_table(TrainingTable(X, target))
    assert binned.count_distinct() == len(
        {(*row, label) for row, label in zip(X.tolist(), target.tolist(), strict=True)}
    )
    order = rng.permutation(300)
    assert bin_table(TrainingTable(X[order], target[order])).keys.tolist() == binned.keys[order].tolist()


def test_cuts_of_a_column_with_many_zeros_reach_the_other_values() -> None:
    values = [0.0] * 900 + list(np.linspace(0.1, 1.0, 100))
    (bins,) = bin_table(make_table([values])).numbers
    cuts = bins.choose_cuts(6)
    assert 4 <= cuts.size <= 6
    assert cuts[-1] > 0.6
