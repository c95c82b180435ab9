"""A reading of a pipeline's last step, folded into the columns that the pipeline is given.

Owns cells: which cell of the last step's functions each cell of the user's columns reaches. Columns that come from one,
such as those of a one-hot encoder, are added up exactly. Must not know scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand._core.origin import Cell
from derand.convert._cells import CellAxis, CellFunctions, Total, connect, is_small
from derand.convert._forests import Forest, join_forests, open_shape, shape_forest
from derand.convert._grids import grow_cells
from derand.convert._reading import Reading
from derand.convert.pipelines._links import REFUSED, UNSEEN, Affine, Column, is_nan
from derand.convert.pipelines._tree_folding import fold_forest
from derand.model import Line, TreeShape
from derand.tables import TableEncoding


class _Part(NamedTuple):
    """A function of the last step: of cells, with values of shape (cells of each axis, n_outputs), or a line.

    `takes_missing` says of each axis whether its last cell is that of missing values. A line of numbers of which there
    are few has a slope for each output, and no edges or values.
    """

    features: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    takes_missing: tuple[bool, ...]
    values: FloatArray
    slope: FloatArray | None = None
    slope_error: float = 0.0


class _OwnLine(NamedTuple):
    """What a line of the last step adds per unit of the user's number, and where that is missing, with their errors.

    `missing` is None where a step, or the last one, refuses what becomes of a missing number.
    """

    slope: FloatArray
    error: FloatArray
    missing: FloatArray | None
    missing_error: FloatArray


@dataclass(slots=True, eq=False)
class _Cells:
    """The cells of one of the user's columns: an axis, and a cell of each as the steps read it."""

    axis: CellAxis
    cells: list[Cell]

    def values(self, column: Column) -> list[Cell]:
        """What the steps of a column make of each cell: numbers, categories, NaN or UNSEEN."""
        if self.axis.is_category:
            return [column.apply_cell(cell) for cell in self.cells]
        n_numbers = self.axis.edges.size + 1
        numbers = column.apply(np.array(self.cells[:n_numbers])).tolist()
        return [*numbers, *(column.apply_cell(cell) for cell in self.cells[n_numbers:])]

    def numbers(self, column: Column) -> FloatArray:
        """The same, where all are numbers."""
        return np.array(self.values(column), dtype=np.float64)


