"""Tuning: what was measured, and the rule by which a value is recommended.

Owns the rule. Must not know how anything was measured, nor how it is said or drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from sklearn.base import clone

from derand._core.arrays import BoolArray, FloatArray, Frozen, freeze
from derand.estimators import CertifiedClassifier
from derand.estimators.tuning._words import describe, name_value, simplify_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TuningSummary(TypedDict):
    """A Tuning as plain numbers and text."""

    parameter: str
    values: list[float | str | None]
    radii: list[float]
    norm: float
    natural: list[float]
    natural_balanced: list[float]
    natural_error: list[float]
    certified: list[list[float]]
    certified_error: list[list[float]]
    balanced: list[list[float]]
    balanced_error: list[list[float]]
    own_radii: list[float]
    own_certified: list[list[float]]
    constant: float
    by_balanced: bool
    accuracy_loss: float
    recommended: float | str | None
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Tuning(Frozen):
    """What `tune` measured, and what it recommends; immutable.

    Attributes
    ----------
    estimator : CertifiedClassifier
        The one that was tuned, not fitted.
    parameter : str
        Which of its parameters was tried.
    values : tuple
        With which values; noises as Noise.
    radii : array of shape (n_radii,)
    natural, natural_balanced : arrays of shape (n_values,)
        Accuracy without any change, of all rows and as the mean of all classes; means over the folds.
    certified, balanced : arrays of shape (n_values, n_radii)
        Certified accuracy at each radius, of all rows and as the mean of all classes.
    natural_error, certified_error, balanced_error : arrays
        Standard errors: the deviation over the folds, divided by the root of their number. `natural_error` is that of
        `natural_balanced` where `by_balanced`.
    own_radii : array of shape (n_values,)
        The radius that a value is for: a training radius itself; for a noise what a failure mass of 1/4 certifies (in
        another norm the ball that fits into the noise's own); the largest of `radii` for any other parameter.
    own_certified : array of shape (n_values, n_values)
        Certified accuracy of each value at the own radius of each, counted as `by_balanced` says.
    constant : float
        What a model that always says the same gets: the share of the largest class; 1 divided by the number of
        classes where `by_balanced`.
    norm : float
        Of the ball.
    by_balanced : bool
        Whether the recommendation counts all classes alike.
    accuracy_loss : float
        How much natural accuracy it may cost.
    """

    estimator: CertifiedClassifier = field(repr=False)
    parameter: str
    values: tuple[Any, ...]
    radii: FloatArray
    natural: FloatArray
    natural_balanced: FloatArray
    natural_error: FloatArray
    certified: FloatArray
    certified_error: FloatArray
    balanced: FloatArray
    balanced_error: FloatArray
    own_radii: FloatArray
    own_certified: FloatArray
    constant: float
    norm: float
    by_balanced: bool
    accuracy_loss: float

    def __post_init__(self) -> None:
        for one in fields(self):
            if isinstance(value := getattr(self, one.name), np.ndarray):
                object.__setattr__(self, one.name, freeze(value.view()))

    @property
    def counted(self) -> tuple[FloatArray, FloatArray]:
        """Natural and certified accuracy as the recommendation counts them."""
        return (self.natural_balanced, self.balanced) if self.by_balanced else (self.natural, self.certified)

    @property
    def is_cheap(self) -> BoolArray:
        """Whether each value keeps natural accuracy: within the loss allowed and one standard error of the best one."""
        natural, _ = self.counted
        best = int(natural.argmax())
        return np.asarray(natural >= natural[best] - self.accuracy_loss - self.natural_error[best] - 1e-12)

    @property
    def chosen(self) -> int | None:
        """Place of the recommended value; None where there is none."""
        own = np.diag(self.own_certified)
        allowed = np.flatnonzero(self.is_cheap & (own > self.constant + 1e-12))
        if not allowed.size:
            return None
        order = np.lexsort([-allowed, own[allowed], self.own_radii[allowed]])
        return int(allowed[order[-1]])

    @property
    def recommended(self) -> Any:
        """The recommended value; None where there is none."""
        return None if self.chosen is None else self.values[self.chosen]

    @property
    def text(self) -> str:
        """What is recommended and what it costs, in one to three sentences."""
        return describe(self)

    def best_estimator(self) -> CertifiedClassifier:
        """A clone of the estimator with the recommended value, not fitted.

        Returns
        -------
        CertifiedClassifier
        """
        if self.chosen is None:
            raise ValueError(f"There is no best estimator. {self.text}")
        best: CertifiedClassifier = clone(self.estimator).set_params(**{self.parameter: self.recommended})
        return best

    def to_dict(self) -> TuningSummary:
        """Everything but the estimator, as plain numbers and text.

        Returns
        -------
        dict
        """
        held: Any = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "estimator"}
        plain: Any = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in held.items()}
        values = [simplify_value(value) for value in self.values]
        chosen = None if self.chosen is None else values[self.chosen]
        plain |= {"values": values, "recommended": chosen, "text": self.text}
        result: TuningSummary = plain
        return result

    def plot(self, ax: Axes | None = None) -> Axes:
        """Certified accuracy over the radius, one line per value, which begins at its natural accuracy.

        Parameters
        ----------
        ax : matplotlib Axes or None
            None takes new ones.

        Returns
        -------
        matplotlib Axes
        """
        from derand import plot

        natural, certified = self.counted
        return plot.trade_off(
            self.radii,
            natural,
            certified,
            [name_value(self.parameter, value) for value in self.values],
            ax,
            norm=self.norm,
            chosen=self.chosen,
            constant=self.constant,
            balanced=self.by_balanced,
        )
