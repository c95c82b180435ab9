"""The proof that 0.73 ranges decide the vote: its bounds against mpmath, the theorem against exact sums, a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import mpmath
import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb

from scripts.prove_deduction import (
    LARGE,
    Finding,
    FreeCell,
    SteeredCell,
    bound_decay,
    bound_excess,
    bound_first_cell,
    bound_free,
    bound_log_modulus,
    bound_phase,
    bound_steered,
    bound_swell,
    choose_start,
    covers_everything,
    cut,
    main,
    make_frequencies,
    measure_angle,
    measure_kernel,
    prove_large,
    prove_small,
    steer,
)

CONSTANT, RESERVE = arb("0.73"), arb("0.003")


@dataclass(frozen=True)
class TwoPoints:
    """Independent variables, each 0 or `ranges` with the chance `chances` of the latter."""

    chances: np.ndarray
    ranges: np.ndarray

    @property
    def variance(self) -> float:
        return float(np.sum(self.chances * (1 - self.chances) * self.ranges**2))

    def measure_tail(self, distance: float) -> float:
        """P(S <= E S - distance), over all outcomes; what lies within 1e-9 above counts as well."""
        sums, weights = np.zeros(1), np.ones(1)
        for p, r in zip(self.chances, self.ranges, strict=True):
            sums, weights = np.concatenate([sums, sums + r]), np.concatenate([weights * (1 - p), weights * p])
        return float(weights[sums <= self.chances @ self.ranges - distance + 1e-9].sum())

    def measure_factors(self, u: np.ndarray) -> np.ndarray:
        """Characteristic function of each centred variable, one row per u."""
        p, x = self.chances, u[:, None] * self.ranges
        return p * np.exp(1j * (1 - p) * x) + (1 - p) * np.exp(-1j * p * x)


def draw(rng: np.random.Generator, n: int) -> TwoPoints:
    """Two-point laws of which some are skewed, some fair, some short."""
    chances = rng.choice([0.5, 0.01, 0.99, *rng.random(3)], n)
    return TwoPoints(chances, rng.choice([1.0, 1.0, rng.random()], n))


def is_above(ball: arb, number: mpmath.mpf | float, slack: float = 1e-12) -> bool:
    """Whether the largest number of a ball is at least a number."""
    return float(ball.upper()) >= float(number) - slack


def measure_reserve(tail: float, variance: float) -> float:
    return (0.5 - tail) * math.sqrt(1 + variance)


def integrate_smoothly(law: TwoPoints, distance: float, n: int = 20_000) -> float:
    """Right side of the smoothing inequality less 1/2, by the midpoint rule."""
    u = (np.arange(n) + 0.5) * 2 * np.pi / n
    v = u / (2 * np.pi)
    kernel = (1 - v) / 2 + 0.5j * ((1 - v) / np.tan(np.pi * v) + 1 / np.pi)
    return float(np.real(kernel * np.exp(1j * u * distance) * law.measure_factors(u).prod(axis=1)).mean() * 2)


def integrate_bound(s: float, distance: float, n: int = 200_000) -> float:
    """The bound of the cells at one s, in doubles and without cells."""
    u = (np.arange(n) + 0.5) * 2 * np.pi / n
    v = u / (2 * np.pi)
    kernel = (1 - v) / 2 + 0.5j * ((1 - v) / np.tan(np.pi * v) + 1 / np.pi)
    known = u < np.pi
    half = np.where(known, np.cos(u / 2), 1.0)
    d = np.where(u < np.pi / 2, u - np.sin(u), np.pi / 2 - 1 - np.log(2) - 2 * np.log(half))
    angle = distance * u - (np.pi / 2 - np.angle(kernel)) - s * s * d
    sine = np.where(known & (angle >= -np.pi / 2), np.sin(angle), -1.0)
    modulus = np.where(sine >= 0, half ** (4 * s * s), np.exp(-s * s * (1 - np.cos(u))))
    return float(-(np.abs(kernel) * modulus * sine).mean() * 2)


def test_the_kernel_is_the_one_of_the_smoothing_inequality() -> None:
    """Modulus and lag of K as written with the cotangent of pi v lie in their balls, which are narrow."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        for u in [0.001, 6.28, *rng.uniform(0.001, 6.28, 200)]:
            found, v = measure_kernel(arb(float(u))), mpmath.mpf(float(u)) / (2 * mpmath.pi)
            kernel = (1 - v) / 2 + 0.5j * ((1 - v) * mpmath.cot(mpmath.pi * v) + 1 / mpmath.pi)
            for ball, value in ((found.modulus, abs(kernel)), (found.lag, mpmath.pi / 2 - mpmath.arg(kernel))):
                assert ball.contains(arb(mpmath.nstr(value, 30)))
                assert float(ball.rad()) < 1e-9 * float(ball)
            assert u * float(found.modulus) <= float(bound_swell(float(u)))


