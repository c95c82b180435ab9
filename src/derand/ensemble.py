"""Models: immutable additive step functions on an integer grid.

Owns the terms, the ensemble that adds them up, the weighted vote of ensembles, and the one door where real numbers
become integers (`from_stumps`). Must not know noise, kernels or estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_SCORE = 2**53
"""Largest absolute score: beyond it a double no longer holds every integer."""


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


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
    return _freeze(array)


def _as_scores(values: ArrayLike, n_cells: int, owner: str) -> IntArray:
    """Integer scores of shape (n_cells, 1); a flat list is one output per cell."""
    raw = np.asarray(values)
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or raw.shape[1] != 1:
        raise ValueError(f"`scores` of {owner} must have one number per cell, got an array of shape {raw.shape}.")
    if raw.shape[0] != n_cells:
        raise ValueError(f"`scores` of {owner} must have {n_cells} entries, one per cell, got {raw.shape[0]}.")
    if not np.issubdtype(raw.dtype, np.integer):
        as_float = np.asarray(raw, dtype=np.float64)
        if not (np.isfinite(as_float) & (as_float == np.rint(as_float))).all():
            raise ValueError(
                f"`scores` of {owner} must be whole numbers on the grid, got {raw.ravel().tolist()[:5]}: "
                "multiply by the number of levels and round, or use AdditiveEnsemble.from_stumps."
            )
    if any(abs(int(score)) > MAX_SCORE for score in raw.ravel().tolist()):
        raise ValueError(f"`scores` of {owner} must lie within +-2**53, got a larger one: use fewer levels.")
    return _freeze(raw.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """One numerical feature's piecewise constant function (the paper's meta-stump).

    Parameters
    ----------
    feature : int
        Column of the feature.
    edges : array-like of shape (k,)
        Strictly increasing split points.
    scores : array-like of integers, shape (k + 1,)
        `scores[i]` holds on `[edges[i - 1], edges[i])`, in grid units.

    Examples
    --------
    >>> step = StepFunction(feature=0, edges=[1.0, 2.0], scores=[-1, 0, 5])
    >>> step.evaluate([0.5, 1.0, 2.0]).tolist()
    [-1, 0, 5]
    """

    feature: int
    edges: FloatArray
    scores: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", _as_feature(self.feature, "StepFunction"))
        object.__setattr__(self, "edges", _as_positions(self.edges, "`edges` of StepFunction"))
        object.__setattr__(self, "scores", _as_scores(self.scores, self.edges.size + 1, "StepFunction"))

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each value."""
        cells = np.searchsorted(self.edges, np.asarray(x, dtype=np.float64), side="right")
        return np.asarray(self.scores[cells, 0])


