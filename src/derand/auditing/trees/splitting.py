"""A tree of splits: that a sum stays at or above a level in all of a region, by halves of it.

Every node is a region. It is closed where the least leaves of all trees that it reaches add up to the level, or where a
budget leaves nothing of it; else it is split into two regions that cover it. Owns which splits are tried. Must not know
models, threats or labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from derand.auditing.trees.regions import Budget, Region
from derand.auditing.trees.sums import Cells

_MOST_CANDIDATES = 4


class Valued(NamedTuple):
    """A leaf with what it counts for, and its cells."""

    value: int
    cells: Cells


class Split(NamedTuple):
    """A column, and the cells of one half."""

    feature: int
    cells: int


class _Tree:
    """A tree whose leaves are numbered from the least value on; a set of them is a whole number."""

    def __init__(self, leaves: Sequence[Valued]) -> None:
        ordered = sorted(leaves, key=lambda leaf: leaf.value)
        self.values = [leaf.value for leaf in ordered]
        self.cells = [leaf.cells for leaf in ordered]
        self.every = (1 << len(ordered)) - 1
        self._alike: dict[int, dict[int, int]] = {}
        for at, cells in enumerate(self.cells):
            for feature, own in cells.items():
                alike = self._alike.setdefault(feature, {})
                alike[own] = alike.get(own, 0) | 1 << at
        self._any = {feature: self.every & ~sum(alike.values()) for feature, alike in self._alike.items()}

    @property
    def features(self) -> Iterable[int]:
        """The columns that tell its leaves apart."""
        return self._alike

    def select(self, feature: int, cells: int) -> int:
        """The leaves that some cells of a column lead to."""
        found = self._any[feature]
        for own, leaves in self._alike[feature].items():
            if own & cells:
                found |= leaves
        return found

    def value(self, leaves: int) -> int:
        """The least value of some leaves."""
        return self.values[(leaves & -leaves).bit_length() - 1]


class _Node(NamedTuple):
    """A region, the leaves that it reaches in each tree, and the sum of their least values."""

    cells: dict[int, int]
    leaves: list[int]
    bound: int


class SplitProof:
    """A sum of trees over a region, whose budgets count as well."""

    def __init__(self, trees: Iterable[Sequence[Valued]], region: Region) -> None:
        self._fixed, self._trees = 0, list[_Tree]()
        for leaves in trees:
            least = min(leaf.value for leaf in leaves)
            if max(leaf.value for leaf in leaves) == least:
                self._fixed += least
            else:
                self._trees.append(_Tree(leaves))
        self._region = region
        self._users: dict[int, list[int]] = {}
        for at, tree in enumerate(self._trees):
            for feature in tree.features:
                self._users.setdefault(feature, []).append(at)
        self.n_regions = 0

    def holds(self, level: int, most: int) -> bool | None:
        """Whether the sum is at or above a level everywhere; None where so many regions do not tell."""
        every = [tree.every for tree in self._trees]
        least = self._fixed + sum(tree.values[0] for tree in self._trees)
        start = self._narrow(_Node(dict(self._region.cells), every, least), level, {}, self._region.budgets)
        waiting = [start] if start is not None and start.bound < level else []
        self.n_regions = 1
        while waiting:
            node = waiting.pop()
            split = self._choose(node, level)
            if split is None:
                return False
            self.n_regions += 2
            if self.n_regions > most:
                return None
            feature, half = split
            halves = [self._take(node, level, {feature: cells}) for cells in (half, node.cells[feature] & ~half)]
            still = [one for one in halves if one is not None and one.bound < level]
            waiting += sorted(still, key=lambda one: -one.bound)  # the lower one is looked at first
        return True

    def _take(self, node: _Node, level: int, half: Cells) -> _Node | None:
        """One half of a node; None where no budget allows it."""
        return self._narrow(_Node(dict(node.cells), list(node.leaves), node.bound), level, half, ())

    def _narrow(self, node: _Node, level: int, fewer: Cells, asked: Sequence[Budget]) -> _Node | None:
        """A node with fewer cells in some columns, and with what budgets then leave; its own lists are changed.

        `asked` are the budgets that are looked at in any case.
        """
        bound = node.bound
        while True:
            costly = list(asked)
            for feature, cells in fewer.items():
                raised = [one for one in self._region.budgets if one.is_raised(feature, node.cells[feature], cells)]
                costly += [one for one in raised if one not in costly]
                node.cells[feature] = cells
                for at in self._users.get(feature, ()):
                    before, tree = node.leaves[at], self._trees[at]
                    left = before & tree.select(feature, cells)
                    if left != before:
                        node.leaves[at] = left
                        bound += tree.value(left) - tree.value(before)
            if bound >= level or not costly:
                return _Node(node.cells, node.leaves, bound)
            left_over: dict[int, int] = {}
            for budget in costly:
                narrowed = budget.narrow({**node.cells, **left_over})
                if narrowed is None:
                    return None
                left_over |= narrowed
            fewer, asked = left_over, ()

    def _choose(self, node: _Node, level: int) -> Split | None:
        """Where to split: where the least leaves of trees contradict one another, or cost too much together.

        None where they do not: then they meet in a point of the region, whose sum is the bound.
        """
        least, common = [], dict(node.cells)
        for at, leaves in enumerate(node.leaves):
            if leaves & leaves - 1:
                cells = self._trees[at].cells[(leaves & -leaves).bit_length() - 1]
                least.append((at, cells))
                for feature, own in cells.items():
                    common[feature] &= own
        conflicts = [feature for feature, own in common.items() if not own]
        if not conflicts:
            return self._choose_by_budget(node, common)
        missing = level - node.bound
        best, best_score = None, -1
        for feature in conflicts:
            asked = [(at, cells[feature]) for at, cells in least if feature in cells]
            for half in self._list_candidates(node, feature, [own for _, own in asked]):
                halves = (half, node.cells[feature] & ~half)
                rises = [min(self._measure_rise(node, feature, one, asked), missing) for one in halves]
                score = (64 * rises[0] + missing) * (64 * rises[1] + missing)
                if score > best_score:
                    best, best_score = Split(feature, half), score
        return best

    def _measure_rise(self, node: _Node, feature: int, half: int, asked: Sequence[tuple[int, int]]) -> int:
        """By how much the bound is higher in a half."""
        rise = 0
        for at, own in asked:
            if not own & half:
                tree, leaves = self._trees[at], node.leaves[at]
                rise += tree.value(leaves & tree.select(feature, half)) - tree.value(leaves)
        return rise

    def _list_candidates(self, node: _Node, feature: int, asked: Sequence[int]) -> list[int]:
        """Halves of a column that part some of the cells that trees ask for."""
        here, gap = node.cells[feature], self._region.gaps.get(feature, 0)
        if feature in self._region.codes:
            found = sorted({own & here for own in asked}, key=int.bit_count)[:_MOST_CANDIDATES]
        else:
            numbers = [own & here & ~gap for own in asked]
            firsts = sorted({(own & -own).bit_length() - 1 for own in numbers if own})
            ends = sorted({own.bit_length() for own in numbers if own})
            between = [at for at in {*firsts, *ends} if ends[0] <= at <= firsts[-1]] if ends else []
            middle = sorted(between)[len(between) // 2 : len(between) // 2 + 1]
            positions = {ends[0], firsts[-1], *middle} if between else set()
            found = [here & ~gap & (1 << at) - 1 for at in sorted(positions)] + [here & gap]
        found = [half for half in found if half and half != here]
        return found or [next(own & here for own in asked if own & here != here)]

    def _choose_by_budget(self, node: _Node, common: Cells) -> Split | None:
        """A split by what the cells that all least leaves allow cost, where that is too much; else None."""
        budgets = self._region.budgets
        for budget in budgets:
            if budget.sum_least(common) > budget.limit:
                costs = {at: budget.compute_least(at, common[at]) for at in budget.columns}
                more = {at: cost - budget.compute_least(at, node.cells[at]) for at, cost in costs.items()}
                feature = max(more, key=lambda at: more[at])
                return Split(feature, node.cells[feature] & budget.select(feature, costs[feature] - 1))
        for feature, gap in self._region.gaps.items():  # a number may be near, or missing: not both for nothing
            cheapest = common[feature]
            for budget in budgets:
                if feature in budget.columns:
                    cheapest &= budget.select(feature, budget.compute_least(feature, common[feature]))
            if not cheapest:
                return Split(feature, node.cells[feature] & gap)
        return None
