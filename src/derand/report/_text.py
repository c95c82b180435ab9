"""Words of the report around numbers and names. How a number itself is written is in `derand._core.text`."""

from __future__ import annotations

from typing import Literal

from derand._core.text import format_percent, join_words, plural, shorten

__all__ = ["join_words", "percent", "plural", "shorten"]


def percent(share: float, way: Literal["down", "up", "nearest"] = "down") -> str:
    r"""A share as per cent, cut after one decimal or as `format_percent` says; the sign never has a line of its own.

    Examples
    --------
    >>> [percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.29, 0.99999, 1.0)]
    ['29.0 %', '99.9 %', '100.0 %']
    """
    return format_percent(share, space="\N{NO-BREAK SPACE}", way=way)
