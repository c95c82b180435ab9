"""The mass of a sum at or below a threshold: an upper bound in whole numbers.

Each term is a polynomial whose coefficients are masses, tilted towards the threshold so that far tails lose no digits,
and rounded upward to whole multiples of 2**-bits. Products are exact products of whole numbers (each polynomial is one
long number, with room between the coefficients) that are rounded upward again: every step only makes the mass larger.
Where there are few cells, and it is close, all their combinations are added up in balls. Owns these sums. Must not know
rows, noises or what the mass is for.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from derand.auditing._balls import Ball, as_ball, ceil_scaled, require_flint

_Law = NDArray[np.uint8]
"""Coefficients as little-endian bytes, (n_levels, n_bytes)."""


def bound_mass(terms: Sequence[tuple[Sequence[int], Sequence[Ball | Fraction]]], cut: int, bits: int) -> Ball:
    """A ball whose upper end bounds the probability that independent terms add up to `cut` or less.

    A term is the whole scores of its cells and their masses: balls, or fractions, which are not tilted. The last digit
    is 2**-bits, a multiple of 8.

    Examples
    --------
    >>> from fractions import Fraction
    >>> coin = ([0, 1], [Fraction(1, 2), Fraction(1, 2)])
    >>> float(bound_mass([coin, coin, coin], 0, 64))
    0.125
    """
    base = sum(min(scores) for scores, _ in terms)
    reduced = [([score - min(scores) for score in scores], masses) for scores, masses in terms]
    step = math.gcd(*(score for scores, _ in reduced for score in scores)) or 1
    reduced = [([score // step for score in scores], masses) for scores, masses in reduced if any(scores)]
    cut = (cut - base) // step
    if cut < 0:
        return as_ball(0.0)
    if cut >= sum(max(scores) for scores, _ in reduced):
        return as_ball(1.0)
    # cells above the cut are in no sum up to it: without them the tilt need not weigh them down
    reduced = [_keep_up_to(scores, masses, cut) for scores, masses in reduced]
    is_rational = all(isinstance(mass, Fraction) for _, masses in reduced for mass in masses)
    tilt = 0.0 if is_rational else _choose_tilt(reduced, cut)
    laws, scale = _tilt_terms(reduced, tilt, cut, bits)
    first, second = _multiply_halves(laws, bits, cut)
    cut = _limit_sum(first, second, cut)
    if cut < 0:
        return as_ball(0.0)
    total = _add_pairs(_read(first), _read(second), tilt, cut, bits)
    return as_ball(Fraction(total, 1 << 2 * bits)) * (as_ball(tilt) * cut).exp() * scale


def enumerate_mass(terms: Sequence[tuple[Sequence[int], Sequence[Ball | Fraction]]], cut: int) -> Ball:
    """The same as the plain sum over all combinations of cells: for few of them, however faint some are.

    Examples
    --------
    >>> from fractions import Fraction
    >>> coin = ([0, 1], [Fraction(1, 2), Fraction(1, 2)])
    >>> float(enumerate_mass([coin, coin, coin], 1))
    0.5
    """
    sums: dict[int, Ball] = {0: as_ball(1.0)}
    for scores, masses in terms:
        grown: dict[int, Ball] = {}
        for (total, known), (score, mass) in itertools.product(sums.items(), zip(scores, masses, strict=True)):
            grown[total + score] = grown.get(total + score, as_ball(0.0)) + known * as_ball(mass)
        sums = grown
    return sum((mass for total, mass in sums.items() if total <= cut), as_ball(0.0))


def _keep_up_to(
    scores: Sequence[int], masses: Sequence[Ball | Fraction], cut: int
) -> tuple[list[int], list[Ball | Fraction]]:
    kept = [(score, mass) for score, mass in zip(scores, masses, strict=True) if score <= cut]
    return [score for score, _ in kept], [mass for _, mass in kept]


def _choose_tilt(terms: Sequence[tuple[Sequence[int], Sequence[Ball]]], cut: int) -> float:
    """The tilt under which the sum is `cut` on average, in doubles: any is right, this one loses least."""
    starts = np.cumsum([0, *(len(scores) for scores, _ in terms[:-1])])
    scores = np.array([score for one, _ in terms for score in one], dtype=np.float64)
    logs = np.array([_take_log(mass) for _, masses in terms for mass in masses])
    counts = np.diff([*starts, scores.size])

    def compute_mean(tilt: float) -> float:
        tilted = logs - tilt * scores
        weights = np.exp(tilted - np.repeat(np.maximum.reduceat(tilted, starts), counts))
        return float((np.add.reduceat(weights * scores, starts) / np.add.reduceat(weights, starts)).sum())

    if compute_mean(0.0) <= cut:
        return 0.0
    low, high = 0.0, 1.0 / max(float(scores.max()), 1.0)
    while compute_mean(high) > cut and high < 1e6:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if compute_mean(middle) > cut else (low, middle)
    return high


def _take_log(mass: Ball) -> float:
    upper = mass.upper()
    return float(upper.log()) if upper > 0 else -1e18


def _tilt_terms(
    terms: Sequence[tuple[Sequence[int], Sequence[Ball | Fraction]]], tilt: float, cut: int, bits: int
) -> tuple[list[_Law], Ball]:
    """Each term as a polynomial of tilted masses that add up to about 1, and what that divides the mass by."""
    laws, scale = [], as_ball(1.0)
    for scores, masses in terms:
        tilted = (
            [mass * (-as_ball(tilt) * score).exp() for score, mass in zip(scores, masses, strict=True)]
            if tilt
            else masses
        )
        weight = _weigh(tilted)
        scale *= as_ball(weight)
        whole = [_ceil(mass / weight, bits) for mass in tilted]
        sums: dict[int, int] = {}
        for score, mass in zip(scores, whole, strict=True):
            sums[score] = sums.get(score, 0) + mass
        laws.append(_write(sums, bits))
    return laws, scale


def _weigh(masses: Sequence[Ball]) -> Ball:
    """What masses are divided by, so that they add up to about 1: no double, which may be smaller than all of these."""
    if all(isinstance(mass, Fraction) for mass in masses):
        return sum(masses, Fraction(0)) or Fraction(1)
    total: Ball = sum(masses, as_ball(0.0))
    total = total.upper()
    return total if total > 0 else as_ball(1.0)


def _ceil(mass: Ball | Fraction, bits: int) -> int:
    if isinstance(mass, Fraction):
        return -((-mass.numerator << bits) // mass.denominator)
    return ceil_scaled(mass, bits)


def _write(sums: dict[int, int], bits: int) -> _Law:
    law = np.zeros((max(sums) + 1, bits // 8 + 2), dtype=np.uint8)
    for score, mass in sums.items():
        law[score] = np.frombuffer(mass.to_bytes(law.shape[1], "little"), dtype=np.uint8)
    return law


def _read(law: _Law) -> list[int]:
    raw, size = law.tobytes(), law.shape[1]
    return [int.from_bytes(raw[start : start + size], "little") for start in range(0, len(raw), size)]


def _multiply_halves(laws: list[_Law], bits: int, cut: int) -> tuple[_Law, _Law]:
    """Two laws that are left when the smallest ones are multiplied again and again."""
    order = itertools.count()
    heap = [(len(law), next(order), law) for law in laws]
    heapq.heapify(heap)
    while len(heap) > 2:
        (_, _, first), (_, _, second) = heapq.heappop(heap), heapq.heappop(heap)
        product = _multiply(first, second, bits)[: cut + 1]
        heapq.heappush(heap, (len(product), next(order), product))
    rest = [law for _, _, law in heap]
    return rest[0], rest[1] if len(rest) > 1 else _write({0: 1 << bits}, bits)


def _multiply(first: _Law, second: _Law, bits: int) -> _Law:
    """The product of two polynomials, rounded upward: two long numbers are multiplied, with room for every digit."""
    size, slot = bits // 8, bits // 4 + 2
    most = _add_up(first) * _add_up(second) + (1 << bits)
    if most >= 1 << 8 * slot:  # masses add up to about 1: far from it
        raise OverflowError("The masses of a term add up to far more than 1.")
    n_levels = len(first) + len(second) - 1
    fmpz = require_flint().fmpz
    product = int(fmpz(_pack(first, slot)) * fmpz(_pack(second, slot)))
    almost_one = np.zeros((n_levels, slot), dtype=np.uint8)
    almost_one[:, :size] = 255
    raised = product + int.from_bytes(almost_one.tobytes(), "little")
    digits = np.frombuffer(raised.to_bytes(n_levels * slot, "little"), dtype=np.uint8)
    return digits.reshape(n_levels, slot)[:, size:]


def _pack(law: _Law, slot: int) -> int:
    wide = np.zeros((len(law), slot), dtype=np.uint8)
    wide[:, : law.shape[1]] = law
    return int.from_bytes(wide.tobytes(), "little")


def _add_up(law: _Law) -> int:
    return sum(int(digits) << 8 * place for place, digits in enumerate(law.sum(axis=0, dtype=np.int64)))


def _limit_sum(first: _Law, second: _Law, cut: int) -> int:
    """The largest sum up to the cut that has any mass: weights are counted from there, so that none is faint."""
    left, right = (np.flatnonzero(law.any(axis=1)) for law in (first, second))
    if not right.size:
        return -1
    partner = np.searchsorted(right, cut - left, side="right") - 1
    sums = (left + right[np.maximum(partner, 0)])[partner >= 0]
    return int(sums.max(initial=-1))


def _add_pairs(first: list[int], second: list[int], tilt: float, cut: int, bits: int) -> int:
    """The tilted mass of all pairs up to the cut, each times exp(-tilt * its distance from it); scale 2**(2 bits)."""
    ratio: Ball = ceil_scaled((-as_ball(tilt)).exp(), bits) if tilt else 1 << bits
    almost_one = (1 << bits) - 1
    running, below = 0, []
    for mass in itertools.islice(itertools.chain(second, itertools.repeat(0)), cut + 1):
        running = (running * ratio + almost_one >> bits) + mass
        below.append(running)
    return sum(mass * below[cut - score] for score, mass in enumerate(first) if mass and score <= cut)
