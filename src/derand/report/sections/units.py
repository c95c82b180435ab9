"""Radii in the user's own units: how far each column may move alone."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np

from derand._core.text import format_short, format_short_down, plural, shorten
from derand.explain import move_alone
from derand.report import _blocks as ui
from derand.report._facts import Facts, Size
from derand.report._inputs import LabelInputs
from derand.report._markup import NOTHING
from derand.report.sections.radii import Radii
from derand.report.sections.shapes import measure_range
from derand.report.sections.threat import limit_of
from derand.tables import format_moment


class Move(TypedDict):
    """How far a numerical feature may move alone."""

    feature: int
    name: str
    unit: float
    half_of_rows: Size
    nine_in_ten: Size
    low: float
    high: float
    days: bool
    """Whether the column was one of dates, and its numbers are days."""
    limit: str
    sentence: str


class Parts(Facts):
    """What this section reads."""

    moves: list[Move]


_SHOWN = 10


def compute(inputs: LabelInputs, radii: Radii) -> list[Move]:
    """For each number that may change how far it may move if nothing else does, in its own unit; none without a
    ball."""
    subject, norm = inputs.subject, inputs.threat.norm
    moves: list[Move] = []
    for feature in [] if norm is None else inputs.moving:
        unit = float(inputs.units[feature])
        column = inputs.matrix[:, feature]
        low, high = measure_range(column[~np.isnan(column)], np.empty(0))
        sizes = [float(radius) for radius in (radii["median"], radii["tenth"])]
        if norm == 0:  # one column may become anything, or none
            sizes = [math.inf if size >= 1 else 0.0 for size in sizes]
        half, most = (move_alone(size, unit) for size in sizes)
        ends = inputs.whole.get(feature)
        if ends is not None:
            half, most = (_cut_to_whole(move, ends) for move in (half, most))
        limit = limit_of(inputs, feature)
        moves.append(
            {
                "feature": feature,
                "name": subject.names[feature],
                "unit": unit,
                "half_of_rows": half,
                "nine_in_ten": most,
                "low": low,
                "high": high,
                "days": feature in subject.dates,
                "limit": limit,
                "sentence": _describe_move(
                    shorten(subject.names[feature]), half, norm, limit, ends, days=feature in subject.dates
                ),
            }
        )
    return moves


def _cut_to_whole(move: float, ends: tuple[int, int]) -> float:
    """The whole numbers within a move; 1 at most where a column holds 0 and 1 alone.

    Examples
    --------
    >>> _cut_to_whole(2.7, (0, 48)), _cut_to_whole(0.7, (0, 48)), _cut_to_whole(2.7, (0, 1))
    (2.0, 0.0, 1.0)
    """
    if not math.isfinite(move):
        return move
    return float(min(math.floor(move), 1 if ends == (0, 1) else math.inf))


def _describe_move(
    name: str,
    move: float,
    norm: float | str | None,
    limit: str,
    ends: tuple[int, int] | None = None,
    *,
    days: bool = False,
) -> str:
    if move == 0:
        step = "move" if ends is None else "change between 0 and 1" if ends == (0, 1) else "move by 1"
        step += " day" if days and ends is not None else ""
        return f"“{name}”: no {step} is certified for half of the rows"
    within = f" ({limit})" if limit else ""
    if not math.isfinite(move):
        return f"“{name}” can move by any amount{within}"
    others = "while every other column moves as far" if norm == math.inf else "if nothing else moves"
    return f"“{name}” can move by up to ±{format_short_down(move)}{' days' if days else ''} {others}{within}"


def blocks(summary: Parts) -> list[ui.Block]:
    """How far each column may move, and the example; the page folds most of many columns away."""
    moves, norm = summary["moves"], summary["threat"]["norm"]
    has_limit = any(move["limit"] for move in moves)
    head = ["column", "half of the rows", "nine rows in ten", *(["limit"] if has_limit else []), "values here"]
    lines: list[ui.Line] = [
        [
            ui.name_cell(move["name"], 40),
            *(write_move(size, days=move["days"]) for size in (move["half_of_rows"], move["nine_in_ten"])),
            *([ui.Cell(move["limit"] or NOTHING, kind="wrapped")] if has_limit else []),
            ui.Cell(_write_range(move), kind="quiet"),
        ]
        for move in moves
    ]
    first = f"{moves[0]['sentence']}{', for at least half of the rows' if moves[0]['half_of_rows'] != 0 else ''}."
    told = {
        "inf": "How far each column may move, all of them at once.",
        "0": "How far a single column may move; as many columns as the radius says may do so at once.",
        "1": "How far a single column may move. When several move at once, their shares of the radius add up.",
        "2": "How far a single column may move. When several move at once, the squares of their shares add up.",
    }[str(norm).removesuffix(".0")]
    title, label = "Radii in your own units", "Moves of single columns"
    more = ui.Details("", [ui.Table(head, lines[_SHOWN:], label)], summary=plural(len(lines) - _SHOWN, "more column"))
    return [
        ui.on_page(
            ui.Heading(title, "units"),
            ui.Paragraph(f"{told} Numbers are cut, never rounded up. Frozen columns are not listed."),
            ui.Paragraph(first, "example"),
            ui.Table(head, lines[:_SHOWN], label, test="moves"),
            *([more] if len(lines) > _SHOWN else []),
        ),
        ui.in_markdown(ui.Heading(title), ui.Table(head, lines)),
    ]


def write_move(move: Size, *, days: bool) -> str:
    if move == "inf":
        return "any move"
    return f"±{format_short_down(move)}{' days' if days else ''}" if move > 0 else "no move proven"


def _write_range(move: Move) -> str:
    write = format_moment if move["days"] else format_short
    return f"{write(move['low'])} to {write(move['high'])}"


SECTION = ui.Section(
    "units", lambda s: "Your units" if s["moves"] else "", blocks, "how far each column may move by itself"
)
