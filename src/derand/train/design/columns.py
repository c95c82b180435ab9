"""What an additive model can be, and what a threat can do to it: its columns, their functions and their penalties.

Owns the functions of each column (jumps at cuts, a ramp, weights of categories and of what is missing), where a change
may take the values of a bin, and what that costs. Must not know rows or losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand.model import CategoryShape, GridShape, Shape
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat
from derand.train.bins import NumberBins
from derand.train.design.joint import JointColumn, JointShape
from derand.train.design.windows import reach_cells

_EVENLY = np.arange(0, 7) / 6
_MORE_NEARBY = np.concatenate([[0.0], 1.7 ** np.arange(-7.0, -2.0), _EVENLY[2:]])
_STAIRS = 128  # equal jumps that make a ramp
_RAMP_PENALTY = 1.0
_CATEGORY_PENALTY = 1.0
RARE_PENALTY = 1e6
"""Of a category that has too few rows to be told from one that training did not see."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """What a model is designed for.

    Attributes
    ----------
    noise : Noise or None
        Under which the functions are looked at; None for the functions themselves.
    threat : Threat
        Resolved: columns by number, norm 1, 2, inf or None.
    n_features : int
        Columns of the rows.
    n_cuts : int
        Of each column by itself, at most.
    group_cuts : int or None
        Of each column of a group, at most; None for as many as groups of its size have.
    monotone : mapping of column to {-1, 1}
    deduction : float
        As in Design.
    """

    noise: Noise | None
    threat: Threat
    n_features: int
    n_cuts: int
    group_cuts: int | None = None
    monotone: Mapping[int, int] = field(default_factory=dict)
    deduction: float = 0.0


class Functions(NamedTuple):
    """Of single numbers, of categories, of groups of numbers under noise, and of groups without."""

    shapes: list[Shape]
    tables: list[CategoryShape]
    grids: list[GridShape]
    joints: list[JointShape] = []  # noqa: RUF012 - never changed


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A numerical column: jumps at cuts, a ramp between the outer ones, a weight for what is missing.

    Attributes
    ----------
    bins : NumberBins
    cuts : array of shape (n_cuts,)
    stairs : array of shape (n_stairs,)
        Where the ramp rises by an equal share each; empty without a ramp.
    basis : array of shape (n_bins, n_places, n_weights)
        What each weight adds at each place that a value of the bin can be moved to, under noise, less its mean.
    means : array of shape (n_weights,)
        The mean, over all values, of what each weight adds.
    costs : array of shape (n_bins, n_places)
        What moving it there costs.
    own : int
        The place where nothing is moved.
    sign : {-1, 0, 1}
        Whether it must fall or rise; 0 for anything.
    """

    bins: NumberBins
    cuts: FloatArray
    stairs: FloatArray
    basis: NDArray[np.float32]
    means: FloatArray
    costs: FloatArray
    own: int
    sign: int

    @property
    def feature(self) -> int:
        return self.bins.feature

    @property
    def features(self) -> tuple[int, ...]:
        return (self.bins.feature,)

    @property
    def n_codes(self) -> int:
        return self.bins.centers.size + 1

    @property
    def n_weights(self) -> int:
        """Of the jumps, the ramp, and what is missing."""
        return int(self.basis.shape[2]) + (self.bins.missing > 0)

    @property
    def n_places(self) -> int:
        return int(self.basis.shape[1])

    def leave_in_place(self) -> NumberColumn:
        """The same where nothing changes."""
        own = slice(self.own, self.own + 1)
        return replace(self, basis=np.ascontiguousarray(self.basis[:, own]), costs=self.costs[:, own] * 0.0, own=0)

    def list_penalties(self, regularization: float) -> FloatArray:
        jumps = np.full(self.cuts.size, regularization * self.cuts.size)
        ramp = np.full(int(self.stairs.size > 0), _RAMP_PENALTY)
        return np.concatenate([jumps, ramp, np.full(int(self.bins.missing > 0), _CATEGORY_PENALTY)])

    def tabulate(self) -> FloatArray:
        """What each weight adds at each code, (n_codes, n_weights), where nothing is moved."""
        n_weights = self.basis.shape[2]
        table = np.zeros((self.n_codes, self.n_weights))
        table[:-1, :n_weights] = self.basis[:, self.own, :]
        table[-1, n_weights:] = 1.0
        return table

    def read(self, weights: FloatArray) -> Shape | GridShape:
        """The function that these weights stand for."""
        places, jumps = self.cuts, weights[: self.cuts.size]
        if self.stairs.size:
            places = np.concatenate([places, self.stairs])
            rise = weights[self.cuts.size] / self.stairs.size
            jumps = np.concatenate([jumps, np.full(self.stairs.size, rise)])
        edges, at = np.unique(places, return_inverse=True)
        level = -float(self.means @ weights[: self.means.size])
        values = level + np.concatenate([[0.0], np.cumsum(np.bincount(at, weights=jumps, minlength=edges.size))])
        return Shape(self.feature, edges, values, float(weights[-1]) if self.bins.missing > 0 else None)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """A categorical column: a weight per category, and one for what is missing where training has such rows.

    Attributes
    ----------
    feature, n_categories : int
    has_missing : bool
    reachable : array of shape (n_categories,)
        Which categories a change may lead to.
    unseen : bool
        Whether it may lead to one that is not among them, which weighs nothing.
    frozen : bool
        Whether nothing changes here.
    penalties : array of shape (n_categories,)
        Of half the square of each category's weight.
    """

    feature: int
    n_categories: int
    has_missing: bool
    reachable: BoolArray
    unseen: bool
    frozen: bool
    penalties: FloatArray
    sign = 0

    @property
    def features(self) -> tuple[int, ...]:
        return (self.feature,)

    @property
    def n_codes(self) -> int:
        return self.n_categories + 1

    @property
    def n_weights(self) -> int:
        return self.n_categories + self.has_missing

    def list_penalties(self, regularization: float) -> FloatArray:
        return np.concatenate([self.penalties, np.full(int(self.has_missing), _CATEGORY_PENALTY)])

    def tabulate(self) -> FloatArray:
        """What each weight adds at each code, (n_codes, n_weights)."""
        return np.eye(self.n_codes, self.n_weights)

    def read(self, weights: FloatArray) -> CategoryShape:
        """What these weights give to each category; nothing to one that training did not see, or that is too rare."""
        codes = np.arange(self.n_categories)
        missing = float(weights[-1]) if self.has_missing else None
        values = np.where(self.penalties < RARE_PENALTY, weights[: self.n_categories], 0.0)
        return CategoryShape(self.feature, codes, values, 0.0, missing)


