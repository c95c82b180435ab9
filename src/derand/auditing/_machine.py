"""Is this machine's arithmetic what certificates count on? Tested against balls before an audit, and for its own sake.

Owns the tests: gradual underflow, rounding to nearest, and the masses of cells and radii that the program computes
here, which must err on the safe side and by no more than their stated allowance. Must not know models or rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from derand.auditing._balls import BALL_NOISES, as_ball, as_ball_noise, use_bits
from derand.noise import NOISES, Noise

_BITS = 256
_ALLOWED = 3 * 96 * 2.0**-52  # excess of one cell (kernels/README.md, step 5)
_DISTANCES = [*np.linspace(-6.0, 6.0, 241).tolist(), *(sign * z for z in (8.0, 12.5, 20.0, 37.0) for sign in (-1, 1))]
_MASSES = [0.5 - 2.0**-30, 0.45, 0.3, 0.1, 1e-3, 1e-8, 1e-20, 1e-100, 1e-290]


class MachineCheck(NamedTuple):
    """One test of the machine.

    Attributes
    ----------
    name : str
        What was tested.
    passed : bool
    detail : str
        What was found.
    """

    name: str
    passed: bool
    detail: str


def check_machine() -> list[MachineCheck]:
    """Test what certificates count on; takes a fraction of a second.

    Examples
    --------
    >>> all(check.passed for check in check_machine())
    True
    """
    checks = [_check_underflow(), _check_rounding()]
    for name, kind in NOISES.items():
        if name in BALL_NOISES:
            noise = kind(1.0)  # type: ignore[call-arg]
            checks += [_check_cells(noise), _check_radii(noise)]
    return checks


def _check_underflow() -> MachineCheck:
    tiny = np.array([5e-324, 2.0**-1060, 2.0**-1022])
    kept = (tiny * 1.0 > 0).all() and (tiny[2] / 4 > 0) and (tiny[1] + tiny[1] == 2.0**-1059)
    return MachineCheck("numbers below 2.2e-308 are kept", bool(kept), "gradual underflow" if kept else "set to 0")


def _check_rounding() -> MachineCheck:
    """Ties to even, and a little more than a tie upward, for sums, products and quotients."""
    one, half = np.array([1.0, -1.0]), np.array([2.0**-53, -(2.0**-53)])
    more = half * (1 + 2.0**-40)
    exact = (one + half == one).all() and (one + more != one).all()
    third = np.array([1.0]) / 3.0
    exact = exact and float(third[0]).hex() == "0x1.5555555555555p-2"
    exact = exact and float(np.array([0.1])[0] * 3).hex() == "0x1.3333333333334p-2"
    exact = exact and math.sqrt(2.0).hex() == "0x1.6a09e667f3bcdp+0"
    return MachineCheck("rounding is to nearest", bool(exact), "ties to even" if exact else "another rounding mode")


def _check_cells(noise: Noise) -> MachineCheck:
    """Masses on both sides of an edge and between two edges: never below the true ones, hardly above."""
    balls = as_ball_noise(noise)
    x, worst, is_safe = np.array(_DISTANCES), 0.0, True
    with use_bits(_BITS):
        for edges in ([0.0], [-0.25, 0.5], [0.0, 1e-6]):
            computed = noise.cell_probabilities(x, edges)
            for value, row in zip(x.tolist(), computed.tolist(), strict=True):
                for mass, true in zip(row, balls.list_cells(value, edges, 0), strict=True):
                    ball = as_ball(true)
                    is_safe = is_safe and not as_ball(mass) < ball
                    worst = max(worst, float((as_ball(mass) - ball).upper()) / _ALLOWED)
    return _tell(f"masses of cells under {noise.name} noise", is_safe, worst)


def _check_radii(noise: Noise) -> MachineCheck:
    """Radii of failing masses: never above the true ones, hardly below."""
    balls = as_ball_noise(noise)
    worst, is_safe = 0.0, True
    with use_bits(_BITS):
        for mass, radius in zip(_MASSES, noise.radius(np.array(_MASSES)).tolist(), strict=True):
            true = balls.solve_radius(as_ball(mass), as_ball(0.0))
            is_safe = is_safe and (radius == 0 or balls.proves(as_ball(mass), as_ball(radius), as_ball(0.0)))
            worst = max(worst, (true - radius) / (1e-11 * (true + 1)))
    return _tell(f"radii of masses under {noise.name} noise", is_safe, worst)


def _tell(name: str, is_safe: bool, worst: float) -> MachineCheck:
    if not is_safe:
        return MachineCheck(name, False, "some lie on the wrong side")
    return MachineCheck(name, worst <= 1, f"on the safe side, by up to {100 * worst:.1f}% of what is allowed")


def find_failed(checks: Iterable[MachineCheck]) -> list[str]:
    """What did not pass, in words."""
    return [f"{check.name}: {check.detail}" for check in checks if not check.passed]
