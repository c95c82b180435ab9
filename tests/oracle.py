"""The truth that certificates are compared with: exact arithmetic, plain and slow.

Uniform noise has rational probabilities: there every number is a `Fraction` and nothing is rounded. Gaussian and
Laplace noise use mpmath with 60 digits. Reads only the public fields of models and noises, shares no code with them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
from scipy import special

from derand import AdditiveEnsemble, CategoryTable, Noise

MP = mpmath.MPContext()
MP.dps = 60

Number = Any  # a Fraction or a 60-digit number: both compare exactly with floats
Edge = float | None  # None is the far end, left or right


def _uniform_cell(low: Edge, high: Edge, x: float, scale: tuple[float, float]) -> Fraction:
    half = Fraction(scale[0]) * Fraction(scale[1])
    left, right = Fraction(x) - half, Fraction(x) + half
    start = left if low is None else max(Fraction(low), left)
    stop = right if high is None else min(Fraction(high), right)
    return max(stop - start, Fraction(0)) / (2 * half)


def _standardise(low: Edge, high: Edge, x: float, scale: tuple[float, float]) -> tuple[Number, Number, Number]:
    """Ends and width of a cell, in scales, mirrored to the side on which nothing cancels."""
    unit = MP.mpf(scale[0]) * MP.mpf(scale[1])
    start = -MP.inf if low is None else (MP.mpf(low) - MP.mpf(x)) / unit
    stop = MP.inf if high is None else (MP.mpf(high) - MP.mpf(x)) / unit
    width = MP.inf if low is None or high is None else (MP.mpf(high) - MP.mpf(low)) / unit
    return (-stop, -start, width) if start + stop < 0 else (start, stop, width)


def gaussian_tail(z: Number) -> Number:
    """P(noise > z) for noise of deviation 1; 0 far beyond what has a name."""
    if z > 1e8:
        return MP.mpf(0)
    return MP.erfc(z / MP.sqrt(2)) / 2


def gaussian_density(z: Number) -> Number:
    return MP.exp(-z * z / 2) / MP.sqrt(2 * MP.pi)


def _gaussian_cell(low: Edge, high: Edge, x: float, scale: tuple[float, float]) -> Number:
    if low is None and high is None:
        return MP.mpf(1)
    start, stop, width = _standardise(low, high, x, scale)
    middle = (start + stop) / 2
    if width < 1 and width * (1 + abs(middle)) < 1e-12:  # the difference of two tails would lose its digits
        series = 1 + width**2 * (middle**2 - 1) / 24 + width**4 * (middle**4 - 6 * middle**2 + 3) / 1920
        return gaussian_density(middle) * width * series
    if start <= 0:
        return (MP.erf(stop / MP.sqrt(2)) + MP.erf(-start / MP.sqrt(2))) / 2
    return gaussian_tail(start) - gaussian_tail(stop)


def _laplace_cell(low: Edge, high: Edge, x: float, scale: tuple[float, float]) -> Number:
    if low is None and high is None:
        return MP.mpf(1)
    start, stop, width = _standardise(low, high, x, scale)
    if start > 0:
        return -MP.exp(-start) * MP.expm1(-width) / 2
    return -(MP.expm1(-stop) + MP.expm1(start)) / 2


def _gaussian_radius(failure: Number, magnitude: float) -> Number:
    z = MP.mpf(float(-special.ndtri_exp(float(MP.log(failure)))))
    for _ in range(5):  # Newton on the logarithm of the tail, from 15 correct digits
        tail = gaussian_tail(z)
        z += (MP.log(tail) - MP.log(failure)) * tail / gaussian_density(z)
    return MP.mpf(magnitude) * z


def _like(number: Number, magnitude: float) -> Number:
    """A magnitude of the same type: fractions do not mix with 60-digit numbers."""
    return Fraction(magnitude) if isinstance(number, Fraction | int) else MP.mpf(magnitude)


CELLS: dict[str, Callable[..., Number]] = {
    "gaussian": _gaussian_cell,
    "uniform": _uniform_cell,
    "laplace": _laplace_cell,
}
RADII: dict[str, Callable[[Number, float], Number]] = {
    "gaussian": _gaussian_radius,
    "uniform": lambda failure, magnitude: (1 - 2 * failure) * _like(failure, magnitude),
    "laplace": lambda failure, magnitude: -MP.mpf(magnitude) * MP.log(2 * failure),
}


def cell_probabilities(noise: Noise, x: float, edges: Sequence[float], feature: int = 0) -> list[Number]:
    """Exact probability of each cell between the edges."""
    scale = (noise.magnitude, 1.0 if noise.units is None else noise.units[feature])
    ends = [None, *(float(edge) for edge in edges), None]
    return [CELLS[noise.name](low, high, float(x), scale) for low, high in itertools.pairwise(ends)]


def true_radius(noise: Noise, failure: Number) -> Number:
    """Radius that follows from an exact failure mass: 0 from 1/2 on, without limit where the mass is 0."""
    if 2 * failure >= 1:
        return 0
    if failure == 0 and math.isinf(noise.support):
        return MP.inf
    return RADII[noise.name](failure, noise.magnitude)


def numerical_terms(model: AdditiveEnsemble) -> list[tuple[Any, list[int]]]:
    """Axis and scores of each term that noise acts on, whatever its kind."""
    return [(term.axes[0], term.scores[:, 0].tolist()) for term in model.terms if term.axes]


def numerical_law(model: AdditiveEnsemble, row: Sequence[float], noise: Noise) -> dict[int, Number]:
    """Exact probability of each sum of the step functions' scores: all cells enumerated, equal sums merged."""
    law: dict[int, Number] = {0: 1}  # exact: fractions and 60-digit numbers alike multiply it
    for axis, scores in numerical_terms(model):
        cells = cell_probabilities(noise, row[axis.feature], axis.edges.tolist(), axis.feature)
        grown: dict[int, Number] = {}
        for (score, mass), (step, cell) in itertools.product(law.items(), zip(scores, cells, strict=True)):
            grown[score + int(step)] = grown.get(score + int(step), 0) + mass * cell
        law = grown
    return law


