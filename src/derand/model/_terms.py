"""Terms: the functions that a model adds up, each over columns of its own.

Owns what a term says of itself: its columns, the axes that noise acts on, its category codes, its scores. Must not
know models, decisions or files; a file holds the constructor's arguments, which `describe` gives back. A new term is
one more class here and its row in TERMS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import FloatArray, Frozen, IntArray, freeze

MAX_SCORE = 2**53
"""Largest absolute score: beyond it a double no longer holds every integer."""


class Axis(NamedTuple):
    """A numerical column of a term, cut into cells: cell i is `[edges[i - 1], edges[i])`."""

    feature: int
    edges: FloatArray


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

    if TYPE_CHECKING:  # a field or a property of the subclass; a field must not find a property in its base class

        @property
        def scores(self) -> IntArray:
            """(n_cells, n_outputs), in grid units."""

        @property
        def missing(self) -> int | None:
            """Score of a missing value, NaN; None where it has no cell of its own."""

    @property
    @abstractmethod
    def takes_missing(self) -> bool:
        """Whether its columns may hold NaN."""

    @property
    @abstractmethod
    def features(self) -> tuple[int, ...]:
        """The columns that it reads."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The columns that noise acts on, with their edges; empty for a category."""

    @property
    def codes(self) -> FloatArray:
        """The category codes that it tells apart, increasing; empty where noise acts."""
        return np.empty(0)

    @abstractmethod
    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each value of its column, (n,); one output."""

    @abstractmethod
    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score that a change can reach; `unseen` admits codes of no category."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The constructor's arguments as plain numbers and lists."""

    @property
    def n_outputs(self) -> int:
        """How many sums it adds to: one, for now."""
        return int(self.scores.shape[1])

    @property
    def cell_scores(self) -> IntArray:
        """Score of each cell, (n_cells,); for a term of one output."""
        return self.scores.reshape(self.scores.shape[0])

    def score_rows(self, rows: FloatArray) -> IntArray:
        """Scores of whole rows, (n_rows,): reads its own columns."""
        (feature,) = self.features
        return self.evaluate(rows[:, feature])


def _as_feature(value: Any, owner: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"`feature` of {owner} must be a column number, 0 or larger, got {value!r}.")
    return int(value)


def _as_positions(values: ArrayLike, what: str) -> FloatArray:
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


def _as_scores(values: ArrayLike, n_cells: int, what: str) -> IntArray:
    """Integer scores of shape (n_cells, 1); a flat list is one output per cell."""
    raw = np.asarray(values)
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or raw.shape[1] != 1:
        raise ValueError(f"{what} must have one number per cell, got an array of shape {raw.shape}.")
    if raw.shape[0] != n_cells:
        raise ValueError(f"{what} must have {n_cells} entries, one per cell, got {raw.shape[0]}.")
    if not np.issubdtype(raw.dtype, np.integer):
        as_float = np.asarray(raw, dtype=np.float64)
        if not (np.isfinite(as_float) & (as_float == np.rint(as_float))).all():
            raise ValueError(
                f"{what} must be whole numbers on the grid, got {raw.ravel().tolist()[:5]}: "
                "multiply by the number of levels and round, or use AdditiveEnsemble.from_stumps."
            )
    if any(abs(int(score)) > MAX_SCORE for score in raw.ravel().tolist()):
        raise ValueError(f"{what} must lie within +-2**53, got a larger one: use fewer levels.")
    return freeze(raw.astype(np.int64))


def _as_score(value: Any, name: str, owner: str) -> int:
    """One whole score."""
    return int(_as_scores([value], 1, f"`{name}` of {owner}")[0, 0])


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction(Term):
    """One numerical feature's piecewise constant function (the paper's meta-stump).

    Parameters
    ----------
    feature : int
        Column of the feature.
    edges : array-like of shape (k,)
        Strictly increasing split points.
    scores : array-like of integers, shape (k + 1,)
        `scores[i]` holds on `[edges[i - 1], edges[i])`, in grid units.
    missing : int or None
        Score of a missing value, NaN; None refuses NaN.

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
    missing: int | None = None

    kind: ClassVar[str] = "step_function"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", _as_feature(self.feature, "StepFunction"))
        object.__setattr__(self, "edges", _as_positions(self.edges, "`edges` of StepFunction"))
        object.__setattr__(self, "scores", _as_scores(self.scores, self.edges.size + 1, "`scores` of StepFunction"))
        if self.missing is not None:
            object.__setattr__(self, "missing", _as_score(self.missing, "missing", "StepFunction"))

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
        scores = self.cell_scores[np.searchsorted(self.edges, values, side="right")]
        gaps = np.isnan(values)
        if not gaps.any():
            return scores
        if self.missing is None:
            raise ValueError(
                f"`x` must hold numbers, got NaN for feature {self.feature}: this StepFunction has no cell for a "
                "missing value. Drop such rows or fill the gaps first, or give it a score with `missing`."
            )
        return np.where(gaps, self.missing, scores)

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score of all cells, that of a missing value included."""
        reachable = [int(self.scores.min()), int(self.scores.max()), *_if_any(self.missing)]
        return min(reachable), max(reachable)

    def describe(self) -> dict[str, Any]:
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
    scores : array-like of integers, shape (k,)
        Score of each category, in grid units.
    other : int
        Score of an unseen category.
    missing : int or None
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
    other: int
    missing: int | None = None

    kind: ClassVar[str] = "category_table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", _as_feature(self.feature, "CategoryTable"))
        object.__setattr__(self, "categories", _as_positions(self.categories, "`categories` of CategoryTable"))
        object.__setattr__(self, "scores", _as_scores(self.scores, self.categories.size, "`scores` of CategoryTable"))
        object.__setattr__(self, "other", _as_score(self.other, "other", "CategoryTable"))
        if self.missing is not None:
            object.__setattr__(self, "missing", _as_score(self.missing, "missing", "CategoryTable"))

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
        if not self.categories.size:
            scores = np.full(codes.shape, self.other, dtype=np.int64)
        else:
            at = np.minimum(np.searchsorted(self.categories, codes), self.categories.size - 1)
            scores = np.where(self.categories[at] == codes, self.cell_scores[at], self.other)
        return scores if self.missing is None else np.where(np.isnan(codes), self.missing, scores)

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score that a changed value can have; `unseen` admits values outside the table, and none.

        A table without categories has no other values.
        """
        outside = [self.other, *_if_any(self.missing)] if unseen or not self.scores.size else []
        reachable = [*self.cell_scores.tolist(), *outside]
        return min(reachable), max(reachable)

    def describe(self) -> dict[str, Any]:
        """The constructor's arguments as plain numbers and lists."""
        own = {
            "feature": self.feature,
            "categories": self.categories.tolist(),
            "scores": self.scores.tolist(),
            "other": self.other,
        }
        return own | _describe_missing(self.missing)


def _if_any(score: int | None) -> list[int]:
    return [] if score is None else [score]


def _describe_missing(score: int | None) -> dict[str, Any]:
    """Only where there is one: files of models without such cells stay as they were."""
    return {} if score is None else {"missing": score}


TERMS: dict[str, type[Term]] = {kind.kind: kind for kind in (StepFunction, CategoryTable)}