class Folded:
    """The functions of a last step as functions of the user's columns, and which cells of categories are refused.

    Parameters
    ----------
    reading : Reading
        Of the last step.
    columns : sequence of Column
        Its columns.
    encoding : TableEncoding
        Of the user's table.
    dropped : sequence of Column
        What steps made, and the last one is not given: what they refuse is refused.

    Attributes
    ----------
    functions : CellFunctions
    lines : list of Line
    intercept : array of shape (n_outputs,)
    error : float
        What is added to the arithmetic error.
    refused : list of pairs
        Columns of categories, and whether a missing cell (True) or an unseen one is refused there.
    """

    def __init__(
        self, reading: Reading, columns: Sequence[Column], encoding: TableEncoding, dropped: Sequence[Column] = ()
    ) -> None:
        self._reading, self._columns, self._encoding = reading, columns, encoding
        self.functions = CellFunctions()
        self.intercept = np.array(reading.intercept, dtype=np.float64).reshape(-1)
        self.lines: list[Line] = []
        self.error = 0.0
        self.refused: list[tuple[int, bool]] = []
        for column in dropped:
            if column.source in encoding.categories:
                odd = ((UNSEEN, False), (math.nan, True))
                self.refused += [(column.source, gap) for cell, gap in odd if column.apply_cell(cell) is REFUSED]
        self._parts = [*_list_parts(reading, self.intercept.size), *self._fold_lines()]
        self._used = {feature for part in self._parts for feature in part.features}
        self._used.update(feature for shape in reading.trees for feature in shape.columns.tolist())
        self._cells = {source: self._make_cells(source) for source in sorted({column.source for column in columns})}
        self._add_parts()
        self._refuse_mixed_lines()
        self.error += self.functions.error

    def _add_parts(self) -> None:
        """Add up the functions of columns that belong together."""
        read: list[tuple[Sequence[int], _Part | TreeShape]] = [(part.features, part) for part in self._parts]
        read += [(np.unique(shape.columns).tolist(), shape) for shape in self._reading.trees]
        sources = [({self._columns[feature].source for feature in features}, part) for features, part in read]
        for group, mixed in connect(sources):
            axes = {source: self._cells[source].axis for source in group}
            own = [part for part in mixed if isinstance(part, _Part)]
            is_many = not is_small({source: axis.size for source, axis in axes.items()}, self._encoding)
            if is_many or len(own) < len(mixed):
                self._add_trees(own, [part for part in mixed if not isinstance(part, _Part)], axes)
                continue
            total = Total(tuple(axis.size for axis in axes.values()), self.intercept.size)
            for part in own:
                values = self._evaluate(part, group)
                total.add((...,), values)
                if part.slope is not None:  # products round, and the line has an error of its own
                    column = self._columns[part.features[0]]
                    largest = float(np.abs(self._cells[column.source].numbers(column)).max())
                    self.error += part.slope_error * largest + EPSILON * float(np.abs(values).max())
            self.functions.take(axes, total)

    def _add_trees(self, parts: Sequence[_Part], shapes: Sequence[TreeShape], axes: Mapping[int, CellAxis]) -> None:
        """Functions of columns that are too many for one function of cells: trees, each folded split by split."""
        divisor = max((shape.divisor for shape in shapes), default=1)
        forests = [_open_trees(shape) for shape in shapes]
        for part in parts:
            if part.slope is not None:
                raise ValueError("The last step has a line of a column that its trees split: use trees or lines alone.")
            codes = self._reading.encoding.categories
            own = [
                CellAxis(feature, edges, len(codes[feature]) if feature in codes else None, takes)
                for feature, edges, takes in zip(part.features, part.edges, part.takes_missing, strict=True)
            ]
            # its errors are those that the reading has for all rows: its leaves count for nothing
            forests.append(grow_cells(own, np.concatenate([part.values * divisor, 0 * part.values], axis=-1)))
            self.error += EPSILON * float(np.abs(part.values).max())
        refused = frozenset(source for source, axis in axes.items() if not axis.takes_missing)
        inner = self._reading.encoding
        folded = fold_forest(join_forests(forests), self._columns, inner, self._encoding, refused)
        rounding = max((shape.rounding for shape in shapes), default=0.0)
        found, lone = shape_forest(folded, self._encoding, rounding, divisor)
        n_outputs = self.intercept.size
        if found is not None:
            values, magnitudes = np.split(found.values, [n_outputs], axis=1)
            self.functions.trees.append(found._replace(values=values, magnitudes=magnitudes))
        for leaf in lone:
            self.intercept = self.intercept + leaf[:n_outputs] / divisor
            self.error += 2 * EPSILON * float(np.abs(self.intercept).max())

    def _refuse_mixed_lines(self) -> None:
        stepped = [one.feature for one in self.functions.shapes]
        stepped += [one.features[0] for one in self.functions.grids]
        if self.lines and stepped:
            name = self._encoding.name
            raise ValueError(
                f"The last step adds a line of column {name(self.lines[0].feature)!r} to steps of column "
                f"{name(stepped[0])!r}; lines are certified where all numbers have lines: scale all of them, or put "
                "all of them into bins."
            )

    def _fold_lines(self) -> list[_Part]:
        """Lines of numbers that are lines themselves are folded here; those of categories and steps are given back."""
        columns, encoding, lines = self._columns, self._encoding, self._reading.lines
        left: list[_Part] = []
        own_lines: dict[int, list[_OwnLine]] = {}
        sloped = [columns[line.feature] for line in lines if np.any(line.slope)]
        has_lines = any(not one.makes_steps and one.source not in encoding.categories for one in sloped)
        for line in lines:
            column = columns[line.feature]
            # a step without edges tells missing numbers from all others: beside lines it is one of slope 0
            is_line = not column.makes_steps or (has_lines and not column.fold_edges(np.empty(0)).size)
            if column.source in encoding.categories or not is_line:
                slope = np.atleast_1d(np.asarray(line.slope, dtype=np.float64))
                left.append(_Part((line.feature,), (np.empty(0),), (False,), slope, slope, float(np.max(line.error))))
                continue
            affine = Affine(0.0, float(column.apply(np.zeros(1))[0])) if column.makes_steps else column.affine
            if affine is None:
                step = next(link.step for link in column.links if link.affine is None)
                raise ValueError(
                    f"{step} bends column {encoding.name(column.source)!r} before a line of the last step: scale it "
                    "without clipping or other functions, or use bins."
                )
            own_lines.setdefault(column.source, []).append(self._fold_line(line, affine, column.apply_cell(math.nan)))
        for source, own in sorted(own_lines.items()):
            total = _add_lines(source, own)
            if any(np.any(part) for part in total[1:] if part is not None):  # a penalty leaves columns out
                self.lines.append(total)
        return left

    def _fold_line(self, line: Line, affine: Affine, filling: Cell) -> _OwnLine:
        """A line behind an affine map: its shift goes to the intercept, and is taken back where a number is missing.

        `filling` is what becomes of a missing number, by the steps' own arithmetic.
        """
        slope = np.atleast_1d(np.asarray(line.slope, dtype=np.float64))
        error, weight = np.broadcast_to(line.error, slope.shape), np.abs(slope)
        self.intercept = self.intercept + slope * affine.shift
        own = error * (abs(affine.slope) + affine.slope_error) + weight * (
            affine.slope_error + EPSILON * abs(affine.slope)
        )
        rest = error * (abs(affine.shift) + affine.shift_error) + weight * affine.shift_error
        sizes = float(np.abs(self.intercept).max()) + 2 * float((weight * abs(affine.shift)).max())
        self.error += float(rest.max()) + EPSILON * sizes
        missing, missing_error = None, np.zeros(slope.shape)
        if filling is not REFUSED and math.isfinite(filling):
            missing = slope * filling - slope * affine.shift
            missing_error = error * abs(filling) + 2 * EPSILON * weight * (abs(filling) + abs(affine.shift))
        return _OwnLine(slope * affine.slope, own, missing, missing_error)

    def _make_cells(self, source: int) -> _Cells:
        """The cells of a column that no function of the last step tells apart further."""
        columns, encoding = self._columns, self._encoding
        inner = [at for at, column in enumerate(columns) if column.source == source]
        if source in encoding.categories:
            known = list(encoding.categories[source])
            odd = [UNSEEN, math.nan]
            for at_end, cell in enumerate(odd):
                refused = (source, at_end == 1)
                if any(self._is_refused(columns[at].apply_cell(cell), at) for at in inner):
                    self.refused.append(refused)
                if refused in self.refused:
                    odd[at_end] = known[0]
            return _Cells(CellAxis(source, np.empty(0), len(known), True), [*known, *odd])
        edges = [np.empty(0)]
        for part in self._parts:
            for feature, own in zip(part.features, part.edges, strict=True):
                if columns[feature].source == source:
                    edges.append(columns[feature].fold_edges(np.asarray(own, dtype=np.float64)))
        edges_before = np.unique(np.concatenate(edges))
        read = [at for at in inner if at in self._used]
        takes = not any(self._is_refused(columns[at].apply_cell(math.nan), at) for at in read)
        axis = CellAxis(source, edges_before, None, takes)
        first = [float(np.nextafter(edges_before[0], -np.inf))] if edges_before.size else [0.0]
        return _Cells(axis, [*first, *edges_before.tolist(), *([math.nan] if takes else [])])

    def _is_refused(self, cell: object, at: int) -> bool:
        """Whether the steps, or the last step in its column, refuse what became of a cell."""
        if cell is REFUSED:
            return True
        if at in self._reading.encoding.categories or not is_nan(cell):
            return cell is UNSEEN and at not in self._reading.encoding.categories
        if at not in self._used:
            return not self._takes_missing(at)
        if any(at in shape.refused for shape in self._reading.trees):
            return True
        return not all(part.takes_missing[part.features.index(at)] for part in self._parts if at in part.features)

    def _takes_missing(self, at: int) -> bool:
        """Whether the last step takes NaN in a column that it makes nothing of: it is asked."""
        row = np.zeros((1, self._reading.encoding.n_features))
        row[0, at] = np.nan
        try:
            return self._reading.raw_scores is None or bool(np.isfinite(self._reading.raw_scores(row)).all())
        except ValueError:
            return False

    def _evaluate(self, part: _Part, group: tuple[int, ...]) -> FloatArray:
        """Values of a function on the cells of a group of columns, with one cell along those that it does not read."""

        def spread(numbers: Any, source: int) -> Any:
            shape = [1] * len(group)
            shape[group.index(source)] = len(numbers)
            return np.reshape(numbers, shape)

        if part.slope is not None:
            column = self._columns[part.features[0]]
            numbers = spread(self._cells[column.source].numbers(column), column.source)
            return np.asarray(numbers[..., None] * part.slope)
        index = []
        for axis, feature in enumerate(part.features):
            column = self._columns[feature]
            own = self._cells[column.source].values(column)
            codes = self._reading.encoding.categories.get(feature)
            cells = _locate_numbers(part, axis, own) if codes is None else _locate_codes(codes, own)
            index.append(spread(cells, column.source))
        return np.asarray(part.values[tuple(index)])


