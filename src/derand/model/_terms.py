"""Terms: the functions that a model adds up, each over columns of its own.

Owns what a term says of itself: its columns, the axes that noise acts on, its category codes, its scores. Must not
know models, decisions or files; a file holds the constructor's arguments, which `describe` gives back. A new term is
one more class and its row in TERMS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, Frozen, IntArray, freeze, is_whole
from derand._core.text import Facts

Description = Facts
"""Numbers, texts and lists that the constructor takes back."""
MAX_SCORE = 2**53
"""Largest absolute score: beyond it a double no longer holds every integer."""


Score = int | tuple[int, ...]
"""The score of one cell: a whole number, of several outputs one each."""


class Axis(NamedTuple):
    """A numerical column of a term, cut into cells: cell i is `[edges[i - 1], edges[i])`."""

    feature: int
    edges: FloatArray


class Slope(NamedTuple):
    """A line: what it adds per unit of its number, and how far that may be off, both (n_outputs,), in grid units.

    `missing` is what it adds where the number is missing, and `missing_errors` how far that may be off; None where it
    takes no missing one.
    """

    feature: int
    values: FloatArray
    errors: FloatArray
    missing: FloatArray | None = None
    missing_errors: FloatArray | None = None

    def multiply(self, rows: FloatArray) -> FloatArray:
        """What it adds to the score of each row, (n_rows, n_outputs), to nearest."""
        own = rows[:, [self.feature]]
        products = own * self.values
        return products if self.missing is None else np.where(np.isnan(own), self.missing, products)

    def multiply_exactly(self, number: float) -> list[Fraction]:
        """The same of one number, as fractions."""
        if np.isnan(number):
            assert self.missing is not None  # rows were checked
            return [Fraction(one) for one in self.missing.tolist()]
        return [Fraction(slope) * Fraction(number) for slope in self.values.tolist()]


class Term(Frozen, ABC):
    """One function of the sum, on columns that no other term reads.

    A term has cells with a score each. Where its columns are numerical, the cells lie between the edges of its axes
    (`axes`), noise moves a row from cell to cell, and certificates need no more than axes and scores. Where its column
    is categorical it has `codes` instead of axes: noise leaves it alone, an adversary may change it. A missing value,
    NaN, may have a cell of its own (`missing`), on which noise does not act either.

    A term that comes from a file or from Python is immutable, its arrays read-only. Subclasses are frozen dataclasses
    whose fields `describe` returns as plain numbers and lists, and whose constructor takes those back.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in files and in TERMS."""
    uneven: ClassVar[tuple[str, ...]] = ()
    """Arguments that are lists of lists of different lengths."""

    if TYPE_CHECKING:  # a field or a property of the subclass; a field must not find a property in its base class

        @property
        def features(self) -> tuple[int, ...]:
            """The columns that it reads."""

        @property
        def scores(self) -> IntArray:
            """(n_cells, n_outputs), in grid units."""

        @property
        def missing(self) -> Score | None:
            """Score of a missing value, NaN; None where it has no cell of its own."""

    @property
    @abstractmethod
    def takes_missing(self) -> bool:
        """Whether its columns may hold NaN."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The columns that noise acts on, with their edges; empty for a category."""

    @property
    def slope(self) -> Slope | None:
        """What it adds per unit of its number, where it is a line and has no cells; else None."""
        return None

    @property
    def n_cells(self) -> int:
        """How many cells it has."""
        return int(self.scores.shape[0])

    @property
    def missing_features(self) -> tuple[int, ...]:
        """Those of its columns that may hold NaN."""
        return self.features if self.takes_missing else ()

    @property
    def codes(self) -> FloatArray:
        """The category codes that it tells apart, increasing; empty where noise acts."""
        return np.empty(0)

    @property
    def category_codes(self) -> Mapping[int, FloatArray]:
        """The codes that it tells apart, by categorical column."""
        return {} if self.axes else dict.fromkeys(self.features, self.codes)

    @property
    def is_tree(self) -> bool:
        """Whether its scores are those of leaves, which need a search; such a term has no cells of its own."""
        return False

    def bound_rounding(self, rows: FloatArray) -> FloatArray:
        """How far the score of the model that is meant may lie from this one's, (n_rows, n_outputs), beside what the
        model says of every row."""
        return np.zeros((rows.shape[0], self.n_outputs))

    @property
    def largest_rounding(self) -> float:
        """More than `bound_rounding` of any row and output."""
        return 0.0

    @property
    def n_trees(self) -> int:
        """How many trees it adds up; 0 where it has cells."""
        return 0

    @abstractmethod
    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each value of its column, (n,); of several outputs (n, n_outputs). Of several columns x has one more
        axis, that of the columns."""

    @abstractmethod
    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score of any output that a change can reach; `unseen` admits codes of no category."""

    @abstractmethod
    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Expected scores of rows, (n_rows, n_outputs), to nearest.

        `probabilities` (n_rows, n_cells): probabilities of the cells of each axis, that of missing values left out.
        """

    @abstractmethod
    def subtract(self, plus: int, minus: int) -> Term:
        """The difference of two of its outputs, as a term of one output."""

    @abstractmethod
    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists."""

    @property
    def n_outputs(self) -> int:
        """How many sums it adds to: one, or one per class."""
        return int(self.scores.shape[1])

    @property
    def cell_scores(self) -> IntArray:
        """Score of each cell, (n_cells,); for a term of one output."""
        return self.scores.reshape(self.scores.shape[0])

    @property
    def missing_score(self) -> int | None:
        """Score of a missing value, None where it has no cell; for a term of one output."""
        assert not isinstance(self.missing, tuple)  # a sum that decides has terms of one output
        return self.missing

    def score_rows(self, rows: FloatArray) -> IntArray:
        """Scores of whole rows, (n_rows,), of several outputs (n_rows, n_outputs): reads its own columns."""
        (feature,) = self.features
        return self.evaluate(rows[:, feature])


