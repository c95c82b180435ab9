"""Linear models: their labels, exactly, and how far a row can be moved before its score can fall to a rival's.

Symmetric noise leaves the sign of a linear score alone, in most copies and on average, so that both rules and the model
as deployed have one label and one radius (docs/theory.md, section 14). Owns both, and the failure mass of a vote. Must
not know kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.certificates.bounds.linear_duality import bound_decreases, bound_distances
from derand.certificates.bounds.packing import PackedTerms, pack_terms
from derand.certificates.bounds.pairwise import LARGEST_ODDS
from derand.certificates.bounds.worst_case import compute_box
from derand.certificates.rules.base import EXACT, NO_PROOF, PAPER, Bounds, Query
from derand.certificates.rules.vote import carry_over
from derand.kernels.norms import SMALLEST
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.perturbation import Perturbation

_UP = 1 + 8 * EPSILON
_BLOCK_NUMBERS = 2**20
_LARGE = 1e150
"""Deviations that a margin counts as at most: squares of more may overflow."""
_FAR = 80.0
"""Magnitudes of noise beyond which it carries no share of a row that a bound of its tail could notice."""


def label_linear(model: AdditiveEnsemble, rows: NDArray[np.generic]) -> IntArray:
    """Label of each row by the exact sum of products: class 1 above the threshold, or the first of the largest."""
    x = np.asarray(rows, dtype=np.float64)
    with np.errstate(all="ignore"):
        shift = np.array(model.offsets or (-float(model.threshold or 0),))
        scores = model.score(x).reshape(x.shape[0], shift.size) + shift
        errors = model.bound_rounding(x) * _UP + EPSILON * (np.abs(scores) + np.abs(shift))
        if not model.offsets:  # the score against nothing
            scores = np.concatenate([np.zeros(scores.shape), scores], axis=1)
            errors = np.concatenate([np.zeros(errors.shape), errors], axis=1)
        labels = scores.argmax(axis=1)
        every = np.arange(x.shape[0])
        margin = scores[every, labels][:, None] - scores
        margin[every, labels] = np.inf
        is_sure = (margin > (errors[every, labels][:, None] + errors) * _UP).all(axis=1)
    for row in np.flatnonzero(~is_sure):
        labels[row] = _label_exactly(model, x[row])
    return np.asarray(labels, dtype=np.int64)


def _label_exactly(model: AdditiveEnsemble, row: FloatArray) -> int:
    n_outputs = model.n_outputs
    totals = [Fraction(int(one)) for one in model.offsets] or [Fraction(-(model.threshold or 0))]
    own: list[Any]
    for term in model.terms:
        if term.slope is None:
            own = np.asarray(term.score_rows(row[None])).reshape(-1).tolist()
        else:
            own = term.slope.multiply_exactly(float(row[term.slope.feature]))
        totals = [totals[k] + own[k] for k in range(n_outputs)]
    if not model.offsets:
        return int(totals[0] > 0)
    return totals.index(max(totals))


@dataclass(frozen=True, slots=True, eq=False)
class LinearSum:
    """Two classes of a linear model, as one sum that is above a threshold for class 1.

    Attributes
    ----------
    model : AdditiveEnsemble
        Of one output.
    threshold : int
    features : array of shape (n_lines,)
    slopes, errors : arrays of shape (n_lines,)
    missing : array of shape (n_lines,)
        What a missing number adds; 0 where it is refused.
    tables : PackedTerms
        Of its categories.
    """

    model: AdditiveEnsemble
    threshold: int
    features: IntArray
    slopes: FloatArray
    errors: FloatArray
    missing: FloatArray
    tables: PackedTerms

    @classmethod
    def of(cls, model: AdditiveEnsemble, threshold: int) -> LinearSum:
        """The lines of a model of one output, which is compared with a threshold."""
        linear = model.slopes
        return cls(
            model,
            threshold,
            np.array([one.feature for one in linear], dtype=np.int64),
            np.array([one.values[0] for one in linear]),
            np.array([one.errors[0] for one in linear]),
            np.array([0.0 if one.missing is None else one.missing[0] for one in linear]),
            pack_terms([term for term in model.terms if term.slope is None]),
        )

    def bound_margins(self, rows: FloatArray, is_high: int) -> FloatArray:
        """Lower bounds of how far the score of the model that is meant lies on the side of a class, in each row."""
        with np.errstate(all="ignore"):
            score = self.model.score(rows)
            away = score - self.threshold if is_high else self.threshold - score
            rounding = 2 * EPSILON * (np.abs(score) + abs(float(self.threshold)))
            return np.asarray(away - (self.model.bound_errors(rows) + rounding) * _UP)

    def compute_multipliers(self, perturbation: Perturbation) -> FloatArray:
        """Upper bounds of what the score of the model that is meant decreases by per unit of each column."""
        with np.errstate(over="ignore"):
            units = perturbation.units[self.features] if perturbation.norm != 0 else 1.0
            sizes = np.abs(self.slopes) + self.errors
            return np.asarray(np.where(sizes > 0, sizes * units * _UP + SMALLEST, 0.0))

    def compute_caps(self, perturbation: Perturbation, rows: FloatArray, is_high: int) -> FloatArray:
        """Upper bounds of how far each column can be moved to its worse side, in units, (n_rows, n_lines).

        A missing number stays missing: its cap is 0.
        """
        low, high = perturbation.box(rows)
        own = rows[:, self.features]
        with np.errstate(all="ignore"):
            down, up = own - low[:, self.features], high[:, self.features] - own
            worse = np.where((self.slopes > 0) == bool(is_high), down, up)
            moves = np.where(np.abs(self.slopes) > self.errors, worse, np.maximum(down, up))
            units = perturbation.units[self.features] if perturbation.norm != 0 else 1.0
            return np.asarray(np.where((moves > 0) & ~np.isnan(own), moves / units * _UP + SMALLEST, 0.0))

    def shift_categories(self, rows: FloatArray, perturbation: Perturbation, is_high: int) -> IntArray:
        """What changes of categories take off at most, (n_rows, n_budgets)."""
        decreases, increases = self.tables.category_shifts(rows, np.array(perturbation.budgets), perturbation)
        return decreases if is_high else increases


def build_linear_sum(model: AdditiveEnsemble, low: int = 0, high: int = 1) -> LinearSum:
    """The comparison of two classes of a linear model."""
    comparison = model.duel(low, high)
    assert comparison.threshold is not None  # of a comparison
    return LinearSum.of(comparison, comparison.threshold)


def bound_linear(model: AdditiveEnsemble, rows: NDArray[np.generic], query: Query) -> list[Bounds]:
    """What is proven about rows of a linear model, for each of several budgets of categorical changes.

    A rule that counts noisy copies has a failure mass; labels and radii are the same. The proof "paper" is what the
    failure mass proves: the same radius under normal noise in its own norm, else less.
    """
    pairs = {pair: build_linear_sum(model, *pair) for pair in model.pairs}
    size = max(1, _BLOCK_NUMBERS // max(model.n_features, 1))
    blocks = [np.arange(rows.shape[0])[start : start + size] for start in range(0, max(rows.shape[0], 1), size)]
    parts = [_bound_block(model, pairs, np.asarray(rows[at], dtype=np.float64), query) for at in blocks]
    return [Bounds.merge(blocks, one) for one in zip(*parts, strict=True)]


def _bound_block(
    model: AdditiveEnsemble, pairs: dict[tuple[int, int], LinearSum], rows: FloatArray, query: Query
) -> list[Bounds]:
    """The same for rows of which all moves fit into memory at once."""
    rule, perturbation, proof = query.rule, query.perturbation, query.proof
    labels, own = label_linear(model, rows), query.noise if rule.counts_copies else None
    n_budgets = len(perturbation.budgets)
    shape = (n_budgets, rows.shape[0], model.n_classes)
    radius, log_failure = np.full(shape, np.inf), np.full(shape, -np.inf)
    worst = np.full((n_budgets, rows.shape[0]), np.nan)
    for (low, high), linear in pairs.items():
        for is_high, (label, rival) in enumerate(((low, high), (high, low))):
            at = np.flatnonzero(labels == label)
            if not at.size:
                continue
            comparison = _bound_pair(linear, rows[at], is_high, own, perturbation)
            radius[:, at, rival], log_failure[:, at, rival], worst[:, at] = comparison
            if proof == "paper":
                radius[:, at, rival] = _bound_by_mass(linear, rows[at], own, perturbation, log_failure[:, at, rival])
    has_worst = perturbation.norm is None and not rule.counts_copies and model.n_classes == 2
    return [
        _sum_up(labels, radius[k], log_failure[k], worst[k] if has_worst else None, EXACT if proof == "best" else PAPER)
        for k in range(n_budgets)
    ]


def _sum_up(
    labels: IntArray, radius: FloatArray, log_failure: FloatArray, worst: FloatArray | None, proof: int
) -> Bounds:
    """The worst comparison of each row, from what is proven against each rival, (n_rows, n_classes)."""
    rivals = np.arange(radius.shape[1]) != labels[:, None]
    nearest = np.where(rivals, radius, np.inf)
    least = nearest.min(axis=1)
    ties = rivals & (nearest == least[:, None])
    likely = np.where(ties, log_failure, -np.inf).argmax(axis=1)  # of several the likeliest one
    runner_up = np.where(ties[np.arange(labels.size), likely], likely, ties.argmax(axis=1))
    return Bounds(
        labels,
        np.where(rivals, log_failure, -np.inf).max(axis=1),  # not a number where there are no copies
        least,
        np.where(least > 0, proof, NO_PROOF).astype(np.uint8),
        worst=worst,
        runner_up=runner_up if radius.shape[1] > 2 else None,
    )


def _bound_pair(
    linear: LinearSum, rows: FloatArray, is_high: int, noise: Noise | None, perturbation: Perturbation
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Radii, logarithms of failure masses and worst scores of rows against one rival, each (n_budgets, n_rows)."""
    multipliers, n_budgets = linear.compute_multipliers(perturbation), len(perturbation.budgets)
    caps = linear.compute_caps(perturbation, rows, is_high)
    margins = linear.bound_margins(rows, is_high)[:, None] - linear.shift_categories(rows, perturbation, is_high)
    margins -= 2 * EPSILON * np.abs(margins)
    radius, failure, worst = (np.empty((n_budgets, rows.shape[0])) for _ in range(3))
    for k in range(n_budgets):
        radius[k] = bound_distances(margins[:, k], multipliers, caps, perturbation.norm)
        failure[k] = bound_failures(linear, margins[:, k], noise, rows) if noise is not None else np.nan
        if perturbation.norm is None:
            left = margins[:, k] - bound_decreases(math.inf, multipliers, caps, None)
            left -= 2 * EPSILON * (np.abs(left) + abs(float(linear.threshold)))
            worst[k] = linear.threshold + (left if is_high else -left)
    return radius, failure, worst


