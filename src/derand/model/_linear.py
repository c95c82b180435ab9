"""Lines: terms that add a slope times a number, for models that are linear throughout.

A line has neither cells nor a range, so that kernels know nothing of it: a model with a line has no other terms of
numbers beside it, only tables of categories, and certificates go by slopes (docs/theory.md, section 14). Its score is a
real number; what a model computes of it is rounded, and `errors` says by how much what is meant may differ. A missing
number has a constant score, or is refused. Must not know models, decisions or noise.

An affine map before a line is a line again: of `z = (x - shift) / scale` a slope w with error e becomes the slope
`w / scale` with the error `e / |scale|` and what the computed z may be off by per unit of x, times |w|; the intercept
gains `-w * shift / scale`, and the arithmetic error `e * |shift / scale|` and the rest of z's own error times |w|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, FloatArray, IntArray, freeze
from derand.model._terms import TERMS, Axis, Description, Slope, Term, as_feature

LARGEST_SLOPE = 1e150
"""Beyond it products with numbers that occur are no longer finite."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearTerm(Term):
    """One numerical feature's line through 0: its score is a slope times the number.

    Parameters
    ----------
    feature : int
        Column of the feature.
    slopes : array-like of shape (n_outputs,), or float
        In grid units; one per class for several classes.
    errors : array-like of shape (n_outputs,), float or None
        How far, per unit of the number's magnitude, the score of the model that is meant may lie from this one's:
        certificates cover it. None is 0.
    missing : float, tuple of float or None
        Score of a missing value, NaN (one per output), in grid units; None refuses NaN.
    missing_errors : array-like of shape (n_outputs,), float or None
        How far the score of a missing value of the model that is meant may lie from that. None is 0.

    Examples
    --------
    >>> line = LinearTerm(feature=0, slopes=[2.5])
    >>> line.evaluate([0.5, -1.0]).tolist()
    [1.25, -2.5]
    >>> LinearTerm(feature=0, slopes=[2.5], missing=0.75).evaluate([0.5, float("nan")]).tolist()
    [1.25, 0.75]
    """

    feature: int
    slopes: FloatArray
    errors: FloatArray | None = None
    missing: float | tuple[float, ...] | None = None  # type: ignore[assignment]
    missing_errors: FloatArray | None = None

    kind: ClassVar[str] = "linear_term"

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", as_feature(self.feature, "LinearTerm"))
        object.__setattr__(self, "slopes", _as_numbers(self.slopes, "slopes"))
        object.__setattr__(self, "errors", self._as_errors(self.errors, "errors"))
        if self.missing is None:
            if self.missing_errors is not None:
                raise ValueError(
                    f"`missing_errors` of LinearTerm must be None where `missing` is, got {self.missing_errors!r}."
                )
            return
        missing = _as_numbers(self.missing, "missing")
        if missing.shape != self.slopes.shape:
            raise ValueError(
                f"`missing` of LinearTerm must hold {self.slopes.size} numbers, one per slope, got {self.missing!r}."
            )
        object.__setattr__(self, "missing", float(missing[0]) if missing.size == 1 else tuple(missing.tolist()))
        object.__setattr__(self, "missing_errors", self._as_errors(self.missing_errors, "missing_errors"))

    def _as_errors(self, given: ArrayLike | None, name: str) -> FloatArray:
        errors = _as_numbers(np.zeros(self.slopes.size) if given is None else given, name)
        if errors.shape != self.slopes.shape or (errors < 0).any():
            raise ValueError(
                f"`{name}` of LinearTerm must hold {self.slopes.size} numbers, 0 or larger, one per slope, "
                f"got {given!r}."
            )
        return errors

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
        """Its slopes, its score of a missing value, and their errors."""
        assert self.errors is not None  # since it was made
        missing = None if self.missing is None else np.atleast_1d(np.array(self.missing))
        return Slope(self.feature, self.slopes, self.errors, missing, self.missing_errors)

    @property
    def takes_missing(self) -> bool:
        """Whether a missing value has a score."""
        return self.missing is not None

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
        """Score of each number, to nearest; NaN is an error where a missing value has no score."""
        values = np.asarray(x, dtype=np.float64)
        if self.missing is None and np.isnan(values).any():
            raise ValueError(
                f"`x` must hold numbers, got NaN for feature {self.feature}, whose line has no score for a missing "
                "value. Give LinearTerm one (`missing`), drop such rows or fill the gaps first."
            )
        with np.errstate(over="ignore"):
            found = (
                self.slope._replace(feature=0).multiply(values.reshape(-1, 1)).reshape(*values.shape, self.n_outputs)
            )
        return found[..., 0] if self.n_outputs == 1 else found

    def score_range(self, unseen: bool = True) -> NoReturn:
        """A line has no lowest and no highest score."""
        raise TypeError(f"The line of feature {self.feature} has no range: this is not done for linear models.")

    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Scores of rows: noise, which is symmetric, leaves the expected score of a line alone."""
        return np.asarray(self.evaluate(rows[:, self.feature]), dtype=np.float64).reshape(rows.shape[0], -1)

    def subtract(self, plus: int, minus: int) -> LinearTerm:
        """The difference of two outputs; its errors cover both of theirs, and the rounding of the difference."""
        own = self.slope
        slope, error = _subtract(own.values, own.errors, plus, minus)
        if own.missing is None or own.missing_errors is None:
            return LinearTerm(self.feature, slope, error)
        missing, missing_error = _subtract(own.missing, own.missing_errors, plus, minus)
        return LinearTerm(self.feature, slope, error, float(missing[0]), missing_error)

    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists."""
        own = self.slope
        given = {"errors": own.errors, "missing": own.missing, "missing_errors": own.missing_errors}
        told = {name: one.tolist() for name, one in given.items() if one is not None}
        # errors of 0 go without saying
        kept = {name: one for name, one in told.items() if name == "missing" or any(one)}
        return {"feature": self.feature, "slopes": self.slopes.tolist(), **kept}


def _subtract(values: FloatArray, errors: FloatArray, plus: int, minus: int) -> tuple[FloatArray, FloatArray]:
    """The difference of two values, and an error that covers both of theirs and its own rounding."""
    value = float(values[plus]) - float(values[minus])
    error = (float(errors[plus]) + float(errors[minus])) * (1 + EPSILON) + EPSILON * abs(value)
    return np.array([value]), np.array([error])


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
            total += np.abs(one.multiply(rows))
        return total * (1 + (len(slopes) + 2) * EPSILON) + len(slopes) * np.finfo(np.float64).tiny


def bound_deviations(rows: FloatArray, slopes: Sequence[Slope]) -> FloatArray:
    """Upper bounds of what errors of slopes amount to in each row, (n_rows, n_outputs)."""
    errors = [one._replace(values=one.errors, missing=one.missing_errors) for one in slopes]
    return bound_products(rows, errors)


def add_products(rows: FloatArray, slopes: Sequence[Slope], fixed: IntArray) -> FloatArray:
    """The sum of slopes times numbers and whole scores, (n_rows, n_outputs), to nearest."""
    total = fixed.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for one in slopes:
            total += one.multiply(rows)
    return total


TERMS[LinearTerm.kind] = LinearTerm
