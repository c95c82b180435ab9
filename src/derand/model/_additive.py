"""What every model says of itself, and the additive ensemble: a sum of terms, and what decides on it.

Owns the facts that other rooms ask for. Must not know noise, kernels or training.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, FloatArray, Frozen, Numbers, is_whole
from derand.model._base import Contrast, Once
from derand.model._decision import Argmax, Decision, Threshold, Value
from derand.model._linear import add_products, bound_deviations, bound_products
from derand.model._quantize import (
    CategoryLeaves,
    CategoryShape,
    GridShape,
    Line,
    Shape,
    TreeShape,
    bound_rounding,
    round_shapes,
    round_stumps,
    round_values,
    scale_lines,
)
from derand.model._terms import MAX_SCORE, CategoryTable, Description, Slope, StepFunction, Term

OneTerm = TypeVar("OneTerm", bound=Term)


class Model(Frozen, ABC):
    """A model that can be certified: an additive ensemble, or a vote of several. Told apart by identity."""

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in files."""

    if TYPE_CHECKING:  # fields of dataclasses must not find a property of their name in a base class

        @property
        def members(self) -> tuple[AdditiveEnsemble, ...]:
            """The sums that it consists of: an ensemble itself, but of two outputs their difference."""

        @property
        def weights(self) -> FloatArray | None:
            """Weight of each member's vote, (n_members,); None for an ensemble, which does not vote."""

        @property
        def n_features(self) -> int:
            """Columns of the rows that it reads."""

        @property
        def n_classes(self) -> int:
            """How many classes it tells apart; 0 where it does not."""

    @Once
    def member_terms(self) -> tuple[Term, ...]:
        """Terms of all members, one after the other."""
        return tuple(term for member in self.members for term in member.terms)

    @Once
    def categorical_features(self) -> tuple[int, ...]:
        """Columns that hold category codes, increasing."""
        return tuple(sorted({at for term in self.member_terms for at in term.category_codes}))

    @Once
    def numerical_features(self) -> tuple[int, ...]:
        """Columns on which a number is compared with an edge, or multiplied by a slope, increasing."""
        compared = {axis.feature for term in self.member_terms for axis in term.axes if axis.edges.size}
        return tuple(sorted(compared | {at for term in self.member_terms if term.slope for at in term.features}))

    @Once
    def refuses_missing(self) -> tuple[int, ...]:
        """Columns that must not hold NaN, increasing: some term that reads them has no cell for it."""
        refused = (set(term.features) - set(term.missing_features) for term in self.member_terms)
        return tuple(sorted(set().union(*refused)))

    @Once
    def number_columns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Columns that must not hold infinity, as all but those of codes, and those of them that may hold NaN."""
        numbers = sorted(set(range(self.n_features)) - set(self.categorical_features))
        return tuple(numbers), tuple(sorted(set(numbers) - set(self.refuses_missing)))

    @Once
    def missing_features(self) -> tuple[int, ...]:
        """Numerical columns in which a missing value has a cell, increasing."""
        taken = {at for term in self.member_terms for at in term.missing_features if at not in term.category_codes}
        return tuple(sorted(taken - set(self.refuses_missing)))

    @Once
    def n_cells(self) -> int:
        """Cells of all terms that noise acts on: the work of a row."""
        return sum(term.n_cells for term in self.member_terms if term.axes)

    @Once
    def score_ranges(self) -> tuple[int, ...]:
        """How far apart the scores of each term lie that noise acts on; of several outputs the farthest."""
        moved = (term for term in self.member_terms if term.axes and term.slope is None and not term.is_tree)
        return tuple(int(np.ptp(term.scores, axis=0).max()) for term in moved)

    @Once
    def has_trees(self) -> bool:
        """Whether some of its terms are trees, on which noise does not act."""
        return any(term.is_tree for term in self.member_terms)

    @Once
    def is_linear(self) -> bool:
        """Whether all of its numbers are multiplied by slopes: its score is no whole number, and has no range."""
        return any(term.slope is not None for term in self.member_terms)

    @abstractmethod
    def describe(self) -> Description:
        """Its parts that are plain numbers, as a file holds them; terms, decisions and members describe themselves."""


def is_model(value: object) -> TypeGuard[Model]:
    """Whether this is a bare model, and not a classifier or something else."""
    return isinstance(value, Model)


def as_model(model: object) -> Model:
    """The same, or a TypeError that names the parameter."""
    if not isinstance(model, Model):
        raise TypeError(f"`model` must be an AdditiveEnsemble or a WeightedVote, got {type(model).__name__}.")
    return model


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, init=False)
class AdditiveEnsemble(Model):
    """A sum of terms, each over columns of its own, and a decision on it, such as class 1 iff score > threshold.

    Parameters
    ----------
    terms : sequence of Term
        Such as StepFunction and CategoryTable; lines (LinearTerm) beside categories alone. No feature in two terms:
        under noise with independent coordinates the terms are then independent.
    threshold : int, Decision or None
        A level in grid units, which stands for `Threshold(level)`; `Argmax(offsets)` for several classes, whose terms
        have one output per class; `Value(offset)` for a number as the answer; None for a model without a decision.
    n_features : int
        Columns of the rows that the model reads.
    levels : int
        Grid step is 1 / levels.
    score_error : float
        How far, in grid units, the score of the model that is meant may lie from this one's, on any row. A certificate
        covers every model within that distance: `certify` widens the threshold by it on both sides.

    Attributes
    ----------
    decision : Decision or None
    threshold : int or None
        The level of the decision, where it is a Threshold.
    n_outputs : int
        Sums that the terms add to.
    n_classes : int
        Classes that the decision tells apart; 0 where it does not.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, StepFunction
    >>> model = AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], threshold=1, n_features=2)
    >>> model.score([[0.2, 9.0], [0.7, 9.0]]).tolist()
    [0, 3]
    """

    terms: tuple[Term, ...]
    decision: Decision | None
    n_features: int
    levels: int
    score_error: float

    kind: ClassVar[str] = "additive_ensemble"

    def __init__(
        self,
        terms: Sequence[Term],
        threshold: int | Decision | None,
        n_features: int,
        levels: int = 100,
        score_error: float = 0.0,
    ) -> None:
        decision = threshold if threshold is None or isinstance(threshold, Decision) else Threshold(threshold)
        object.__setattr__(self, "terms", tuple(terms))
        object.__setattr__(self, "decision", decision)
        for name, value, least in (("n_features", n_features, 0), ("levels", levels, 1)):
            if not is_whole(value) or value < least:
                raise ValueError(
                    f"`{name}` of AdditiveEnsemble must be a whole number, {least} or larger, got {value!r}."
                )
            object.__setattr__(self, name, int(value))
        if not (np.isfinite(score_error) and 0 <= score_error <= MAX_SCORE):
            raise ValueError(
                f"`score_error` of AdditiveEnsemble must be 0 or larger, and at most 2**53, got {score_error!r}."
            )
        object.__setattr__(self, "score_error", float(score_error))
        self._check_terms()

    def _check_terms(self) -> None:
        seen: set[int] = set()
        largest = 0
        is_linear = any(isinstance(term, Term) and term.slope is not None for term in self.terms)
        for term in self.terms:
            if not isinstance(term, Term):
                raise TypeError(
                    f"`terms` of AdditiveEnsemble must be terms such as StepFunction or CategoryTable, got {term!r}."
                )
            for feature in term.features:
                if feature >= self.n_features:
                    raise ValueError(
                        f"A term of AdditiveEnsemble reads feature {feature}, but `n_features` is {self.n_features}."
                    )
                if feature in seen:
                    raise ValueError(
                        f"Feature {feature} is in two terms of AdditiveEnsemble: add them up into one term first "
                        "(AdditiveEnsemble.from_stumps does so), because a certificate needs independent terms."
                    )
                seen.add(feature)
            if term.n_outputs != self.n_outputs:
                raise ValueError(
                    f"A term of AdditiveEnsemble must have as many outputs as its decision asks for, {self.n_outputs}, "
                    f"got {term.n_outputs} for feature {term.features[0]}."
                )
            if term.slope is not None:
                continue
            if is_linear and (term.axes or term.is_tree):
                raise ValueError(
                    f"A model with lines must be linear throughout: feature {term.features[0]} has a function with "
                    "cells beside them. Make its line a function with cells, too, or certify both apart."
                )
            # of two outputs the difference must fit as well
            largest += min(self.n_outputs, 2) * max(abs(score) for score in term.score_range())
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
        tables: Sequence[CategoryLeaves] = (),
        missing: ArrayLike | None = None,
    ) -> AdditiveEnsemble:
        """The mean of decision stumps (and category tables), class 1 iff it is above 1/2.

        Parameters
        ----------
        features, thresholds, left, right : array-likes of shape (n_stumps,)
            Stump m gives `right[m]` where `x[features[m]] >= thresholds[m]`, else `left[m]`; leaves in [0, 1]. Of
            several classes every leaf holds a number per class, (n_stumps, n_classes), and the class of the largest
            mean is the answer.
        n_features : int
        levels : int
            Leaves are rounded to the nearest multiple of 1 / levels (half to even).
        tables : sequence of (feature, categories, leaves, other) or (feature, categories, leaves, other, missing)
            Categorical features; each counts as one stump in the mean. Without a leaf of a missing category, or with
            None, it gets that of an unseen one.
        missing : array-like of shape (n_stumps,) or None
            Leaf of a missing number, NaN, of each stump; NaN or None for all stumps of a feature refuses such rows, as
            None does for all features. Of several classes a row per stump.

        Returns
        -------
        AdditiveEnsemble
            Stumps on the same feature are merged into one StepFunction. It is defined on its grid, as in the paper:
            `score_error` is 0.

        Examples
        --------
        >>> model = AdditiveEnsemble.from_stumps([0, 0], [1.0, 2.0], [0.2, 0.4], [0.6, 0.9], n_features=1)
        >>> model.terms[0].scores.ravel().tolist(), model.threshold
        ([60, 100, 150], 100)
        >>> model = AdditiveEnsemble.from_stumps([0], [1.0], [0.2], [0.6], n_features=1, missing=[0.5])
        >>> model.score([[0.0], [1.0], [np.nan]]).tolist()
        [20, 60, 50]
        """
        terms = round_stumps(features, thresholds, left, right, tables, levels, missing)
        if np.ndim(left) == 2:
            return cls(terms, Argmax((0,) * int(np.shape(left)[1])), n_features, levels)
        return cls(terms, (np.size(left) + len(tables)) * levels // 2, n_features, levels)

    @classmethod
    def from_shapes(
        cls,
        shapes: Sequence[Shape],
        tables: Sequence[CategoryShape] = (),
        *,
        intercept: float | ArrayLike = 0.0,
        n_features: int,
        levels: int,
        grids: Sequence[GridShape] = (),
        lines: Sequence[Line] = (),
        trees: Sequence[TreeShape] = (),
        arithmetic_error: float | None = None,
    ) -> AdditiveEnsemble:
        """The sum of functions of real values, class 1 iff sum and intercept are above 0; or the class of the largest.

        Parameters
        ----------
        shapes : sequence of Shape
            Functions of numerical features, at most one of each.
        tables : sequence of CategoryShape
        intercept : float, or array-like of shape (n_classes,)
            Of several classes one number each; values of shapes and tables have one per class then, too.
        n_features : int
        levels : int
            Values are rounded to the nearest multiple of 1 / levels (half to even).
        grids : sequence of GridShape
            Functions of several numerical features each, which are in no other one; of several classes the last axis
            of their values is that of the classes.
        lines : sequence of Line
            Slopes of numerical features, for a model without other functions of numbers; slopes are not rounded.
        trees : sequence of TreeShape
            Sums of trees over features that are in no other function.
        arithmetic_error : float or None
            None for a model that is *defined* on its grid: `score_error` is 0. A number for one that stands for these
            real values, summed with an error of at most that: `score_error` is what both differ by, rounding included.

        Returns
        -------
        AdditiveEnsemble
            Its score less its threshold, divided by `levels`, is the sum.

        Examples
        --------
        >>> from derand.model import Shape
        >>> shape = Shape(0, [1.0, 2.0], [-0.5, 0.25, 1.5])
        >>> model = AdditiveEnsemble.from_shapes([shape], intercept=-0.3, n_features=1, levels=100)
        >>> model.terms[0].scores.ravel().tolist(), model.threshold
        ([-50, 25, 150], 30)
        >>> shape = Shape(0, [1.0], [[0.5, 0.0, 0.0], [0.0, 1.0, 0.25]])
        >>> model = AdditiveEnsemble.from_shapes([shape], intercept=[0.0, 0.0, 0.5], n_features=1, levels=100)
        >>> model.score([[0.0], [1.0]]).tolist(), model.decision
        ([[50, 0, 0], [0, 100, 25]], Argmax(offsets=(0, 0, 50)))
        """
        terms, constant = round_shapes(shapes, tables, intercept, levels, grids, trees)
        n_functions = len(shapes) + len(tables) + len(grids) + sum(one.count_roundings(levels) for one in trees)
        decision: Decision
        if np.ndim(intercept) == 1:
            decision = Argmax(tuple((round_values(intercept, levels) + constant).tolist()))
        else:  # the largest whole score at which sum and intercept are not above 0
            decision = Threshold(math.floor(-float(intercept) * levels) - int(constant[0]))  # type: ignore[arg-type]
        return cls._add_lines(terms, lines, decision, n_features, levels, n_functions, arithmetic_error)

    @classmethod
    def from_number_shapes(
        cls,
        shapes: Sequence[Shape],
        tables: Sequence[CategoryShape] = (),
        *,
        intercept: float = 0.0,
        n_features: int,
        levels: int,
        grids: Sequence[GridShape] = (),
        lines: Sequence[Line] = (),
        trees: Sequence[TreeShape] = (),
        arithmetic_error: float | None = None,
    ) -> AdditiveEnsemble:
        """The same with a number as the answer: the sum of functions and the intercept, rounded to the grid.

        Parameters
        ----------
        shapes, tables, intercept, n_features, levels, grids, lines, trees, arithmetic_error
            As for `from_shapes`.

        Returns
        -------
        AdditiveEnsemble
            With the decision `Value`.

        Examples
        --------
        >>> from derand.model import Shape
        >>> shape = Shape(0, [1.0, 2.0], [-0.5, 0.25, 1.5])
        >>> model = AdditiveEnsemble.from_number_shapes([shape], intercept=10.0, n_features=1, levels=100)
        >>> ((model.score([[0.0], [3.0]]) + model.offset) / model.levels).tolist()
        [9.5, 11.5]
        """
        terms, constant = round_shapes(shapes, tables, intercept, levels, grids, trees)
        decision = Value(int(round_values(intercept, levels)) + int(constant[0]))
        n_functions = len(shapes) + len(tables) + len(grids) + sum(one.count_roundings(levels) for one in trees)
        return cls._add_lines(terms, lines, decision, n_features, levels, n_functions, arithmetic_error)

    @classmethod
    def _add_lines(
        cls,
        terms: Sequence[Term],
        lines: Sequence[Line],
        decision: Decision,
        n_features: int,
        levels: int,
        n_functions: float,
        arithmetic_error: float | None,
    ) -> AdditiveEnsemble:
        """Rounded terms and lines as a model; without an arithmetic error it is defined on its grid."""
        lines_scaled = scale_lines(lines, levels, decision.n_outputs, is_defined=arithmetic_error is None)
        error = 0.0 if arithmetic_error is None else bound_rounding(n_functions, levels, arithmetic_error)
        return cls((*lines_scaled, *terms), decision, n_features, levels, error)

    @property
    def members(self) -> tuple[AdditiveEnsemble, ...]:
        """Itself; of two classes with an output each, the difference of their scores, whose sign decides."""
        return (self,) if self.n_outputs != 2 or self.slopes else (self._difference,)

    @Once
    def _difference(self) -> AdditiveEnsemble:
        return self.duel(0, 1)

    @property
    def weights(self) -> None:
        """None: it does not vote."""

    @property
    def threshold(self) -> int | None:
        """The level above which the answer is class 1; None without such a decision."""
        return self.decision.level if isinstance(self.decision, Threshold) else None

    @property
    def offset(self) -> int | None:
        """What is added to the score where the answer is a number, in grid units; None where it is not."""
        return self.decision.offset if isinstance(self.decision, Value) else None

    @property
    def offsets(self) -> tuple[int, ...]:
        """What is added to the score of each of several classes; empty for any other decision."""
        return self.decision.offsets if isinstance(self.decision, Argmax) else ()

    @property
    def n_outputs(self) -> int:
        """How many sums its terms add to."""
        return 1 if self.decision is None else self.decision.n_outputs

    @property
    def n_classes(self) -> int:
        """How many classes its decision tells apart; 0 where it does not."""
        return 0 if self.decision is None else self.decision.n_classes

    @property
    def step_functions(self) -> tuple[StepFunction, ...]:
        """The terms of numerical features, for algorithms that know no others: another kind is an error."""
        return self._select(StepFunction, [term for term in self.terms if term.axes])

    @property
    def category_tables(self) -> tuple[CategoryTable, ...]:
        """The terms of categorical features, in the same way."""
        return self._select(CategoryTable, [term for term in self.terms if not term.axes])

    @staticmethod
    def _select(kind: type[OneTerm], terms: Sequence[Term]) -> tuple[OneTerm, ...]:
        for term in terms:
            if not isinstance(term, kind):
                raise TypeError(f"This needs terms of the kind {kind.kind!r}, but the model has one of {term.kind!r}.")
        return cast(tuple[OneTerm, ...], tuple(terms))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of classes that stand against each other, each from low to high: (0, 1), (0, 2), (1, 2), ..."""
        return tuple((low, high) for high in range(self._require_decision().n_classes) for low in range(high))

    def duel(self, low: int, high: int) -> AdditiveEnsemble:
        """Two of its classes alone: a model of one output whose class 1 is the higher one, class 0 the lower.

        Its score is the difference of theirs, and may be off by twice the error of one.
        """
        decision = self._require_decision()
        if self.n_outputs == 1:
            return self
        terms = tuple(term.subtract(high, low) for term in self.terms)
        return AdditiveEnsemble(
            terms, decision.cut(low, high), self.n_features, self.levels, min(2 * self.score_error, MAX_SCORE)
        )

    def contrasts(self) -> tuple[Contrast, ...]:
        """The sums whose sign decides, as certificates see them: one per pair of classes, in the order of `pairs`."""
        return tuple(
            Contrast(pair.terms, cast(int, pair.threshold), pair.score_error, self.n_features)
            for pair in (self.duel(low, high) for low, high in self.pairs)
        )

    def _require_decision(self) -> Decision:
        if self.decision is None:
            raise ValueError(
                "`model` has no threshold and so makes no decision to certify: give AdditiveEnsemble a `threshold`."
            )
        if not self.decision.n_classes:
            raise ValueError(
                "`model` answers with a number and has no classes to certify: use `certify_interval` or "
                "`certify_radius`."
            )
        return self.decision

    def as_sum(self) -> Contrast:
        """The sum that is the answer, of a model whose answer is a number; above its threshold that is positive."""
        if self.offset is None:
            raise ValueError("`model` must have a number as its answer: give AdditiveEnsemble the decision `Value`.")
        return Contrast(self.terms, -self.offset, self.score_error, self.n_features)

    @property
    def slopes(self) -> tuple[Slope, ...]:
        """Its lines, where it is linear; else none."""
        return tuple(term.slope for term in self.terms if term.slope is not None)

    def bound_rounding(self, rows: FloatArray) -> FloatArray:
        """How far the `score` that is computed may lie from the exact sum in each row, in grid units; 0 of whole ones.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_outputs)
        """
        fixed = np.zeros((rows.shape[0], self.n_outputs))
        if not self.is_linear:
            return fixed
        for term in self.terms:
            if term.slope is None:
                fixed += np.abs(term.score_rows(rows)).reshape(fixed.shape)
        return (len(self.terms) + 4) * EPSILON * (bound_products(rows, self.slopes) + fixed)

    def bound_errors(self, rows: FloatArray) -> FloatArray:
        """How far, in grid units, the score of the model that is meant may lie from `score` in each row.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of several classes (n_rows, n_outputs)
        """
        shape = rows.shape[0] if self.n_outputs == 1 else (rows.shape[0], self.n_outputs)
        if not self.is_linear:
            roundings = [term.bound_rounding(rows).reshape(shape) for term in self.terms if term.is_tree]
            fixed = np.full(shape, self.score_error)
            return np.asarray(sum(roundings, fixed) * (1 + (len(roundings) + 2) * EPSILON)) if roundings else fixed
        total = self.score_error + bound_deviations(rows, self.slopes) + self.bound_rounding(rows)
        return np.asarray(total * (1 + 8 * EPSILON)).reshape(shape)

    def score(self, X: ArrayLike) -> Numbers:
        """Score of each row, without noise.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Category columns hold codes; NaN is a missing value, and an error in a numerical column whose term has no
            cell for it.

        Returns
        -------
        array of integers, shape (n_rows,), of several classes (n_rows, n_outputs)
            Of a linear model real numbers, each rounded as `bound_errors` covers.
        """
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"`X` must have shape (n_rows, {self.n_features}), one column per feature of the model, "
                f"got {rows.shape}."
            )
        n_outputs = self.n_outputs
        total = np.zeros(rows.shape[0] if n_outputs == 1 else (rows.shape[0], n_outputs), dtype=np.int64)
        for term in self.terms:
            if term.slope is None:
                total += term.score_rows(rows)
            else:
                term.evaluate(rows[:, term.features[0]])  # refuses NaN
        if not self.is_linear:
            return total
        return add_products(rows, self.slopes, total.reshape(rows.shape[0], n_outputs)).reshape(total.shape)

    def describe(self) -> Description:
        """Numbers of columns and levels, and the error that certificates cover."""
        return {"n_features": self.n_features, "levels": self.levels, "score_error": self.score_error}
