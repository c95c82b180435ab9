"""Designs of many groups: products of smoothed jumps, looked up by the code of each column, and how steep they are.

Where many columns are grouped, joint bins would be too many: here every column keeps its own bins, and the functions of
a group are the products of few functions of each of its columns (1, and jumps at its cuts, less their means), so that
the sum of single columns is among them. Owns these functions, their penalties and the way back to shapes. Must not know
rows' losses or how weights are fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand.model import GridShape, Shape
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.train.bins import MAX_BINS, BinnedTable, NumberBins
from derand.train.design.columns import Design, Functions, ModelSpec, NumberColumn, look_at
from derand.train.design.model import design_model
from derand.train.design.steepness import DUAL_POWERS, measure_steepness
from derand.train.losses.product_loops import Blocks

_CUTS = {2: 3, 3: 2, 4: 1}
"""Cuts of each column, by the size of the group: some 16 to 27 boxes each."""
_CANDIDATES = 32
"""Edges that are looked at as cuts, at most."""
_SHRINK = 2.0
"""How much stronger products of jumps are penalised than jumps."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Columns whose functions are multiplied.

    Attributes
    ----------
    parts : tuple of NumberBins
        The bins of each column.
    places : tuple of int
        Where the codes of each column are.
    cuts, means : tuples of arrays
        Of each column: where it jumps, and the mean of each jump under noise.
    """

    parts: tuple[NumberBins, ...]
    places: tuple[int, ...]
    cuts: tuple[FloatArray, ...]
    means: tuple[FloatArray, ...]

    @property
    def features(self) -> tuple[int, ...]:
        """Its columns."""
        return tuple(part.feature for part in self.parts)

    @property
    def orders(self) -> IntArray:
        """How many columns each product is of; 0 for the constant."""
        places = np.indices([cuts.size + 1 for cuts in self.cuts]).reshape(len(self.cuts), -1)
        return np.asarray((places > 0).sum(axis=0))

    def list_penalties(self, regularization: float) -> FloatArray:
        """Of jumps as those of single columns, of products more."""
        orders = self.orders
        sizes = np.array([cuts.size for cuts in self.cuts], dtype=np.float64).mean()
        return np.asarray(np.where(orders > 1, _SHRINK, 1.0) * regularization * sizes, dtype=np.float64)

    def read_values(self, weights: FloatArray) -> FloatArray:
        """The functions that weights stand for, (n_boxes, n_classes), without noise."""
        shape = [cuts.size + 1 for cuts in self.cuts]
        values = weights.reshape(*shape, -1)
        for axis, means in enumerate(self.means):
            steps = np.concatenate(
                [np.ones((shape[axis], 1)), np.tri(shape[axis], shape[axis] - 1, -1) - means], axis=1
            )
            values = np.moveaxis(np.tensordot(steps, values, axes=(1, axis)), 0, axis)
        return np.asarray(values)


@dataclass(frozen=True, slots=True, eq=False)
class ProductDesign:
    """The functions of a model with many groups.

    Attributes
    ----------
    rest : Design
        Of the columns that are in no group, values left in place.
    groups : tuple of Group
    blocks : Blocks
        The functions of groups, then of all other columns.
    radius, power : float
        Of changes, and the power of steepness that is added up.
    """

    rest: Design
    groups: tuple[Group, ...]
    blocks: Blocks
    radius: float
    power: float

    is_plain = False

    @property
    def n_weights(self) -> int:
        """Of one class: an intercept, and those of all functions."""
        return 1 + int(self.blocks.starts[-1])

    @property
    def is_fixed(self) -> BoolArray:
        """Which weights stay 0: constants of groups, for which there is the intercept."""
        fixed = np.zeros(self.n_weights, dtype=bool)
        fixed[1 + self.blocks.starts[: len(self.groups)]] = True
        return fixed

    def list_penalties(self, regularization: float) -> FloatArray:
        """The penalty of half the square of each weight; 0 for the intercept."""
        own = [group.list_penalties(regularization) for group in self.groups]
        return np.concatenate([[0.0], *own, self.rest.list_penalties(regularization)[1:]])

    def read(self, weights: FloatArray) -> Functions:
        """The functions that weights stand for, (n_weights,) or (n_classes, n_weights).

        Those of a group of which a single column varies are shapes.
        """
        starts, n_groups = self.blocks.starts, len(self.groups)
        others = weights[..., 1 + starts[n_groups] :]
        shapes, tables, grids, _ = self.rest.read(np.concatenate([weights[..., :1], others], axis=-1))
        for group, start, stop in zip(self.groups, starts, starts[1:], strict=False):
            values = group.read_values(np.atleast_2d(weights).T[1 + start : 1 + stop])
            values = values if weights.ndim > 1 else values[..., 0]
            if len(group.features) == 1:
                shapes.append(Shape(group.features[0], group.cuts[0], values, None))
            else:
                grids.append(GridShape(group.features, group.cuts, values))
        return Functions(shapes, tables, grids)

    def list_parts(self, by_class: FloatArray, codes: Numbers) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        """What each block adds to the scores of some rows, (n_rows, n_classes), with the columns that it reads."""
        owners = [*(group.features for group in self.groups), *(column.features for column in self.rest.columns)]
        blocks = self.blocks
        for at, features in enumerate(owners):
            functions = np.ones((codes.shape[0], 1))
            for axis in range(blocks.axis_starts[at], blocks.axis_starts[at + 1]):
                first = blocks.offsets[axis] + codes[:, blocks.columns[axis]].astype(np.int64) * blocks.sizes[axis]
                own = blocks.values[first[:, None] + np.arange(blocks.sizes[axis])]
                functions = (functions[:, :, None] * own[:, None, :]).reshape(codes.shape[0], -1)
            yield features, functions @ by_class[:, 1 + blocks.starts[at] : 1 + blocks.starts[at + 1]].T


def design_products(
    binned: BinnedTable, groups: Sequence[Sequence[int]], spec: ModelSpec, radius: float, *, with_ramp: bool = True
) -> ProductDesign:
    """The functions of a model with many groups, disjoint ones, of binned single columns, which noise makes smooth.

    Constant columns are left out.
    """
    noise = spec.noise
    assert noise is not None
    known = {one.feature: at for at, one in enumerate(binned.numbers)}
    kept = [([known[at] for at in group if at in known], len(group)) for group in groups]
    joined = {at for group, _ in kept for at in group}
    n_numbers = len(binned.numbers)
    single = [at for at in range(n_numbers) if at not in joined]
    rest_index = np.array([*single, *range(n_numbers, binned.codes.shape[1])], dtype=np.int64)
    numbers = tuple(binned.numbers[at] for at in single)
    left = replace(binned, codes=binned.codes[:, rest_index], numbers=numbers)
    rest = design_model(left, replace(spec, deduction=0.0), 0.0, with_ramp=with_ramp)
    most = spec.group_cuts or MAX_BINS
    found = tuple(
        _cut_group([binned.numbers[at] for at in group], tuple(group), noise, min(_CUTS[size], most))
        for group, size in kept
        if group
    )
    perturbation = Perturbation.of(spec.threat, spec.n_features, ())
    is_frozen = np.isin(np.arange(spec.n_features), list(perturbation.frozen))
    blocks = _line_up(found, rest, rest_index, noise, np.where(is_frozen, 0.0, perturbation.units))
    return ProductDesign(rest, found, blocks, radius, DUAL_POWERS[float(perturbation.norm or 2)])


def _cut_group(parts: list[NumberBins], places: tuple[int, ...], noise: Noise, n_cuts: int) -> Group:
    cuts = tuple(choose_smoothed_cuts(part, noise, n_cuts) for part in parts)
    means = tuple(
        part.shares @ _see_jumps(part.centers, own, noise, part.feature) / part.shares.sum()
        for part, own in zip(parts, cuts, strict=True)
    )
    return Group(tuple(parts), places, cuts, means)


def choose_smoothed_cuts(bins: NumberBins, noise: Noise, n_cuts: int) -> FloatArray:
    """The cuts whose jumps, under noise, vary most over the rows: each beyond what those before it explain.

    Quantiles would not do: of a pixel that is mostly black they lie next to black, where noise hides the jump.
    """
    candidates = bins.choose_cuts(_CANDIDATES)
    if candidates.size <= n_cuts:
        return candidates
    weights = np.sqrt(bins.shares / bins.shares.sum())
    jumps = _see_jumps(bins.centers, candidates, noise, bins.feature)
    left = weights[:, None] * (jumps - weights**2 @ jumps)
    chosen: list[int] = []
    for _ in range(n_cuts):
        varies = (left**2).sum(axis=0)
        best = int(np.argmax(np.round(varies, 12)))
        if varies[best] <= 0 or best in chosen:
            break
        chosen.append(best)
        direction = left[:, best] / np.sqrt(varies[best])
        left = left - direction[:, None] * (direction @ left)
    return np.asarray(np.sort(candidates[chosen]))


def _see_jumps(places: FloatArray, cuts: FloatArray, noise: Noise, feature: int) -> FloatArray:
    return look_at(places, cuts, np.empty(0), noise, feature)


def _line_up(groups: Sequence[Group], rest: Design, rest_index: IntArray, noise: Noise, scales: FloatArray) -> Blocks:
    """The functions of all blocks in flat arrays; codes of what is missing come last, where a product has none."""
    axis_starts, columns, tables, slopes, sizes = [0], [], [], [], []
    for group in groups:
        for part, place, cuts, means in zip(group.parts, group.places, group.cuts, group.means, strict=True):
            jumps = _see_jumps(part.centers, cuts, noise, part.feature) - means
            steep = measure_steepness(part.centers, cuts, np.empty(0), noise, part.feature) * scales[part.feature]
            one = np.ones((part.centers.size, 1))
            columns.append(place)
            tables.append(np.concatenate([one, jumps], axis=1))
            slopes.append(np.concatenate([0 * one, steep], axis=1))
        sizes.append(int(np.prod([cuts.size + 1 for cuts in group.cuts])))
        axis_starts.append(len(columns))
    for at, column in enumerate(rest.columns):
        table = column.tabulate()
        steep = np.zeros(table.shape)
        if isinstance(column, NumberColumn):
            own = measure_steepness(column.bins.centers, column.cuts, column.stairs, noise, column.feature)
            steep[:-1, : own.shape[1]] = own * scales[column.feature]
        columns.append(int(rest_index[at]))
        tables.append(table)
        slopes.append(steep)
        sizes.append(column.n_weights)
        axis_starts.append(len(columns))
    flat = [np.concatenate([one.ravel() for one in part] or [np.empty(0)]) for part in (tables, slopes)]
    return Blocks(
        np.array(axis_starts, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array([one.shape[1] for one in tables], dtype=np.int64),
        np.cumsum([0, *(one.size for one in tables)], dtype=np.int64)[:-1],
        flat[0].astype(np.float32),
        flat[1].astype(np.float32),
        np.cumsum([0, *sizes], dtype=np.int64),
    )