Column = NumberColumn | JointColumn | CategoryColumn


class Steepness(NamedTuple):
    """How steep functions are, and how that counts: for changes of a radius, added up to a power.

    `basis`, arrays of shape (n_bins, n_weights): what each weight of each numerical column adds to its slope, in units,
    at the center of each bin.
    """

    radius: float
    power: float
    basis: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """All columns of a model, and what moving numbers and changing categories costs.

    Attributes
    ----------
    numbers : tuple of NumberColumn, groups of columns among them
    categories : tuple of CategoryColumn
    multipliers, budget_costs : arrays of shape (n_multipliers,)
        What a unit of cost counts for in the margin, and what the whole budget then counts for.
    category_multipliers, category_costs : arrays of shape (n_category_multipliers,)
        The same for changed categories.
    deduction : float
        What is deducted from every margin, as a multiple of the widest range of a numerical column's function.
    steepness : Steepness or None
        What stands for changes where values stay in place.
    """

    numbers: tuple[Any, ...]
    categories: tuple[CategoryColumn, ...]
    multipliers: FloatArray
    budget_costs: FloatArray
    category_multipliers: FloatArray
    category_costs: FloatArray
    deduction: float = 0.0
    steepness: Steepness | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.numbers, *self.categories)

    @property
    def offsets(self) -> IntArray:
        """Where the codes of each column begin in a table of all codes; one more at the end."""
        return np.cumsum([0, *(column.n_codes for column in self.columns)], dtype=np.int64)

    @property
    def starts(self) -> IntArray:
        """Where the weights of each column begin among all, the intercept being the first; one more at the end."""
        return np.cumsum([1, *(column.n_weights for column in self.columns)], dtype=np.int64)

    @property
    def is_plain(self) -> bool:
        """Whether nothing changes: the margin is that of the row itself."""
        costs = self.budget_costs.size > 1 or self.category_costs.size > 1
        return not (costs or self.deduction or any(one.n_places > 1 for one in self.numbers))

    def list_penalties(self, regularization: float) -> FloatArray:
        """The penalty of half the square of each weight; 0 for the intercept."""
        return np.concatenate([[0.0], *(column.list_penalties(regularization) for column in self.columns)])

    @property
    def has_joints(self) -> bool:
        """Whether groups are looked at cell by cell, which blocks of weights alone do."""
        return any(isinstance(one, JointColumn) for one in self.numbers)

    def list_parts(self, weights: FloatArray, codes: Numbers) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        """Features of each column, and what it adds to the scores of some rows where nothing is moved.

        `weights` has shape (n_weights,) or (n_outputs, n_weights); parts have shape (n_rows,) or (n_rows, n_outputs).
        """
        for at, (column, start) in enumerate(zip(self.columns, self.starts.tolist(), strict=False)):
            own = weights[..., start : start + column.n_weights]
            yield column.features, (column.tabulate() @ own.T)[codes[:, at]]

    def read(self, weights: FloatArray) -> Functions:
        """The functions that weights stand for; weights of shape (n_outputs, n_weights) give a value per output."""
        parts: list[Any] = []
        for column, start in zip(self.columns, self.starts.tolist(), strict=False):
            own = weights[..., start : start + column.n_weights]
            parts.append(column.read(own) if own.ndim == 1 else _stack([column.read(one) for one in own]))
        numbers = list(zip(self.numbers, parts, strict=False))
        joints = [part for one, part in numbers if isinstance(one, JointColumn)]
        apart = [(one, part) for one, part in numbers if not isinstance(one, JointColumn)]
        shapes = [part for one, part in apart if len(one.features) == 1]
        grids = [part for one, part in apart if len(one.features) > 1]
        return Functions(shapes, parts[len(numbers) :], grids, joints)

    def list_bounds(self) -> list[tuple[float | None, float | None]]:
        """Least and largest value of each weight."""
        bounds: list[tuple[float | None, float | None]] = [(None, None)] * int(self.starts[-1])
        for column, start in zip(self.numbers, self.starts.tolist(), strict=False):
            if column.sign:
                end = (0.0, None) if column.sign > 0 else (None, 0.0)
                bounds[start : start + column.basis.shape[2]] = [end] * column.basis.shape[2]
        return bounds


