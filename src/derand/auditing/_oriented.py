"""What a claim comes down to: independent functions of one number or several, whose sum must stay above a threshold.

Read from what a model's file says of its terms (`Term.describe`) and from the threat, in whole numbers: categories at
their worst, missing numbers as constants, signs turned so that the label's scores are high. Owns this reading, and the
error bands that the program's own arithmetic is allowed (kernels/README.md). Must not know noise.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from derand.auditing._balls import Told
from derand.auditing._threat import AllowedChanges
from derand.model import Contrast

_EPSILON = 2.0**-52
_TAIL_ERROR = 96 * _EPSILON
_INVERSION = (64, 1e-10)  # from so many terms on masses near 1/2 may come from an inversion, which is off by so much
_MOST_LEVELS, _COARSE_LEVELS, _MOST_WORK = 2**23, 2**13, 2**29
_MOST_TRIES = 4096


class Axis(NamedTuple):
    """A number that a function reads; NaN where it is missing."""

    feature: int
    x: float
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A step function of one number or several that must stay high, and the numbers."""

    axes: tuple[Axis, ...]
    """Of a term of several columns those whose numbers are there."""
    scores: tuple[int, ...]
    """Of all cells, in C order; a cell holds its lower edge."""
    missing: int | None = None
    """What a missing number scores, for a term of one column."""
    is_grid: bool = False
    """Whether the term is one of several columns."""

    @property
    def feature(self) -> int:
        """The column of a term of one column."""
        return self.axes[0].feature

    @property
    def range(self) -> int:
        """Largest less least score."""
        return max(self.scores) - min(self.scores)

    @property
    def is_missing(self) -> bool:
        """Whether the number of a term of one column is missing."""
        return not self.is_grid and math.isnan(self.axes[0].x)

    @property
    def own(self) -> int:
        """Its score where the row stands."""
        if self.is_missing:
            if self.missing is None:
                raise ValueError(f"The number in column {self.feature} is missing, of which the model knows no score.")
            return self.missing
        at = 0
        for axis in self.axes:
            at = at * (len(axis.edges) + 1) + bisect.bisect_right(axis.edges, axis.x)
        return self.scores[at]


@dataclass(frozen=True, slots=True)
class Condition:
    """The label holds while the sum of some functions stays above a threshold."""

    functions: tuple[Function, ...]
    """Those that are not constant and whose numbers are there; those of several columns last."""
    missable: tuple[Function, ...]
    """All whose number may go missing or appear by the threat's budget."""
    threshold: int
    """Everything else is taken off: categories at their worst, constants, missing numbers, and what the model may
    differ from the one that is meant."""
    is_one: bool
    """Whether the label is class 1: then the expected score must be above the threshold; else it may be 1 more."""

    @property
    def level(self) -> int:
        """What the expected score must be above, or for class 0 must not be below."""
        return self.threshold if self.is_one else self.threshold + 1

    @property
    def least(self) -> int:
        """The sum in the worst cells of all functions."""
        return sum(min(one.scores) for one in self.functions)

    @property
    def ranges(self) -> list[int]:
        """Largest less least score of each function."""
        return [one.range for one in self.functions]

    @property
    def total(self) -> int:
        """The sum where the row stands."""
        return sum(one.own for one in self.functions)

    def round_down(self, level: int) -> int:
        """The largest sum that is not above a level: sums lie on a grid."""
        step = math.gcd(*(score - min(one.scores) for one in self.functions for score in one.scores)) or 1
        return self.least + (level - self.least) // step * step

    def change_missing(self, chosen: Sequence[Function]) -> Condition:
        """The same where the numbers of some functions have gone missing, or have appeared at their worst."""
        threshold = self.threshold
        for one in chosen:
            assert one.missing is not None
            # a number that is there leaves the sum and counts as missing; one that appears counts as the worst cell
            threshold += one.missing - min(one.scores) if one.is_missing else -one.missing
            if not one.is_missing and not one.range:
                threshold += one.scores[0]  # constant functions are in the threshold already
        kept = tuple(one for one in self.functions if one not in chosen)
        return replace(self, functions=kept, threshold=threshold)


