"""What a row may become, as cells of columns, and the budgets that its changes share.

Owns which cells each column may reach by the audit's own reading of the threat (`AllowedChanges`), what that costs of
the budgets, and which cells are left within them. Distances are fractions; sums of them are compared as whole multiples
of a power of two, rounded downward where they are none. Must not know trees, scores or labels.
"""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from derand.auditing._claim import Move, cut_to_ball, list_positions
from derand.auditing._threat import AllowedChanges
from derand.auditing.trees.sums import Cells, Column

_BITS = 320


class Budget(ABC):
    """A sum of what changes of some columns cost, which must not exceed a limit."""

    limit: int

    def __init__(self, columns: frozenset[int]) -> None:
        self.columns = columns

    @abstractmethod
    def compute_least(self, feature: int, cells: int) -> int:
        """The least cost of some cells of a column."""

    @abstractmethod
    def select(self, feature: int, most: int) -> int:
        """The cells of a column that cost so much at most."""

    def sum_least(self, cells: Cells) -> int:
        """The least cost of a region."""
        return sum(self.compute_least(feature, cells[feature]) for feature in self.columns)

    def is_raised(self, feature: int, before: int, after: int) -> bool:
        """Whether fewer cells of a column cost more."""
        if feature not in self.columns:
            return False
        return not after or self.compute_least(feature, after) > self.compute_least(feature, before)

    def narrow(self, cells: Cells) -> dict[int, int] | None:
        """Columns of a region that the budget leaves fewer cells, with these; None where nothing is left at all."""
        if not all(cells[feature] for feature in self.columns):
            return None
        least = {feature: self.compute_least(feature, cells[feature]) for feature in self.columns}
        spare = self.limit - sum(least.values())
        if spare < 0:
            return None
        narrowed = {feature: cells[feature] & self.select(feature, own + spare) for feature, own in least.items()}
        return {feature: own for feature, own in narrowed.items() if own != cells[feature]}


