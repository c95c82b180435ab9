"""Wide tables: which of very many numerical columns say more about the label than chance lets them.

Owns the tests of columns and the rounds of choosing them. A column is tested against what the columns that were chosen
before leave unexplained: its slopes, were it to join. Those that stand out join, and the rest is tested again, until
none does: then no column is left out whose slope says that it is missing. At the end all that are left out are tested
together, because very many may each say less than chance does. Rows left out of a fold must not be among those that
columns are chosen on. Must not know threats, noises or how weights are fitted: it is given what rows leave.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.train.bins import BinnedTable
from derand.train.losses.margin_loops import sum_residuals

_FALSE_SHARE = 0.2
"""Of the columns that join in a round, how many may be there by chance."""
_FEWEST = 16
"""Columns that are taken though none stands out."""
_ROUNDS = 10  # at most: two or three are usual
_DRAWS, _TOGETHER = 32, 4.0
"""How often what is left is dealt out anew, and how many deviations from that columns may be off together."""
_BLOCK_COLUMNS = 256
_FLAT, _TINY = 1e-6, float(np.finfo(np.float64).tiny)
_DEGREES = 3  # of the polynomials of ranks by which columns are tested, and one test for what is missing

Leave = Callable[[IntArray], FloatArray]
"""What a model of some of the numerical columns leaves unexplained of each row."""


def choose_columns(rows: BinnedTable, leave: Leave) -> IntArray:
    """Places of the numerical columns to fit, increasing.

    `rows`: those that may be looked at; `leave`: what a model of the columns at some places leaves unexplained of each
    row; of none of them at first. Returns shape (n_chosen,).
    """
    chosen = np.zeros(len(rows.numbers), dtype=bool)
    for _ in range(_ROUNDS):
        strengths = measure_strengths(rows, leave(np.flatnonzero(chosen)))
        joining = select_outstanding(np.where(chosen, 0.0, strengths))
        if not chosen.any() and joining.sum() < _FEWEST:
            joining[np.argsort(-strengths, kind="stable")[:_FEWEST]] = True
        if not (joining & ~chosen).any():
            break
        chosen |= joining
    return np.flatnonzero(chosen)


def select_outstanding(strengths: FloatArray) -> BoolArray:
    """Columns of which at most a share is expected to stand out by chance (Benjamini and Hochberg).

    Examples
    --------
    >>> select_outstanding(np.array([0.3, 6.0, 1.2, 0.1])).tolist()
    [False, True, False, False]
    """
    chances = np.minimum(1.0, 2 * (_DEGREES + 1) * ndtr(-strengths))
    ordered = np.sort(chances)
    allowed = np.flatnonzero(ordered <= _FALSE_SHARE * (np.arange(strengths.size) + 1) / strengths.size)
    return np.asarray(chances <= (ordered[allowed[-1]] if allowed.size else -1.0))


def measure_strengths(rows: BinnedTable, left: FloatArray) -> FloatArray:
    """How far each numerical column goes with what is left of the rows, in deviations of what chance does.

    `left` (n_rows,): what is unexplained of each row. Returns shape (n_columns,): the largest of the tests by
    polynomials of ranks, and of the rows in which the column is missing.
    """
    n_columns = len(rows.numbers)
    centered = left - left.mean()
    shares, sums = _count_codes(rows, centered)
    spread = max(float(np.sqrt(centered @ centered)), _TINY)
    last = (np.arange(n_columns), rows.sizes[:n_columns] - 1)
    share, missing = shares[last], sums[last]
    shares[last] = sums[last] = 0.0
    strength = np.abs(missing) / (spread * np.sqrt(np.maximum(share * (1 - share), 1 / left.size)))
    for values in _list_polynomials(shares, _DEGREES):
        np.maximum(strength, np.abs(np.sum(sums * values, axis=1)) / spread, out=strength)
    return strength


def say_nothing(rows: BinnedTable, left: FloatArray, places: IntArray) -> bool:
    """Whether some columns together go no farther with what is left of the rows than if that were dealt out by chance.

    `places` (n_columns,): of numerical columns; `left` has shape (n_rows,).
    """
    if not places.size:
        return True
    centered = left - left.mean()
    order, rng = np.argsort(rows.keys, kind="stable"), np.random.default_rng(0)
    draws = np.empty((left.size, 1 + _DRAWS))
    draws[:, 0] = centered
    for draw in range(_DRAWS):
        draws[order, 1 + draw] = rng.permutation(centered[order])
    some = rows.keep(places)
    shares, _ = _count_codes(some, centered)
    shares[np.arange(places.size), some.sizes[: places.size] - 1] = 0.0
    (lines,) = _list_polynomials(shares, 1)
    total = np.zeros(1 + _DRAWS)
    for start in range(0, places.size, _BLOCK_COLUMNS):
        block = np.arange(start, min(start + _BLOCK_COLUMNS, places.size))
        total += np.sum((lines[block, some.codes[:, block]].T @ draws) ** 2, axis=0)
    return bool(total[0] - total[1:].mean() <= _TOGETHER * total[1:].std())


def _count_codes(rows: BinnedTable, left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Share of the rows that each code of each numerical column has, and the sum of what they leave."""
    n_columns = len(rows.numbers)
    most = int(rows.sizes[:n_columns].max())
    sums, counts = np.zeros((n_columns, most)), np.zeros((n_columns, most))
    sum_residuals(rows.codes, n_columns, left, sums, counts)
    return counts / left.size, sums


def _list_polynomials(shares: FloatArray, degrees: int) -> list[FloatArray]:
    """Polynomials of the ranks of codes, (n_columns, n_codes): of mean 0 and square 1, each apart from those before."""
    found = [np.ones_like(shares)]
    ranks = np.cumsum(shares, axis=1) - shares / 2
    for _ in range(degrees):
        values = found[-1] * ranks
        for other in found:
            norm = np.sum(shares * other**2, axis=1, keepdims=True)
            values = values - other * np.sum(shares * values * other, axis=1, keepdims=True) / np.where(norm, norm, 1.0)
        size = np.sqrt(np.sum(shares * values**2, axis=1, keepdims=True))
        found.append(np.where(size > _FLAT, values / np.where(size > 0, size, 1.0), 0.0))
    return found[1:]
