"""Proves with balls that a mean 0.73 ranges beyond the threshold decides the vote (docs/theory.md, section 7).

    python scripts/prove_deduction.py                    # exit code 1 where the proof does not go through
    python scripts/prove_deduction.py --constant 0.74 --reserve 0.01

Needs python-flint. The theorem: X_1..X_n independent, each in an interval of length at most 1, S their sum, E S - T at
least `constant`; then P(S <= T) <= 1/2 - `reserve` / sqrt(1 + Var S). prove_deduction.md reduces it to two-point laws,
and bounds P(S <= T) by a function of s = sqrt(Var S) alone. Here that bound is computed for every s > 0, in balls
rounded outwards: small s by Cantelli, large s by one formula, the rest in cells of s and of the frequency u. What is
said to increase or decrease is proven there. The reserve of an s is (1/2 - bound) sqrt(1 + s^2).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from flint import arb

LARGE = 10.0
"""From this s on the formula serves."""
LIMITS = (0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0, 5.0, LARGE)
"""Where ranges of s in the printed table end; doubles, as are all s and u that separate cells."""
N_STEERED, N_FREE = 6000, 1500
"""Cells of u where the phase is bounded, and where it may be anything."""
LAST_STEERED = 3.125
"""Below pi, where the bounds of the phase end."""
RATIO = 1.002
"""Of the ends of a cell of s at first; cells that do not go through are halved, at most `MOST_HALVINGS` times."""
MOST_HALVINGS = 6
CELLS_PER_TASK = 8
NEAR = 0.5
"""For large s: below this u the integrand is compared with Gaussians."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """K(u / 2 pi) as a modulus and the angle by which its argument falls short of pi / 2."""

    modulus: arb
    lag: arb


@dataclass(frozen=True, slots=True)
class SteeredCell:
    """u from `left` to `right` where the phase of f is bounded; each factor at the end where its bound is worst."""

    width: arb
    kernel_left: arb
    kernel_right: arb
    angle_left: arb  # x(u) = constant u - lag, which increases
    phase_right: arb  # d(u), which increases
    log_modulus_right: arb  # of the lower bound of |f| at s = 1
    decay: arb  # the least 1 - cos u


@dataclass(frozen=True, slots=True)
class FreeCell:
    """u in a cell where the phase of f may be anything."""

    width: arb
    kernel_left: arb
    decay: arb


@dataclass(frozen=True, slots=True)
class Frequencies:
    """All cells of u, from 0 to 2 pi."""

    first: float  # the first cell ends here
    steered: tuple[SteeredCell, ...]
    free: tuple[FreeCell, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was proven of a range of s."""

    low: float
    high: float
    how: str
    proven: bool
    reserve: float  # the least one, rounded down
    where: float
    n_cells: int
    seconds: float


def measure_kernel(u: arb) -> Kernel:
    """K at 0 < u < 2 pi: with y = pi - u/2, 2 pi K = y + i (1 - y cot y)."""
    y = arb.pi() - u / 2
    rest = 1 - y * y.cot()
    return Kernel((y * y + rest * rest).sqrt() / (2 * arb.pi()), (y / rest).atan())


def bound_phase(u: arb) -> arb:
    """d(u), 0 <= u < pi, at a point: |arg f(u)| <= s^2 d(u)."""
    early = u - u.sin()
    late = arb.pi() / 2 - 1 - arb.const_log2() - 2 * (u / 2).cos().log()
    if u <= arb.pi() / 2:
        return early
    return late if u >= arb.pi() / 2 else early.union(late)


def bound_log_modulus(u: arb) -> arb:
    """ln of the lower bound of |f(u)|, 0 <= u < pi, divided by s^2."""
    return 4 * (u / 2).cos().log()


def bound_decay(left: arb, right: arb) -> arb:
    """The least 1 - cos u between two frequencies of [0, 2 pi]: |f(u)| <= exp(-s^2 (1 - cos u)).

    1 - cos u rises up to pi and falls beyond, so the least value lies at an end.
    """
    return (1 - left.cos()).min(1 - right.cos())


