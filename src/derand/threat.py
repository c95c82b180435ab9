"""Threats: what an adversary, or an accident, may change of a row.

Owns the description of the change against which a certificate holds. Must not know models; a noise says which norm its
certificates are about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from derand._arrays import FloatArray
from derand.noise import Noise, as_positive


@dataclass(frozen=True, slots=True)
class Threat:
    """What may change: numbers within a ball, and some categorical features.

    Parameters
    ----------
    norm : "auto" or float
        Norm of the ball in which numerical features may move: 1, 2 or inf, or 0 for how many of them may become
        anything; "auto" is that of the noise, and 2 without noise.
    units : sequence of float or None
        What counts as a change of 1 of each feature, one positive number per column; None takes the units of the
        noise, and 1 without any.
    l0 : int
        How many categorical features may change at the same time; more than the model has counts as all of them.
    unseen : bool
        Whether a categorical feature may change to a value that is not in its table.

    Examples
    --------
    >>> from derand import Gaussian, Threat
    >>> Threat(l0=1).resolve(Gaussian(0.25))
    Threat(norm=2, l0=1, unseen=True, units=None)
    """

    norm: float | Literal["auto"] = "auto"
    l0: int = 0
    unseen: bool = True
    units: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.norm != "auto":
            object.__setattr__(self, "norm", _as_norm(self.norm))
        object.__setattr__(self, "l0", as_budget(self.l0))
        if not isinstance(self.unseen, bool | np.bool_):
            raise TypeError(f"`unseen` of Threat must be True or False, got {self.unseen!r}.")
        if self.units is not None:
            object.__setattr__(self, "units", tuple(as_positive(unit, "`units` of Threat") for unit in self.units))

    def resolve(self, noise: Noise | None) -> Threat:
        """The same with the noise's norm for "auto", and with the noise's units where it has none of its own."""
        own = 2 if noise is None else noise.norm
        units = None if noise is None else noise.units
        return replace(
            self, norm=own if self.norm == "auto" else self.norm, units=units if self.units is None else self.units
        )

    @property
    def radius_norm(self) -> float:
        """The norm of a threat that is resolved."""
        if self.norm == "auto":
            raise ValueError("`norm` of this Threat is 'auto': use `Threat.resolve(noise)`.")
        return float(self.norm)

    def units_of(self, n_features: int) -> FloatArray:
        """Unit of each feature."""
        return np.ones(n_features) if self.units is None else np.asarray(self.units, dtype=np.float64)


def _as_norm(norm: Any) -> float:
    """A norm, a whole number where it is one."""
    if (
        isinstance(norm, bool)
        or not isinstance(norm, int | float | np.integer | np.floating)
        or not (norm == 0 or norm >= 1)
    ):
        raise ValueError(f"`norm` of Threat must be 'auto', 0, or a number from 1 on, got {norm!r}.")
    return int(norm) if float(norm).is_integer() else float(norm)


def as_budget(l0: Any) -> int:
    """A number of categorical features that may change."""
    if isinstance(l0, bool) or not isinstance(l0, int | np.integer) or l0 < 0:
        raise ValueError(f"`l0` must be a number of categorical features that may change, 0 or larger, got {l0!r}.")
    return int(l0)


def as_threats(l0: int | Iterable[int] | None, unseen: bool | None, threat: Threat | None) -> list[Threat]:
    """The threats that are asked for: one, or one per budget; `l0` and `unseen` beside `threat` are an error."""
    if threat is not None:
        if l0 is not None or unseen is not None:
            given = "l0" if l0 is not None else "unseen"
            raise ValueError(f"Give `{given}` or `threat`, got both: write Threat({given}=...) alone.")
        return [threat]
    budgets: list[Any] = [0] if l0 is None else [l0] if np.ndim(l0) == 0 else list(l0)  # type: ignore[arg-type]
    return [Threat(l0=as_budget(budget), unseen=unseen is None or bool(unseen)) for budget in budgets]