class Count(Budget):
    """How many columns may change; `free` holds the cells of each that are no change."""

    def __init__(self, free: Cells, limit: int) -> None:
        super().__init__(frozenset(free))
        self._free, self.limit = free, limit

    def compute_least(self, feature: int, cells: int) -> int:
        return 0 if cells & self._free[feature] else 1

    def select(self, feature: int, most: int) -> int:
        return -1 if most else self._free[feature]


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a number in a ball: its own cell, what cells to the left and to the right of it cost, the nearest first, and
    the set of cells that cost nothing, such as that of a missing value."""

    own: int
    left: tuple[int, ...]
    right: tuple[int, ...]
    free: int


class Distance(Budget):
    """The sum of the distances of all numbers, to the power of the norm."""

    def __init__(self, costs: Mapping[int, Costs], limit: int) -> None:
        super().__init__(frozenset(costs))
        self._costs, self.limit = costs, limit

    def compute_least(self, feature: int, cells: int) -> int:
        costs = self._costs[feature]
        if cells & costs.free:
            return 0
        below, above = cells & ((1 << costs.own) - 1), cells >> costs.own + 1
        found = []
        if below:
            found.append(costs.left[costs.own - below.bit_length()])
        if above:
            found.append(costs.right[(above & -above).bit_length() - 1])
        return min(found)

    def select(self, feature: int, most: int) -> int:
        costs = self._costs[feature]
        n_left, n_right = bisect.bisect_right(costs.left, most), bisect.bisect_right(costs.right, most)
        return costs.free | (1 << costs.own + 1 + n_right) - (1 << costs.own - n_left)


class Region:
    """All that a row may become: cells by column, and budgets."""

    def __init__(
        self, columns: Mapping[int, Column], row: Sequence[float], threat: AllowedChanges, radius: float
    ) -> None:
        self._threat, self._radius = threat, radius if threat.norm is not None else math.inf
        self.cells: dict[int, int] = {}
        self.codes = frozenset(feature for feature, column in columns.items() if column.is_code)
        self.gaps: dict[int, int] = {}
        """Of numbers that may go missing the cell of a missing value."""
        reached: dict[int, dict[int, Fraction]] = {}
        for feature, column in columns.items():
            own = 1 << column.locate(row[feature])
            self.cells[feature] = own
            if feature in threat.frozen:
                continue
            if column.is_code:
                self.cells[feature] |= self._list_codes(column) if threat.l0 else 0
                continue
            if threat.missing and column.takes_missing:
                self.gaps[feature] = 1 << column.missing
            if math.isnan(row[feature]):
                self.cells[feature] |= column.seen if threat.missing else 0
                continue
            reached[feature] = self._list_cells(column, row)
            self.cells[feature] |= sum(1 << cell for cell in reached[feature]) | self.gaps.get(feature, 0)
        own_cells = {feature: 1 << column.locate(row[feature]) for feature, column in columns.items()}
        self.budgets = [one for one in self._list_budgets(reached, own_cells) if one.columns]

    def _list_codes(self, column: Column) -> int:
        """What a category may become."""
        if column.feature in self._threat.may_become:
            codes = [float(code) for code in self._threat.may_become[column.feature]]
            return sum({1 << column.locate(code) for code in codes if column.takes_missing or not math.isnan(code)})
        outside = self._threat.unseen or not column.edges
        unseen = 1 << len(column.edges) if outside else 0
        return column.seen | unseen | (1 << column.missing if outside and column.takes_missing else 0)

    def _list_cells(self, column: Column, row: Sequence[float]) -> dict[int, Fraction]:
        """The bins that a number may reach, each with the least distance to one of its doubles, in units."""
        threat, feature, x = self._threat, column.feature, row[column.feature]
        move = Move(*threat.reach(feature, row), threat.unit(feature))
        is_ball = bool(threat.norm) and math.isfinite(self._radius)  # norm 0 has no such ball
        if is_ball:
            move = Move(*cut_to_ball(x, move, self._radius), move.unit)
        own = column.locate(x)
        first, last = column.locate(move.low), column.locate(move.high)
        step, near = threat.step(feature), column.edges[min(first, own) : max(last, own)]
        positions = list_positions(x, step, move, near) if step else None
        if positions is None:
            positions = tuple(math.nextafter(edge, -math.inf) if edge <= x else edge for edge in near)
        found = {own: Fraction(0)}
        for z in filter(math.isfinite, positions):
            cell, away = column.locate(z), abs(Fraction(z) - Fraction(x)) / move.unit
            if (not is_ball or away < Fraction(self._radius)) and (cell not in found or away < found[cell]):
                found[cell] = away
        return found

    def _list_budgets(self, reached: Mapping[int, Mapping[int, Fraction]], own: Cells) -> list[Budget]:
        """What changes share, where there is more than may be spent."""
        threat = self._threat
        moved = [feature for feature, cells in reached.items() if len(cells) > 1]
        changed = [feature for feature in self.codes if self.cells[feature] != own[feature]]
        # what is not missing is free for a number that is there; for a missing one only its own cell is
        free = {at: own[at] if own[at] == gap else ~gap for at, gap in self.gaps.items()}
        budgets: list[Budget] = [Count({at: own[at] for at in changed}, threat.l0), Count(free, threat.missing)]
        if threat.norm == 0 and math.isfinite(self._radius):
            budgets.append(Count({at: own[at] | self.gaps.get(at, 0) for at in moved}, math.ceil(self._radius)))
        elif threat.norm in (1, 2) and math.isfinite(self._radius):
            budgets.append(self._make_distance({at: reached[at] for at in moved}, int(threat.norm)))
        return [one for one in budgets if one.limit < len(one.columns) or isinstance(one, Distance)]

    def _make_distance(self, reached: Mapping[int, Mapping[int, Fraction]], power: int) -> Distance:
        """The open ball: sums of costs stay below its size."""
        size = Fraction(self._radius) ** power
        shift = _BITS + max(size.denominator.bit_length() - size.numerator.bit_length(), 0)
        unit = 1 << shift
        costs = {}
        for feature, cells in reached.items():
            whole = {cell: away**power * unit for cell, away in cells.items()}
            (own,) = [cell for cell, away in cells.items() if not away]
            costs[feature] = Costs(
                own,
                _spread([(own - cell, math.floor(cost)) for cell, cost in whole.items() if cell < own]),
                _spread([(cell - own, math.floor(cost)) for cell, cost in whole.items() if cell > own]),
                1 << own | self.gaps.get(feature, 0),
            )
        return Distance(costs, math.ceil(size * unit) - 1)


def _spread(costs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Costs of cells counted from 1, without gaps: a cell that cannot be reached costs as much as the next one."""
    found: list[int] = []
    for count, cost in sorted(costs):
        found += [cost] * (count - len(found))
    return tuple(found)
