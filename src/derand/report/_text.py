"""Words of the report around numbers and names. How a number itself is written is in `derand.text`."""

from __future__ import annotations

from derand.text import format_count, format_percent


def percent(share: float) -> str:
    r"""A share as per cent, cut after one decimal; the sign never stands on a line of its own.

    Examples
    --------
    >>> [percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.29, 0.99999, 1.0)]
    ['29.0 %', '99.9 %', '100.0 %']
    """
    return format_percent(share, space="\N{NO-BREAK SPACE}")


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
