"""Sentences about a tuning. Owns the words; must not know how anything was measured or chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from derand._core.text import format_exactly, format_percent, format_short_down
from derand.estimators.tuning._candidates import NOISE, RADIUS
from derand.noise import Noise

if TYPE_CHECKING:
    from derand.estimators.tuning._result import Tuning


def simplify_value(value: Any) -> float | str | None:
    """A value of a parameter as a number, or as text: a noise as it is written."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return value.item() if isinstance(value, np.generic) else value
    return str(value)


def name_value(parameter: str, value: Any) -> str:
    """A value as text that stands alone: a noise says what it is, others need the parameter's name."""
    text = format_exactly(value) if isinstance(value, float) else str(simplify_value(value))
    return text if parameter == NOISE and isinstance(value, Noise) else f"{parameter} {text}"


def describe(tuning: Tuning) -> str:
    """What is recommended and what it costs, or that nothing is."""
    return _describe_nothing(tuning) if tuning.chosen is None else _describe_choice(tuning, tuning.chosen)


def _describe_nothing(tuning: Tuning) -> str:
    own = np.diag(tuning.own_certified)
    best = int(own.argmax())
    share, at = format_percent(own[best]), format_short_down(tuning.own_radii[best])
    reached = f"{_name(tuning, best)} comes closest, with {share} at {at}"
    if tuning.by_balanced:
        return (
            "Nothing is recommended: no value certifies more at its own radius than a model that always says the same, "
            f"which gets {format_percent(tuning.constant)} where all classes count alike; {reached}. Look for columns "
            "that tell the classes apart, or ask for smaller radii."
        )
    return (
        "Nothing is recommended: no value certifies more rows at its own radius than the largest class has, "
        f"{format_percent(tuning.constant)}; {reached}. Count all classes alike (balanced=True, --balanced) and train "
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
