"""Groups of columns that interact: joint bins, joint functions, and where a change may take them together.

Owns the codes of a group, its functions (jumps of each column, and products of jumps of several), its places and costs.
A group stands in a design where a single column stands, and is trained in the same way. Must not know rows' losses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.model import GridShape
from derand.perturbation import Perturbation
from derand.train.bins import BinnedTable, NumberBins
from derand.train.design.columns import ModelSpec, NumberColumn, compute_boxes, look_at

MOST_COLUMNS = 4
"""Of a group."""
_BINS = {2: 16, 3: 9, 4: 7}
"""Bins of each column, by the size of the group, at most; cuts come on top."""
_CUTS = {2: 12, 3: 5, 4: 2}
"""Cuts of each column."""
_CROSSED = {2: 5, 3: 2, 4: 1}
"""Cuts of each column whose jumps are multiplied with those of others."""
_MAGNITUDES = {2: (0.03, 0.08, 0.2, 0.45, 1.0), 3: (0.05, 0.2, 0.7), 4: (0.06, 0.3)}
"""Shares of the farthest move that are tried along each direction."""
_NUMBERS = 4e7
"""Of all bases together, about: where groups are many, their columns get fewer bins and cuts."""
_SHRINK = 2.0
"""How much stronger products of jumps are penalised than jumps."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBins(NumberBins):
    """Several numerical columns in joint bins.

    Attributes
    ----------
    parts : tuple of NumberBins
        Each column in few bins. A joint bin is one of each; `centers` is as long as there are joint bins.
    places : array of shape (n_columns, n_joint)
        The bin of each column in each joint bin: those that some row is in.
    """

    parts: tuple[NumberBins, ...]
    places: IntArray

    @property
    def features(self) -> tuple[int, ...]:
        """Its columns."""
        return tuple(part.feature for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumn(NumberColumn):
    """A group of columns: jumps at cuts of each of them, and products of jumps of several.

    Attributes
    ----------
    all_cuts : tuple of arrays
        Of each column.
    crossed : tuple of tuples of (axis, place)
        The products: which cuts of which columns.
    levels : tuple of arrays
        What is taken off each jump of each column before they are multiplied: its mean.
    """

    all_cuts: tuple[FloatArray, ...]
    crossed: tuple[tuple[tuple[int, int], ...], ...]
    levels: tuple[FloatArray, ...]

    @property
    def features(self) -> tuple[int, ...]:
        """Its columns."""
        assert isinstance(self.bins, GroupBins)
        return self.bins.features

    def list_penalties(self, regularization: float) -> FloatArray:
        """Of jumps as those of single columns; of products more, the more there are."""
        jumps = [np.full(cuts.size, regularization * cuts.size) for cuts in self.all_cuts]
        products = np.full(len(self.crossed), _SHRINK * regularization * max(len(self.crossed), 1) ** 0.5)
        return np.concatenate([*jumps, products])

    def list_cells(self) -> FloatArray:
        """What each weight adds in each joint cell, without noise, less its mean, (n_cells, n_weights)."""
        steps = [np.tri(cuts.size + 1, cuts.size, -1) for cuts in self.all_cuts]
        places = np.indices([cuts.size + 1 for cuts in self.all_cuts]).reshape(len(self.all_cuts), -1)
        jumps = [step[at] for step, at in zip(steps, places, strict=True)]
        return _multiply_jumps(jumps, self.levels, self.crossed) - self.means

    def read(self, weights: FloatArray) -> GridShape:
        """The function that these weights stand for."""
        shape = [cuts.size + 1 for cuts in self.all_cuts]
        return GridShape(self.features, self.all_cuts, (self.list_cells() @ weights).reshape(shape))


def _multiply_jumps(
    jumps: Sequence[FloatArray],
    levels: Sequence[FloatArray],
    crossed: Sequence[tuple[tuple[int, int], ...]],
) -> FloatArray:
    """Jumps of all columns side by side, (n_points, n_cuts) each, and their products after these."""
    centered = [jump - level for jump, level in zip(jumps, levels, strict=True)]
    columns = [np.concatenate(jumps, axis=1)]
    for chosen in crossed:
        columns.append(np.prod([centered[axis][:, at] for axis, at in chosen], axis=0)[:, None])
    return np.concatenate(columns, axis=1)


def group_columns(binned: BinnedTable, groups: Sequence[Sequence[int]], n_cuts: int | None) -> BinnedTable:
    """The same rows with a joint code for each group, after the columns that are in none.

    `groups`: disjoint. Columns that are constant are left out; a group of which one column is left is no group.
    `n_cuts`: of each column, at most; None for as many as groups of its size have.
    """
    known = {one.feature: at for at, one in enumerate(binned.numbers)}
    kept = [[known[at] for at in group if at in known] for group in groups]
    kept = [group for group in kept if len(group) > 1]
    if not kept:
        return binned
    joined = {at for group in kept for at in group}
    single = [at for at in range(len(binned.numbers)) if at not in joined]
    columns, bins, total = [], [], binned.weights.sum()
    for group in kept:
        joint, own = _bin_jointly(binned, group, len(kept), n_cuts)
        shares = np.bincount(joint, weights=binned.weights, minlength=own.centers.size) / total
        columns.append(joint)
        bins.append(replace(own, shares=np.asarray(shares)))
    numbers = (*(binned.numbers[at] for at in single), *bins)
    rest = binned.codes[:, len(binned.numbers) :]
    largest = max(int(column.max(initial=0)) for column in columns)
    kind = binned.codes.dtype if largest < np.iinfo(binned.codes.dtype).max else np.uint32
    codes = np.concatenate([binned.codes[:, single], np.stack(columns, axis=1), rest], axis=1).astype(kind)
    return replace(binned, codes=codes, numbers=numbers)


def _bin_jointly(
    binned: BinnedTable, group: Sequence[int], n_groups: int, n_cuts: int | None
) -> tuple[IntArray, GroupBins]:
    """The joint code of each row, and the joint bins that occur: as fine as can be afforded."""
    size = len(group)
    n_places = len(_MAGNITUDES[size]) * (3**size if size < MOST_COLUMNS else 2 * size + 2**size)
    n_weights = size * _CUTS[size] + sum(math.comb(size, k) * _CROSSED[size] ** k for k in range(2, size + 1))
    for n_bins in range(_BINS[size], 2, -1):
        parts, codes = zip(*(_bin_coarsely(binned, at, size, n_bins, n_cuts) for at in group), strict=True)
        shape = [part.centers.size for part in parts]
        occurring, joint = np.unique(np.ravel_multi_index(codes, shape), return_inverse=True)
        if occurring.size * n_places * n_weights * n_groups <= _NUMBERS:
            break
    places = np.stack(np.unravel_index(occurring, shape)).astype(np.int64)
    nothing = np.zeros(occurring.size)
    return joint.reshape(-1), GroupBins(parts[0].feature, np.empty(0), nothing, nothing, 0.0, parts, places)


def _bin_coarsely(
    binned: BinnedTable, at: int, size: int, n_bins: int, n_cuts: int | None
) -> tuple[NumberBins, IntArray]:
    """A column in few bins, its cuts among their edges, and the codes of all rows."""
    fine = binned.numbers[at]
    cuts = fine.choose_cuts(min(count_cuts(size, n_cuts), n_bins - 1))
    edges = np.union1d(cuts, fine.choose_cuts(n_bins - 1 - cuts.size)) if cuts.size < n_bins - 1 else cuts
    places = np.searchsorted(edges, fine.centers, side="right")
    shares = np.bincount(places, weights=fine.shares, minlength=edges.size + 1)
    sums = np.bincount(places, weights=fine.shares * fine.centers, minlength=edges.size + 1)
    ends = np.concatenate([fine.centers[:1], edges, fine.centers[-1:]])
    middle = 0.5 * (ends[1:] + ends[:-1])
    centers = np.where(shares > 0, sums / np.where(shares > 0, shares, 1.0), middle)
    coarse = NumberBins(fine.feature, edges, centers, np.asarray(shares, dtype=np.float64), 0.0)
    return coarse, places[binned.codes[:, at]]


def count_cuts(size: int, n_cuts: int | None) -> int:
    """Cuts of each column of a group of this size."""
    return _CUTS[size] if n_cuts is None else min(_CUTS[size], n_cuts)


def design_group(bins: GroupBins, spec: ModelSpec, radius: float) -> GroupColumn:
    """The joint functions of a group, where its values may move together, and what that costs."""
    size, norm = len(bins.parts), spec.threat.ball_norm
    cuts = tuple(part.choose_cuts(count_cuts(size, spec.group_cuts)) for part in bins.parts)
    crossed = _choose_products([one.size for one in cuts], _CROSSED[size])
    boxes = compute_boxes(bins.parts, spec, radius)
    units = Perturbation.of(spec.threat, spec.n_features, ()).units
    moves = any(end.any() for box in boxes for end in box)
    directions = _list_directions(size, norm) if moves else np.zeros((1, size))
    places = bins.places
    has_cost = norm is not None and np.isfinite(norm)
    costs = np.zeros((places.shape[1], directions.shape[0]))
    jumps, own_jumps = [], []
    for axis, part in enumerate(bins.parts):
        down, up = boxes[axis]
        shares = directions[:, axis]
        shifts = np.where(shares < 0, down[:, None] * shares, up[:, None] * shares)
        if has_cost:
            costs += np.abs(shifts / units[part.feature])[places[axis]] ** float(norm or 1)
        seen = look_at(part.centers[:, None] + shifts, cuts[axis], np.empty(0), spec.noise, part.feature)
        jumps.append(seen[places[axis]].reshape(-1, cuts[axis].size))
        own_jumps.append(seen[:, -1])
    levels = tuple(part.shares @ seen / part.shares.sum() for part, seen in zip(bins.parts, own_jumps, strict=True))
    basis = _multiply_jumps(jumps, levels, crossed).reshape(*costs.shape, -1)
    means = bins.shares @ basis[:, -1, :] / bins.shares.sum()
    return GroupColumn(
        bins,
        np.empty(0),
        np.empty(0),
        (basis - means).astype(np.float32),
        means,
        costs,
        directions.shape[0] - 1,
        0,
        cuts,
        crossed,
        levels,
    )


def _choose_products(sizes: Sequence[int], most: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Which cuts are multiplied: some of each column, for every set of two columns or more."""
    chosen = []
    for size in sizes:
        count = min(most, size)
        chosen.append(
            np.unique(np.linspace(0, size - 1, count + 2).round()[1:-1].astype(int)).tolist() if count else []
        )
    products: list[tuple[tuple[int, int], ...]] = []
    for count in range(2, len(sizes) + 1):
        for axes in itertools.combinations(range(len(sizes)), count):
            for places in itertools.product(*(chosen[axis] for axis in axes)):
                products.append(tuple(zip(axes, places, strict=True)))
    return tuple(products)


def _list_directions(size: int, norm: float | None) -> FloatArray:
    """Moves of all columns together, as shares of the farthest one of each, (n_places, n_axes), none at the end."""
    signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=size)))
    n_moved = np.abs(signs).sum(axis=1)
    signs = signs[(n_moved > 0) & ((size < MOST_COLUMNS) | (n_moved == 1) | (n_moved == size))]
    magnitudes = _MAGNITUDES[size]
    if norm is None or not np.isfinite(norm):
        magnitudes = (0.35, 0.7, 1.0) if size < MOST_COLUMNS else (0.5, 1.0)
    parts = [share * signs for share in magnitudes]
    return np.concatenate([*parts, np.zeros((1, size))])
