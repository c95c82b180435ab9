"""The quantile of the normal distribution, by logarithms of masses: how far out a tail of some mass begins.

Owns the approximations (Wichura, Algorithm AS 241, 1988; beyond exp(-729) the asymptotic series of the tail). Must not
know noises, nor what a quantile is for. README.md, step 4, counts the errors. SciPy's functions take longer to load
than a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from derand._core.arrays import FloatArray

_MIDDLE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_NEAR = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)
"""Numerators and denominators, from the constant upward, of three ranges of the mass."""
_SERIES = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0)
"""Of 1 / z**2: P(noise > z) over density(z) / z."""
_MIDDLE_MASS = 0.075
_NEAR_ROOT, _FAR_ROOT = 5.0, 27.0
_ROUNDS = 8  # each leaves at most 1/729 of the error


def upper_quantile(mass: FloatArray, log_mass: FloatArray) -> FloatArray:
    """The z with P(noise > z) = mass, to nearest, for masses of at most 1/2 and their logarithms.

    A mass above 0.075 is taken as it is, a smaller one by its logarithm, so that it may be below any double.

    >>> mass = np.array([0.5, 0.025, 1e-300])
    >>> upper_quantile(mass, np.log(mass)).round(6).tolist()
    [0.0, 1.959964, 37.047096]
    """
    root = np.sqrt(np.maximum(-log_mass, 0.0))
    found = np.full(root.shape, np.inf)
    is_middle, is_near = mass > _MIDDLE_MASS, root <= _NEAR_ROOT
    is_far = root <= _FAR_ROOT
    centred = 0.5 - mass[is_middle]
    found[is_middle] = centred * _divide(_MIDDLE, 0.180625 - centred * centred)
    for ratio, chosen, start in ((_NEAR, is_near & ~is_middle, 1.6), (_FAR, is_far & ~is_near, 5.0)):
        if chosen.any():
            found[chosen] = _divide(ratio, root[chosen] - start)
    beyond = ~is_far & np.isfinite(root)
    if beyond.any():
        found[beyond] = _solve_tail(-log_mass[beyond])
    return found


def _divide(ratio: tuple[Sequence[float], Sequence[float]], at: FloatArray) -> FloatArray:
    above, below = (_evaluate(coefficients, at) for coefficients in ratio)
    return above / below


def _evaluate(coefficients: Sequence[float], at: FloatArray) -> FloatArray:
    value = np.full(at.shape, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= at
        value += coefficient
    return value


def _solve_tail(depth: FloatArray) -> FloatArray:
    """The z > 27 with P(noise > z) = exp(-depth): z**2 / 2 = depth - log(z sqrt(2 pi)) + log(series)."""
    z = np.sqrt(2 * depth)
    for _ in range(_ROUNDS):
        inverse = 1 / z
        series = np.log(_evaluate(_SERIES, inverse * inverse))
        z = np.sqrt(2 * (depth - np.log(z) - 0.5 * math.log(2 * math.pi) + series))
    return z
