"""What all rows of a model share in Fourier inversion: grids of frequencies, periods, and tables of cosines and sines.

Contract: `choose_grids` says on which grids dropped frequencies are bounded by a cosine polynomial, nothing where
inversion is of no use or `spectra.py` is cheaper; `tabulate` holds the angles of one period. Nothing here is done
per row. README.md, step 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.kernels import FEWEST_TERMS_OF_FEW_CELLS, MANY_CELLS, may_invert
from derand.kernels.tails.costs import (
    FOURIER_CELL,
    FOURIER_ROW,
    MIN_TERMS_FOR_FOURIER,
    POLYNOMIAL_PAIR,
    POLYNOMIAL_POINT,
    SPECTRUM_POINT,
)
from derand.kernels.tails.tilted import PlaceArray, Terms

MAX_FREQUENCIES = 64
N_PERIODS = 28
"""Each 2**(1/4) times the one before."""
DEGREE = 6
"""Of the Taylor polynomial of -log(1 - x)."""
FINE = 64
"""Scores are split into multiples of that and the rest."""
_MOST_LEVELS = 2**16  # distinct scores: the cosines and sines of a period take 1 KiB for each
_MANY_TERMS = 150  # that make |phi| small enough by a simpler bound
_TYPICAL_SPECTRA = 10  # terms that are transformed, times intervals over the widest deviation


class Grid(NamedTuple):
    """A grid of frequencies, with what all rows of a model share on it."""

    cost: float
    """Nanoseconds per row, about."""
    n_points: int
    """Length of the transform: f is known at (k + 1/2) pi / n_points."""
    bins: PlaceArray
    """For stumps: the bin of each term, by its shift; the last bin is for shift 0."""
    shifts: FloatArray
    """Shift of each bin but the last."""
    slots: IntArray
    """(bins, degree): where in the transform's input the harmonics of a shift belong."""
    factors: FloatArray
    """(bins, degree): with which factor."""
    harmonics: FloatArray
    """(degree + 1, degree): coefficient of cos(k a), halved for k > 0, in sin(a / 2)**(2 j), for k and j - 1."""
    slope: float
    level: float
    """For terms of more than two cells: -log(1 - x) >= slope * x + level."""
    point_weights: FloatArray
    """Largest 1 / |1 - exp(-theta + i w)| next to each point; infinite for the first one, which is never dropped."""
    shortest: float
    """The shortest period N."""


def period_of(shortest: float, number: int) -> int:
    """The period N of that number."""
    return math.ceil(shortest * 2.0 ** (number / 4))


def choose_grids(terms: Terms) -> tuple[Grid, ...]:
    """What all rows of a model share: first on a coarse grid, then on a fine one; nothing where inversion is no use."""
    n_terms = terms.shifts.size
    may_help = may_invert(n_terms, terms.n_cells) and terms.shifts.any()
    if not may_help or split_levels(terms).size > _MOST_LEVELS:
        return ()
    widest = compute_widest(terms)
    has_many_cells = terms.scores.shape[1] > MANY_CELLS * n_terms
    if n_terms < MIN_TERMS_FOR_FOURIER and (has_many_cells or n_terms < FEWEST_TERMS_OF_FEW_CELLS):
        return ()  # a polynomial is too weak: `spectra.py` bounds more
    if has_many_cells and POLYNOMIAL_PAIR * _count_pairs(terms) > SPECTRUM_POINT * _TYPICAL_SPECTRA * widest:
        return ()  # too many pairs: `spectra.py` is cheaper
    shortest = shortest_period(terms)
    coarse = _power_of_two(max(256.0, min(2.5 * widest, max(2048.0, 0.3 * widest))))
    fine = _power_of_two(1.2 * widest)
    return tuple(make_grid(terms, points, shortest) for points in sorted({coarse, max(coarse, fine)}))


