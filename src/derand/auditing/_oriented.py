"""What a claim comes down to: independent functions of one number each, whose sum must stay above a cut.

Read from what a model's file says of its terms (`Term.describe`) and from the threat, in whole numbers: categories at
their worst, missing numbers as constants, the label's side turned up. Owns this reading, and the error bands that the
program's own arithmetic is allowed (kernels/README.md). Must not know noise.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from derand.auditing._blocks import Block, read_block
from derand.auditing._threat import AllowedChanges
from derand.model import Contrast

_EPSILON = 2.0**-52
_TAIL_ERROR = 96 * _EPSILON
_INVERSION = (64, 1e-10)  # from so many terms on masses near 1/2 may come from an inversion, which is off by so much
_MOST_LEVELS, _COARSE_LEVELS, _MOST_WORK = 2**23, 2**13, 2**29
_MOST_TRIES = 4096


@dataclass(frozen=True, slots=True)
class Function:
    """A step function of one number that must stay high, and the number.

    Attributes
    ----------
    feature : int
    x : float
        NaN where it is missing.
    edges : tuple of float
        `scores[i]` holds on `[edges[i - 1], edges[i])`.
    scores : tuple of int
    missing : int or None
        What a missing number scores.
    """

    feature: int
    x: float
    edges: tuple[float, ...]
    scores: tuple[int, ...]
    missing: int | None

    @property
    def range(self) -> int:
        """Largest less least score."""
        return max(self.scores) - min(self.scores)

    @property
    def is_gap(self) -> bool:
        """Whether the number is missing."""
        return math.isnan(self.x)

    @property
    def own(self) -> int:
        """Its score where the row stands."""
        if self.is_gap:
            if self.missing is None:
                raise ValueError(f"The number in column {self.feature} is missing, of which the model knows no score.")
            return self.missing
        return self.scores[bisect.bisect_right(self.edges, self.x)]


@dataclass(frozen=True, slots=True)
class Side:
    """The label holds while the sum of some functions stays above a cut.

    Attributes
    ----------
    functions : tuple of Function
        Those of numbers that are there and that are not constant.
    gaps : tuple of Function
        All whose number may go missing or appear by the threat's budget.
    cut : int
        Everything else is taken off: categories at their worst, constants, missing numbers, and what the model may
        differ from the one that is meant.
    is_one : bool
        Whether the label is class 1: then the expected score must be above the cut; else it may be the cut plus 1.
    blocks : tuple of Block
        Functions of several numbers that are not constant.
    """

    functions: tuple[Function, ...]
    gaps: tuple[Function, ...]
    cut: int
    is_one: bool
    blocks: tuple[Block, ...] = ()

    @property
    def bar(self) -> int:
        """What the expected score must be above, or for class 0 must not be below."""
        return self.cut if self.is_one else self.cut + 1

    @property
    def step(self) -> int:
        """The common divisor of all differences between scores."""
        return math.gcd(*(score - least for one, least in self._list_least() for score in one.scores)) or 1

    def _list_least(self) -> list[tuple[Function | Block, int]]:
        """All functions, with the least score of each."""
        every: tuple[Function | Block, ...] = (*self.functions, *self.blocks)
        return [(one, min(one.scores)) for one in every]

    def round_down(self, level: int) -> int:
        """The largest sum that is not above a level: sums lie on a grid."""
        base = self.least
        return base + (level - base) // self.step * self.step

    @property
    def least(self) -> int:
        """The sum in the worst cells of all functions."""
        return sum(least for _, least in self._list_least())

    @property
    def ranges(self) -> list[int]:
        """Largest less least score of each function."""
        return [one.range for one in self.functions] + [one.range for one in self.blocks]

    @property
    def total(self) -> int:
        """The sum where the row stands."""
        return sum(one.own for one in self.functions) + sum(one.own for one in self.blocks)

    def vary(self, chosen: Sequence[Function]) -> Side:
        """The same where the numbers of some functions have gone missing, or have appeared at their worst."""
        names = {one.feature for one in chosen}
        moved = self.cut
        for one in chosen:
            assert one.missing is not None
            # a number that is there leaves the sum and counts as missing; one that appears counts as the worst cell
            moved += one.missing - min(one.scores) if one.is_gap else -one.missing
            if not one.is_gap and not one.range:
                moved += one.scores[0]  # constant functions are in the cut already
        return replace(self, functions=tuple(one for one in self.functions if one.feature not in names), cut=moved)


def read_side(
    contrast: Contrast, row: Sequence[float], label: int, threat: AllowedChanges, *, changes: bool = True
) -> Side:
    """What it takes for a row's label to hold.

    Parameters
    ----------
    contrast : Contrast
    row : sequence of float
    label : {0, 1}
    threat : AllowedChanges
    changes : bool
        Whether categories are at their worst and the model may differ from the one that is meant; else the side is
        that of the row's own label.
    """
    sign = 1 if label else -1
    cut = contrast.threshold if label else -contrast.threshold - 1
    functions, gaps, options, blocks = [], [], [], []
    for term in contrast.terms:
        if term.kind == "grid_term":
            block = read_block(term.describe(), row, sign, threat)
            if block.range:
                blocks.append(block)
            else:
                cut -= block.scores[0]
            continue
        if term.kind not in ("step_function", "category_table"):
            raise ValueError(
                f"A term of kind {term.kind!r} cannot be audited: there are proofs of step functions, tables and grids."
            )
        told = term.describe()
        value = float(row[told["feature"]])
        if term.kind == "category_table":
            own, others = read_table(told, value, threat)
            cut -= sign * own
            if told["feature"] not in threat.frozen:
                options.append([sign * (own - other) for other in others])
            continue
        one = _read_function(told, value, sign)
        if one.missing is not None and told["feature"] not in threat.frozen:
            gaps.append(one)
        if one.is_gap or not one.range:
            cut -= one.own
        else:
            functions.append(one)
    if changes:
        cut += find_worst_fall(options, threat.l0) + math.ceil(contrast.score_error)
    return Side(tuple(functions), tuple(gaps) if threat.missing else (), cut, bool(label), tuple(blocks))


def _flatten(scores: Sequence[Any]) -> list[int]:
    return [int(score[0]) if isinstance(score, Sequence) else int(score) for score in scores]


def _read_function(told: dict[str, Any], value: float, sign: int) -> Function:
    scores = tuple(sign * score for score in _flatten(told["scores"]))
    missing = told.get("missing")
    return Function(
        told["feature"], value, tuple(told["edges"]), scores, None if missing is None else sign * int(missing)
    )


def read_table(told: dict[str, Any], value: float, threat: AllowedChanges) -> tuple[int, list[int]]:
    """The score of a category, and all that it may change to."""
    known = dict(zip(told["categories"], _flatten(told["scores"]), strict=True))
    missing = told.get("missing", told["other"])

    def score(code: float) -> int:
        return int(missing if math.isnan(code) else known.get(code, told["other"]))

    if told["feature"] in threat.may_become:
        return score(value), [score(float(code)) for code in threat.may_become[told["feature"]]]
    outside = [told["other"], missing] if threat.unseen or not known else []
    return score(value), [*known.values(), *outside]


def find_worst_fall(options: Sequence[Sequence[int]], budget: int) -> int:
    """The most that changing up to so many columns can take off a sum; `options` are the falls of each column.

    Every choice is tried where there are few; else the columns that can fall most are changed, which is the same.

    Examples
    --------
    >>> find_worst_fall([[3, -1], [5], [0, 4]], 2)
    9
    """
    useful = [max(falls) for falls in options if falls and max(falls) > 0]
    budget = min(budget, len(options))
    distinct = [sorted(set(falls)) for falls in options if falls]
    n_tries = math.prod(1 + len(falls) for falls in distinct) if len(distinct) < 12 else _MOST_TRIES + 1
    if n_tries > _MOST_TRIES:
        return sum(sorted(useful, reverse=True)[:budget])
    every = itertools.product(*([None, *falls] for falls in distinct))
    changed = ([fall for fall in choice if fall is not None] for choice in every)
    return max((sum(falls) for falls in changed if len(falls) <= budget), default=0)


def coarsen(contrast: Contrast) -> tuple[int, int]:
    """The grid on which the program sums a law of too many levels, and how far that moves a sum; else 1 and 0."""
    told = [_flatten(term.describe()["scores"]) for term in contrast.terms if term.axes]
    spans = [max(scores) - min(scores) for scores in told]
    step = math.gcd(*(score - min(scores) for scores in told for score in scores)) or 1
    if sum(spans) // step < _MOST_LEVELS:
        return 1, 0
    cells = [math.prod(axis.edges.size + 1 for axis in term.axes) for term in contrast.terms if term.axes]
    levels = max(_COARSE_LEVELS, min(_COARSE_LEVELS * len(cells), _MOST_WORK // sum(cells)))
    grid = -(-(sum(spans) // step) * step // levels)
    moves = [max(abs(score - grid * round_to(score, grid)) for score in scores) for scores in told]
    return grid, sum(moves)


def round_to(score: int, grid: int) -> int:
    """The nearest multiple of a grid, as the program rounds: by a quotient of doubles, halves to even."""
    return round(float(score) / float(grid))


def find_tie_band(contrast: Contrast, grid: int = 1) -> float:
    """By how much a mass near 1/2 that the program computes may exceed the true one (kernels/README.md, step 5)."""
    told = [term.describe() for term in contrast.terms if term.axes]
    moving = [
        one
        for one in told
        if len({score if grid == 1 else round_to(score, grid) for score in _flatten(one["scores"])}) > 1
    ]
    grids = [one for one in moving if "features" in one]
    single = [one for one in moving if "features" not in one]
    n_edges = sum(len(one["edges"]) for one in single)
    n_cells = n_edges + len(single) + sum(len(set(_flatten(one["scores"]))) for one in grids)
    roundings = 2 * n_cells + 8 * len(moving) + 2048
    inversion = _INVERSION[1] if len(moving) >= _INVERSION[0] else 0.0
    of_grids = sum(map(_find_excess, grids))
    return 3 * _TAIL_ERROR * n_edges + roundings * _EPSILON + inversion + of_grids


def find_mean_error(contrast: Contrast) -> float:
    """By how much an expected score that the program computes may be off, in scores (kernels/README.md, step 9)."""
    by_cells, n_cells, spans = 0.0, 0, 0
    for told in (term.describe() for term in contrast.terms if term.axes):
        scores = _flatten(told["scores"])
        span = max(scores) - min(scores)
        if not span:
            continue
        count = len(set(scores)) if "features" in told else len(scores)  # boxes of equal score are one cell
        excess = _find_excess(told) + 8 * _EPSILON if "features" in told else 3 * _TAIL_ERROR * count
        by_cells, n_cells, spans = by_cells + span * excess, n_cells + count, spans + span
    return (by_cells + _EPSILON * (2 * n_cells + 64) * spans) * (1 + 1e-9)


def _find_excess(told: dict[str, Any]) -> float:
    """How much mass all boxes of a term can have too much together (kernels/README.md, step 10)."""
    joint = len(told["scores"]) + len(told["features"]) + 4
    return 3.01 * _TAIL_ERROR * sum(map(len, told["edges"])) + 2.01 * _EPSILON * joint
