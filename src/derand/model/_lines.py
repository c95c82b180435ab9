"""Lines: terms that add a slope times a number, for models that are linear throughout.

A line has neither cells nor a range, so that kernels know nothing of it: a model with a line has no other terms of
numbers beside it, only tables of categories, and certificates go by slopes (docs/theory.md, section 14). Its score is a
real number; what a model computes of it is rounded, and `errors` says by how much what is meant may differ. Must not
know models, decisions or noise.

An affine map before a line is a line again: of `z = (x - shift) / scale` a slope w with error e becomes the slope
`w / scale` with the error `e / |scale|` and what the computed z may be off by per unit of x, times |w|; the intercept
gains `-w * shift / scale`, and the arithmetic error `e * |shift / scale|` and the rest of z's own error times |w|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import EPSILON, FloatArray, IntArray, freeze
from derand.model._terms import TERMS, Axis, Slope, Term, as_feature

LARGEST_SLOPE = 1e150
"""Beyond it products with numbers that occur are no longer finite."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearTerm(Term):
    """One numerical feature's line through 0: its score is a slope times the number.

    Parameters
    ----------
    feature : int
        Column of the feature; a missing value, NaN, is refused.
    slopes : array-like of shape (n_outputs,), or float
        In grid units; one per class for several classes.
    errors : array-like of shape (n_outputs,), float or None
        How far, per unit of the number's magnitude, the score of the model that is meant may lie from this one's:
        certificates cover it. None is 0.

    Examples
    --------
    >>> line = LinearTerm(feature=0, slopes=[2.5])
    >>> line.evaluate([0.5, -1.0]).tolist()
    [1.25, -2.5]
    """

    feature: int
    slopes: FloatArray
    errors: FloatArray | None = None

    kind: ClassVar[str] = "linear_term"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", as_feature(self.feature, "LinearTerm"))
        object.__setattr__(self, "slopes", _as_numbers(self.slopes, "slopes"))
        errors = np.zeros(self.slopes.size) if self.errors is None else self.errors
        object.__setattr__(self, "errors", _as_numbers(errors, "errors"))
        if self.errors.shape != self.slopes.shape or (self.errors < 0).any():  # type: ignore[union-attr,operator]
            raise ValueError(
                f"`errors` of LinearTerm must hold {self.slopes.size} numbers, 0 or larger, one per slope, "
                f"got {errors!r}."
            )

    @property
    def features(self) -> tuple[int, ...]:
        """The one column."""
        return (self.feature,)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its column, which has no edges."""
        return (Axis(self.feature, np.empty(0)),)

    @property
    def slope(self) -> Slope:
        """Its slopes and their errors."""
        assert self.errors is not None  # since it was made
        return Slope(self.feature, self.slopes, self.errors)

    @property
    def missing(self) -> None:
        """None: it has no cell for NaN."""

    @property
    def takes_missing(self) -> bool:
        """Never."""
        return False

    @property
    def n_outputs(self) -> int:
        """One, or one per class."""
        return int(self.slopes.size)

    @property
    def n_cells(self) -> int:
        """As much work as one cell."""
        return 1

    @property
    def scores(self) -> NoReturn:
        """A line has no cells: whoever asks takes it for something else."""
        raise TypeError(f"The line of feature {self.feature} has no cells: this is not done for linear models.")

    def evaluate(self, x: ArrayLike) -> FloatArray:  # type: ignore[override]
        """Score of each number, to nearest; NaN is an error."""
        values = np.asarray(x, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError(
                f"`x` must hold numbers, got NaN for feature {self.feature}: a line has no cell for a missing value. "
                "Drop such rows or fill the gaps first."
            )
        with np.errstate(over="ignore"):
            found = values[..., None] * self.slopes
        return found[..., 0] if self.n_outputs == 1 else found

    def score_range(self, unseen: bool = True) -> NoReturn:
        """A line has no lowest and no highest score."""
        raise TypeError(f"The line of feature {self.feature} has no range: this is not done for linear models.")

    def expect(self, rows: FloatArray, sides: Sequence[FloatArray]) -> FloatArray:
        """Scores of rows: noise, which is symmetric, leaves the expected score of a line alone."""
        return np.asarray(self.evaluate(rows[:, self.feature]), dtype=np.float64).reshape(rows.shape[0], -1)

    def subtract(self, plus: int, minus: int) -> LinearTerm:
        """The difference of two outputs; its error covers both of theirs, and the rounding of the difference."""
        assert self.errors is not None  # since it was made
        slope = float(self.slopes[plus]) - float(self.slopes[minus])
        error = (float(self.errors[plus]) + float(self.errors[minus])) * (1 + EPSILON) + EPSILON * abs(slope)
        return LinearTerm(self.feature, np.array([slope]), np.array([error]))

    def describe(self) -> dict[str, Any]:
        """The constructor's arguments as plain numbers and lists."""
        assert self.errors is not None  # since it was made
        own = {"feature": self.feature, "slopes": self.slopes.tolist()}
        return own | ({"errors": self.errors.tolist()} if self.errors.any() else {})


def _as_numbers(values: ArrayLike, name: str) -> FloatArray:
    array = np.array(values, dtype=np.float64).reshape(-1) if np.ndim(values) < 2 else np.empty(0)
    if not array.size or not (np.abs(array) <= LARGEST_SLOPE).all():
        raise ValueError(
            f"`{name}` of LinearTerm must be a number per output, within +-{LARGEST_SLOPE:g}, got {values!r}."
        )
    return freeze(array + 0.0)


def bound_products(rows: FloatArray, slopes: Sequence[Slope]) -> FloatArray:
    """Upper bounds of the sum of the magnitudes of what each row multiplies its slopes to, (n_rows, n_outputs)."""
    total = np.zeros((rows.shape[0], slopes[0].values.size if slopes else 1))
    with np.errstate(over="ignore"):
        for one in slopes:
            total += np.abs(rows[:, [one.feature]]) * np.abs(one.values)
        return total * (1 + (len(slopes) + 2) * EPSILON) + len(slopes) * np.finfo(np.float64).tiny


def bound_deviations(rows: FloatArray, slopes: Sequence[Slope]) -> FloatArray:
    """Upper bounds of what errors of slopes amount to in each row, (n_rows, n_outputs)."""
    return bound_products(rows, [Slope(one.feature, one.errors, one.errors) for one in slopes])


def add_products(rows: FloatArray, slopes: Sequence[Slope], fixed: IntArray) -> FloatArray:
    """The sum of slopes times numbers and whole scores, (n_rows, n_outputs), to nearest."""
    total = fixed.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for one in slopes:
            total += rows[:, [one.feature]] * one.values
    return total


TERMS[LinearTerm.kind] = LinearTerm
