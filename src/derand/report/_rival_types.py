"""What the part of a page on several classes is made of: answers by class, and the rivals that limit their radii.

Types alone: `_rivals` fills them. Infinity is the text "inf"; what does not exist is null.
"""

from __future__ import annotations

from typing import TypedDict

from derand.report._what_if_types import Size


class AnswerClass(TypedDict):
    """The rows that got one class as their answer.

    `spread` holds the radii that 90, 75, 50, 25 and 10 per cent of them reach; nothing where limits alone say what may
    change, or where no row got that answer.
    """

    name: str
    n_rows: int
    right: int | None
    certified: int
    """Rows whose answer is proven at the quoted radius, right or wrong."""
    right_text: str
    certified_text: str
    spread: list[Size]
    median_text: str
    rival: str | None
    """The class that limits most of their radii."""
    rival_rows: int


class RivalCell(TypedDict):
    """Rows of one answer whose radius is limited by one rival."""

    n_rows: int
    certified: int
    median: Size | None
    median_text: str
    weakness: float
    """From 0 to 1, for the tint: how far the median lies below the largest of the table."""


class ClassPair(TypedDict):
    """Two classes, either of which is the answer and the other its nearest rival."""

    names: list[str]
    n_rows: int
    open: int
    """Rows between them that are not certified at the quoted radius."""
    confused: int | None
    """Rows of one of them that got the other as their answer; null without labels."""
    median: Size | None
    median_text: str
    smallest_text: str


class Rivals(TypedDict):
    """Several classes: how far each answer is from its nearest rival, and which rival that is."""

    classes: list[str]
    answers: list[AnswerClass]
    cells: list[list[RivalCell]]
    pairs: list[ClassPair]
    n_pairs: int
    """How many pairs limit some row's radius; `pairs` lists the weakest."""
    sentences: list[str]
