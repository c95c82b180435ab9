"""The plain backend: the paper's dynamic programme, for all rows of a block at once. Read this one first.

Cost per row: terms x cells x support. Contract and rounding argument: README.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray, Numbers
from derand.kernels import FLOOR, LOG_HALF, TILTED, Failures, rounding_bound

HOLDS_ALL_PMFS = True
_STEEPEST = 700.0  # largest exponent of a weight: its exponential is a normal double
_NEWTON_STEPS = 40


class Plan(NamedTuple):
    """The model's arrays, as they are."""

    starts: IntArray
    scores: IntArray


def prepare(starts: IntArray, scores: IntArray, *, invert: bool = True) -> Plan:
    """Nothing is worth preparing here."""
    return Plan(starts, scores)


def pmfs(plan: Plan, table: FloatArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    return _build_pmfs(table, *plan)


def _build_pmfs(table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
    pmf = np.zeros((table.shape[0], _most_per_term(starts, scores).sum() + 1))
    pmf[:, 0] = 1.0
    size = 1  # scores reached so far: 0 .. size - 1
    with np.errstate(under="ignore"):
        for first, stop in pairwise(starts):
            grown = np.zeros_like(pmf)
            for cell in range(first, stop):
                score = int(scores[cell])
                grown[:, score : score + size] += pmf[:, :size] * table[:, cell, None]
            pmf = grown
            size += int(scores[first:stop].max())
    return pmf


def tails(plan: Plan, table: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    pmf = pmfs(plan, table)
    support = np.arange(pmf.shape[1])
    low_mass, high_mass = np.empty(low.shape), np.empty(high.shape)
    least, most = _reached_scores(table, *plan)
    for k in range(low.shape[1]):
        below = np.where(support <= low[:, k, None], pmf, 0.0).sum(axis=1)
        above = np.where(support > high[:, k, None], pmf, 0.0).sum(axis=1)
        low_mass[:, k] = np.where(low[:, k] >= least, below + FLOOR, 0.0)
        high_mass[:, k] = np.where(high[:, k] < most, above + FLOOR, 0.0)
    return low_mass, high_mass


def failures(plan: Plan, table: FloatArray, thresholds: IntArray) -> Failures:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    starts, scores = plan
    most = _most_per_term(starts, scores)
    mirrored = np.repeat(most, np.diff(starts)) - scores  # P(S > T) is P(mirrored S <= most in all - T - 1)
    ends = (scores, thresholds), (mirrored, most.sum() - thresholds - 1)
    seems_low = _sum_per_term(table * scores, starts).sum(axis=1) > thresholds  # asked first
    low, high = (np.full(thresholds.size, np.inf) for _ in range(2))
    for other in (False, True):
        for mass, (own, limits), is_guess in zip((low, high), ends, (seems_low, ~seems_low), strict=True):
            left = (low >= LOG_HALF) & (high >= LOG_HALF) & (is_guess != other)
            if left.any():
                mass[left] = _log_tails(table[left], starts, own, limits[left])
    proven = low < LOG_HALF
    return Failures(proven, np.where(proven, low, high), np.full(thresholds.size, TILTED, dtype=np.uint8))


def _log_tails(table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray) -> FloatArray:
    """Upper bounds of log P(S <= threshold), by the tilted pmf (README.md, step 6); -inf where that is impossible."""
    possible = thresholds >= _reached_scores(table, starts, scores)[0]
    tilt = _solve_tilts(table, starts, scores, thresholds)
    weights, masses, log_scales = _tilt(table, starts, scores, tilt)
    weights = np.maximum(weights / np.repeat(masses, np.diff(starts), axis=1), TINY * (table > 0))
    pmf = _build_pmfs(weights, starts, scores)
    below = thresholds[:, None] - np.arange(pmf.shape[1])
    with np.errstate(under="ignore"):
        total = (pmf * np.where(below >= 0, np.exp(tilt[:, None] * np.maximum(below, 0)), 0.0)).sum(axis=1)
    result = np.log(total + FLOOR) + np.log(masses).sum(axis=1) + log_scales.sum(axis=1) - tilt * thresholds
    exponents = np.abs(log_scales).sum(axis=1) - tilt * (thresholds + scores.max(initial=0) * masses.shape[1])
    result += rounding_bound(scores.size) + EPSILON * (4 * exponents + 8 * masses.shape[1] + 512)
    return np.where(possible, result, -np.inf)


def _solve_tilts(table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray) -> FloatArray:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds. Any t is sound.

    Within two deviations of the mean t is 0: a mass near 1/2, which decides the label, gets the fewest roundings.
    """
    tilts = np.zeros(table.shape[0])
    gaps, deviations = _compute_moments(table, starts, scores, thresholds, tilts)
    left = np.flatnonzero(gaps < -2.0 * deviations)
    low, high = np.full(tilts.size, -_STEEPEST / max(scores.max(initial=0), 1)), np.zeros(tilts.size)
    for _ in range(_NEWTON_STEPS):
        left = left[np.abs(gaps[left]) > 0.5 * deviations[left] + 0.5]
        if not left.size:
            break
        gap, tilt = gaps[left], tilts[left]
        low[left], high[left] = np.where(gap < 0.0, low[left], tilt), np.where(gap < 0.0, tilt, high[left])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = tilt + gap / deviations[left] ** 2
        middle = 0.5 * (low[left] + high[left])
        tilts[left] = np.where((low[left] < guess) & (guess < high[left]), guess, middle)
        gaps[left], deviations[left] = _compute_moments(table[left], starts, scores, thresholds[left], tilts[left])
    return tilts


def _compute_moments(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray, tilts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Threshold minus mean, and deviation, of the tilted pmf of each row; to nearest, they only steer."""
    weights, masses, _ = _tilt(table, starts, scores, tilts)
    means = _sum_per_term(weights * scores, starts) / masses
    squares = _sum_per_term(weights * scores.astype(np.float64) ** 2, starts) / masses
    variances = np.maximum(squares - means**2, 0.0).sum(axis=1)
    return thresholds - means.sum(axis=1), np.sqrt(variances)


def _tilt(
    table: FloatArray, starts: IntArray, scores: IntArray, tilt: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Tilted weights of the cells, relative to each term's heaviest cell, their sum, and that cell's log weight.

    So only what is truly negligible beside the heaviest cell can underflow.
    """
    lengths = np.diff(starts)
    with np.errstate(divide="ignore", under="ignore"):
        logs = np.log(table) + tilt[:, None] * scores
    top = np.maximum.reduceat(logs, starts[:-1], axis=1) if starts.size > 1 else logs
    at_top = logs == np.repeat(top, lengths, axis=1)
    score = _most_per_term(starts, np.where(at_top, scores, 0))
    mass = _most_per_term(starts, np.where(at_top & (scores == np.repeat(score, lengths, axis=1)), table, 0.0))
    with np.errstate(under="ignore"):
        weights = table / np.repeat(mass, lengths, axis=1)
        weights = weights * np.exp(tilt[:, None] * (scores - np.repeat(score, lengths, axis=1)))
    weights = np.maximum(weights, TINY * (table > 0))
    return weights, _sum_per_term(weights, starts), np.log(mass) + tilt[:, None] * score


def _sum_per_term(cells: FloatArray, starts: IntArray) -> FloatArray:
    return np.add.reduceat(cells, starts[:-1], axis=1) if starts.size > 1 else np.zeros((cells.shape[0], 0))


def _most_per_term(starts: IntArray, cells: Numbers) -> Numbers:
    return np.maximum.reduceat(cells, starts[:-1], axis=-1) if starts.size > 1 else cells[..., :0]


def _reached_scores(table: FloatArray, starts: IntArray, scores: IntArray) -> tuple[IntArray, IntArray]:
    """Lowest and highest score of positive probability, for each row."""
    least = np.zeros(table.shape[0], dtype=np.int64)
    most = np.zeros(table.shape[0], dtype=np.int64)
    for first, stop in pairwise(starts):
        possible = table[:, first:stop] > 0
        cell_scores = scores[first:stop]
        least += np.where(possible, cell_scores, np.iinfo(np.int64).max).min(axis=1)
        most += np.where(possible, cell_scores, -1).max(axis=1)
    return least, most