def _stack(parts: Sequence[Any]) -> object:
    """Functions of several outputs as one; nothing is what a category that training did not see adds."""
    shape = parts[0]._replace(values=np.stack([one.values for one in parts], axis=-1))
    if "other" in shape._fields:
        shape = shape._replace(other=np.zeros(len(parts)))
    if isinstance(shape.missing, float):
        shape = shape._replace(missing=np.array([one.missing for one in parts]))
    return shape


def keep_numbers(design: Design, index: IntArray) -> Design:
    """The same with some of the numerical columns."""
    return replace(design, numbers=tuple(design.numbers[at] for at in index.tolist()))


def leave_in_place(design: Design) -> Design:
    """The same columns where nothing changes."""
    stay = slice(0, 1)

    return replace(
        design,
        numbers=tuple(one.leave_in_place() for one in design.numbers),
        multipliers=design.multipliers[stay] * 0.0,
        budget_costs=design.budget_costs[stay] * 0.0,
        category_multipliers=design.category_multipliers[stay] * 0.0,
        category_costs=design.category_costs[stay] * 0.0,
        deduction=0.0,
        steepness=None,
    )


def compute_boxes(numbers: Sequence[NumberBins], spec: ModelSpec, radius: float) -> list[tuple[FloatArray, FloatArray]]:
    """How far down and up the threat lets a value at the center of each bin go, per column."""
    n_features = spec.n_features
    most = max((one.centers.size for one in numbers), default=0)
    rows = np.zeros((most, n_features))
    for one in numbers:
        rows[: one.centers.size, one.feature] = one.centers
    perturbation = Perturbation.of(spec.threat, n_features, [one.feature for one in numbers])
    low, high = perturbation.box(rows)
    boxes = []
    for one in numbers:
        part = slice(one.centers.size)
        down, up = rows[part, one.feature] - low[part, one.feature], high[part, one.feature] - rows[part, one.feature]
        reach = radius * perturbation.units[one.feature] if perturbation.norm is not None else np.inf
        span = float(np.ptp(one.centers)) if one.centers.size else 0.0
        boxes.append((np.clip(down, 0, min(reach, 2 * span)), np.clip(up, 0, min(reach, 2 * span))))
    return boxes