def test_the_kernel_falls_and_its_lag_rises_by_less_than_half() -> None:
    """|K| decreases; the lag's slope lies between 0 and 1/2, and comes near to both ends that it has."""
    grid = np.linspace(0.01, 6.27, 500)
    kernels = [measure_kernel(arb(float(u))) for u in grid]
    assert all(left.modulus > right.modulus for left, right in pairwise(kernels))
    slopes = np.diff([float(kernel.lag) for kernel in kernels]) / np.diff(grid)
    assert 0 < slopes.min() < 0.18
    assert 0.49 < slopes.max() < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_modulus_and_phase_stay_within_their_bounds(seed: int) -> None:
    """|f| and arg f of random two-point sums, in 30 digits; the phases of factors add up."""
    rng = np.random.default_rng(seed)
    law = draw(rng, int(rng.integers(1, 9)))
    v = law.variance
    for u in rng.uniform(0.01, 2 * np.pi, 20).tolist():
        ball = arb(u)
        with mpmath.workdps(30):
            factors = [
                p * mpmath.expj((1 - p) * u * r) + (1 - p) * mpmath.expj(-p * u * r)
                for p, r in zip(law.chances.tolist(), law.ranges.tolist(), strict=True)
            ]
            modulus = abs(mpmath.fprod(factors))
            phase = abs(mpmath.fsum(mpmath.arg(factor) for factor in factors))
        assert is_above((-arb(v) * bound_decay(ball, ball)).exp(), modulus)
        if u < np.pi:
            assert is_above(-(arb(v) * bound_log_modulus(ball)).exp(), -modulus)
            assert is_above(arb(v) * bound_phase(ball), phase)


@pytest.mark.parametrize("u", [0.2, 1.0, 1.5])
def test_the_bounds_of_modulus_and_phase_are_met(u: float) -> None:
    """Fair coins attain the lower bound of |f|; rare ones come near the upper bound, and near that of the phase."""
    fair, rare = TwoPoints(np.full(3, 0.5), np.ones(3)), TwoPoints(np.full(3, 1e-6), np.ones(3))
    coins, rarely = fair.measure_factors(np.array([u]))[0], rare.measure_factors(np.array([u]))[0]
    low = math.exp(fair.variance * float(bound_log_modulus(arb(u))))
    assert np.abs(coins.prod()) == pytest.approx(low, rel=1e-12)
    decay = float(bound_decay(arb(u), arb(u)))
    assert -math.log(np.abs(rarely.prod())) == pytest.approx(rare.variance * decay, rel=1e-4)
    assert np.abs(np.angle(rarely).sum()) == pytest.approx(rare.variance * float(bound_phase(arb(u))), rel=1e-4)


