"""How steep functions are under noise: what a small change of many columns takes of a lead, to first order.

Owns where steepness is measured and how it is added up over columns. Must not know rows or losses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, ModelSpec, Steepness, look_at
from derand.train.design.model import design_model

_STEP = 0.05  # of the noise's scale, on either side of where steepness is measured
DUAL_POWERS = {1.0: 8.0, 2.0: 2.0, np.inf: 1.1}
"""The power of steepness that is added up, by the norm of a change: smooth stand-ins for the largest and the sum."""
LEAST_SLOPE = 1e-3
"""Steepness from which on it counts: the root of a sum has no slope at 0."""


def measure_steepness(
    positions: FloatArray, cuts: FloatArray, stairs: FloatArray, noise: Noise, feature: int
) -> FloatArray:
    """How fast a jump at each cut, and the ramp, rise at each position under noise, (n_positions, n_weights)."""
    step = _STEP * noise.magnitude * float(noise.units_of(np.array([feature]))[0])
    ends = [look_at(positions[:, None] + sign * step, cuts, stairs, noise, feature)[:, 0] for sign in (-1, 1)]
    return np.asarray((ends[1] - ends[0]) / (2 * step))


def add_steepness(design: Design, spec: ModelSpec, radius: float) -> Design:
    """The same columns, values in place, with the steepness of their functions for changes of a radius."""
    perturbation, noise = Perturbation.of(spec.threat, spec.n_features, ()), spec.noise
    assert noise is not None
    assert perturbation.norm is not None
    basis = tuple(
        measure_steepness(one.bins.centers, one.cuts, one.stairs, noise, one.feature)
        * (0.0 if one.feature in spec.threat.frozen else perturbation.units[one.feature])
        for one in design.numbers
    )
    return replace(design, steepness=Steepness(radius, DUAL_POWERS[float(perturbation.norm)], basis))


def design_first_order(binned: BinnedTable, spec: ModelSpec, radius: float, *, with_ramp: bool = True) -> Design:
    """The columns of a model whose values stay in place, steepness standing for changes."""
    return add_steepness(design_model(binned, spec, 0.0, with_ramp=with_ramp), spec, radius)
