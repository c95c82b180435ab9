"""Sums of values and of their squares, exactly: the same in any order, and however the rows are dealt out to parts.

Owns what a deviation is where rows weigh alike. Must not know tables or units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import FloatArray

_SCALE = 1200
"""Sums count in 2**-1200, of which every double is a whole multiple; sums of squares in 2**-2400."""
_LIMB_BITS, _N_LIMBS = 21, 4
_WINDOW = _LIMB_BITS * _N_LIMBS - 53
"""Exponents that limbs can hold at a time."""
_BLOCK = 2 ** (53 - 2 * _LIMB_BITS)
"""Rows whose products of limbs add up exactly as doubles."""
_CHUNK = 2**17
"""Values that are looked at together."""
_ROOT_BITS = 66
"""More than a double has: one rounding in the end."""


@dataclass(frozen=True, slots=True)
class Moments:
    """How many values there are, and their exact sums.

    Attributes
    ----------
    n_values : int
    total : int
        Of the values, in 2**-1200.
    squares : int
        Of their squares, in 2**-2400.

    Examples
    --------
    >>> values = np.array([0.1, 0.7, 1e300, -1e300])
    >>> one, two = Moments.measure(values[:1]), Moments.measure(values[:0:-1])
    >>> one + two == Moments.measure(values)
    True
    """

    n_values: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def measure(cls, values: FloatArray) -> Moments:
        """The moments of finite values."""
        total = squares = 0
        for start in range(0, values.size, _CHUNK):
            left = values[start : start + _CHUNK]
            left = left[left != 0]
            while left.size:  # nearly always once or twice: the largest values, and much smaller ones
                exponents = np.frexp(left)[1]
                top = int(exponents.max())
                taken = exponents > top - _WINDOW
                sums, products = _add_limbs(np.ldexp(left[taken], -top))
                unit = _SCALE + top - _LIMB_BITS * _N_LIMBS
                total += _shift(sums, unit)
                squares += _shift(products, 2 * unit)
                left = left[~taken]
        return cls(int(values.size), total, squares)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n_values + other.n_values, self.total + other.total, self.squares + other.squares)

    def compute_deviation(self) -> float:
        """The population deviation, rounded once; 0 where there are no values."""
        spread = self.n_values * self.squares - self.total**2
        if not spread:
            return 0.0
        count = self.n_values**2
        shift = max(0, _ROOT_BITS - (spread.bit_length() - count.bit_length()) // 2)
        quotient, rest = divmod(spread << 2 * shift, count)
        root = math.isqrt(quotient)
        if rest or root * root != quotient:
            root = root << 1 | 1  # a last bit that says that there is more
            shift += 1
        excess = max(0, root.bit_length() - 1000)  # an integer beyond 2**1024 is no double
        sticky = int(root & ((1 << excess) - 1) != 0)
        return math.ldexp(float(root >> excess | sticky), excess - shift - _SCALE)


def _shift(number: int, bits: int) -> int:
    """A number times a power of two of which it is known that the result is whole."""
    return number << bits if bits >= 0 else number >> -bits


def _add_limbs(shares: FloatArray) -> tuple[int, int]:
    """Sums of numbers within (-1, 1), in 2**-84, and of their squares, in 2**-168."""
    padded = np.zeros(-(-shares.size // _BLOCK) * _BLOCK)
    padded[: shares.size] = shares
    limbs = np.empty((_N_LIMBS, padded.size))
    for limb in limbs:
        padded *= 2.0**_LIMB_BITS
        np.trunc(padded, out=limb)
        padded -= limb
    blocks = limbs.reshape(_N_LIMBS, -1, _BLOCK).transpose(1, 0, 2)
    sums = blocks.sum(axis=2).astype(np.int64).sum(axis=0)
    products = (blocks @ blocks.transpose(0, 2, 1)).astype(np.int64)
    halves = [(products >> 31).sum(axis=0), (products & (2**31 - 1)).sum(axis=0)]
    weigh = [_LIMB_BITS * (_N_LIMBS - 1 - at) for at in range(_N_LIMBS)]
    total = sum(int(sums[at]) << weigh[at] for at in range(_N_LIMBS))
    squares = sum(
        ((int(halves[0][i, j]) << 31) + int(halves[1][i, j])) << (weigh[i] + weigh[j])
        for i in range(_N_LIMBS)
        for j in range(_N_LIMBS)
    )
    return total, squares
