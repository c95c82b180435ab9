"""What a step of a pipeline does to one column: functions of numbers that keep their order, steps, and encoders.

Owns how edges behind a step become edges before it. Must not know scikit-learn, readings or pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand._core.origin import Cell
from derand.convert._edges import bisect_edges

_FAR = 1e100


class _Mark:
    """A cell that is no value."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


UNSEEN = _Mark("UNSEEN")
"""A category that no training row had."""
REFUSED = _Mark("REFUSED")
"""What becomes of a cell that a step refuses."""


def is_nan(cell: Cell) -> bool:
    """Whether a cell is NaN."""
    return isinstance(cell, float) and math.isnan(cell)


class Affine(NamedTuple):
    """`slope * x + shift`, off by at most `slope_error * |x| + shift_error` as it is computed."""

    slope: float
    shift: float
    slope_error: float = 0.0
    shift_error: float = 0.0

    def then(self, slope: float, shift: float) -> Affine:
        """Followed by another such map that is computed with at most two roundings of each of its parts."""
        rounding = 8 * EPSILON  # those of the step, and those of the products here
        a, b, per_unit, rest = abs(self.slope), abs(self.shift), self.slope_error, self.shift_error
        return Affine(
            slope * self.slope,
            slope * self.shift + shift,
            abs(slope) * (per_unit + rounding * (a + per_unit)),
            abs(slope) * (rest + rounding * (b + rest)) + rounding * abs(shift),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """One step's function of one column; this one leaves every cell as it is.

    Attributes
    ----------
    step : str
        How errors name the step.
    takes_missing : bool
        Whether the step takes NaN.
    """

    step: str
    takes_missing: bool = True

    categories: ClassVar[Cell] = None
    """What an encoder knows; None for a function of numbers."""
    keeps_cells: ClassVar[bool] = True
    """Whether what is there stays what it is, so that it may be a category."""
    makes_steps: ClassVar[bool] = False
    """Whether there are few numbers behind it."""
    computes: ClassVar[bool] = False
    """Whether numbers behind it depend on the precision of those before it."""

    @property
    def affine(self) -> tuple[float, float] | None:
        """Slope and shift, where it is a line."""
        return 1.0, 0.0

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        """Edges before the step, of which one lies wherever one of `edges` is crossed behind it."""
        return edges

    def apply(self, x: FloatArray) -> FloatArray:
        """What becomes of numbers, NaN among them where it is taken."""
        return x

    def apply_cell(self, cell: Cell) -> Cell:
        """What becomes of a category, a number, NaN or UNSEEN."""
        if cell is REFUSED or (is_nan(cell) and not self.takes_missing):
            return REFUSED
        return self._apply_cell(cell)

    def _apply_cell(self, cell: Cell) -> Cell:
        return cell


@dataclass(frozen=True, slots=True, eq=False)
class Fill(Link):
    """Missing cells become a value."""

    computes: ClassVar[bool] = True
    value: Cell = 0.0

    def apply(self, x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x), self.value, x)

    def _apply_cell(self, cell: Cell) -> Cell:
        return self.value if is_nan(cell) else cell


@dataclass(frozen=True, slots=True, eq=False)
class NumberLink(Link):
    """A function of numbers."""

    computes: ClassVar[bool] = True
    keeps_cells: ClassVar[bool] = False
    _known: dict[float, float] = field(default_factory=dict)

    @property
    def affine(self) -> tuple[float, float] | None:
        return None

    def _apply_cell(self, cell: Cell) -> Cell:
        number = float(cell)
        if number not in self._known:
            self._known[number] = float(self.apply(np.array([number]))[0])
        return self._known[number]


def _stay(x: FloatArray) -> FloatArray:
    return x