def category_score(table: CategoryTable, code: float) -> int:
    found = [int(score) for known, score in zip(table.categories, table.scores[:, 0], strict=True) if known == code]
    return found[0] if found else table.other


def score_law(model: AdditiveEnsemble, row: Sequence[float], noise: Noise) -> dict[int, Number]:
    """Exact law of the whole score; levels of probability 0 are left out."""
    shift = sum(category_score(table, row[table.feature]) for table in model.category_tables)
    return {score + shift: mass for score, mass in numerical_law(model, row, noise).items() if mass > 0}


def category_sums(model: AdditiveEnsemble, row: Sequence[float], l0: int, unseen: bool) -> set[int]:
    """Every sum of category scores that changing at most l0 of the categorical features can reach."""
    tables = model.category_tables
    own = [category_score(table, row[table.feature]) for table in tables]
    options = []
    for table in tables:
        scores = {int(score) for score in table.scores[:, 0]}
        # a table without categories has nothing else to change to than another unknown value
        options.append(sorted(scores | ({table.other} if unseen or not scores else set())))
    sums = set()
    for count in range(min(l0, len(tables)) + 1):
        for changed in itertools.combinations(range(len(tables)), count):
            for chosen in itertools.product(*(options[table] for table in changed)):
                now = dict(zip(changed, chosen, strict=True))
                sums.add(sum(now.get(table, score) for table, score in enumerate(own)))
    return sums


@dataclass(frozen=True)
class Truth:
    """The exact facts about one row and one budget of categorical changes."""

    p_one: Number
    """P(score > threshold) of the unchanged row."""
    failures: tuple[Number, Number]
    """For label 0 and for label 1: the largest mass on the other side over all categorical changes."""
    crossable: tuple[bool, bool]
    """For label 0 and for label 1: whether any cell at all lies on the other side."""

    @property
    def label(self) -> int:
        return int(2 * self.p_one > 1)

    @property
    def failure(self) -> Number:
        return self.failures[self.label]

    def radius(self, noise: Noise) -> Number:
        """True radius of the true label."""
        return true_radius(noise, self.failure) if self.crossable[self.label] else MP.inf


def find_truth(
    model: AdditiveEnsemble, row: Sequence[float], noise: Noise, budgets: Sequence[int], unseen: bool = True
) -> list[Truth]:
    """The truth about one row for each budget, by brute force."""
    assert model.threshold is not None
    threshold, law = model.threshold, numerical_law(model, row, noise)
    lowest = sum(min(scores) for _, scores in numerical_terms(model))
    highest = sum(max(scores) for _, scores in numerical_terms(model))

    def mass_above(shift: int) -> Number:
        return sum(mass for score, mass in law.items() if score + shift > threshold)

    def mass_below(shift: int) -> Number:
        return sum(mass for score, mass in law.items() if score + shift <= threshold)

    (own,) = category_sums(model, row, 0, unseen)
    p_one = mass_above(own)
    truths = []
    for l0 in budgets:
        sums = category_sums(model, row, l0, unseen)
        # 60 digits may add up to 1 and a trifle
        failures = min(max(map(mass_above, sums)), 1), min(max(map(mass_below, sums)), 1)
        crossable = highest + max(sums) > threshold, lowest + min(sums) <= threshold
        truths.append(Truth(p_one, failures, crossable))
    return truths
