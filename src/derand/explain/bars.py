"""Lines of the pictures of one row, as data: explanations make them, `plots` draws them. Must not know how."""

from __future__ import annotations

from typing import NamedTuple


class Bar(NamedTuple):
    """A bar to the right or to the left, and what stands beside it."""

    name: str
    size: float
    text: str


class Span(NamedTuple):
    """Between which numbers an answer stays while a column changes."""

    name: str
    low: float
    high: float


class Step(NamedTuple):
    """How large a change is: what is certified not to flip, what was found to, and what that is.

    Infinite where nothing flips; not a number where a change has no size.
    """

    name: str
    certified: float
    found: float
    text: str
