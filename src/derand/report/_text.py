"""Numbers as text that is never better than the truth: radii and shares are cut, distances of attacks rounded up.

Owns how many digits are shown. Must not know what the numbers mean.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal

from derand.text import print_percent

_DIGITS = 3
_LARGE, _SMALL = 1e7, 1e-4


def cut(value: float, digits: int = _DIGITS) -> str:
    """A number of at least 0 with some significant digits, cut.

    Examples
    --------
    >>> cut(0.99999), cut(12345.6), cut(0.0), cut(float("inf")), cut(0.00001239)
    ('0.999', '12345', '0', 'no limit', '1.23e-5')
    """
    return _write(value, digits, ROUND_DOWN)


def exceed(value: float, digits: int = _DIGITS) -> str:
    """A number of at least 0 with some significant digits, rounded up.

    Examples
    --------
    >>> exceed(0.12301), exceed(2.0**-100), exceed(0.0)
    ('0.124', '7.89e-31', '0')
    """
    return _write(value, digits, ROUND_CEILING)


def show(value: float, digits: int = 4) -> str:
    """A number to nearest, for what is no guarantee: data values and contributions.

    Examples
    --------
    >>> show(1234.5678), show(-0.5), show(-0.0), show(3.0)
    ('1235', '-0.5', '0', '3')
    """
    return _write(value, digits, ROUND_HALF_EVEN)


def percent(share: float) -> str:
    r"""A share as per cent, cut after one decimal; the sign never stands on a line of its own.

    Examples
    --------
    >>> [percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.29, 0.99999, 1.0)]
    ['29.0 %', '99.9 %', '100.0 %']
    """
    return print_percent(share).replace(" ", "\N{NO-BREAK SPACE}")


def count(number: int) -> str:
    """A count, thousands apart.

    Examples
    --------
    >>> count(100000)
    '100,000'
    """
    return f"{number:,}"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """A count with its noun.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "row"), plural(2, "category", "categories")
    ('1 row', '2,000 rows', '2 categories')
    """
    return f"{count(number)} {noun if number == 1 else many or noun + 's'}"


def shorten(text: str, length: int = 60) -> str:
    """Text of at most that length, its end replaced by an ellipsis.

    Examples
    --------
    >>> shorten("abcdefgh", 5)
    'abcd…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _write(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "no limit" if value > 0 else str(value)
    if value == 0:
        return "0"
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    if _SMALL <= abs(value) < _LARGE and abs(value) >= 10 ** (digits - 1):
        rounded = Decimal(value).quantize(Decimal(1), rounding=rounding)
    if not _SMALL <= abs(value) < _LARGE:
        mantissa, exponent = f"{rounded:e}".split("e")
        return f"{_strip(mantissa)}e{int(exponent)}"
    return _strip(f"{rounded:f}")


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
