"""What the score of a classifier says about probabilities, and where a threshold is moved to.

Owns the way from a probability, or from what mistakes cost, to a level of the score. Must not know how models are
trained or certified, nor how a level is put on a grid (`derand.model.move_threshold`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, Labels
from derand.certificates import expect_margins, measure_margins
from derand.metrics import Costs
from derand.model import Model
from derand.noise import Noise

COSTS = ("false_positive", "false_negative")
"""What `cost` must name. A positive is `classes_[1]`."""


class Cut(NamedTuple):
    """What the score of a classifier says about the probability of `classes_[1]`.

    Attributes
    ----------
    link : {"logit", "share"}
        Whether probabilities are the logistic function of a place, or 1/2 more than it.
    slope, shift : float
        A score that is ahead of the threshold by m, divided by the levels, has the place `slope * m + shift`.
    """

    link: str
    slope: float = 1.0
    shift: float = 0.0

    def compute_lead(self, probability: float, *, of_first: bool = False) -> float:
        """How far ahead of the threshold a score is that gives `classes_[1]`, or `classes_[0]`, that probability."""
        is_logit = self.link == "logit"
        place = math.log(probability) - math.log1p(-probability) if is_logit else probability - 0.5
        return ((-place if of_first else place) - self.shift) / self.slope

    def move(self, lead: float) -> Cut:
        """The same once the threshold is moved by a lead."""
        return self._replace(shift=self.shift + self.slope * lead)

    @property
    def probability(self) -> float:
        """That of a score at the threshold."""
        from scipy.special import expit  # slow to import

        return float(expit(self.shift)) if self.link == "logit" else min(max(0.5 + self.shift, 0.0), 1.0)

    def read(self, margins: FloatArray) -> FloatArray:
        """Probabilities of both classes, (n_rows, 2), of margins, (n_rows,)."""
        places = self.slope * margins + self.shift
        if self.link == "logit":
            from scipy.special import expit

            return np.stack([expit(-places), expit(places)], axis=1)
        share = np.clip(0.5 + places, 0.0, 1.0)
        return np.stack([1 - share, share], axis=1)


def read_threshold(decision_threshold: Any, cost: object) -> float | None:
    """The probability of `classes_[1]` to cut at, None where nothing is asked for.

    `decision_threshold`: between 0 and 1; `cost`: what a false positive and a false negative cost: the probability at
    which both are expected to cost the same.

    Examples
    --------
    >>> read_threshold(None, {"false_positive": 1, "false_negative": 4})
    0.2
    """
    if decision_threshold is not None and cost is not None:
        raise ValueError("Give `decision_threshold` or `cost`, got both: a cost is a threshold, too.")
    if cost is not None:
        return _weigh_costs(cost)
    if decision_threshold is None:
        return None
    if not _is_number(decision_threshold) or not 0 < decision_threshold < 1:
        raise ValueError(
            "`decision_threshold` must be a probability between 0 and 1, both left out, from which on the answer is "
            f"`classes_[1]`, got {decision_threshold!r}."
        )
    return float(decision_threshold)


def read_costs(decision_threshold: float | None, cost: Mapping[str, float] | None) -> Costs | None:
    """What mistakes cost; a threshold t is a false positive at t / (1 - t) false negatives. None where none is set.

    Examples
    --------
    >>> read_costs(0.2, None)
    Costs(false_positive=0.25, false_negative=1.0)
    """
    if cost is not None:
        return Costs(*(float(cost[name]) for name in COSTS))
    if decision_threshold is None or decision_threshold == 0.5:
        return None
    return Costs(decision_threshold / (1 - decision_threshold), 1.0)


def _weigh_costs(cost: Any) -> float:
    known = isinstance(cost, Mapping) and set(cost) == set(COSTS)
    if not known or not all(_is_number(one) and math.isfinite(one) and one > 0 for one in cost.values()):
        raise ValueError(
            "`cost` must say what both mistakes cost, each a number above 0, such as {'false_positive': 1, "
            f"'false_negative': 5}}, got {cost!r}. A false positive is a row of `classes_[0]` that gets `classes_[1]`."
        )
    alarm, miss = (Fraction(float(cost[name])) for name in COSTS)
    threshold = float(alarm / (alarm + miss))
    if not 0 < threshold < 1:
        raise ValueError(f"`cost` must not have one mistake cost next to nothing beside the other, got {cost!r}.")
    return threshold


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def settle_lead(lead: float, levels: int, is_below: Callable[[FloatArray], BoolArray]) -> float:
    """A lead between the whole scores that are told apart, so that those exactly at a threshold get their side.

    `lead`: as computed, off by its last digits; `is_below`: whether a row with such a margin gets `classes_[0]`; the
    larger ones do not.

    Examples
    --------
    >>> settle_lead(0.29999999999999993, 10, lambda margins: margins <= 0.3)
    0.35
    """
    counts = math.floor(Fraction(lead) * levels) + np.arange(-2, 3)
    below = is_below(counts / levels)
    if not below[0] or below[-1]:  # nowhere near: nothing to settle
        return lead
    return float((counts[below][-1] + 0.5) / levels)


def keep_sides(probabilities: FloatArray, is_one: BoolArray, threshold: float | None) -> FloatArray:
    """Probabilities of both classes such that exactly the rows of class 1 are above a threshold.

    Probabilities are computed quickly and may miss the side of the label by their last digits, where the label does
    not; they are moved by that. None changes nothing.
    """
    if threshold is None:
        return probabilities
    second = probabilities[:, 1]
    above, below = np.nextafter(threshold, 1.0), np.nextafter(threshold, 0.0)
    moved = np.where(is_one, np.maximum(second, above), np.minimum(second, below))
    first = np.where(moved == second, probabilities[:, 0], 1 - moved)
    return np.stack([first, moved], axis=1)


class Scored(Protocol):
    """What is asked of a classifier whose scores say how likely a class is."""

    ensemble_: Model
    noise_: Noise | None
    classes_: Labels

    @property
    def _link(self) -> str:
        """What makes probabilities of scores."""

    @property
    def _calibration(self) -> FloatArray:
        """Slope and shifts, which make of a score what the link takes."""

    @property
    def _asked_threshold(self) -> float | None:
        """The probability that the classifier cuts at, where that was asked for."""

    def _read_cut(self) -> Cut:
        """What the score of two classes says about probabilities."""


def compute_probabilities(model: Scored, rows: FloatArray) -> FloatArray:
    """Probabilities of the classes, (n_rows, n_classes), of expected scores, as the link makes them."""
    (ensemble,) = model.ensemble_.members
    if model.classes_.size == 2:
        margins = measure_margins(ensemble, rows, model.noise_)
        return keep_sides(model._read_cut().read(margins), margins > 0, model._asked_threshold)
    scores = expect_margins(ensemble, rows, model.noise_)
    if model._link == "share":
        return scores
    from scipy.special import softmax

    slope, *shifts = model._calibration
    return np.asarray(softmax(slope * scores + shifts, axis=1))
