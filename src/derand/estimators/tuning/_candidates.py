"""What is tried, and at which radii it is measured.

Owns default values and radii, and the radius that each value is for. Must not know rows, but for how many numbers they
have, nor what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, is_number
from derand._core.origin import Cell
from derand.estimators import CertifiedClassifier
from derand.noise import Noise, as_noise, resolve_noise
from derand.threat import Threat
from derand.threat_text import NORMS

RADIUS, NOISE = "radius", "noise"
TRAINING_RADII = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Values that are tried for a training radius."""
NOISE_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Magnitudes that are tried for a noise, as multiples of the given one."""
RADIUS_FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Radii at which noises are measured, as multiples of the given magnitude."""
OWN_FAILURE = 0.25
"""The radius that a noise is for is what this failure mass certifies, as for RobAdaBoostClassifier."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Values of a parameter, and the radii at which they are measured."""

    parameter: str
    values: tuple[Cell, ...]
    radii: FloatArray
    own_radii: FloatArray
    """The radius that each value is for, (n_values,)."""


def has_training_radius(estimator: CertifiedClassifier) -> bool:
    """Whether a classifier is trained for a radius in a norm: then that radius is tuned, and not the noise.

    Targets of the paper's boosting are none: they are a radius of the noise's own ball.
    """
    return {RADIUS, "norm"} <= set(estimator.get_params(deep=False))


def choose_threat(estimator: CertifiedClassifier, norm: float | str | None, threat: Threat | None) -> Threat:
    """What may change: as asked, else in the norm that the estimator is trained for, else in that of its noise."""
    if threat is not None:
        if not isinstance(threat, Threat):
            raise TypeError(f"`threat` must be a Threat such as Threat(norm=inf), got {threat!r}.")
        if norm is not None:
            raise ValueError("Give `norm` or `threat`, got both: write only Threat(norm=...).")
    else:
        wanted: Any = estimator.get_params(deep=False).get("norm") if norm is None else norm
        threat = Threat() if wanted is None else Threat(norm=NORMS.get(wanted, wanted))  # type: ignore[arg-type]
    if threat.norm is None:
        raise ValueError("`threat` must have a ball to tune for, got norm None: name a norm, such as inf.")
    return threat


def choose_candidates(
    estimator: CertifiedClassifier,
    parameter: str,
    values: Iterable[object] | None,
    radii: ArrayLike | None,
    *,
    norm: object,
    count_numbers: Callable[[], int],
) -> Candidates:
    """What is tried and where it is measured; what makes no sense is refused.

    `estimator`, `parameter`, `values`, `radii`: as for `tune`; `norm`: of the ball; `count_numbers`: says how many
    numerical columns there are, where that matters.
    """
    known = estimator.get_params(deep=False)
    if parameter == "auto":
        parameter = RADIUS if has_training_radius(estimator) else NOISE
    if parameter not in known:
        raise ValueError(
            f"`parameter` must be 'auto' or one of {type(estimator).__name__}: {', '.join(known)}; got {parameter!r}."
        )
    listed = None if values is None else _as_list(values)
    if parameter == NOISE:
        noise = resolve_noise(known[NOISE], estimator._default_noise, norm)
        if noise is None:
            raise ValueError(
                "`noise` must be one whose magnitude is tried, got 'none': give it, such as 'gaussian:0.25'."
            )
        return _choose_noises(noise, listed, radii, norm, count_numbers)
    if parameter == RADIUS:
        usual = [radius for radius in TRAINING_RADII if radius or known.get("rule") != "vote"]  # a vote needs noise
        sizes = as_radii(usual if listed is None else listed, "values")
        measured = as_radii(sizes[sizes > 0] if radii is None else radii, "radii")
        return Candidates(parameter, tuple(sizes.tolist()), measured, sizes)
    if listed is None or radii is None:
        raise ValueError(f"`values` and `radii` must be given for the parameter {parameter!r}: it has no usual ones.")
    measured = as_radii(radii, "radii")
    return Candidates(parameter, tuple(listed), measured, np.full(len(listed), measured.max()))


def _choose_noises(
    noise: Noise,
    values: Sequence[object] | None,
    radii: ArrayLike | None,
    norm: object,
    count_numbers: Callable[[], int],
) -> Candidates:
    """Noises of several magnitudes. Radii are by default those of balls that fit into the noise's own."""
    tried = [factor * noise.magnitude for factor in NOISE_FACTORS] if values is None else values
    noises = tuple(_as_magnitude(noise, value) for value in tried)
    if norm == 0:  # radii count columns: there is no distance that a noise is for
        return Candidates(NOISE, noises, as_radii([1.0] if radii is None else radii, "radii"), np.ones(len(noises)))
    if radii is None:
        share = _measure_fit(noise, norm, count_numbers)
        radii = [float(f"{factor * noise.magnitude * share:.2g}") for factor in RADIUS_FACTORS]
    own = [float(one.radius(OWN_FAILURE)) * _measure_fit(one, norm, count_numbers) for one in noises]
    return Candidates(NOISE, noises, as_radii(radii, "radii"), np.array(own))


def _as_magnitude(noise: Noise, value: Any) -> Noise:
    """A noise, or the given one with another magnitude."""
    if is_number(value):
        changed: Any = {noise.parameter: float(value)}
        return replace(noise, **changed)
    return as_noise(value)


def _measure_fit(noise: Noise, norm: Any, count_numbers: Callable[[], int]) -> float:
    """Size of the largest ball of a norm that fits into the ball of size 1 of the noise's norm."""
    if norm == "auto" or norm <= noise.norm:
        return 1.0
    return float(max(count_numbers(), 1) ** (1 / norm - 1 / noise.norm))


def _as_list(values: Iterable[object]) -> list[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"`values` must be a list of values to try, got {values!r}.")
    listed = list(values)
    if not listed:
        raise ValueError("`values` must hold at least one value to try, got none.")
    return listed


def as_radii(radii: object, name: str) -> FloatArray:
    """Radii in increasing order, each once; what is none is refused by the name of the parameter."""
    try:
        sizes = np.atleast_1d(np.asarray(radii, dtype=np.float64))
    except (TypeError, ValueError):
        sizes = np.array([np.nan])
    if sizes.ndim != 1 or not sizes.size or not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise ValueError(f"`{name}` must be a list of radii, finite and 0 or larger, one at least, got {radii!r}.")
    return np.unique(sizes)
