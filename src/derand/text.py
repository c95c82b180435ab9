"""Numbers as text for people: never better than the truth. Radii and shares are cut, failure masses rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal


def print_down(value: float, decimals: int) -> str:
    """A number of at least 0, cut after some decimals.

    Examples
    --------
    >>> print_down(0.99999, 3), print_down(float("inf"), 3)
    ('0.999', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_DOWN):f}"


def print_up(value: float, digits: int) -> str:
    """A number of at least 0, its last digit rounded up; in scientific notation where it is below 0.001.

    Examples
    --------
    >>> print_up(1.0001e-100, 2), print_up(0.12341, 3), print_up(0.0, 2)
    ('1.1e-100', '0.124', '0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = Context(prec=digits, rounding=ROUND_UP).create_decimal(Decimal(value))
    return f"{rounded:f}" if value >= 0.001 else f"{rounded:.{digits - 1}e}"


def print_percent(share: float) -> str:
    """A share as per cent, cut after one decimal.

    Examples
    --------
    >>> print_percent(0.99999), print_percent(0.29)
    ('99.9 %', '29.0 %')
    """
    exact = 100 * Decimal(repr(float(share)))  # 29 of 100 is 0.29, though no double is
    return f"{exact.quantize(Decimal('0.1'), rounding=ROUND_DOWN):f} %"