@dataclass(frozen=True, slots=True, eq=False)
class CategoryTable:
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
        Score of an unseen or missing category.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", _as_feature(self.feature, "CategoryTable"))
        object.__setattr__(self, "categories", _as_positions(self.categories, "`categories` of CategoryTable"))
        object.__setattr__(self, "scores", _as_scores(self.scores, self.categories.size, "CategoryTable"))
        object.__setattr__(self, "other", int(_as_scores([self.other], 1, "CategoryTable (`other`)")[0, 0]))

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each code."""
        codes = np.asarray(x, dtype=np.float64)
        if not self.categories.size:
            return np.full(codes.shape, self.other, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.categories, codes), self.categories.size - 1)
        return np.where(self.categories[at] == codes, self.scores[at, 0], self.other)

    def score_range(self, unseen: bool) -> tuple[int, int]:
        """Lowest and highest score that a changed value can have; `unseen` admits values outside the table."""
        reachable = [*self.scores[:, 0].tolist(), *([self.other] if unseen or not self.scores.size else [])]
        return min(reachable), max(reachable)


Term = StepFunction | CategoryTable


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveEnsemble:
    """A sum of terms, each over its own feature, compared with a threshold: class 1 iff score > threshold.

    Parameters
    ----------
    terms : sequence of StepFunction and CategoryTable
        No feature in two terms: under noise with independent coordinates the terms are then independent.
    threshold : int or None
        Decision level in grid units; None for a model without a decision.
    n_features : int
        Columns of the rows that the model reads.
    levels : int
        Grid step is 1 / levels.
    score_error : float
        Largest amount, in grid units, by which rounding to the grid moved the score of any row.

    Examples
    --------
    >>> model = AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], threshold=1, n_features=2)
    >>> model.score([[0.2, 9.0], [0.7, 9.0]]).tolist()
    [0, 3]
    """

    terms: tuple[Term, ...]
    threshold: int | None
    n_features: int
    levels: int = 100
    score_error: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        self._check_numbers()
        self._check_terms()

    def _check_numbers(self) -> None:
        for name, least in (("n_features", 0), ("levels", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"`{name}` of AdditiveEnsemble must be a whole number, {least} or larger, got {value!r}."
                )
            object.__setattr__(self, name, int(value))
        if self.threshold is not None:
            if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | np.integer):
                raise ValueError(
                    "`threshold` of AdditiveEnsemble must be a whole number in grid units or None, "
                    f"got {self.threshold!r}."
                )
            if abs(int(self.threshold)) > MAX_SCORE:
                raise ValueError(f"`threshold` of AdditiveEnsemble must lie within +-2**53, got {self.threshold!r}.")
            object.__setattr__(self, "threshold", int(self.threshold))
        if not (np.isfinite(self.score_error) and self.score_error >= 0):
            raise ValueError(f"`score_error` of AdditiveEnsemble must be 0 or larger, got {self.score_error!r}.")
        object.__setattr__(self, "score_error", float(self.score_error))

    def _check_terms(self) -> None:
        seen: set[int] = set()
        largest = 0
        for term in self.terms:
            if not isinstance(term, StepFunction | CategoryTable):
                raise TypeError(f"`terms` of AdditiveEnsemble must be StepFunction or CategoryTable, got {term!r}.")
            if term.feature >= self.n_features:
                raise ValueError(
                    f"A term of AdditiveEnsemble reads feature {term.feature}, but `n_features` is {self.n_features}."
                )
            if term.feature in seen:
                raise ValueError(
                    f"Feature {term.feature} is in two terms of AdditiveEnsemble: add them up into one term first "
                    "(AdditiveEnsemble.from_stumps does so), because a certificate needs independent terms."
                )
            seen.add(term.feature)
            largest += max((abs(int(score)) for score in term.scores[:, 0]), default=0)
            largest += abs(term.other) if isinstance(term, CategoryTable) else 0
        if largest > MAX_SCORE:
            raise ValueError(f"The scores of AdditiveEnsemble add up to {largest}, above 2**53: use fewer levels.")

    @classmethod
    def from_stumps(
        cls,
        features: ArrayLike,
        thresholds: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        *,
        n_features: int,
        levels: int = 100,
        tables: Sequence[tuple[int, ArrayLike, ArrayLike, float]] = (),
    ) -> AdditiveEnsemble:
        """The mean of decision stumps (and category tables), class 1 iff it is above 1/2.

        Parameters
        ----------
        features, thresholds, left, right : array-likes of shape (n_stumps,)
            Stump m gives `right[m]` where `x[features[m]] >= thresholds[m]`, else `left[m]`; leaves in [0, 1].
        n_features : int
        levels : int
            Leaves are rounded to the nearest multiple of 1 / levels (half to even).
        tables : sequence of (feature, categories, leaves, other)
            Categorical features; each counts as one stump in the mean.

        Returns
        -------
        AdditiveEnsemble
            Stumps on the same feature are merged into one StepFunction.

        Examples
        --------
        >>> model = AdditiveEnsemble.from_stumps([0, 0], [1.0, 2.0], [0.2, 0.4], [0.6, 0.9], n_features=1)
        >>> model.terms[0].scores.ravel().tolist(), model.threshold
        ([60, 100, 150], 100)
        """
        columns = _as_columns(features)
        splits = np.asarray(thresholds, dtype=np.float64)
        leaves = np.stack([_as_leaves(left, "left"), _as_leaves(right, "right")])
        if not splits.shape == (columns.size,) == leaves.shape[1:]:
            raise ValueError(
                "`features`, `thresholds`, `left` and `right` must have one entry per stump, got "
                f"{columns.size}, {splits.size}, {np.size(left)} and {np.size(right)}."
            )
        if not np.isfinite(splits).all():
            raise ValueError("`thresholds` must be finite, got nan or infinity.")
        scaled = leaves * levels
        grid = np.rint(scaled)
        error = float(np.abs(scaled - grid).max(axis=0, initial=0.0).sum())
        order = np.argsort(columns, kind="stable")
        starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
        terms: list[Term] = [
            _merge_stumps(int(columns[group[0]]), splits[group], grid[:, group].astype(np.int64))
            for group in np.split(order, starts[1:])
            if group.size
        ]
        for feature, categories, values, other in tables:
            known, unknown = _as_leaves(values, "leaves"), _as_leaves([other], "other")
            cells = np.append(known, unknown) * levels
            scores = np.rint(cells)
            error += float(np.abs(cells - scores).max())
            terms.append(CategoryTable(feature, categories, scores[:-1], int(scores[-1])))  # type: ignore[arg-type]
        count = columns.size + len(tables)
        return cls(tuple(terms), count * levels // 2, n_features, levels, error)

    @property
    def step_functions(self) -> tuple[StepFunction, ...]:
        return tuple(term for term in self.terms if isinstance(term, StepFunction))

    @property
    def category_tables(self) -> tuple[CategoryTable, ...]:
        return tuple(term for term in self.terms if isinstance(term, CategoryTable))

    def score(self, X: ArrayLike) -> IntArray:
        """Score of each row, without noise."""
        rows = np.asarray(X, dtype=np.float64)
        total = np.zeros(rows.shape[0], dtype=np.int64)
        for term in self.terms:
            total += term.evaluate(rows[:, term.feature])
        return total


def _as_columns(values: ArrayLike) -> IntArray:
    columns = np.asarray(values).reshape(-1)
    whole = columns.astype(np.int64)
    if not (whole == columns).all():
        raise ValueError(f"`features` must hold column numbers, got {columns[whole != columns][0]}.")
    return whole


def _as_leaves(values: ArrayLike, what: str) -> FloatArray:
    leaves = np.asarray(values, dtype=np.float64).reshape(-1)
    if not ((leaves >= 0) & (leaves <= 1)).all():
        bad = leaves[~((leaves >= 0) & (leaves <= 1))][0]
        raise ValueError(f"`{what}` must hold leaves in [0, 1], got {bad}.")
    return leaves


def _merge_stumps(feature: int, splits: FloatArray, grid: IntArray) -> StepFunction:
    """One step function from stumps on one feature; splits where nothing changes are left out."""
    if splits.size == 1 and grid[0, 0] != grid[1, 0]:
        return StepFunction(feature, splits, grid[:, 0])
    edges, inverse = np.unique(splits, return_inverse=True)
    jumps = np.zeros(edges.size, dtype=np.int64)
    np.add.at(jumps, inverse, grid[1] - grid[0])
    scores = grid[0].sum() + np.concatenate([[0], np.cumsum(jumps[jumps != 0])])
    return StepFunction(feature, edges[jumps != 0], scores)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedVote:
    """A weighted majority of ensembles: class 1 iff the members that say so carry more than half of the weight.

    A member of negative weight votes, with the absolute weight, for the reverse of its label.

    Parameters
    ----------
    members : sequence of AdditiveEnsemble
    weights : array-like of shape (n_members,)
    """

    members: tuple[AdditiveEnsemble, ...]
    weights: FloatArray

    def __post_init__(self) -> None:
        members = tuple(self.members)
        weights = np.array(self.weights, dtype=np.float64)
        if not members:
            raise ValueError("`members` of WeightedVote must hold at least one ensemble, got none.")
        for member in members:
            if not isinstance(member, AdditiveEnsemble) or member.threshold is None:
                raise TypeError(f"`members` of WeightedVote must be ensembles with a threshold, got {member!r}.")
            if member.n_features != members[0].n_features:
                raise ValueError(
                    "`members` of WeightedVote must read the same columns, got `n_features` "
                    f"{members[0].n_features} and {member.n_features}."
                )
        if weights.shape != (len(members),) or not np.isfinite(weights).all():
            raise ValueError(
                f"`weights` of WeightedVote must hold {len(members)} finite numbers, one per member, "
                f"got {self.weights!r}."
            )
        if (np.abs(weights) > 1e300).any():  # their sum must stay finite
            raise ValueError(f"`weights` of WeightedVote must lie within +-1e300, got {self.weights!r}.")
        categorical = {table.feature for member in members for table in member.category_tables}
        numerical = {step.feature for member in members for step in member.step_functions}
        if categorical & numerical:
            raise ValueError(
                "`members` of WeightedVote must agree on which features are categorical, got feature "
                f"{min(categorical & numerical)} as a category in one member and as a number in another."
            )
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "weights", _freeze(weights))

    @property
    def n_features(self) -> int:
        return self.members[0].n_features


Model = AdditiveEnsemble | WeightedVote
