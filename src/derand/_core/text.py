"""Numbers as text that never flatters: radii and shares are cut, failure masses and distances of attacks rounded up.

Owns how numbers are written, for people and for JSON, how much of a cell is quoted, and what a terminal may be sent.
Must not know what they mean.
Two manners of writing: a fixed number of decimals, for columns of a table (`format_down`, `format_up`,
`format_percent`; with intervals `format_interval`, `format_percent_interval`), and few significant digits without idle
zeros, for sentences and axes (`format_short_down`, `format_short_up`, `format_distance`, `format_short`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from typing import Any, Literal

JsonPlain = None | bool | int | float | str | list["JsonPlain"] | dict[str, "JsonPlain"]
"""What JSON can hold; every float is finite."""
Facts = dict[str, Any]
"""Figures, texts and lists by name, such as what a command prints by `--json`, or arguments by name."""

_WIDE = Context(prec=400)
"""Enough digits for any double with some decimals; the usual 28 end at 1e28."""
_ROUNDINGS = {"down": ROUND_DOWN, "up": ROUND_UP, "nearest": ROUND_HALF_EVEN}
_SHORT = 3
_QUOTED = 60
_LARGE, _SMALL = 1e7, 1e-4
_WHOLE = 2**53
_HAIR = 2e-11
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def format_down(value: float, decimals: int) -> str:
    """A number of at least 0, cut after some decimals.

    Examples
    --------
    >>> format_down(0.99999, 3), format_down(float("inf"), 3)
    ('0.999', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    last = Decimal(1).scaleb(-decimals)
    return f"{Decimal(value).quantize(last, rounding=ROUND_DOWN, context=_WIDE):f}"


def format_up(value: float, digits: int) -> str:
    """A number of at least 0, its last digit rounded up; in scientific notation where it is below 0.001.

    `digits`: how many significant digits are shown.

    Examples
    --------
    >>> format_up(1.0001e-100, 2), format_up(0.12341, 3), format_up(0.0, 2)
    ('1.1e-100', '0.124', '0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = Context(prec=digits, rounding=ROUND_UP).create_decimal(Decimal(value))
    return f"{rounded:f}" if value >= 0.001 else f"{rounded:.{digits - 1}e}"


def format_percent(share: float, *, space: str = " ", way: Literal["down", "up", "nearest"] = "down") -> str:
    """A share as per cent with one decimal, so that no figure flatters.

    `space`: what stands before the sign; `way`: what speaks for a model is cut, what speaks against it is rounded up,
    what does neither goes to nearest.

    Examples
    --------
    >>> format_percent(0.99999), format_percent(0.29), format_percent(0.00001, way="up")
    ('99.9 %', '29.0 %', '0.1 %')
    """
    exact = 100 * Decimal(repr(float(share)))  # 29 of 100 is 0.29, though no double is
    return f"{exact.quantize(Decimal('0.1'), rounding=_ROUNDINGS[way]):f}{space}%"


def format_percent_interval(value: float, low: float, high: float, *, space: str = " ") -> str:
    """A share and the ends of its interval as per cent: cut, but for the upper end, which is rounded up.

    `space`: what stands before the sign.

    Examples
    --------
    >>> format_percent_interval(0.8, 0.49016, 0.94333)
    '80.0 % (49.0 to 94.4 %)'
    """
    start = format_percent(low, space="").removesuffix("%")
    end = format_percent(high, space=space, way="up")
    return f"{format_percent(value, space=space)} ({start} to {end})"


def format_interval(value: float, low: float, high: float, decimals: int = 3, *, up: bool = False) -> str:
    """A figure and the ends of its interval, the upper one rounded up, the lower one cut.

    `value`, `low`, `high`: of at least 0; `up`: round the figure up, where less is better, instead of cutting it.

    Examples
    --------
    >>> format_interval(0.87654, 0.84321, 0.90123), format_interval(0.31, 0.3001, 0.32001, up=True)
    ('0.876 (0.843 to 0.902)', '0.310 (0.300 to 0.321)')
    """
    last = Decimal(1).scaleb(-decimals)
    rounded, end = (f"{Decimal(repr(one)).quantize(last, rounding=ROUND_UP):f}" for one in (value, high))
    return f"{rounded if up else format_down(value, decimals)} ({format_down(low, decimals)} to {end})"


def format_threshold(probability: float) -> str:
    """A probability from which on an answer is given, as per cent with three digits.

    Examples
    --------
    >>> format_threshold(1 / 6), format_threshold(0.5), format_threshold(0.9996)
    ('16.7 %', '50 %', '99.96 %')
    """
    percent = 100 * probability
    shown = f"{percent:.3g}"
    if shown in ("0", "100"):  # 99.96 % is no certainty
        shown = f"{percent:.4g}"
    return f"{shown} %"


def format_exactly(value: float) -> str:
    """The shortest text that reads as the same number: for what a user gave and is given back.

    Examples
    --------
    >>> format_exactly(0.25), format_exactly(1.0), format_exactly(0.1234567), format_exactly(float("inf"))
    ('0.25', '1', '0.1234567', 'inf')
    """
    return repr(float(value)).removesuffix(".0")


def format_short_down(value: float, digits: int = _SHORT) -> str:
    """A number with some significant digits, never above it: of at least 0 they are cut.

    Examples
    --------
    >>> [format_short_down(value) for value in (0.99999, 12345.6, 0.0, float("inf"), 0.00001239, -1.2341)]
    ['0.999', '12345', '0', 'no limit', '1.23e-5', '-1.24']
    """
    return _write(value, digits, ROUND_FLOOR)


def format_short_up(value: float, digits: int = _SHORT) -> str:
    """A number with some significant digits, never below it.

    Examples
    --------
    >>> format_short_up(0.12301), format_short_up(2.0**-100), format_short_up(0.0)
    ('0.124', '7.89e-31', '0')
    """
    return _write(value, digits, ROUND_CEILING)


def format_distance(value: float) -> str:
    """The size of a change that was found, rounded up like `format_short_up`, but for a hair of 2e-11 of it.

    Searches step beyond an edge by a hair, and sizes are measured upwards: such a change of 1 is 1, and not 1.01.

    `value`: at least 0.

    Examples
    --------
    >>> format_distance(1.0000000000000002), format_distance(0.1), format_distance(1.0001), format_distance(1.01)
    ('1', '0.1', '1.01', '1.01')
    """
    near = f"{value:.10g}"
    if math.isfinite(value) and abs(float(near) - value) <= _HAIR * value:
        return _write_decimal(Decimal(near), _SHORT, ROUND_CEILING)
    return format_short_up(value)


def format_short(value: float, digits: int = 4) -> str:
    """A number to nearest, for what is no guarantee: data values and contributions.

    Examples
    --------
    >>> format_short(1234.5678), format_short(-0.5), format_short(-0.0), format_short(3.0)
    ('1235', '-0.5', '0', '3')
    """
    return _write(value, digits, ROUND_HALF_EVEN)


def format_readable(value: float, digits: int = 4) -> str:
    """A number of a table as people write it, to nearest: whole ones in full, thousands apart.

    `digits`: significant digits of a number that is not whole.

    Examples
    --------
    >>> format_readable(2400.0), format_readable(1870.456), format_readable(0.012345), format_readable(-2.5e8)
    ('2,400', '1,870', '0.01235', '-250,000,000')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) < _WHOLE and (float(value).is_integer() or abs(value) >= _LARGE):
        return f"{round(value):,}"
    text = format_short(value, digits)
    return text if "e" in text else f"{Decimal(text):,f}"