def design_number(
    bins: NumberBins,
    box: tuple[FloatArray, FloatArray],
    unit: float,
    spec: ModelSpec,
    with_ramp: bool,
    chosen: FloatArray | None = None,
) -> NumberColumn:
    """The functions of a numerical column, and where its values may be moved: within a box, in a unit.

    `chosen`: its cuts, where they are known. Without noise the cells in reach are known, unless there is a ramp.
    """
    norm, noise, sign = spec.threat.ball_norm, spec.noise, spec.monotone.get(bins.feature, 0)
    cuts = bins.choose_cuts(spec.n_cuts) if chosen is None else chosen
    stairs = np.empty(0)
    if chosen is not None or (noise is None and not with_ramp):
        return _design_steps(bins, cuts, box, unit, norm, sign)
    if with_ramp and cuts.size > 1:
        width = (cuts[-1] - cuts[0]) / _STAIRS
        stairs = cuts[0] + width * (np.arange(_STAIRS) + 0.5)
        stairs = stairs if width > 0 and np.isfinite(stairs).all() else np.empty(0)
    side = _choose_places(norm) if any(end.any() for end in box) else np.zeros(1)
    shifts = np.concatenate([-box[0][:, None] * side[:0:-1], box[1][:, None] * side], axis=1)
    has_cost = norm is not None and np.isfinite(norm)
    costs = np.abs(shifts / unit) ** norm if has_cost else np.zeros_like(shifts)
    own = side.size - 1
    basis = look_at(bins.centers[:, None] + shifts, cuts, stairs, noise, bins.feature)
    means = bins.shares @ basis[:, own, :] / bins.shares.sum() if bins.shares.size else np.zeros(basis.shape[2])
    return NumberColumn(bins, cuts, stairs, (basis - means).astype(np.float32), means, costs, own, sign)


def _design_steps(
    bins: NumberBins, cuts: FloatArray, box: tuple[FloatArray, FloatArray], unit: float, norm: float | None, sign: int
) -> NumberColumn:
    """A column of jumps alone, without noise: its places are the cells in reach, its own one first."""
    cells, distances = reach_cells(bins.centers, box, cuts)
    if not any(end.any() for end in box):
        cells, distances = cells[:, :1], distances[:, :1]
    costs = (distances / unit) ** norm if norm is not None and np.isfinite(norm) else np.zeros(cells.shape)
    steps = np.tri(cuts.size + 1, cuts.size, -1)
    means = bins.shares @ steps[cells[:, 0]] / bins.shares.sum() if bins.shares.size else np.zeros(cuts.size)
    basis = (steps - means).astype(np.float32)[cells]
    return NumberColumn(bins, cuts, np.empty(0), basis, means, costs, 0, sign)


def _choose_places(norm: float | None) -> FloatArray:
    """Places to which training moves a value on either side, as shares of the farthest one.

    Where the cost is a square, it pays to move many values a little: by r / sqrt(n) each of n columns.
    """
    return _MORE_NEARBY if norm == 2 else _EVENLY


def look_at(places: FloatArray, cuts: FloatArray, stairs: FloatArray, noise: Noise | None, feature: int) -> FloatArray:
    """What a jump at each cut, and the ramp, have added at each place, on average under noise."""
    n_weights = cuts.size + (stairs.size > 0)
    basis = np.empty((*places.shape, n_weights))
    flat, out = places.ravel(), basis.reshape(places.size, n_weights)

    def rise(edges: FloatArray) -> FloatArray:
        if noise is None:
            return (flat[:, None] >= edges).astype(np.float64)
        scale = noise.magnitude * float(noise.units_of(np.array([feature]))[0])
        return noise.cdf((flat[:, None] - edges) / scale)

    out[:, : cuts.size] = rise(cuts)
    if stairs.size:
        out[:, -1] = rise(stairs).mean(axis=1)
    return basis


def design_category(
    feature: int, count: int, has_missing: bool, threat: Threat, penalties: FloatArray | None
) -> CategoryColumn:
    """The weights of a categorical column, and which categories a change may lead to."""
    reachable, unseen = np.ones(count, dtype=bool), threat.unseen
    if feature in threat.may_become:
        codes = np.asarray(threat.may_become[feature], dtype=np.float64)
        known = codes[(codes >= 0) & (codes < count)]
        reachable, unseen = np.isin(np.arange(count), known), bool(known.size < codes.size)
    own = np.full(count, _CATEGORY_PENALTY) if penalties is None else penalties
    return CategoryColumn(feature, count, has_missing, reachable, unseen, feature in threat.frozen, own)
