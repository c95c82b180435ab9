"""The one door where real numbers become integers.

Owns rounding to the grid. Must not know decisions or training. A model that comes through here is *defined* on its
grid: certificates speak of the rounded model, which predicts and is certified by the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.model._grid import GridTerm
from derand.model._linear import LinearTerm
from derand.model._terms import MAX_SCORE, CategoryTable, StepFunction, Term
from derand.model._trees import TreeTerm, reduce_below

CategoryLeaves = (
    tuple[int, ArrayLike, ArrayLike, float | ArrayLike]
    | tuple[int, ArrayLike, ArrayLike, float | ArrayLike, float | ArrayLike | None]
)
"""(feature, categories, leaves, other) of a categorical feature, and maybe the leaf of a missing category."""


class Shape(NamedTuple):
    """A numerical column's function of real values.

    `values[i]` holds on `[edges[i - 1], edges[i])`; `missing` is the value of a missing number, None where there is
    none. Of several classes every value is a row of numbers, one per class.
    """

    feature: int
    edges: FloatArray
    values: FloatArray
    missing: float | FloatArray | None = None


class GridShape(NamedTuple):
    """A function of real values of several numerical columns: `values` has one axis per column, as in GridTerm.

    Of several classes it has one more axis, the last. `missing` says for each column whether its axis has one more
    cell, for missing values, as in GridTerm.
    """

    features: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    values: FloatArray
    missing: tuple[bool, ...] = ()


class Line(NamedTuple):
    """A numerical column's line through 0: its value is the slope times the number, off by `error` per unit of it.

    `missing` is the value of a missing number, off by `missing_error`; None where there is none. Of several classes all
    are rows of numbers, one per class; one number is the error of all.
    """

    feature: int
    slope: float | FloatArray
    error: float | FloatArray = 0.0
    missing: float | FloatArray | None = None
    missing_error: float | FloatArray = 0.0


class TreeShape(NamedTuple):
    """A sum of decision trees with leaves of real values: the fields are those of TreeTerm.

    The value of a leaf is `values` (n_leaves, n_outputs) divided by `divisor`, such as the number of trees of a mean:
    on a grid of `divisor` times a power of two levels, values that are short binary fractions are rounded by nothing.
    So are `magnitudes`, where they are not those of values.
    """

    roots: IntArray
    columns: IntArray
    edges: FloatArray
    left: IntArray
    right: IntArray
    values: FloatArray
    missing_left: BoolArray
    category_splits: IntArray
    left_codes: tuple[IntArray, ...]
    categories: tuple[tuple[int, int], ...]
    refused: tuple[int, ...]
    rounding: float = 0.0
    divisor: int = 1
    magnitudes: FloatArray | None = None

    @property
    def largest_sum(self) -> float:
        """What the leaves of all trees add up to at most, in magnitude."""
        largest = reduce_below(self.roots, self.left, self.right, np.abs(self.values), np.maximum)
        return float(max(map(math.fsum, largest.T.tolist()))) / self.divisor * (1 + 2 * EPSILON)

    def count_roundings(self, levels: int) -> float:
        """In halves of a grid unit, by how much rounding moves a sum, or the magnitudes that `rounding` counts by.

        Nothing where every value lies on the grid.
        """
        scaled, ratio = self.values * (levels / self.divisor), levels // self.divisor
        is_power = levels % self.divisor == 0 and ratio & (ratio - 1) == 0
        if is_power and (scaled == np.rint(scaled)).all():
            return 0.0
        products = 0.0 if is_power else 4 * EPSILON * float(np.abs(scaled).max(initial=0.0))
        return self.roots.size * (1 + self.rounding + products)


class CategoryShape(NamedTuple):
    """A categorical column's function of real values: one per code, and those of an unseen and a missing category.

    Of several classes every value is a row of numbers, one per class.
    """

    feature: int
    categories: IntArray
    values: FloatArray
    other: float | FloatArray = 0.0
    missing: float | FloatArray | None = None


def round_shapes(
    shapes: Sequence[Shape],
    tables: Sequence[CategoryShape],
    intercept: float | ArrayLike,
    levels: int,
    grids: Sequence[GridShape] = (),
    trees: Sequence[TreeShape] = (),
) -> tuple[tuple[Term, ...], IntArray]:
    """Terms of a sum of functions on the grid, and what functions that are constant add to each output, (n_outputs,).

    Parameters are those of `AdditiveEnsemble.from_shapes`; there is an output per number of the intercept. Edges at
    which no rounded score changes are left out, and so are functions that are constant.
    """
    _check_finite(shapes, tables, intercept)
    n_outputs = max(np.size(intercept), 1)
    constant, terms = np.zeros(n_outputs, dtype=np.int64), list[Term]()
    for shape in shapes:
        scores = _round_rows(shape.values, levels, n_outputs, shape.feature)
        missing = _round_one(shape.missing, levels, n_outputs, shape.feature)
        changes = np.flatnonzero((np.diff(scores, axis=0) != 0).any(axis=1))
        if not changes.size and missing is None:
            constant += scores[0]
            continue
        edges = np.asarray(shape.edges, dtype=np.float64)[changes]
        terms.append(StepFunction(shape.feature, edges, np.concatenate([scores[:1], scores[changes + 1]]), missing))
    for grid in grids:
        term = _round_grid(grid, levels, n_outputs)
        if term.scores.shape[0] > 1:
            terms.append(term)
        else:
            constant += term.scores[0]
    for table in tables:
        scores = _round_rows(table.values, levels, n_outputs, table.feature)
        other = _round_one(np.broadcast_to(table.other, n_outputs), levels, n_outputs, table.feature)
        missing = _round_one(table.missing, levels, n_outputs, table.feature)
        terms.append(CategoryTable(table.feature, table.categories, scores, other, missing))  # type: ignore[arg-type]
    terms += [_round_trees(one, levels, n_outputs) for one in trees]
    return tuple(terms), constant


def _round_trees(shape: TreeShape, levels: int, n_outputs: int) -> TreeTerm:
    """Trees with leaves on the grid."""
    values = np.asarray(shape.values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("`values` of trees must be finite, got nan or infinity.")
    if values.ndim != 2 or values.shape[1] != n_outputs:
        raise ValueError(f"`values` of trees must have {n_outputs} numbers per leaf, got shape {values.shape}.")
    own = ("values", "divisor", "magnitudes")
    fields = {name: getattr(shape, name) for name in shape._fields if name not in own}
    ratio = levels / shape.divisor
    magnitudes = () if shape.magnitudes is None else shape.magnitudes * ratio * (1 + 2 * EPSILON)
    return TreeTerm(scores=round_values(values, ratio), magnitudes=magnitudes, **fields)  # type: ignore[arg-type]


def round_values(values: ArrayLike, levels: float) -> IntArray:
    """Values as whole multiples of 1 / levels, halves to even."""
    scaled = np.rint(np.asarray(values, dtype=np.float64) * levels)
    if (np.abs(scaled) > MAX_SCORE).any():
        raise ValueError(f"`values` of a shape times {levels} levels must lie within +-2**53: use fewer levels.")
    return scaled.astype(np.int64)


def move_level(level: int, levels: int, lead: float) -> int:
    """The largest whole score that is not ahead of a level by more than `lead`, which counts in steps of 1 / levels."""
    return level + math.floor(Fraction(lead) * levels)


def _check_finite(shapes: Sequence[Shape], tables: Sequence[CategoryShape], intercept: float | ArrayLike) -> None:
    for feature, values, missing in [(one.feature, one.values, one.missing) for one in (*shapes, *tables)]:  # type: ignore[attr-defined]
        known = np.isfinite(np.asarray(values, dtype=np.float64)).all()
        if not (known and (missing is None or np.isfinite(missing).all())):
            raise ValueError(f"`values` of the shape of feature {feature} must be finite, got nan or infinity.")
    if not np.isfinite(np.asarray(intercept, dtype=np.float64)).all():
        raise ValueError(f"`intercept` must be finite, got {intercept!r}.")


def scale_lines(lines: Sequence[Line], levels: int, n_outputs: int, *, is_defined: bool) -> tuple[Term, ...]:
    """Terms of lines: slopes and scores of missing values are multiplied by the levels, not rounded to the grid.

    A model that is defined on its grid (`is_defined`) has slopes without errors; else these cover that product, too.
    """

    def scale(given: ArrayLike, error: ArrayLike, name: str, feature: int) -> tuple[FloatArray, FloatArray | None]:
        values = np.asarray(given, dtype=np.float64).reshape(-1)
        if values.size != n_outputs or not np.isfinite(values).all():
            raise ValueError(
                f"`{name}` of the line of feature {feature} must be a finite number per output, {n_outputs} in all, "
                f"got {given!r}."
            )
        scaled = values * levels
        errors = np.broadcast_to(np.asarray(error, dtype=np.float64), scaled.shape) * levels * (1 + 2 * EPSILON)
        return scaled, None if is_defined else errors + EPSILON * np.abs(scaled)

    terms = []
    for line in lines:
        own: list[Any] = [*scale(line.slope, line.error, "slope", line.feature)]
        if line.missing is not None:
            own += scale(line.missing, line.missing_error, "missing", line.feature)
        terms.append(LinearTerm(line.feature, *own))
    return tuple(terms)


def bound_rounding(n_functions: float, levels: int, arithmetic_error: float) -> float:
    """How far, in grid units, a rounded sum may lie from the one that is meant: that one's error, and its own rounding.

    Each function is rounded by at most 1/2, the intercept by less than 1; the last factor covers the rounding of this
    line itself.
    """
    if not (np.isfinite(arithmetic_error) and arithmetic_error >= 0):
        raise ValueError(f"`arithmetic_error` must be finite and not negative, or None, got {arithmetic_error!r}.")
    return (arithmetic_error * levels + 0.5 * n_functions + 1.0) * (1 + 4 * EPSILON)


class Shapes(NamedTuple):
    """Functions of real values, by their kinds."""

    shapes: tuple[Shape, ...]
    grids: tuple[GridShape, ...]
    tables: tuple[CategoryShape, ...]
    lines: tuple[Line, ...]
    trees: tuple[TreeShape, ...] = ()


def read_shapes(terms: Sequence[Term], levels: int) -> Shapes:
    """Terms as the functions of real values that they stand for: scores divided by `levels`, each rounded once.

    The result: of several outputs values have one number per output.
    """
    shapes: list[Shape] = []
    grids: list[GridShape] = []
    tables: list[CategoryShape] = []
    lines: list[Line] = []
    trees: list[TreeShape] = []

    def divide(scores: ArrayLike | None, n_outputs: int) -> Any:
        if scores is None:
            return None
        values = np.asarray(scores, dtype=np.float64) / levels
        return values[..., 0] if n_outputs == 1 and values.ndim and values.shape[-1] == 1 else values

    for term in terms:
        count = term.n_outputs
        if isinstance(term, StepFunction):
            shapes.append(Shape(term.feature, term.edges, divide(term.scores, count), divide(term.missing, count)))
        elif isinstance(term, CategoryTable):
            other, missing = divide(term.other, count), divide(term.missing, count)
            codes = term.categories.astype(np.int64)
            tables.append(CategoryShape(term.feature, codes, divide(term.scores, count), other, missing))
        elif isinstance(term, GridTerm):
            scores = term.scores.reshape(*term.shape, count)
            grids.append(GridShape(term.features, term.edges, divide(scores, count), term.missing))
        elif term.slope is not None:
            own = term.slope
            missing = () if own.missing is None else (divide(own.missing, count), divide(own.missing_errors, count))
            lines.append(Line(own.feature, divide(own.values, count), divide(own.errors, count), *missing))
        elif isinstance(term, TreeTerm):
            known = {name: getattr(term, name) for name in TreeShape._fields if name not in ("values", "divisor")}
            known["magnitudes"] = term.magnitudes / levels * (1 + EPSILON)
            trees.append(TreeShape(values=term.scores / levels, **known))
        else:
            raise TypeError(f"A {type(term).__name__} is not known as a function of real values.")
    return Shapes(tuple(shapes), tuple(grids), tuple(tables), tuple(lines), tuple(trees))


def _round_grid(grid: GridShape, levels: int, n_classes: int) -> GridTerm:
    """A function of several columns on the grid, without edges at which no rounded score changes."""
    values = np.asarray(grid.values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"`values` of the shape of features {grid.features} must be finite, got nan or infinity.")
    takes_missing = grid.missing or (False,) * len(grid.edges)
    boxes = tuple(np.size(part) + 1 + takes for part, takes in zip(grid.edges, takes_missing, strict=True))
    if values.shape != (boxes if n_classes == 1 else (*boxes, n_classes)):
        raise ValueError(
            f"`values` of the shape of features {grid.features} must have one number per box and class, "
            f"{boxes if n_classes == 1 else (*boxes, n_classes)} in all, got an array of shape {values.shape}."
        )
    return GridTerm(grid.features, grid.edges, round_values(values, levels), grid.missing).drop_idle_edges()


def _round_rows(values: ArrayLike, levels: int, n_outputs: int, feature: int) -> IntArray:
    """Rounded values of shape (n_cells, n_outputs)."""
    given = np.asarray(values, dtype=np.float64)
    given = given[:, None] if n_outputs == 1 and given.ndim == 1 else given
    if given.ndim != 2 or given.shape[1] != n_outputs:
        raise ValueError(
            f"`values` of the shape of feature {feature} must have one number per cell and class, {n_outputs} of them "
            f"as `intercept` has, got an array of shape {given.shape}."
        )
    return round_values(given, levels)


def _round_one(value: ArrayLike | None, levels: int, n_outputs: int, feature: int) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(_round_rows(np.reshape(value, (1, -1)), levels, n_outputs, feature)[0].tolist())


def round_stumps(
    features: ArrayLike,
    thresholds: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    tables: Sequence[CategoryLeaves],
    levels: int,
    missing: ArrayLike | None = None,
) -> tuple[Term, ...]:
    """Terms of the sum of all leaves on the grid, stumps of a feature merged.

    Parameters are those of `AdditiveEnsemble.from_stumps`; leaves of several classes have shape (n_stumps, n_classes).
    """
    columns = _as_columns(features)
    splits = np.asarray(thresholds, dtype=np.float64)
    n_outputs = np.shape(left)[1] if np.ndim(left) == 2 else 1
    counts = columns.size, splits.size, len(np.atleast_1d(left)), len(np.atleast_1d(right))
    if len(set(counts)) > 1 or splits.ndim != 1:
        raise ValueError(
            "`features`, `thresholds`, `left` and `right` must have one entry per stump, got "
            f"{counts[0]}, {counts[1]}, {counts[2]} and {counts[3]}."
        )
    if not np.isfinite(splits).all():
        raise ValueError("`thresholds` must be finite, got nan or infinity.")
    leaves = np.stack([_as_leaves(left, "left", n_outputs), _as_leaves(right, "right", n_outputs)])
    grid = np.rint(leaves * levels).astype(np.int64)
    missing_leaves = _as_missing_leaves(missing, columns, n_outputs) * levels
    order = np.argsort(columns, kind="stable")
    starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
    terms: list[Term] = [
        _merge_stumps(int(columns[group[0]]), splits[group], grid[:, group], missing_leaves[group])
        for group in np.split(order, starts[1:])
        if group.size
    ]
    return (*terms, *(_round_table(*table, levels=levels, n_outputs=n_outputs) for table in tables))


def _round_table(
    feature: int,
    categories: ArrayLike,
    leaves: ArrayLike,
    other: float | ArrayLike,
    missing: float | ArrayLike | None = None,
    *,
    levels: int,
    n_outputs: int,
) -> CategoryTable:
    def round_one(leaf: float | ArrayLike, what: str) -> tuple[int, ...]:
        scores = np.rint(_as_leaves(np.broadcast_to(leaf, (1, n_outputs)), what, n_outputs) * levels)
        return tuple(scores[0].astype(np.int64).tolist())

    known = np.rint(_as_leaves(leaves, "leaves", n_outputs) * levels)
    score = None if missing is None else round_one(missing, "missing")
    return CategoryTable(feature, categories, known, round_one(other, "other"), score)  # type: ignore[arg-type]


def _as_columns(values: ArrayLike) -> IntArray:
    columns = np.asarray(values).reshape(-1)
    whole = columns.astype(np.int64)
    if not (whole == columns).all():
        raise ValueError(f"`features` must hold column numbers, got {columns[whole != columns][0]}.")
    return whole


def _as_leaves(values: ArrayLike, what: str, n_outputs: int) -> FloatArray:
    """Leaves of shape (n, n_outputs)."""
    leaves = np.asarray(values, dtype=np.float64)
    if n_outputs > 1 and (leaves.ndim != 2 or leaves.shape[1] != n_outputs):
        raise ValueError(f"`{what}` must have one leaf per stump and class, got an array of shape {leaves.shape}.")
    outside = ~((leaves >= 0) & (leaves <= 1))
    if outside.any():
        raise ValueError(f"`{what}` must hold leaves in [0, 1], got {leaves[outside][0]}.")
    return leaves.reshape(-1, n_outputs)


def _as_missing_leaves(missing: ArrayLike | None, columns: IntArray, n_outputs: int) -> FloatArray:
    """The leaf of a missing number of each stump, NaN where its feature refuses one: all stumps of it, or none."""
    shape = (columns.size, n_outputs)
    if missing is None:
        return np.full(shape, np.nan)
    leaves = np.asarray(missing, dtype=np.float64)  # None becomes NaN
    if n_outputs > 1 and leaves.shape != shape:
        raise ValueError(f"`missing` must have shape {shape}, a leaf per stump and class, got {leaves.shape}.")
    if leaves.size != columns.size * n_outputs:
        raise ValueError(f"`missing` must have one leaf per stump, {columns.size} in all, got {leaves.size}.")
    leaves = leaves.reshape(shape)
    _as_leaves(leaves[~np.isnan(leaves)], "missing", 1)
    for refuses in np.isnan(leaves).T:
        both = np.intersect1d(columns[refuses], columns[~refuses])
        if both.size:
            raise ValueError(
                f"`missing` must have a leaf for every stump of a feature or for none, got some for feature {both[0]}: "
                "give its other stumps one, too, such as the mean of their leaves."
            )
    return leaves


def _merge_stumps(feature: int, splits: FloatArray, grid: IntArray, missing: FloatArray) -> StepFunction:
    """One step function from stumps on one feature; splits where nothing changes are left out.

    `grid` has shape (2, n_stumps, n_outputs): scores left and right of each split.
    """
    score = None if np.isnan(missing).any() else tuple(np.rint(missing).sum(axis=0).astype(np.int64).tolist())
    if splits.size == 1 and (grid[0] != grid[1]).any():
        return StepFunction(feature, splits, grid[:, 0], score)
    edges, inverse = np.unique(splits, return_inverse=True)
    jumps = np.zeros((edges.size, grid.shape[2]), dtype=np.int64)
    np.add.at(jumps, inverse, grid[1] - grid[0])
    changes = jumps.any(axis=1)
    right = grid[0].sum(axis=0) + np.cumsum(jumps[changes], axis=0)
    return StepFunction(feature, edges[changes], np.concatenate([grid[0].sum(axis=0)[None], right]), score)
