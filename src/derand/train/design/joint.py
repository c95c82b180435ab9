"""Groups of columns without noise: joint cells, and exactly those that a change can reach.

Owns the joint codes of rows (which cells of every column they reach), the functions of a group (jumps of each column,
indicators of categories and of what is missing, and products of them) and the cells of every code. Columns may be in
several groups: the sum of the least values of all groups bounds the score of a changed row, and a search over trees
certifies it. Must not know rows' losses, or how threats are written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand.train.bins import BinnedTable, NumberBins
from derand.train.design.windows import Box, choose_safe_cuts, merge_window, reach_ends

MOST_JOINED = 9
"""Columns of a group."""
_CUTS = {2: 9, 3: 4}
"""Cuts of each column, by the size of the group; one of each column in larger groups, and several such functions."""
_CUTS_APART = 2
"""The same of four columns, where no column is in two groups: each group is then one function, and a term."""
_MOST_FUNCTIONS = 5
"""Functions of one larger group, which differ by their cuts: as many as do not lie within reach of one another."""
_FULL = 4
"""Columns of a group, at most, all of whose products are among its functions; of more columns those of `_ORDER`."""
_ORDER = 3
_MOST_PRODUCTS = 200
"""Of a column's jumps and a category's indicators, about: such a column has fewer cuts."""
_SHRINK = 2.0
"""How much stronger products are penalised than jumps."""


class Places(NamedTuple):
    """Where rows of each code of a column can go, and what the weights of the column add there.

    Attributes
    ----------
    points : array of shape (n_points, n_weights)
    ends : array of int
        A point for each place: the first places of all codes, which nothing moves, then the second ones of all codes
        that have such, and so on. Codes of more places come first.
    counts : array of int
        How many codes have a first place, a second one, ...
    costs : array as long as `ends`
        What going there costs.
    is_category : bool
        Whether it costs what changes of categories cost.
    """

    points: NDArray[np.float32]
    ends: Numbers
    counts: IntArray
    costs: FloatArray
    is_category: bool = False


class JointShape(NamedTuple):
    """A fitted function of several columns: `values` has one axis per column, of the cells of `axes`."""

    axes: tuple[JointAxis, ...]
    values: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JointAxis:
    """One column of a group.

    Attributes
    ----------
    feature : int
    bins : NumberBins or None
        Values that reach the same cells; None for a category.
    cuts : array of shape (n_cuts,)
    n_categories : int
        0 for numbers.
    has_missing : bool
        Whether there is a cell for what is missing, the last one. Of categories the one before is that of categories
        that training did not see.
    penalties : array of shape (n_categories,)
        Of the weights of categories.
    """

    feature: int
    bins: NumberBins | None
    cuts: FloatArray
    n_categories: int = 0
    has_missing: bool = False
    penalties: FloatArray | None = None

    @property
    def n_cells(self) -> int:
        return (self.n_categories or self.cuts.size) + 1 + self.has_missing

    def locate(self) -> IntArray:
        """The cell of each code of the column."""
        if self.bins is None:
            return np.append(np.arange(self.n_categories), self.n_cells - 1)
        own = np.searchsorted(self.cuts, self.bins.centers, side="right")
        return np.append(own, self.n_cells - 1)

    def list_functions(self, shares: FloatArray) -> FloatArray:
        """What each weight adds in each cell, (n_cells, n_functions): 0 in the mean over numbers, whose cells have
        these shares."""
        if self.n_categories:
            own = np.eye(self.n_cells, self.n_categories)
        else:
            steps = np.tri(self.cuts.size + 1, self.cuts.size, -1)
            present = shares[: self.cuts.size + 1]
            own = np.zeros((self.n_cells, self.cuts.size))
            own[: self.cuts.size + 1] = steps - present @ steps / max(present.sum(), 1e-300)
        if self.has_missing:
            own = np.column_stack([own, np.arange(self.n_cells) == self.n_cells - 1])
        return own

    def list_penalties(self, regularization: float) -> FloatArray:
        """As those of single columns."""
        own = np.full(self.cuts.size, regularization * self.cuts.size)
        if self.n_categories:
            own = np.ones(self.n_categories) if self.penalties is None else self.penalties
        return np.append(own, np.ones(int(self.has_missing)))


@dataclass(frozen=True, slots=True, eq=False)
class JointBins(NumberBins):
    """Several columns in joint codes: those that some row has; `centers` is as long as there are.

    Attributes
    ----------
    axes : tuple of JointAxis
    codes : array of shape (n_joint, n_axes)
        The code of each column in each joint code.
    """

    axes: tuple[JointAxis, ...]
    codes: IntArray

    @property
    def parts(self) -> tuple[NumberBins, ...]:
        """Its numerical columns."""
        return tuple(one.bins for one in self.axes if one.bins is not None)


@dataclass(frozen=True, slots=True, eq=False)
class JointColumn:
    """A group of columns in a design, where a single column might stand.

    Attributes
    ----------
    bins : JointBins
    places : Places
        Points are the joint cells.
    products : tuple of tuples of int
        The axes whose functions are multiplied, for each weight.
    """

    bins: JointBins
    places: Places
    products: tuple[tuple[int, ...], ...]
    sign = 0

    @property
    def features(self) -> tuple[int, ...]:
        return tuple(one.feature for one in self.bins.axes)

    @property
    def n_codes(self) -> int:
        return int(self.places.counts[0])

    @property
    def n_weights(self) -> int:
        return int(self.places.points.shape[1])

    @property
    def n_places(self) -> int:
        """Of the code that has most."""
        return int(self.places.counts.size)

    def list_penalties(self, regularization: float) -> FloatArray:
        """Of functions of one column as there, of products more, the more there are; as much as rare categories."""
        own = [one.list_penalties(regularization) for one in self.bins.axes]
        crossed = [part for part in self.products if len(part) > 1]
        scale = _SHRINK * regularization * max(sum(_count(own, part) for part in crossed), 1) ** 0.5
        rare = [
            np.maximum(part, 1.0) if axis.n_categories else np.ones(part.size)
            for part, axis in zip(own, self.bins.axes, strict=True)
        ]
        found = [own[part[0]] for part in self.products if len(part) == 1]
        found += [scale * _multiply([rare[axis] for axis in part], np.maximum) for part in crossed]
        return np.concatenate(found)

    def leave_in_place(self) -> JointColumn:
        """The same where nothing changes."""
        points, ends, counts, costs, is_category = self.places
        return replace(self, places=Places(points, ends[: counts[0]], counts[:1], 0 * costs[: counts[0]], is_category))

    def tabulate(self) -> FloatArray:
        """What each weight adds at each code, where nothing is moved."""
        return np.asarray(self.places.points[self.places.ends[: self.n_codes]], dtype=np.float64)

    def read(self, weights: FloatArray) -> JointShape:
        """The function that these weights stand for."""
        values = self.places.points.astype(np.float64) @ weights
        return JointShape(self.bins.axes, values.reshape([one.n_cells for one in self.bins.axes]))


def _count(own: Sequence[FloatArray], part: tuple[int, ...]) -> int:
    return int(np.prod([own[axis].size for axis in part]))


def _multiply(parts: Sequence[FloatArray], combine: Any = np.multiply) -> FloatArray:
    """Every combination of one entry of each, the last one running fastest; of arrays their last axes."""
    found = parts[0]
    for part in parts[1:]:
        found = combine(found[..., :, None], part[..., None, :])
        found = found.reshape(*found.shape[:-2], -1)
    return np.asarray(found)


Measure = Callable[[Sequence[NumberBins]], Sequence[Box]]
"""How far values at the center of each bin may move; a column may come in several ways."""


def join_windows(
    binned: BinnedTable, groups: Sequence[Sequence[int]], measure: Measure, n_cuts: int | None
) -> BinnedTable:
    """The same rows with joint codes for groups, after the numerical columns that are in none.

    `n_cuts`: of each column of a group, at most. Columns that are constant are left out; a group of which one column is
    left is none. A column may be in several groups.
    """
    joiner = _Joiner(binned, measure, n_cuts)
    known = {*joiner.numbers, *joiner.categories}
    found = list(dict.fromkeys(tuple(at for at in group if at in known) for group in groups))
    found = [group for group in found if len(group) > 1]
    if not found:
        return binned
    joined = {feature for group in found for feature in group}
    joint = joiner.join(found)
    single = [at for feature, at in joiner.numbers.items() if feature not in joined]
    rest = [at for feature, at in joiner.categories.items() if feature not in joined]
    codes = [binned.codes[:, single], *(code[:, None] for code, _ in joint), binned.codes[:, rest]]
    kind = np.result_type(*(one.dtype for one in codes))
    return replace(
        binned,
        codes=np.concatenate([one.astype(kind) for one in codes], axis=1),
        numbers=(*(binned.numbers[at] for at in single), *(bins for _, bins in joint)),
        categories=tuple(one for one in binned.categories if one[0] not in joined),
    )


class _Joiner:
    """Makes joint codes of groups; what a column is cut into is kept for its other groups."""

    def __init__(self, binned: BinnedTable, measure: Measure, n_cuts: int | None) -> None:
        self.numbers = {one.feature: at for at, one in enumerate(binned.numbers)}
        self.categories = {feature: at for at, (feature, _) in enumerate(binned.categories, len(self.numbers))}
        self._binned, self._measure, self._n_cuts = binned, measure, n_cuts
        self._boxes = measure(binned.numbers)
        self._sizes = dict(binned.categories)
        self._miss = dict(zip(self.categories, binned.miss_categories(), strict=True))
        self._axes: dict[tuple[int, int, int], tuple[JointAxis, IntArray]] = {}
        self._overlap = False

    def join(self, groups: Sequence[tuple[int, ...]]) -> list[tuple[Numbers, JointBins]]:
        """The joint codes of all rows, and what they stand for, of each function of each group."""
        columns = [one for group in groups for one in group]
        self._overlap = len(set(columns)) < len(columns)
        fitting = self._count_fitting(sorted({one for group in groups for one in group if one in self.numbers}))
        functions = []
        for group in groups:
            n_cuts, count = self._count_cuts(group, fitting)
            for at in range(count):
                axes = [self._read_axis(feature, n_cuts * count, at, count) for feature in group]
                functions.append([one for one in axes if one[0].n_cells > 1])
        numbers = [axis for axis, _ in self._axes.values() if axis.bins is not None]
        boxes = self._measure([axis.bins for axis in numbers if axis.bins is not None])
        reached = {id(axis): _count_reached(axis, box) for axis, box in zip(numbers, boxes, strict=True)}
        return [self._join(axes, reached) for axes in functions if axes]

    def _count_cuts(self, group: tuple[int, ...], fitting: int) -> tuple[int, int]:
        """Cuts of each column in each function, and how many functions the group has."""
        most = _CUTS.get(len(group), None if self._overlap or len(group) > _FULL else _CUTS_APART)
        if most is None:
            return 1, fitting if self._n_cuts is None else self._n_cuts
        largest = max((self._sizes[one] for one in group if one in self._sizes), default=1)
        most = max(1, min(most, _MOST_PRODUCTS // max(largest, 1)))
        return most if self._n_cuts is None else min(most, self._n_cuts), 1

    def _count_fitting(self, features: Sequence[int]) -> int:
        """How many cuts of most columns do not lie within reach of one another."""
        found = []
        for at in (self.numbers[feature] for feature in features):
            centers, width = self._binned.numbers[at].centers, float(np.median(sum(self._boxes[at])))
            found.append(float(centers[-1] - centers[0]) / width if width > 0 else np.inf)
        return int(np.clip(np.floor(np.median(found) + 1e-6), 1, _MOST_FUNCTIONS)) if found else 1

    def _read_axis(self, feature: int, n_cuts: int, first: int, step: int) -> tuple[JointAxis, IntArray]:
        """A column with some of its cuts, and the codes of all rows."""
        key = feature, n_cuts, first
        if key not in self._axes and feature in self.categories:
            penalties = self._binned.penalties.get(feature)
            axis = JointAxis(feature, None, np.empty(0), self._sizes[feature], self._miss[feature], penalties)
            self._axes[key] = axis, self._binned.codes[:, self.categories[feature]].astype(np.int64)
        elif key not in self._axes:
            at = self.numbers[feature]
            bins, box = self._binned.numbers[at], self._boxes[at]
            cuts = choose_safe_cuts(bins, box, n_cuts)[first::step]
            own, table = merge_window(bins, box, cuts)
            self._axes[key] = JointAxis(feature, own, cuts, 0, bins.missing > 0), table[self._binned.codes[:, at]]
        return self._axes[key]

    def _join(
        self, axes: Sequence[tuple[JointAxis, IntArray]], reached: Mapping[int, IntArray]
    ) -> tuple[Numbers, JointBins]:
        """Joint codes, those that reach most cells first."""
        shape = [axis.locate().size for axis, _ in axes]
        joint = np.ravel_multi_index(tuple(codes for _, codes in axes), shape)
        occurring, joint = np.unique(joint, return_inverse=True)
        own = np.stack(np.unravel_index(occurring, shape), axis=1)
        counts = np.ones(occurring.size, dtype=np.int64)
        for at, (axis, _) in enumerate(axes):
            if id(axis) in reached:
                counts *= reached[id(axis)][own[:, at]]
        order = np.argsort(-counts, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        found = rank[joint.reshape(-1)].astype(np.uint16 if order.size < 2**16 - 1 else np.uint32)
        shares = np.bincount(found, weights=self._binned.weights, minlength=order.size) / self._binned.weights.sum()
        kept = tuple(axis for axis, _ in axes)
        nothing = np.zeros(order.size)
        return found, JointBins(kept[0].feature, np.empty(0), nothing, shares, 0.0, kept, own[order])


def _count_reached(axis: JointAxis, box: Box) -> IntArray:
    """How many cells each code of a numerical column reaches."""
    assert axis.bins is not None
    low, high = reach_ends(axis.bins.centers, box, axis.cuts)
    return np.append(high - low + 1, 1)


class Reach(NamedTuple):
    """Cells that each code of a column reaches, its own one first, (n_codes, most); how many; and their cost."""

    cells: IntArray
    counts: IntArray
    cost: float = 0.0


def reach_axis(axis: JointAxis, box: Box | None, categories: BoolArray | None, cost: float) -> Reach:
    """Where a change can take a column: a number within its box, a category to those that may be reached, at a cost.

    `categories`: by cell; None where they stay.
    """
    own = axis.locate()
    counts = np.ones(own.size, dtype=np.int64)
    if axis.bins is not None:
        assert box is not None
        low, _ = reach_ends(axis.bins.centers, box, axis.cuts)
        counts = _count_reached(axis, box)
        others = np.append(low, 0)[:, None] + np.arange(max(int(counts.max()) - 1, 0))
        others += others >= own[:, None]
    elif categories is not None:
        there = np.flatnonzero(categories)
        counts[:] += there.size
        others = np.tile(there, (own.size, 1))
    else:
        others = np.empty((own.size, 0), dtype=np.int64)
    return Reach(np.concatenate([own[:, None], others], axis=1), counts, cost)


def design_joint(bins: JointBins, reaches: Sequence[Reach]) -> JointColumn:
    """The functions of a group, and the cells that each joint code reaches."""
    axes, shape = bins.axes, [one.n_cells for one in bins.axes]
    cells = np.ravel_multi_index(
        tuple(reach.cells[own, 0] for reach, own in zip(reaches, bins.codes.T, strict=True)), shape
    )
    by_cell = np.bincount(cells, weights=bins.shares, minlength=int(np.prod(shape))).reshape(shape)
    functions = []
    for at, one in enumerate(axes):
        others = tuple(axis for axis in range(len(axes)) if axis != at)
        functions.append(one.list_functions(by_cell.sum(axis=others)))
    most = len(axes) if len(axes) <= _FULL else _ORDER
    products = [part for size in range(1, most + 1) for part in itertools.combinations(range(len(axes)), size)]
    where = np.stack(np.unravel_index(np.arange(by_cell.size), shape))
    points = np.concatenate([_multiply([functions[axis][where[axis]] for axis in part]) for part in products], axis=1)
    points -= by_cell.ravel() @ points / max(by_cell.sum(), 1e-300)
    return JointColumn(bins, _list_places(bins, reaches, shape, points.astype(np.float32)), tuple(products))


def _list_places(bins: JointBins, reaches: Sequence[Reach], shape: Sequence[int], points: Numbers) -> Places:
    """Every combination of the cells that each column reaches; a code that no row has follows."""
    n_codes = len(bins.codes)
    counts = np.stack([reach.counts[own] for reach, own in zip(reaches, bins.codes.T, strict=True)])
    own_counts = counts.prod(axis=0)
    # codes of more places come first; at another radius than that they were sorted for some repeat their own place
    padded = np.maximum.accumulate(own_counts[::-1])[::-1]
    code = np.repeat(np.arange(n_codes), padded)
    place = np.arange(code.size) - np.repeat(np.cumsum(padded) - padded, padded)
    left, ends = np.where(place < own_counts[code], place, 0), np.zeros(code.size, dtype=np.int64)
    costs = np.zeros(code.size)
    for at, reach in enumerate(reaches):
        left, digit = np.divmod(left, counts[at, code])
        ends = ends * shape[at] + reach.cells[bins.codes[code, at], digit]
        costs += reach.cost * (digit > 0)
    order = np.lexsort((code, place))
    by_place = np.bincount(place, minlength=1)
    by_place[0] += 1
    ends, costs = np.insert(ends[order], n_codes, 0), np.insert(costs[order], n_codes, 0.0)
    return Places(points, ends, by_place, costs, any(reach.cost for reach in reaches))