def format_move(before: float, after: float) -> str:
    """By how much a number changes, with its sign.

    Examples
    --------
    >>> format_move(2400.0, 1020.5), format_move(0.0, 0.25)
    ('-1,380', '+0.25')
    """
    return f"{'-' if after < before else '+'}{format_readable(abs(after - before), 3)}"


def format_count(number: int) -> str:
    """A count, thousands apart.

    Examples
    --------
    >>> format_count(100000)
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
    return f"{format_count(number)} {noun if number == 1 else many or noun + 's'}"


def shorten(text: str, length: int = 60) -> str:
    """Text of at most that length, its end replaced by an ellipsis.

    Examples
    --------
    >>> shorten("abcdefgh", 5)
    'abcd…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def join_words(parts: list[str]) -> str:
    """Parts of a sentence one after the other.

    Examples
    --------
    >>> join_words(["a"]), join_words(["a", "b"]), join_words(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def make_printable(text: str) -> str:
    """Text for a terminal: what would control it, reverse its direction or is no character is written as an escape.

    Line ends and tabs stay.

    Examples
    --------
    >>> make_printable("a\\x1b[2Jb"), make_printable("two\\nlines"), make_printable("\\u202egpj.exe")
    ('a\\\\x1b[2Jb', 'two\\nlines', '\\\\u202egpj.exe')
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def quote_short(value: object) -> str:
    """What stood in a table, quoted, and cut where it is long: a message is one line.

    Examples
    --------
    >>> quote_short("cook"), quote_short("a" * 1000)[-6:]
    ("'cook'", "aa'...")
    """
    return repr(value) if not isinstance(value, str) or len(value) <= _QUOTED else f"{value[:_QUOTED]!r}..."


def as_plain_json(value: object) -> JsonPlain:
    """The same in what JSON can hold: infinity is the text "inf" or "-inf", and NaN is None.

    Examples
    --------
    >>> as_plain_json({"radius": [0.5, float("inf"), float("nan")], 1: ("a", None)})
    {'radius': [0.5, 'inf', None], '1': ['a', None]}
    """
    if isinstance(value, Mapping):
        return {str(name): as_plain_json(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain_json(inside) for inside in value]
    as_python = getattr(value, "item", None)  # numpy is not imported for this: the command line must start at once
    if as_python is not None:
        value = as_python()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"JSON holds text, numbers, lists and dicts, got a {type(value).__name__}: turn it into text first."
    )


def _write(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value) if math.isnan(value) else "no limit"
    return _write_decimal(Decimal(value), digits, rounding)


def _write_decimal(value: Decimal, digits: int, rounding: str) -> str:
    if value == 0:
        return "0"
    rounded = Context(prec=digits, rounding=rounding).create_decimal(value)
    if _SMALL <= abs(value) < _LARGE and abs(value) >= 10 ** (digits - 1):
        rounded = value.quantize(Decimal(1), rounding=rounding)
    if not _SMALL <= abs(value) < _LARGE:
        mantissa, exponent = f"{rounded:e}".split("e")
        return f"{_strip(mantissa)}e{int(exponent)}"
    return _strip(f"{rounded:f}")


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
