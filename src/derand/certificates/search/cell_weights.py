"""The weight of each cell for a prediction: scores for the mean, and for a vote what the failing mass makes of them.

The failing mass of a row is linear in the cell probabilities of any one term: the weight of a cell is the chance that
the sum of all *other* terms, with this cell's score, still answers as before (the distribution without that term). So
the mass has, at every point, an additive model that agrees with it to first order, whose slopes are the exact gradient
of the mass; near a tie, where the search follows it, the logarithm of the mass has the same direction. Distributions
are kept as characteristic functions on a few frequencies: this leads a search and proves nothing. Must not know
threats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.missing import fill_missing
from derand.certificates.bounds.packing import PackedTerms, Problem, pose_problem
from derand.certificates.rules.mean import expect_scores
from derand.model import Model
from derand.noise import Noise

_NUMBERS = 2**14
"""Terms times frequencies, within the ends below."""
_FREQUENCIES = (24, 256)
_DEVIATIONS = 6.0
"""Of the sum on either side of the threshold: what lies farther is counted wrongly."""


class Member(NamedTuple):
    """A sum whose side decides, or one member of a vote of several."""

    problem: Problem
    weight: float
    """Of its vote; negative where it votes for the reverse of its label. 1 for a model that does not vote."""


def list_members(model: Model) -> list[Member]:
    """The sums that a model consists of."""
    weights = np.ones(1) if model.weights is None else model.weights
    return [Member(pose_problem(one), float(weight)) for one, weight in zip(model.members, weights, strict=True)]


def orient_scores(terms: PackedTerms, signs: FloatArray) -> FloatArray:
    """What cells are worth by their scores, (n_rows, n_cells), as shares of the largest sum: the higher, the safer."""
    return np.asarray(signs[:, None] * (terms.scores / max(terms.largest, 1)))


def compute_margins(problem: Problem, points: FloatArray, noise: Noise | None, signs: FloatArray) -> FloatArray:
    """How far expected scores are on the safe side at some points, (n_points,), as shares of the largest sum."""
    terms = problem.terms
    score = expect_scores(terms, points, noise) + terms.fixed_scores(points)
    return np.asarray(signs * (score - problem.threshold) / (terms.step * max(terms.largest, 1)))


def weigh_cells(
    problem: Problem, points: FloatArray, noise: Noise, signs: FloatArray, levels: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """What cells are worth by the mass at some points, (n_points, n_cells): the higher, the safer; and the margin.

    The margin, (n_points,), is the mass on the safe side less a half.

    Signs are 1 where the sum must stay above the threshold, -1 where it must not get there; `levels` are thresholds of
    single points, instead of the problem's.
    """
    terms = problem.terms
    level = ((problem.threshold if levels is None else levels) - terms.base - terms.fixed_scores(points)) / terms.step
    shares = terms.table(fill_missing(terms, points, noise).rows, noise)
    scores = terms.scores.astype(np.float64)
    first, counts = terms.starts[:-1], np.diff(terms.starts)
    means = np.add.reduceat(shares * scores, first, axis=1)
    spread = np.add.reduceat(shares * scores**2, first, axis=1) - means**2
    deviation = np.sqrt(np.maximum(spread, 0.0).sum(axis=1))
    away = np.abs(np.floor(level) + 0.5 - means.sum(axis=1))
    half = _DEVIATIONS * deviation + away + terms.ranges.max() + 1.0
    half = np.minimum(half, np.maximum(np.abs(level), np.abs(terms.largest - level)) + terms.ranges.max() + 1.0)
    n_frequencies = int(np.clip(_NUMBERS // terms.n_terms, *_FREQUENCIES))
    n_frequencies = min(n_frequencies, max(_FREQUENCIES[0], math.ceil(2 * float(half.max()))))
    weights = np.empty(shares.shape)
    for row in range(points.shape[0]):
        at = float(np.floor(level[row])) + 0.5
        weights[row] = _weigh_row(shares[row], scores, first, counts, at, float(half[row]), n_frequencies)
    mass = (shares[:, : counts[0]] * weights[:, : counts[0]]).sum(axis=1)  # the same by whichever term
    return np.where(signs[:, None] > 0, weights, -weights), signs * (mass - 0.5)


def _weigh_row(
    shares: FloatArray,
    scores: FloatArray,
    first: IntArray,
    counts: IntArray,
    level: float,
    half: float,
    n_frequencies: int,
) -> FloatArray:
    """The chance that the sum is above the level, for each cell of each term, all other terms being random.

    By the Fourier series of a square wave that changes its sign at the level and `half` away from it.
    """
    odd = 2.0 * np.arange(n_frequencies) + 1.0
    turns = np.exp((1j * math.pi / half) * (scores[:, None] * odd))
    factors = np.add.reduceat(shares[:, None] * turns, first, axis=0)
    others = _leave_one_out(factors)
    taper = np.sinc(odd / (2.0 * n_frequencies)) / (
        math.pi * odd
    )  # without it a truncated series overshoots at the level
    wave = taper * np.exp((-1j * math.pi / half * level) * odd)
    return np.asarray(0.5 + 2.0 * (np.repeat(others, counts, axis=0) * turns * wave).imag.sum(axis=1))


def _leave_one_out(factors: FloatArray) -> FloatArray:
    """The products of all rows but one, for each row: dividing by a factor near 0 would not do."""
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumprod(factors[:0:-1], axis=0)[::-1]
    return np.asarray(before * after)
