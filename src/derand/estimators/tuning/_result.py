"""Tuning: what was measured, the rule by which a value is recommended, and sentences about both.

Owns the rule and the words. Must not know how anything was measured or is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from sklearn.base import clone

from derand._core.arrays import BoolArray, FloatArray, Frozen, freeze, is_number
from derand._core.origin import Cell
from derand._core.text import format_exactly, format_percent, format_short_down
from derand.estimators import CertifiedClassifier
from derand.estimators.tuning._candidates import NOISE, RADIUS
from derand.noise import Noise

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
    values: tuple[Cell, ...]
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
    def recommended(self) -> object:
        """The recommended value; None where there is none."""
        return None if self.chosen is None else self.values[self.chosen]

    @property
    def text(self) -> str:
        """What is recommended and what it costs, in one to three sentences."""
        return _describe_nothing(self) if self.chosen is None else _describe_choice(self, self.chosen)

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


def simplify_value(value: object) -> float | str | None:
    """A value of a parameter as a number, or as text: a noise as it is written."""
    if value is None or isinstance(value, str):
        return value
    if is_number(value):
        return value.item() if isinstance(value, np.generic) else value
    return str(value)


def name_value(parameter: str, value: object) -> str:
    """A value as text that stands alone: a noise says what it is, others need the parameter's name."""
    text = format_exactly(value) if isinstance(value, float) else str(simplify_value(value))
    return text if parameter == NOISE and isinstance(value, Noise) else f"{parameter} {text}"


def _describe_nothing(tuning: Tuning) -> str:
    own = np.diag(tuning.own_certified)
    best = int(own.argmax())
    share, at = format_percent(own[best]), format_short_down(tuning.own_radii[best])
    reached = f"{_name(tuning, best)} comes closest, with {share} at {at}"
    if tuning.by_balanced:
        return (
            "Nothing is recommended: no value certifies more at its own radius than a model that always says the same, "
            f"which gets {format_percent(tuning.constant)} with equal class weights; {reached}. Look for columns "
            "that tell the classes apart, or ask for smaller radii."
        )
    return (
        "Nothing is recommended: no value certifies more rows at its own radius than the largest class has, "
        f"{format_percent(tuning.constant)}; {reached}. Weigh classes equally (balanced=True, --balanced) and train "
        'with class_weight="balanced", or ask for smaller radii.'
    )


def _describe_choice(tuning: Tuning, chosen: int) -> str:
    natural, _ = tuning.counted
    best, weakest = int(natural.argmax()), int(tuning.own_radii.argmin())
    accuracy = "balanced natural accuracy" if tuning.by_balanced else "natural accuracy"
    if natural[chosen] >= natural[best]:
        start = f"{_name(tuning, chosen)} has the best {accuracy}, {format_percent(natural[chosen])},"
    else:
        start = (
            f"{_name(tuning, chosen)} costs {_points(natural[best] - natural[chosen])} of {accuracy} "
            f"({format_percent(natural[chosen])} against {format_percent(natural[best])})"
        )
    at, held, other = _compare(tuning, chosen, weakest)
    rows = "of all classes" if tuning.by_balanced else "of rows"
    end = f"certifies {format_percent(held)} {rows} at {format_short_down(at)}"
    if weakest != chosen:
        plain = tuning.parameter == RADIUS and tuning.own_radii[weakest] == 0
        end += f", against {format_percent(other)} {'without' if plain else f'with {_name(tuning, weakest)}'}"
    return f"{start} and {end}.{_describe_next(tuning, chosen)}"


def _compare(tuning: Tuning, chosen: int, weakest: int) -> tuple[float, float, float]:
    """A radius above 0 to speak of, and the certified accuracy there of the chosen value and of the weakest one."""
    if tuning.own_radii[chosen] > 0:
        return (
            float(tuning.own_radii[chosen]),
            float(tuning.own_certified[chosen, chosen]),
            float(tuning.own_certified[weakest, chosen]),
        )
    _, certified = tuning.counted
    at = int((tuning.radii > 0).argmax())
    return float(tuning.radii[at]), float(certified[chosen, at]), float(certified[weakest, at])


def _describe_next(tuning: Tuning, chosen: int) -> str:
    """Why it is not the next one."""
    larger = np.flatnonzero(tuning.own_radii > tuning.own_radii[chosen])
    if not larger.size:
        return ""
    natural, _ = tuning.counted
    following = int(larger[tuning.own_radii[larger].argmin()])
    start = f" The next one, {_name(tuning, following)},"
    if tuning.is_cheap[following]:
        share = format_percent(tuning.own_certified[following, following])
        at = format_short_down(tuning.own_radii[following])
        return f"{start} certifies {share} at {at}, no more than a model that always says the same gets right."
    allowed, error = _points(tuning.accuracy_loss), _points(tuning.natural_error[natural.argmax()])
    cost = _points(natural.max() - natural[following])
    return f"{start} would cost {cost}, more than {allowed} and one standard error ({error})."


def _name(tuning: Tuning, at: int) -> str:
    return name_value(tuning.parameter, tuning.values[at])


def _points(difference: float) -> str:
    """Points of per cent, rounded up."""
    points = math.ceil(round(1000 * difference, 6)) / 10
    return f"{points:.1f} points"