def as_feature(value: object, owner: str) -> int:
    if not is_whole(value) or value < 0:
        raise ValueError(f"`feature` of {owner} must be a column number, 0 or larger, got {value!r}.")
    return int(value)


def as_positions(values: ArrayLike, what: str) -> FloatArray:
    """Finite, strictly increasing numbers."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{what} must be a flat list of numbers, got an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite, got {array[~np.isfinite(array)][0]}.")
    if (array[1:] <= array[:-1]).any():
        at = int(np.flatnonzero(array[1:] <= array[:-1])[0])
        raise ValueError(
            f"{what} must strictly increase, got {float(array[at])} followed by {float(array[at + 1])}: "
            "sort them and merge equal ones."
        )
    return freeze(array)


def as_scores(values: ArrayLike, n_cells: int, what: str) -> IntArray:
    """Integer scores of shape (n_cells, n_outputs); a flat list is one output per cell."""
    raw = np.asarray(values)
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or not raw.shape[1]:
        raise ValueError(f"{what} must have one number per cell and output, got an array of shape {raw.shape}.")
    if raw.shape[0] != n_cells:
        raise ValueError(f"{what} must have {n_cells} entries, one per cell, got {raw.shape[0]}.")
    if not np.issubdtype(raw.dtype, np.integer):
        as_float = np.asarray(raw, dtype=np.float64)
        if not (np.isfinite(as_float) & (as_float == np.rint(as_float))).all():
            raise ValueError(
                f"{what} must be whole numbers on the grid, got {raw.ravel().tolist()[:5]}: "
                "multiply by the number of levels and round, or use AdditiveEnsemble.from_stumps."
            )
    if ((raw > MAX_SCORE) | (raw < -MAX_SCORE)).any():
        raise ValueError(f"{what} must lie within +-2**53, got a larger one: use fewer levels.")
    return freeze(raw.astype(np.int64))


def _as_score(value: Any, n_outputs: int, name: str, owner: str) -> Score:
    """The score of one cell: a whole number, or one per output."""
    scores = as_scores([value], 1, f"`{name}` of {owner}")
    if scores.shape[1] != n_outputs:
        raise ValueError(f"`{name}` of {owner} must have as many outputs as its `scores`, {n_outputs}, got {value!r}.")
    return int(scores[0, 0]) if n_outputs == 1 else tuple(scores[0].tolist())


def pick_outputs(cells: IntArray) -> IntArray:
    """Scores of cells without the axis of outputs, where there is one output."""
    return cells[..., 0] if cells.shape[-1] == 1 else cells


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction(Term):
    """One numerical feature's piecewise constant function (the paper's meta-stump).

    Parameters
    ----------
    feature : int
        Column of the feature.
    edges : array-like of shape (k,)
        Strictly increasing split points.
    scores : array-like of integers, shape (k + 1,) or (k + 1, n_outputs)
        `scores[i]` holds on `[edges[i - 1], edges[i])`, in grid units; one column per class for several classes.
    missing : int, tuple of int or None
        Score of a missing value, NaN (one per output); None refuses NaN.

    Examples
    --------
    >>> step = StepFunction(feature=0, edges=[1.0, 2.0], scores=[-1, 0, 5])
    >>> step.evaluate([0.5, 1.0, 2.0]).tolist()
    [-1, 0, 5]
    >>> StepFunction(feature=0, edges=[1.0], scores=[-1, 5], missing=2).evaluate([0.5, float("nan")]).tolist()
    [-1, 2]
    """

    feature: int
    edges: FloatArray
    scores: IntArray
    missing: Score | None = None

    kind: ClassVar[str] = "step_function"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", as_feature(self.feature, "StepFunction"))
        object.__setattr__(self, "edges", as_positions(self.edges, "`edges` of StepFunction"))
        object.__setattr__(self, "scores", as_scores(self.scores, self.edges.size + 1, "`scores` of StepFunction"))
        if self.missing is not None:
            object.__setattr__(self, "missing", _as_score(self.missing, self.n_outputs, "missing", "StepFunction"))

    @property
    def features(self) -> tuple[int, ...]:
        """The one column."""
        return (self.feature,)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its column with its edges."""
        return (Axis(self.feature, self.edges),)

    @property
    def takes_missing(self) -> bool:
        """Whether it has a cell for NaN."""
        return self.missing is not None

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each value; NaN is an error where it has no cell."""
        values = np.asarray(x, dtype=np.float64)
        scores = pick_outputs(self.scores[np.searchsorted(self.edges, values, side="right")])
        is_missing = np.isnan(values)
        if not is_missing.any():
            return scores
        if self.missing is None:
            raise ValueError(
                f"`x` must hold numbers, got NaN for feature {self.feature}: this StepFunction has no cell for a "
                "missing value. Drop such rows or fill the missing values first, or give it a score with `missing`."
            )
        return np.where(is_missing if self.n_outputs == 1 else is_missing[..., None], self.missing, scores)

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score of all cells, that of a missing value included."""
        reachable = [int(self.scores.min()), int(self.scores.max()), *_list_scores(self.missing)]
        return min(reachable), max(reachable)

    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Expected scores of rows."""
        missing = np.zeros(self.n_outputs) if self.missing is None else np.array(_list_scores(self.missing))
        return np.where(np.isnan(rows[:, [self.feature]]), missing, probabilities[0] @ self.scores)

    def subtract(self, plus: int, minus: int) -> StepFunction:
        """The difference of two outputs; edges at which it does not change are left out."""
        scores = self.scores[:, plus] - self.scores[:, minus]
        changes = np.flatnonzero(np.diff(scores))
        missing = None if self.missing is None else _subtract(self.missing, plus, minus)
        kept = np.concatenate([scores[:1], scores[changes + 1]])
        return StepFunction(self.feature, self.edges[changes], kept, missing)

    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists."""
        own = {"feature": self.feature, "edges": self.edges.tolist(), "scores": self.scores.tolist()}
        return own | _describe_missing(self.missing)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryTable(Term):
    """One categorical feature's score per category.

    Parameters
    ----------
    feature : int
        Column of the feature, which holds category codes; NaN is a missing value.
    categories : array-like of shape (k,)
        Strictly increasing codes.
    scores : array-like of integers, shape (k,) or (k, n_outputs)
        Score of each category, in grid units; one column per class for several classes.
    other : int or tuple of int
        Score of an unseen category (one per output).
    missing : int, tuple of int or None
        Score of a missing one, NaN; None is that of an unseen one.

    Examples
    --------
    >>> table = CategoryTable(feature=0, categories=[0, 1], scores=[-3, 3], other=0)
    >>> table.evaluate([0.0, 1.0, 7.0, float("nan")]).tolist()
    [-3, 3, 0, 0]
    """

    feature: int
    categories: FloatArray
    scores: IntArray
    other: Score
    missing: Score | None = None

    kind: ClassVar[str] = "category_table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", as_feature(self.feature, "CategoryTable"))
        object.__setattr__(self, "categories", as_positions(self.categories, "`categories` of CategoryTable"))
        if not self.categories.size and np.ndim(self.scores) == 1:  # a table without categories has `other` alone
            object.__setattr__(self, "scores", np.empty((0, np.size(self.other)), dtype=np.int64))
        object.__setattr__(self, "scores", as_scores(self.scores, self.categories.size, "`scores` of CategoryTable"))
        object.__setattr__(self, "other", _as_score(self.other, self.n_outputs, "other", "CategoryTable"))
        if self.missing is not None:
            object.__setattr__(self, "missing", _as_score(self.missing, self.n_outputs, "missing", "CategoryTable"))

    @property
    def features(self) -> tuple[int, ...]:
        """The one column."""
        return (self.feature,)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """None: a category is not randomised."""
        return ()

    @property
    def codes(self) -> FloatArray:
        """The categories."""
        return self.categories

    @property
    def takes_missing(self) -> bool:
        """Always: a missing category is NaN."""
        return True

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each code."""
        codes = np.asarray(x, dtype=np.float64)
        last = self.categories.size  # the index of an unseen category, and one more is that of a missing one
        at = np.searchsorted(self.categories, codes)
        known = np.append(self.categories, np.nan)[at] == codes
        indices = np.where(known, at, np.where(np.isnan(codes), last + 1, last))
        outside = [self.other, self.other if self.missing is None else self.missing]
        cells = np.concatenate([self.scores, np.array(outside, dtype=np.int64).reshape(2, self.n_outputs)])
        return pick_outputs(cells[indices])

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score that a changed value can have; `unseen` admits values outside the table, and none.

        A table without categories has no other values.
        """
        outside = [*_list_scores(self.other), *_list_scores(self.missing)] if unseen or not self.scores.size else []
        reachable = [*self.scores.ravel().tolist(), *outside]
        return min(reachable), max(reachable)

    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Scores of rows: no noise acts on it."""
        return np.asarray(self.score_rows(rows), dtype=np.float64).reshape(rows.shape[0], -1)

    def subtract(self, plus: int, minus: int) -> CategoryTable:
        """The difference of two outputs."""
        missing = None if self.missing is None else _subtract(self.missing, plus, minus)
        scores = self.scores[:, plus] - self.scores[:, minus]
        return CategoryTable(self.feature, self.categories, scores, _subtract(self.other, plus, minus), missing)

    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists."""
        own = {
            "feature": self.feature,
            "categories": self.categories.tolist(),
            "scores": self.scores.tolist(),
            "other": _describe_score(self.other),
        }
        return own | _describe_missing(self.missing)


def _list_scores(score: Score | None) -> list[int]:
    return [] if score is None else [score] if isinstance(score, int) else list(score)


def _subtract(score: Score, plus: int, minus: int) -> int:
    scores = _list_scores(score)
    return scores[plus] - scores[minus]


def _describe_score(score: Score) -> int | list[int]:
    return score if isinstance(score, int) else list(score)


def _describe_missing(score: Score | None) -> Facts:
    """Only where there is one: files of models without such cells stay as they were."""
    return {} if score is None else {"missing": _describe_score(score)}


TERMS: dict[str, type[Term]] = {kind.kind: kind for kind in (StepFunction, CategoryTable)}