def read_categories(
    reading: Reading, columns: Sequence[Column], seen: Mapping[int, set[Cell]], name: Callable[[int], object]
) -> dict[int, tuple[Cell, ...]]:
    """The categories of the user's columns: those that encoders know, or the last step.

    `reading`: of the last step; `columns`: what it is given; `seen`: what encoders know of columns of which the last
    step may be given nothing.
    """
    found: dict[int, set[Cell]] = {source: set(values) for source, values in seen.items() if values}
    numbers: set[int] = set()
    for inner, column in enumerate(columns):
        encoder = column.encoder
        known = reading.encoding.categories.get(inner) if encoder is None else encoder.categories
        if known is None:
            numbers.add(column.source)
            continue
        for link in column.links:
            if link is encoder:
                break
            if not link.keeps_cells:
                raise ValueError(
                    f"{link.step} makes numbers that a later step takes for categories, which cannot be certified."
                )
        found.setdefault(column.source, set()).update(known)
    both = sorted(numbers & set(found))
    if both:
        raise ValueError(
            f"Column {name(both[0])!r} is read both as a number and as a category, which no table can hold."
        )
    return {source: _sort(values, name(source)) for source, values in found.items()}


def _sort(values: set[Cell], name: object) -> tuple[Cell, ...]:
    kinds = {str if isinstance(one, str) else bool if isinstance(one, bool) else float for one in values}
    if len(kinds) > 1:
        raise ValueError(f"Column {name!r} mixes categories of several types: turn all its cells into text.")
    return tuple(sorted(values))