def make_frequencies(constant: arb) -> Frequencies:
    """Cells of u, finer near 0, where K is large."""
    points = [LAST_STEERED * (k / N_STEERED) ** 2 for k in range(1, N_STEERED + 1)]
    steered = [steer(arb(left), arb(right), constant) for left, right in pairwise(points)]
    # the least sine is at the left end only while x <= pi / 2 (which 0.73 keeps to everywhere below pi)
    n_kept = sum(measure_angle(arb(right), constant) <= arb.pi() / 2 for right in points[1:])
    begin = points[n_kept]
    step = (2 * math.pi - begin) / N_FREE
    ends = [*(arb(begin + k * step) for k in range(N_FREE)), 2 * arb.pi()]
    free = [
        FreeCell(right - left, measure_kernel(left).modulus, bound_decay(left, right)) for left, right in pairwise(ends)
    ]
    return Frequencies(points[0], tuple(steered[:n_kept]), tuple(free))


def measure_angle(u: arb, constant: arb) -> arb:
    """x(u), the argument of the sine without the phase of f."""
    return constant * u - measure_kernel(u).lag


def steer(left: arb, right: arb, constant: arb) -> SteeredCell:
    """The cell from left to right, below pi and where x <= pi / 2."""
    return SteeredCell(
        right - left,
        measure_kernel(left).modulus,
        measure_kernel(right).modulus,
        measure_angle(left, constant),
        bound_phase(right),
        bound_log_modulus(right),
        bound_decay(left, right),
    )


def bound_first_cell(u: float, v_high: arb) -> arb:
    """Over the first cell, from 0 to u: there -sin(x + theta) <= |theta| <= s^2 u^3 / 6, and u |K| is below `swell`."""
    return v_high * arb(u) ** 3 / 18 * bound_swell(u)


def bound_swell(u: float) -> arb:
    """Upper bound of t |K(t / 2 pi)| for 0 < t <= u."""
    return 1 + arb(u) ** 2 / 24 + arb(u) ** 4 / 288


def bound_steered(cell: SteeredCell, v_low: arb, v_high: arb) -> arb:
    """Upper bound of the integral over a cell, -|K| |f| sin(x + theta), for every s^2 from v_low to v_high.

    A sine that stays positive helps by the least |K| and |f|; a negative one harms by the largest.
    """
    angle = cell.angle_left - v_high * cell.phase_right
    least_sine = angle.sin() if angle >= -arb.pi() / 2 else arb(-1)
    if least_sine >= 0:
        return -cell.width * cell.kernel_right * (v_high * cell.log_modulus_right).exp() * least_sine
    return cell.width * cell.kernel_left * (-v_low * cell.decay).exp() * (-least_sine).max(arb(0))


def bound_free(cell: FreeCell, v_low: arb) -> arb:
    """Upper bound of the integral over a cell where the sine may be -1, for every s^2 from v_low on."""
    return cell.width * cell.kernel_left * (-v_low * cell.decay).exp()


def bound_excess(low: float, high: float, frequencies: Frequencies) -> arb:
    """Upper bound of P(S <= T) - 1/2 for every s from low to high: the integral, cell by cell."""
    v_low, v_high = arb(low) ** 2, arb(high) ** 2
    total = bound_first_cell(frequencies.first, v_high)
    for cell in frequencies.steered:
        total += bound_steered(cell, v_low, v_high)
    for free in frequencies.free:
        total += bound_free(free, v_low)
    return total / arb.pi()