@dataclass(frozen=True, slots=True, eq=False)
class Ordered(NumberLink):
    """A function that keeps the order of all numbers, or turns it around: edges are found by bisection over doubles.

    Attributes
    ----------
    function : function of an array of shape (n,)
        The step's own arithmetic.
    line : pair of float, or None
        Slope and shift, where the function is a line that is computed with two roundings at most.
    """

    function: Callable[[FloatArray], FloatArray] = _stay
    line: tuple[float, float] | None = None

    @property
    def affine(self) -> tuple[float, float] | None:
        return self.line

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        if not edges.size:
            return edges
        low, high = self.apply(np.array([-_FAR, _FAR])).tolist()
        if low > high:
            return bisect_edges(lambda x: self.apply(x) < edges, edges.size)
        return bisect_edges(lambda x: self.apply(x) >= edges, edges.size)

    def apply(self, x: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(self.function(x), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Bins(NumberLink):
    """The number of the bin between given edges."""

    makes_steps: ClassVar[bool] = True
    edges: FloatArray = field(default_factory=lambda: np.empty(0))

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        return self.edges

    def apply(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.searchsorted(self.edges, x, side="right"), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class IsWhole(NumberLink):
    """1 at one whole number, 0 at all others."""

    makes_steps: ClassVar[bool] = True
    whole: float = 0.0

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        return np.array([self.whole, self.whole + 1.0])

    def apply(self, x: FloatArray) -> FloatArray:
        return np.asarray(x == self.whole, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class IsMissing(Link):
    """1 for a missing cell, 0 for all others."""

    keeps_cells: ClassVar[bool] = False
    makes_steps: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float] | None:
        return None

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        return np.empty(0)

    def apply(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.isnan(x), dtype=np.float64)

    def _apply_cell(self, cell: Cell) -> Cell:
        return float(is_nan(cell))


@dataclass(frozen=True, slots=True, eq=False)
class Encoder(Link):
    """Numbers for categories.

    Attributes
    ----------
    numbers : mapping of category to float
    unseen, missing : float, NaN or REFUSED
        What becomes of other categories, and of a missing one.
    """

    numbers: Mapping[Cell, float] = field(default_factory=dict)
    unseen: Cell = REFUSED
    missing: Cell = REFUSED
    keeps_cells: ClassVar[bool] = False
    makes_steps: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float] | None:
        return None

    @property
    def categories(self) -> tuple[Cell, ...]:
        return tuple(self.numbers)

    def _apply_cell(self, cell: Cell) -> Cell:
        return self.missing if is_nan(cell) else self.numbers.get(cell, self.unseen)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column behind some steps, as a function of one column before them.

    Attributes
    ----------
    source : int
        Of the table that the pipeline is given.
    links : tuple of Link
        What the steps do, in their order.
    """

    source: int
    links: tuple[Link, ...] = ()

    def then(self, link: Link) -> Column:
        """The column behind one more step."""
        return Column(self.source, (*self.links, link))

    @property
    def encoder(self) -> Link | None:
        """The first step that reads categories."""
        return next((link for link in self.links if link.categories is not None), None)

    @property
    def makes_steps(self) -> bool:
        """Whether there are few numbers behind one of its steps."""
        return any(link.makes_steps for link in self.links)

    @property
    def affine(self) -> Affine | None:
        """The line that it is, where all steps are lines."""
        found = Affine(1.0, 0.0)
        for link in self.links:
            if link.affine is None:
                return None
            if link.affine != (1.0, 0.0):
                found = found.then(*link.affine)
        return found

    def fold_edges(self, edges: FloatArray) -> FloatArray:
        """Edges of the source, increasing, between which no edge of this column is crossed."""
        for link in reversed(self.links):
            edges = link.fold_edges(edges)
            edges = np.unique(edges[np.isfinite(edges)])
        return edges

    def apply(self, x: FloatArray) -> FloatArray:
        """What becomes of numbers of the source, none of them missing."""
        for link in self.links:
            x = link.apply(x)
        return x

    def apply_cell(self, cell: Cell) -> Cell:
        """What becomes of a cell of the source: a value, NaN, UNSEEN or REFUSED."""
        for link in self.links:
            cell = link.apply_cell(cell)
        return cell