def _count_pairs(terms: Terms) -> float:
    """Pairs of cells of the same term."""
    counts = np.diff(terms.starts)
    return 0.5 * float((counts * (counts - 1)).sum())


def compute_widest(terms: Terms) -> float:
    """The largest deviation that the sum can have."""
    return 0.5 * math.sqrt(float((terms.shifts**2).sum()))


def shortest_period(terms: Terms) -> float:
    """The shortest period N of a model."""
    return max(64.0, 0.5 * compute_widest(terms))


def _power_of_two(number: float) -> int:
    return 2 ** math.ceil(math.log2(number))


def make_grid(terms: Terms, points: int, shortest: float) -> Grid:
    counts = np.diff(terms.starts)
    n_pairs = _count_pairs(terms)
    shifts = np.unique(terms.shifts[terms.shifts > 0])
    slots, factors = fold(np.arange(1, DEGREE + 1) * shifts[:, None].astype(np.int64), points)
    before = (np.arange(points) - 0.5) * math.pi / points  # the point before, where the weight is larger
    point_weights = np.where(2 * before >= math.pi, 1.0, 1.0 / np.sin(np.maximum(before, 1e-9)))
    point_weights[0] = math.inf
    point_weights[-1] *= 2  # beyond the last point lies its mirror image
    tangent = 0.5 if counts.size < _MANY_TERMS else 0.0  # where -log(1 - x) and its bound touch
    return Grid(
        cost=FOURIER_ROW + POLYNOMIAL_POINT * points + FOURIER_CELL * counts.sum() + POLYNOMIAL_PAIR * n_pairs,
        n_points=points,
        bins=np.where(terms.shifts > 0, np.searchsorted(shifts, terms.shifts), shifts.size).astype(np.uint64),
        shifts=shifts,
        slots=slots,
        factors=factors,
        harmonics=_expand_powers(),
        slope=1.0 / (1.0 - tangent),
        level=-math.log1p(-tangent) - tangent / (1.0 - tangent),
        point_weights=point_weights,
        shortest=shortest,
    )


def fold(numbers: IntArray, points: int) -> tuple[IntArray, FloatArray]:
    """Where cos(number * w) belongs among cos(n * w), n < points, on the grid of midpoints, and with which factor."""
    rest = numbers % (4 * points)
    rest = np.minimum(rest, 4 * points - rest)
    signs = np.where(rest == points, 0.0, np.where(rest > points, -1.0, 1.0))
    slots = np.where(rest > points, 2 * points - rest, rest)
    # the transform takes half of every cosine but the first
    return np.where(rest == points, 0, slots), np.where(slots == 0, 2 * signs, signs)


def _expand_powers() -> FloatArray:
    """sin(a / 2)**(2 j) = binomial(2 j, j) / 4**j + sum over k of 2 (-1)**k binomial(2 j, j - k) / 4**j cos(k a)."""
    return np.array(
        [
            [(-1) ** k * math.comb(2 * j, j - k) / 4**j if k <= j else 0.0 for j in range(1, DEGREE + 1)]
            for k in range(DEGREE + 1)
        ]
    )


def split_levels(terms: Terms) -> FloatArray:
    """The scores whose cosines and sines are tabulated: all distinct ones of stumps, else 0 .. FINE - 1 and multiples.

    Any score is the sum of two of the latter, which keeps the table small.
    """
    if terms.are_stumps:
        return terms.levels
    return np.concatenate([np.arange(FINE), FINE * np.arange(terms.largest // FINE + 1)]).astype(np.float64)


def tabulate(levels: FloatArray, period: int) -> FloatArray:
    """Cosines and sines of level * w_k for the first frequencies of a period, (levels, 2, frequencies)."""
    turns = np.outer(levels.astype(np.int64), np.arange(MAX_FREQUENCIES)) % period
    angles = 2 * math.pi * np.minimum(turns, period - turns) / period
    return np.stack([np.cos(angles), np.where(2 * turns > period, -np.sin(angles), np.sin(angles))], axis=1)