def _bound_by_mass(
    linear: LinearSum, rows: FloatArray, noise: Noise | None, perturbation: Perturbation, log_failure: FloatArray
) -> FloatArray:
    """Radii of the paper's proof, which knows the failing mass alone, (n_budgets, n_rows)."""
    assert noise is not None  # a vote has one
    box = compute_box(perturbation, rows)
    moving = linear.features[(linear.slopes != 0) | (linear.errors > 0)]
    is_constant = np.isnan(rows[:, moving]).all(axis=1)
    with np.errstate(all="ignore"):
        own = np.where(is_constant & (log_failure == -np.inf), np.inf, noise.radius_of_log(log_failure))
    return carry_over(own.T, noise, perturbation, moving, rows, box).T


def bound_failures(linear: LinearSum, margins: FloatArray, noise: Noise, rows: FloatArray) -> FloatArray:
    """Upper bounds of the logarithm of the share of noisy copies that fall below the threshold, (n_rows,).

    Under normal noise the share itself, but for rounding; else by Gauss's inequality for symmetric distributions of one
    mode. Noise does not act on missing values.
    """
    count = linear.features.size
    every = noise.scales(np.arange(rows.shape[1]))[linear.features] * _UP
    is_missing = np.isnan(rows[:, linear.features])
    scales, is_off = np.where(is_missing, 0.0, every), (~is_missing & (linear.errors > 0)).any(axis=1)
    slack = (count + 16) * EPSILON
    with np.errstate(all="ignore"):
        parts = np.where((linear.slopes != 0) & (scales > 0), np.abs(linear.slopes) * scales + SMALLEST, 0.0)
        top = parts.max(axis=1, initial=0.0)
        shares = np.where(top[:, None] > 0, parts / top[:, None], 0.0)
        spread = top * np.sqrt(np.sum(shares**2, axis=1)) * (1 + slack)
        spare = (scales @ linear.errors) * (1 + slack) + count * SMALLEST
        far = np.full(margins.shape, min(_FAR, noise.support))
        if noise.norm == 2:
            far = np.where(spread > 0, 10 + np.maximum(margins, 0.0) / spread, _FAR)
        left = (margins - np.where(is_off, far * spare, 0.0)) * (1 - slack)
        if noise.norm == 2:
            from scipy.special import log_ndtr

            log = log_ndtr(-np.where(spread > 0, np.minimum(left / spread, _LARGE), left / spread))
            beyond = log_ndtr(-far) + math.log(2 * count)
            log = np.where(is_off, np.logaddexp(log, beyond), log)
        else:
            deviation = spread * math.sqrt(_VARIANCES[noise.name]) * (1 + 2 * EPSILON)
            z = left / deviation
            share = np.where(z >= 2 / math.sqrt(3), 2 / (9 * z * z), 0.5 - z / (2 * math.sqrt(3)))
            log = np.where(z < _LARGE, np.log(share * (1 + 16 * EPSILON)), math.log(2 / 9) - 2 * math.log(_LARGE))
            box = np.where(top > 0, parts.sum(axis=1) * noise.support * (1 + slack), 0.0)
            log = np.where(left > box, -np.inf, log)
            if math.isinf(noise.support):
                log = np.where(is_off, np.logaddexp(log, math.log(count) - _FAR), log)
        log = log + 1e-13 * (1 + np.abs(log))
    log = np.where(np.isnan(log), np.where(left > 0, -np.inf, 0.0), log)
    return np.where(left > 0, np.minimum(log, math.log(0.5)), 0.0)


_VARIANCES = {"uniform": 1 / 3, "laplace": 2.0}
"""Of noises of magnitude 1."""


def weigh_linear(model: AdditiveEnsemble, rows: FloatArray, noise: Noise) -> FloatArray:
    """Logarithm of the odds with which each class wins its worst comparison, by bounds of failure masses.

    That of the label is the largest.
    """
    labels = label_linear(model, rows)
    worst = np.full((rows.shape[0], model.n_classes), LARGEST_ODDS)
    for low, high in model.pairs:
        linear = build_linear_sum(model, low, high)
        score = linear.model.score(rows) - linear.threshold
        log = bound_failures(linear, np.abs(score), noise, rows)
        with np.errstate(all="ignore"):
            odds = np.clip(np.log1p(-np.minimum(np.exp(log), 0.5)) - log, 0.0, LARGEST_ODDS)
        signed = np.where(score > 0, odds, -odds)
        worst[:, high], worst[:, low] = np.minimum(worst[:, high], signed), np.minimum(worst[:, low], -signed)
    every = np.arange(rows.shape[0])
    worst[every, labels] = np.maximum(worst[every, labels], worst.max(axis=1))
    return worst