def _list_parts(reading: Reading, n_outputs: int) -> list[_Part]:
    """All functions of cells alike: values of shape (cells of each axis, n_outputs)."""
    found = []
    for shape in reading.shapes:
        rows = np.asarray(shape.values, dtype=np.float64).reshape(-1, n_outputs)
        if shape.missing is not None:
            rows = np.concatenate([rows, np.reshape(shape.missing, (1, n_outputs))])
        edges = np.asarray(shape.edges, dtype=np.float64)
        found.append(_Part((shape.feature,), (edges,), (shape.missing is not None,), rows))
    for table in reading.tables:
        n_codes = len(reading.encoding.categories[table.feature])
        other = np.broadcast_to(table.other, (1, n_outputs))
        rows = np.repeat(np.asarray(other, dtype=np.float64), n_codes + 2, axis=0)
        rows[np.asarray(table.categories)] = np.asarray(table.values, dtype=np.float64).reshape(-1, n_outputs)
        if table.missing is not None:
            rows[-1] = table.missing
        found.append(_Part((table.feature,), (np.empty(0),), (True,), rows))
    for grid in reading.grids:
        missing = grid.missing or (False,) * len(grid.features)
        sizes = [len(edges) + 1 + gap for edges, gap in zip(grid.edges, missing, strict=True)]
        values = np.asarray(grid.values, dtype=np.float64).reshape(*sizes, n_outputs)
        found.append(_Part(grid.features, tuple(map(np.asarray, grid.edges)), missing, values))
    return found


def _open_trees(shape: TreeShape) -> Forest:
    """The nodes of trees, with the magnitudes of leaves beside their values."""
    magnitudes = np.abs(shape.values) if shape.magnitudes is None else shape.magnitudes
    return open_shape(shape._replace(values=np.concatenate([shape.values, magnitudes], axis=1)))


def _add_lines(source: int, lines: Sequence[_OwnLine]) -> Line:
    """The sum of lines of one column, with errors that cover its rounding."""

    def add(values: Sequence[FloatArray], errors: Sequence[FloatArray]) -> tuple[Any, Any]:
        rounding = len(values) * EPSILON
        total = sum(values)
        off = sum(error + rounding * np.abs(value) for value, error in zip(values, errors, strict=True))
        return (float(total[0]), float(off[0])) if np.size(total) == 1 else (total, off)  # type: ignore[index]

    slope = add([one.slope for one in lines], [one.error for one in lines])
    missing = [one.missing for one in lines if one.missing is not None]
    if len(missing) < len(lines):
        return Line(source, *slope)
    return Line(source, *slope, *add(missing, [one.missing_error for one in lines]))


def _locate_numbers(part: _Part, axis: int, cells: Sequence[object]) -> IntArray:
    """The cell of a function's axis that each cell of the user's column reaches."""
    numbers = np.array(cells, dtype=np.float64)
    places = np.searchsorted(part.edges[axis], numbers, side="right")
    return np.where(np.isnan(numbers), part.values.shape[axis] - 1, places)


def _locate_codes(categories: tuple[Cell, ...], cells: Sequence[object]) -> IntArray:
    """The same of a function of categories: that of unseen ones is the last but one, that of missing ones the last."""
    codes = {value: code for code, value in enumerate(categories)}
    return np.array([len(codes) + 1 if is_nan(cell) else codes.get(cell, len(codes)) for cell in cells])