class SumFacts:
    """What all rows of one sum share: its terms as a file holds them, the errors that the program's arithmetic is
    allowed, and what proofs of one row leave for those of the next."""

    def __init__(self, contrast: Contrast) -> None:
        self._contrast = contrast
        self.curves: dict[object, Any] = {}

    @cached_property
    def terms(self) -> list[tuple[str, Told]]:
        """Kind and description of each term."""
        return [(term.kind, term.describe()) for term in self._contrast.terms]

    @cached_property
    def ranges(self) -> list[int]:
        """Of all functions that are not constant, whether their numbers are there or not."""
        scores = [term.cell_scores for term in self._contrast.terms if term.axes]
        return [int(one.max() - one.min()) for one in scores if one.max() > one.min()]

    @cached_property
    def _moving(self) -> list[Told]:
        """The terms on which noise acts."""
        return [told for term, (_, told) in zip(self._contrast.terms, self.terms, strict=True) if term.axes]

    @cached_property
    def _scores(self) -> list[list[int]]:
        return [_flatten(told["scores"]) for told in self._moving]

    @cached_property
    def _spans(self) -> list[int]:
        return [max(scores) - min(scores) for scores in self._scores]

    @cached_property
    def coarse_grid(self) -> tuple[int, int]:
        """The grid on which the program sums a distribution of too many levels, and how far that moves a sum at most;
        1 and 0 where it can afford the scores as they are."""
        step = math.gcd(*(score - min(scores) for scores in self._scores for score in scores)) or 1
        if sum(self._spans) // step < _MOST_LEVELS:
            return 1, 0
        cells = [math.prod(len(edges) + 1 for edges in _list_edges(told)) for told in self._moving]
        levels = max(_COARSE_LEVELS, min(_COARSE_LEVELS * len(cells), _MOST_WORK // sum(cells)))
        grid = -(-(sum(self._spans) // step) * step // levels)
        moves = [max(abs(score - grid * round_to(score, grid)) for score in scores) for scores in self._scores]
        return grid, sum(moves)

    @cached_property
    def band(self) -> float:
        """By how much a mass near 1/2 that the program computes may exceed the true one (kernels/README.md, step 5)."""
        grid, _ = self.coarse_grid
        pairs = zip(self._moving, self._scores, strict=True)
        moving = [(told, own) for told, own in pairs if len({round_to(score, grid) for score in own}) > 1]
        single = [told for told, _ in moving if "features" not in told]
        grids = [(told, len(set(own))) for told, own in moving if "features" in told]
        n_edges = sum(len(told["edges"]) for told in single)
        n_cells = n_edges + len(single) + sum(count for _, count in grids)
        roundings = 2 * n_cells + 8 * len(moving) + 2048
        inversion = _INVERSION[1] if len(moving) >= _INVERSION[0] else 0.0
        of_grids = sum(_bound_excess(told) for told, _ in grids)
        return 3 * _TAIL_ERROR * n_edges + roundings * _EPSILON + inversion + of_grids

    @cached_property
    def mean_error(self) -> float:
        """By how much an expected score that the program computes may be off (kernels/README.md, step 9)."""
        by_cells, n_cells = 0.0, 0
        for told, scores, span in zip(self._moving, self._scores, self._spans, strict=True):
            if not span:
                continue
            count = len(set(scores)) if "features" in told else len(scores)  # boxes of equal score are one cell
            excess = _bound_excess(told) + 8 * _EPSILON if "features" in told else 3 * _TAIL_ERROR * count
            by_cells, n_cells = by_cells + span * excess, n_cells + count
        return (by_cells + _EPSILON * (2 * n_cells + 64) * sum(self._spans)) * (1 + 1e-9)


def _flatten(scores: Sequence[Any]) -> list[int]:
    return [int(score[0]) if isinstance(score, Sequence) else int(score) for score in scores]


def _list_edges(told: Told) -> list[Any]:
    """The edges of each column of a term."""
    return list(told["edges"]) if "features" in told else [told["edges"]]


def _bound_excess(told: Told) -> float:
    """How much mass all boxes of a term can have too much together (kernels/README.md, step 10)."""
    joint = len(told["scores"]) + len(told["features"]) + 4
    return 3.01 * _TAIL_ERROR * sum(map(len, told["edges"])) + 2.01 * _EPSILON * joint


def round_to(score: int, grid: int) -> int:
    """The nearest multiple of a grid, as the program rounds: by a quotient of doubles, halves to even."""
    return score if grid == 1 else round(float(score) / float(grid))


def read_condition(
    facts: SumFacts, contrast: Contrast, row: Sequence[float], label: int, threat: AllowedChanges, *, changes: bool
) -> Condition:
    """What it takes for a row's label, 0 or 1, to hold.

    `changes`: whether categories are at their worst and the model may differ from the one that is meant; else the
    condition is that of the row's own label.
    """
    sign = 1 if label else -1
    threshold = contrast.threshold if label else -contrast.threshold - 1
    functions, missable, options = [], [], []
    for kind, told in facts.terms:
        if kind == "category_table":
            own, others = read_table(told, float(row[told["feature"]]), threat)
            threshold -= sign * own
            if told["feature"] not in threat.frozen:
                options.append([sign * (own - other) for other in others])
            continue
        if kind not in ("step_function", "grid_term"):
            raise ValueError(
                f"A term of kind {kind!r} cannot be audited: there are proofs of step functions, tables and grids."
            )
        one = (_read_grid if kind == "grid_term" else _read_function)(told, row, sign, threat)
        if one.missing is not None and one.feature not in threat.frozen:
            missable.append(one)
        if one.is_missing or not one.range:
            threshold -= one.own
        else:
            functions.append(one)
    if changes:
        threshold += bound_decrease(options, threat.l0) + math.ceil(contrast.score_error)
    functions.sort(key=lambda one: one.is_grid)
    return Condition(tuple(functions), tuple(missable) if threat.missing else (), threshold, bool(label))


def _read_function(told: Told, row: Sequence[float], sign: int, threat: AllowedChanges) -> Function:
    missing = told.get("missing")
    return Function(
        (Axis(told["feature"], float(row[told["feature"]]), tuple(told["edges"])),),
        tuple(sign * score for score in _flatten(told["scores"])),
        None if missing is None else sign * int(missing),
    )


def _read_grid(told: Told, row: Sequence[float], sign: int, threat: AllowedChanges) -> Function:
    """A term of several columns; numbers that are missing are looked up."""
    missing = told.get("missing", [0] * len(told["features"]))
    shape = [len(edges) + 1 + gap for edges, gap in zip(told["edges"], missing, strict=True)]
    flat, kept, axes = _flatten(told["scores"]), [], []
    for feature, edges, gap, size in zip(told["features"], told["edges"], missing, shape, strict=True):
        x = float(row[feature])
        if gap and threat.missing and feature not in threat.frozen:
            raise ValueError(
                f"Column {feature} is in a term of several columns and may go missing: such claims cannot be audited."
            )
        if math.isnan(x) and not gap:
            raise ValueError(f"The number in column {feature} is missing, of which the model knows no score.")
        kept.append([size - 1] if math.isnan(x) else list(range(len(edges) + 1)))
        if not math.isnan(x):
            axes.append(Axis(feature, x, tuple(edges)))
    scores = []
    for cells in itertools.product(*kept):
        at = 0
        for size, cell in zip(shape, cells, strict=True):
            at = at * size + cell
        scores.append(sign * flat[at])
    return Function(tuple(axes), tuple(scores), is_grid=True)


def read_table(told: Told, value: float, threat: AllowedChanges) -> tuple[int, list[int]]:
    """The score of a category, and all that it may change to."""
    known = dict(zip(told["categories"], _flatten(told["scores"]), strict=True))
    other = int(told["other"])
    missing = int(told.get("missing", other))

    def score(code: float) -> int:
        return missing if math.isnan(code) else known.get(code, other)

    if told["feature"] in threat.may_become:
        return score(value), [score(float(code)) for code in threat.may_become[told["feature"]]]
    outside = [told["other"], missing] if threat.unseen or not known else []
    return score(value), [*known.values(), *outside]


def bound_decrease(options: Sequence[Sequence[int]], budget: int) -> int:
    """The most that changing up to so many columns can take off a sum; `options` are the decreases of each column.

    Every choice is tried where there are few; else the columns that can fall most are changed, which is the same.

    Examples
    --------
    >>> bound_decrease([[3, -1], [5], [0, 4]], 2)
    9
    """
    useful = [max(some) for some in options if some and max(some) > 0]
    budget = min(budget, len(options))
    distinct = [sorted(set(some)) for some in options if some]
    n_tries = math.prod(1 + len(some) for some in distinct) if len(distinct) < 12 else _MOST_TRIES + 1
    if n_tries > _MOST_TRIES:
        return sum(sorted(useful, reverse=True)[:budget])
    every = itertools.product(*([None, *some] for some in distinct))
    changed = ([decrease for decrease in choice if decrease is not None] for choice in every)
    return max((sum(some) for some in changed if len(some) <= budget), default=0)