def prove_cells(low: float, high: float, frequencies: Frequencies, reserve: arb, halvings: int = 0) -> Finding:
    """Bound one cell of s, halved as long as it does not go through; stops at the first part that never does."""
    begin = time.perf_counter()
    found = -bound_excess(low, high, frequencies) * (1 + arb(low) ** 2).sqrt()
    if found >= reserve or halvings == MOST_HALVINGS:
        seconds = time.perf_counter() - begin
        return Finding(low, high, "cells", bool(found >= reserve), _round_down(found), low, 1, seconds)
    middle = (low + high) / 2
    parts = [prove_cells(low, middle, frequencies, reserve, halvings + 1)]
    if parts[0].proven:
        parts.append(prove_cells(middle, high, frequencies, reserve, halvings + 1))
    return merge(parts, low, high)


def merge(parts: Sequence[Finding], low: float, high: float) -> Finding:
    """One finding for neighbouring ranges; it says nothing beyond a part that was not proven."""
    worst = min(parts, key=lambda part: part.reserve)
    return Finding(
        low, high, parts[0].how, all(part.proven for part in parts), worst.reserve, worst.where,
        sum(part.n_cells for part in parts), sum(part.seconds for part in parts),
    )  # fmt: skip


def prove_small(high: float, constant: arb, reserve: arb) -> Finding:
    """Cantelli, P <= s^2 / (s^2 + constant^2): the reserve decreases in s while it is positive and constant < 2."""
    begin = time.perf_counter()
    v, square = arb(high) ** 2, constant**2
    found = (square - v) / (2 * (square + v)) * (1 + v).sqrt()
    seconds = time.perf_counter() - begin
    return Finding(0.0, high, "Cantelli", bool(found >= reserve), _round_down(found), high, 1, seconds)


def prove_large(constant: arb, reserve: arb) -> Finding:
    """s >= LARGE: the integral compared with Gaussians below `NEAR`; every part times s, at its worst s."""
    begin = time.perf_counter()
    s, u, pi = arb(LARGE), arb(NEAR), arb.pi()
    slope, root = constant - arb("0.5"), (pi / 2).sqrt()
    steep = -8 * (u / 2).cos().log() / u**2  # -4 ln cos(t/2) <= steep t^2 / 2 for t <= NEAR
    decay = 1 - u.cos()
    flat = 2 * decay / u**2  # 1 - cos t >= flat t^2 / 2 for t <= NEAR
    bend = (2 / u - (u / 2).cot()) / (u / 2)  # cot z >= 1/z - bend z for z <= NEAR / 2
    loss = bend / 4 + slope**2 / 6
    gain = slope * root * ((s * u * (steep / 2).sqrt()).erf() / steep.sqrt() - loss / (s**2 * steep.sqrt() ** 3))
    phase = bound_swell(NEAR) / 6 * root / flat.sqrt() ** 3
    middle = 2 * pi * bound_swell(NEAR) / u * s * (-(s**2) * decay).exp()
    end = (1 + bend * u / 2) / (4 * pi * flat * s)
    found = (gain - phase - middle - end) / pi
    sound = constant * u <= pi / 2 and 2 * decay * s**2 >= 1  # sin x grows with x; s exp(-s^2 decay) falls
    seconds = time.perf_counter() - begin
    return Finding(LARGE, math.inf, "formula", bool(sound and found >= reserve), _round_down(found), LARGE, 1, seconds)


def _round_down(ball: arb) -> float:
    """A double at most as large as every number of a ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def choose_start(constant: float, reserve: float) -> float:
    """Where the cells begin: Cantelli's bound has about twice the reserve there; that it suffices is checked, too."""
    return constant * (1 - 4 * reserve)


def cut(low: float, high: float) -> list[float]:
    """Ends of cells of s from low to high, each at most RATIO times the one before."""
    n = max(1, math.ceil(math.log(high / low) / math.log(RATIO)))
    return [low, *(low * (high / low) ** (k / n) for k in range(1, n)), high]


_worker: dict[str, tuple[Frequencies, arb]] = {}


def _start_worker(constant: str, reserve: str) -> None:
    _worker["tables"] = make_frequencies(arb(constant)), arb(reserve)