def test_the_phase_has_its_largest_slope_beyond_a_right_angle() -> None:
    """There the worst chance at each u attains the slope tan(u / 2) of the bound, which is continuous at pi / 2."""
    u, step = 2.4, 1e-5
    y = math.sin(u / 2) ** 2
    share = (2 * y - 1) / y  # 4 p (1 - p) of the worst chance
    p = (1 + math.sqrt(1 - share)) / 2
    law = TwoPoints(np.array([p]), np.ones(1))
    phases = np.angle(law.measure_factors(np.array([u - step, u + step])))[:, 0]
    bounds = [float(bound_phase(arb(at))) for at in (u - step, u + step)]
    assert np.diff(phases)[0] / law.variance == pytest.approx(bounds[1] - bounds[0], rel=1e-6)
    around = [float(bound_phase(arb(math.pi / 2 + shift))) for shift in (-1e-9, 0.0, 1e-9)]
    np.testing.assert_allclose(around, math.pi / 2 - 1, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_smoothing_inequality_holds_with_atoms(seed: int) -> None:
    """P(S <= T) is at most the integral, also where T is an atom of S, and not far below it."""
    rng = np.random.default_rng(seed)
    law = draw(rng, int(rng.integers(1, 10)))
    atom = law.chances @ law.ranges - law.ranges[rng.random(law.ranges.size) < 0.5].sum()
    for distance in (float(atom), float(rng.uniform(-1, 1))):
        gap = 0.5 + integrate_smoothly(law, distance) - law.measure_tail(distance)
        assert -1e-5 <= gap <= 1


@pytest.mark.parametrize("s", [0.73, 0.99, 1.4, 4.0])
def test_the_cells_add_up_to_slightly_more_than_the_bound(s: float) -> None:
    """The sum over cells of u lies above the same bound integrated in doubles, by little."""
    frequencies = make_frequencies(CONSTANT)
    found, expected = float(bound_excess(s, s, frequencies)), integrate_bound(s, 0.73)
    assert expected < found < expected + 5e-4
    assert float(bound_excess(s, s * 1.01, frequencies)) > found


@pytest.mark.parametrize("seed", range(5))
def test_a_cell_bounds_every_integrand_within_it(seed: int) -> None:
    """Wide cells against the integrand at every u, s, modulus and phase that the bounds allow."""
    rng = np.random.default_rng(seed)
    for left in [0.02, 0.5, 1.0, 1.5, 2.0, 2.8]:
        right, low = left + float(rng.uniform(0.01, 0.3)), float(rng.uniform(0.6, 1.5))
        high = low * float(rng.uniform(1, 1.2))
        v_low, v_high = arb(low) ** 2, arb(high) ** 2
        cell = steer(arb(left), arb(right), CONSTANT)
        bound, largest = float(bound_steered(cell, v_low, v_high) / cell.width), -math.inf
        free = FreeCell(cell.width, cell.kernel_left, cell.decay)
        for u in [left, right, *rng.uniform(left, right, 8).tolist()]:
            kernel, angle = float(measure_kernel(arb(u)).modulus), float(measure_angle(arb(u), CONSTANT))
            for v in [low**2, high**2, float(rng.uniform(low**2, high**2))]:
                lower, upper = math.exp(v * float(bound_log_modulus(arb(u)))), math.exp(-v * (1 - math.cos(u)))
                reach = v * float(bound_phase(arb(u)))
                sines = np.sin(angle + np.linspace(-reach, reach, 41))
                largest = max(largest, *(-kernel * lower * sines), *(-kernel * upper * sines))
                assert kernel * upper <= float(bound_free(free, v_low) / free.width) + 1e-12
        assert largest <= bound + 1e-12


def test_each_factor_of_a_cell_is_taken_where_it_is_worst() -> None:
    """The parts of a cell bound theirs at every u; a good sine takes the least factors, a bad one the largest."""
    left, right = 0.7, 1.9
    cell = steer(arb(left), arb(right), CONSTANT)
    for u in np.linspace(left, right, 25)[1:-1].tolist():
        assert cell.kernel_left > measure_kernel(arb(u)).modulus > cell.kernel_right
        assert cell.log_modulus_right < bound_log_modulus(arb(u))
        assert cell.phase_right > bound_phase(arb(u))
        assert cell.angle_left < measure_angle(arb(u), CONSTANT)
        assert cell.decay < bound_decay(arb(u), arb(u))
    ends = {"width": arb(1), "kernel_left": arb(3), "kernel_right": arb(2)}
    moduli = {"log_modulus_right": arb(-1), "decay": arb(0.25)}
    good = SteeredCell(**ends, angle_left=arb(1), phase_right=arb(0.125), **moduli)
    assert float(bound_steered(good, arb(2), arb(4))) == pytest.approx(-2 * math.exp(-4) * math.sin(0.5))
    bad = SteeredCell(**ends, angle_left=arb(0), phase_right=arb(0.125), **moduli)
    assert float(bound_steered(bad, arb(2), arb(4))) == pytest.approx(3 * math.exp(-0.5) * math.sin(0.5))
    lost = SteeredCell(**ends, angle_left=arb(0), phase_right=arb(1), **moduli)
    assert float(bound_steered(lost, arb(2), arb(4))) == pytest.approx(3 * math.exp(-0.5))


def test_the_first_cell_counts_the_phase_alone() -> None:
    """From 0 to u the bound is at least the integral of |K| times the phase, and close to it."""
    for u in (0.02, 0.3):
        grid = ((np.arange(200) + 0.5) * u / 200).tolist()
        harms = [float(measure_kernel(arb(t)).modulus * bound_phase(arb(t))) for t in grid]
        assert float(bound_first_cell(u, arb(2))) == pytest.approx(2 * u * np.mean(harms), rel=0.02)
        assert float(bound_first_cell(u, arb(2))) > 2 * u * np.mean(harms)


def test_the_cells_bound_the_integral_of_actual_laws() -> None:
    """For sums whose s lies in a cell, the cell's bound is at least the smoothing integral."""
    rng = np.random.default_rng(1)
    frequencies = make_frequencies(CONSTANT)
    for _ in range(30):
        law = draw(rng, int(rng.integers(3, 12)))
        s = math.sqrt(law.variance)
        if s > choose_start(0.73, 0.003):
            bound = bound_excess(s * 0.9999, s * 1.0001, frequencies)
            assert is_above(bound, integrate_smoothly(law, 0.73), 1e-6)


def test_cells_of_frequency_cover_the_band() -> None:
    """Widths are positive and add up to 2 pi; none of the steered cells reaches pi."""
    frequencies = make_frequencies(CONSTANT)
    steered = sum((cell.width for cell in frequencies.steered), arb(frequencies.first))
    free = sum((cell.width for cell in frequencies.free), arb(0))
    assert all(cell.width > 0 for cell in (*frequencies.steered, *frequencies.free))
    assert steered < arb.pi()
    assert float(steered + free) == pytest.approx(2 * math.pi, rel=1e-12)
    assert (frequencies.free[0].kernel_left - frequencies.steered[-1].kernel_right).contains(0)


def test_both_ends_are_below_what_they_bound() -> None:
    """The formula for large s leaves less than the integral in doubles does; Cantelli's reserve falls up to its end."""
    large = prove_large(CONSTANT, RESERVE)
    assert large.proven
    for s in (LARGE, 30.0):
        assert 0.003 < large.reserve < measure_reserve(0.5 + integrate_bound(s, 0.73), s * s)
    reserves = [prove_small(s, CONSTANT, RESERVE).reserve for s in (0.01, 0.3, 0.6, choose_start(0.73, 0.003))]
    assert reserves == sorted(reserves, reverse=True)
    assert reserves[-1] > 0.003
    assert reserves[1] == pytest.approx(measure_reserve(0.09 / (0.09 + 0.73**2), 0.09))
    assert not prove_small(0.73, CONSTANT, RESERVE).proven


def test_a_gap_is_no_proof() -> None:
    """Ranges must follow on each other, from 0 to infinity, each of them proven."""

    def find(low: float, high: float, proven: bool = True) -> Finding:
        return Finding(low, high, "cells", proven, 0.01, low, 1, 0.0)

    assert covers_everything([find(0, 0.7), find(10, math.inf), find(0.7, 10)])
    assert not covers_everything([find(0, 0.7), find(10, math.inf), find(0.7, 9.9)])
    assert not covers_everything([find(0, 0.7), find(0.7, 10)])
    assert not covers_everything([find(0, 0.7), find(0.7, math.inf, proven=False)])
    ends = cut(0.9, 1.0)
    assert (ends[0], ends[-1]) == (0.9, 1.0)
    assert ends == sorted(ends)


def test_a_constant_that_cannot_hold_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """0.69 is below ln 2: the proof stops at the first cell that does not go through."""
    assert main(["--constant", "0.69", "--jobs", "1"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("NOT PROVEN: ")


@pytest.mark.parametrize("arguments", [["--constant", "0.5"], ["--reserve", "0"], ["--jobs", "0"]])
def test_options_without_meaning_are_refused(arguments: list[str]) -> None:
    """Where the steps of the proof would not hold, nothing is computed."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


@pytest.mark.long
def test_the_whole_proof_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    """All s > 0 with the constant and the reserve of the theorem."""
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("PROVEN: P(S <= T) <= 1/2 - 0.003 / sqrt(1 + Var S / w^2) wherever E S - T >= 0.73 w")
    assert not [line for line in lines[:-1] if "NOT" in line]


def count_violations(distance: float, reserve: float) -> int:
    """Two-point sums, rare and many, fair, or random, whose tail leaves less than the reserve."""
    rng = np.random.default_rng(2)
    laws = [TwoPoints(np.full(n, 1 - 2 ** (-1 / n)), np.ones(n)) for n in range(1, 13)]
    laws += [TwoPoints(np.full(n, (k + distance) / n), np.ones(n)) for n in range(2, 13) for k in range(n - 1)]
    laws += [draw(rng, int(rng.integers(1, 12))) for _ in range(1500)]
    return sum(measure_reserve(law.measure_tail(distance), law.variance) < reserve for law in laws)


def test_sums_keep_the_reserve_with_this_constant_and_not_with_a_half() -> None:
    """The theorem by exact sums: no violation with 0.73, some with 0.5 and with any constant up to ln 2."""
    assert count_violations(0.73, 0.003) == 0
    assert count_violations(0.5, 0.003) > 0
    n = 400  # P(S = 0) = 1/2 although the mean lies 0.69 above 0
    assert n * (1 - 2 ** (-1 / n)) > 0.69


def test_cantelli_with_the_root_of_all_ranges_leaves_the_band() -> None:
    """s is at most half the root: a deduction of (1/2 + 2 band) roots leaves 1/2 - band."""
    for band in (0.0, 1e-12, 1e-6, 1e-3, 0.1, 1 / math.sqrt(8)):
        assert 0.25 / (0.25 + (0.5 + 2 * band) ** 2) <= 0.5 - band + 1e-16
    assert 0.25 / (0.25 + (0.5 + 2 * 0.4) ** 2) > 0.5 - 0.4
