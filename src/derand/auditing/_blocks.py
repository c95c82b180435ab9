"""Terms of several columns as a claim sees them: a score per box of the numbers that are there.

Read from what a model's file says of such a term. Owns this reading, and masses of boxes as products of those of their
sides (docs/theory.md, section 13). Must not know rules.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from derand.auditing._threat import AllowedChanges


class Axis(NamedTuple):
    """A column of a block."""

    feature: int
    x: float
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A step function of several numbers that must stay high, and the numbers that are there.

    Attributes
    ----------
    features : tuple of int
    xs : tuple of float
    edges : tuple of tuples of float
        Of each column.
    scores : tuple of int
        Of all boxes, in C order; numbers that are missing have been looked up.
    """

    features: tuple[int, ...]
    xs: tuple[float, ...]
    edges: tuple[tuple[float, ...], ...]
    scores: tuple[int, ...]

    @property
    def range(self) -> int:
        """Largest less least score."""
        return max(self.scores) - min(self.scores)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its columns."""
        return tuple(map(Axis, self.features, self.xs, self.edges))

    @property
    def own(self) -> int:
        """Its score where the row stands."""
        at = 0
        for axis in self.axes:
            at = at * (len(axis.edges) + 1) + bisect.bisect_right(axis.edges, axis.x)
        return self.scores[at]


def read_block(told: dict[str, Any], row: Sequence[float], sign: int, threat: AllowedChanges) -> Block:
    """A term of several columns at a row, its label's side turned up."""
    gaps = told.get("missing", [0] * len(told["features"]))
    shape = [len(edges) + 1 + gap for edges, gap in zip(told["edges"], gaps, strict=True)]
    flat = [int(score[0]) if isinstance(score, Sequence) else int(score) for score in told["scores"]]
    kept, columns = [], []
    for feature, edges, gap, size in zip(told["features"], told["edges"], gaps, shape, strict=True):
        x = float(row[feature])
        if gap and threat.missing and feature not in threat.frozen:
            raise ValueError(
                f"Column {feature} is in a term of several columns and may go missing: such claims cannot be audited."
            )
        if math.isnan(x) and not gap:
            raise ValueError(f"The number in column {feature} is missing, of which the model knows no score.")
        kept.append([size - 1] if math.isnan(x) else list(range(len(edges) + 1)))
        if not math.isnan(x):
            columns.append((feature, x, tuple(edges)))
    scores = []
    for place in itertools.product(*kept):
        at = 0
        for size, cell in zip(shape, place, strict=True):
            at = at * size + cell
        scores.append(sign * flat[at])
    features, xs, all_edges = zip(*columns, strict=True) if columns else ((), (), ())
    return Block(features, xs, all_edges, tuple(scores))


def multiply_sides(sides: Sequence[Sequence[Any]]) -> list[Any]:
    """The mass of each box, in C order: the product of the masses of its sides, balls or fractions."""
    boxes = []
    for chosen in itertools.product(*sides):
        mass = chosen[0]
        for side in chosen[1:]:
            mass = mass * side
        boxes.append(mass)
    return boxes


def merge_boxes(scores: Sequence[int], masses: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Boxes of equal score as one cell each."""
    merged: dict[int, Any] = {}
    for score, mass in zip(scores, masses, strict=True):
        merged[score] = merged[score] + mass if score in merged else mass
    return list(merged), list(merged.values())