def _run_task(ends: list[float]) -> Finding:
    frequencies, reserve = _worker["tables"]
    parts = []
    for low, high in pairwise(ends):
        parts.append(prove_cells(low, high, frequencies, reserve))
        if not parts[-1].proven:
            break
    return merge(parts, ends[0], parts[-1].high)


def prove_middle(start: float, constant: str, reserve: str, jobs: int) -> Iterator[Finding]:
    """s from start to LARGE: one finding per range, and none after one that fails."""
    limits = [start, *(limit for limit in LIMITS if limit > start)]
    with ProcessPoolExecutor(jobs, initializer=_start_worker, initargs=(constant, reserve)) as pool:
        tasks = {}
        for low, high in pairwise(limits):
            ends = cut(low, high)
            groups = [ends[at : at + CELLS_PER_TASK + 1] for at in range(0, len(ends) - 1, CELLS_PER_TASK)]
            tasks[low, high] = [pool.submit(_run_task, group) for group in groups]
        for (low, high), submitted in tasks.items():
            parts = []
            for task in submitted:
                parts.append(task.result())
                if not parts[-1].proven:
                    pool.shutdown(wait=False, cancel_futures=True)
                    yield merge(parts, low, parts[-1].high)
                    return
            yield merge(parts, low, high)


def prove(constant: str, reserve: str, jobs: int) -> Iterator[Finding]:
    """Findings that cover all s > 0, up to the first one that fails; what takes no time comes first."""
    start = choose_start(float(constant), float(reserve))
    for finding in (prove_small(start, arb(constant), arb(reserve)), prove_large(arb(constant), arb(reserve))):
        yield finding
        if not finding.proven:
            return
    yield from prove_middle(start, constant, reserve, jobs)


def covers_everything(findings: Sequence[Finding]) -> bool:
    """Whether proven ranges leave no s > 0 out."""
    reached = 0.0
    for finding in sorted(findings, key=lambda finding: finding.low):
        if not finding.proven or finding.low > reached:
            return False
        reached = finding.high
    return reached == math.inf


def describe(finding: Finding) -> str:
    """One line of the table."""
    verdict = "" if finding.proven else "   NOT PROVEN"
    return (
        f"{finding.low:7.4f} {finding.high:7.4f}  {finding.how:8}  {finding.reserve:9.6f}  {finding.where:7.4f}"
        f"  {finding.n_cells:6d}  {finding.seconds:7.2f}{verdict}"
    )


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options, as decimals that become balls."""
    parser = argparse.ArgumentParser(description="Prove the constant that takes a mean to the vote.")
    parser.add_argument("--constant", default="0.73", help="deduction in ranges of the widest term, between 0.5 and 2")
    parser.add_argument("--reserve", default="0.003", help="what must be left at sqrt(1 + Var S), between 0 and 0.1")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    if not (0.5 < float(options.constant) < 2 and 0 < float(options.reserve) < 0.1 and options.jobs >= 1):
        parser.error("the constant must lie between 0.5 and 2, the reserve between 0 and 0.1; jobs must be positive")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove, print what was proven where, and say whether it is the theorem."""
    options = parse_arguments(arguments)
    begin = time.perf_counter()
    print(" s from    s to  how         reserve     at s   cells  seconds of a core")
    findings = []
    for finding in prove(options.constant, options.reserve, options.jobs):
        findings.append(finding)
        print(describe(finding), flush=True)
    seconds = time.perf_counter() - begin
    claim = f"P(S <= T) <= 1/2 - {options.reserve} / sqrt(1 + Var S / w^2) wherever E S - T >= {options.constant} w"
    if not covers_everything(findings):
        print(f"NOT PROVEN: {claim} ({seconds:.1f} s)")
        return 1
    least = min(findings, key=lambda finding: finding.reserve)
    print(f"PROVEN: {claim}; least reserve {least.reserve:.5f} near s = {least.where:.3f} ({seconds:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
