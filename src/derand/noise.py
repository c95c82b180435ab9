"""Noise distributions: all that the package knows about a noise stands in its one class.

Owns the probabilities of a feature's cells under noise, the radius that follows from a failure mass, and sampling.
Must not know models, kernels or estimators. Every probability used by a certificate is an upper bound of the
true one, and every radius a lower bound; `kernels/README.md` derives the constants below.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EPSILON = 2.0**-52
TINY = 2.0**-1022
"""Smallest normal double: what stands in for a positive probability that is too small to be represented."""

TAIL_ERROR = 96 * EPSILON
"""Relative error of a computed cell probability away from the tails (kernels/README.md, step 1)."""
TAIL_ERROR_GROWTH = 8 * EPSILON
"""Its growth per unit of z**2 (Gaussian) or z (Laplace), z being the distance in noise scales."""
RADIUS_ERROR = 64 * EPSILON
"""Error of a computed radius, relative to the radius and to the noise scale (kernels/README.md, step 4)."""

_SQRT_HALF = math.sqrt(0.5)
_GAUSSIAN_END = 40.0  # the tail beyond is below TINY
_LAPLACE_END = 750.0
_FAR = 600.0  # masses below exp(-600) are handled by their logarithm
_NODES, _WEIGHTS = (side[4:] for side in np.polynomial.legendre.leggauss(8))  # the right half of a symmetric rule


@dataclass(frozen=True, slots=True)
class Noise(ABC):
    """A symmetric noise with independent coordinates; coordinate i has scale `magnitude * units[i]`."""

    name: ClassVar[str]
    norm: ClassVar[int]
    parameter: ClassVar[str]

    @property
    def magnitude(self) -> float:
        """The scale of the noise, in units: sigma, half-width or Laplace scale."""
        return float(getattr(self, self.parameter))

    @property
    @abstractmethod
    def units(self) -> tuple[float, ...] | None:
        """One positive number per feature, or None when every feature counts in its own raw unit."""

    @abstractmethod
    def cdf(self, z: ArrayLike) -> FloatArray:
        """P(noise <= z * magnitude), to nearest: for training and plots, never for a certificate."""

    @abstractmethod
    def radius(self, failure: ArrayLike) -> FloatArray:
        """Lower bound of the radius certified by a failure mass; 0 where the mass is 1/2 or more."""

    def radius_of_log(self, log_failure: ArrayLike) -> FloatArray:
        """`radius` of a failure mass given by its natural logarithm, which may lie far below the smallest double."""
        return self.radius(exp_upward(log_failure))

    @abstractmethod
    def failure_at(self, radius: ArrayLike) -> FloatArray:
        """Inverse of `radius`, to nearest: the failure mass with which exactly this radius is certified."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise of magnitude 1."""

    @abstractmethod
    def _below(self, x: FloatArray, edge: FloatArray, scale: FloatArray) -> FloatArray:
        """Upper bound of P(x + scale * noise < edge), elementwise; 0 only where that is impossible."""

    @abstractmethod
    def _between(self, x: FloatArray, low: FloatArray, high: FloatArray, scale: FloatArray) -> FloatArray:
        """Upper bound of P(low <= x + scale * noise < high), elementwise; 0 only where that is impossible."""

    def with_units(self, units: Iterable[float] | None) -> Self:
        """The same noise, counting in other units."""
        return type(self)(self.magnitude, None if units is None else tuple(units))  # type: ignore[call-arg]

    def scales(self, features: IntArray) -> FloatArray:
        """Scale of the noise on each of the given features, in raw units."""
        if self.units is None:
            return np.full(features.shape, self.magnitude)
        return self.magnitude * np.asarray(self.units)[features]

    def sample(self, X: ArrayLike, size: int, rng: np.random.Generator | int | None = None) -> FloatArray:
        """Noisy copies of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        size : int
            Copies of each row.
        rng : numpy Generator or seed

        Returns
        -------
        array of shape (size, n_rows, n_features)
        """
        rows = np.asarray(X, dtype=np.float64)
        draws = self._draw(np.random.default_rng(rng), (size, *rows.shape))
        return rows + draws * self.scales(np.arange(rows.shape[-1]))

    def cell_probabilities(self, x: ArrayLike, edges: ArrayLike, feature: int = 0) -> FloatArray:
        """Probability that x + noise falls into each cell between the edges, never below the true one.

        Parameters
        ----------
        x : array-like of shape (n_rows,)
        edges : array-like of shape (n_edges,), strictly increasing
        feature : int
            Whose unit applies, where the noise has units.

        Returns
        -------
        array of shape (n_rows, n_edges + 1)

        Examples
        --------
        >>> Uniform(2.0).cell_probabilities([0.0, 1.0], [0.0, 5.0]).round(3)
        array([[0.5 , 0.5 , 0.  ],
               [0.25, 0.75, 0.  ]])
        """
        edge_array = np.asarray(edges, dtype=np.float64)
        features = np.full(edge_array.shape, feature, dtype=np.int64)
        column = np.asarray(x, dtype=np.float64)[:, None]
        return self.cell_table(
            np.repeat(column, edge_array.size, axis=1), edge_array, features, np.zeros_like(features), 1
        )

    def cell_table(
        self, x: FloatArray, edges: FloatArray, features: IntArray, terms: IntArray, n_terms: int
    ) -> FloatArray:
        """Upper bounds of the cell probabilities of many terms at once, the kernels' probability table.

        Parameters
        ----------
        x : array of shape (n_rows, n_edges)
            For each edge, the value of its feature.
        edges, features, terms : arrays of shape (n_edges,)
            All edges, grouped by ascending term and increasing within it; the feature and the term of each.
        n_terms : int
            A term without edges has one cell, of probability 1.

        Returns
        -------
        array of shape (n_rows, n_edges + n_terms), the cells term after term
        """
        table = np.ones((x.shape[0], edges.size + n_terms))
        if not edges.size:
            return table
        opens = np.flatnonzero(np.diff(terms, prepend=-1))  # first edge of each term
        closes = np.append(opens[1:], edges.size) - 1
        inner = np.flatnonzero(np.diff(terms) == 0)  # edges followed by another of the same term
        scale = self.scales(features)
        # finite numbers may lie infinitely far apart; their probabilities are clipped to the possible
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            table[:, opens + terms[opens]] = self._below(x[:, opens], edges[opens], scale[opens])
            # symmetry: P(x + noise >= edge) = P(edge + noise <= x)
            table[:, closes + terms[closes] + 1] = self._below(edges[closes], x[:, closes], scale[closes])
            if inner.size:
                table[:, inner + terms[inner] + 1] = self._between(
                    x[:, inner], edges[inner], edges[inner + 1], scale[inner]
                )
        return table

    def __str__(self) -> str:
        return f"{self.name}:{self.magnitude!r}"

    def _check(self) -> None:
        """Refuse what is not a noise and normalise the fields."""
        magnitude = _positive(getattr(self, self.parameter), f"`{self.parameter}` of {type(self).__name__}")
        object.__setattr__(self, self.parameter, magnitude)
        if self.units is not None:
            rule = f"every entry of `units` of {type(self).__name__}"
            object.__setattr__(self, "units", tuple(_positive(unit, rule) for unit in self.units))
            for unit in self.units:
                _positive(magnitude * unit, f"`{self.parameter}` times {rule}")


def _positive(value: Any, what: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{what} must be a positive number, got {value!r}.")
    if not (math.isfinite(value) and TINY < value < 1 / TINY):
        raise ValueError(f"{what} must be positive and finite, got {value!r}.")
    return float(value)


def exp_upward(logarithm: ArrayLike) -> FloatArray:
    """A probability from its logarithm, rounded upward; 0 only for -inf."""
    log = np.asarray(logarithm, dtype=np.float64)
    with np.errstate(under="ignore"):
        return np.where(log == -np.inf, 0.0, np.clip(np.exp(log) * (1 + 8 * EPSILON), TINY, 1.0))


def _round_down(radius: FloatArray, magnitude: float) -> FloatArray:
    """Take the a-priori error off a computed radius; never below 0."""
    finite = np.minimum(np.abs(radius), 1 / TINY)  # an infinite radius stays infinite
    return np.maximum(radius - RADIUS_ERROR * (finite + magnitude), 0.0)


def _mirror(
    x: FloatArray, low: FloatArray, high: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ends of the cell [low, high) seen from x and its width, in scales, reflected to lie right of the centre."""
    start, stop = (low - x) / scale, (high - x) / scale
    width = np.broadcast_to((high - low) / scale, start.shape)
    left = start + stop < 0
    return np.where(left, -stop, start), np.where(left, -start, stop), width


@dataclass(frozen=True, slots=True)
class Gaussian(Noise):
    """Normal noise of standard deviation `sigma`: certifies l2 balls, radius `-sigma * ppf(failure)`.

    Examples
    --------
    >>> float(Gaussian(0.25).radius(1e-100).round(3))
    5.318
    """

    sigma: float
    units: tuple[float, ...] | None = None

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[int] = 2
    parameter: ClassVar[str] = "sigma"

    def __post_init__(self) -> None:
        self._check()

    def cdf(self, z: ArrayLike) -> FloatArray:
        return np.asarray(special.ndtr(z))

    def radius(self, failure: ArrayLike) -> FloatArray:
        mass = np.asarray(failure, dtype=np.float64)
        return _round_down(-self.sigma * special.ndtri(np.minimum(mass, 0.5)), self.sigma)

    def radius_of_log(self, log_failure: ArrayLike) -> FloatArray:
        log = np.asarray(log_failure, dtype=np.float64)
        far = _round_down(-self.sigma * special.ndtri_exp(np.minimum(log, -_FAR)), self.sigma)
        far = np.where(log < -5000, far * (1 - 1e-11), far)  # ndtri_exp was measured at 1e-12 there
        return np.where(log < -_FAR, far, self.radius(exp_upward(log)))

    def failure_at(self, radius: ArrayLike) -> FloatArray:
        return np.asarray(special.ndtr(-np.asarray(radius, dtype=np.float64) / self.sigma))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.standard_normal(shape)

    def _below(self, x: FloatArray, edge: FloatArray, scale: FloatArray) -> FloatArray:
        return self._tail(np.clip((x - edge) / scale, -_GAUSSIAN_END, _GAUSSIAN_END))

    def _between(self, x: FloatArray, low: FloatArray, high: FloatArray, scale: FloatArray) -> FloatArray:
        start, stop, width = _mirror(x, low, high, scale)
        start = np.clip(start, -_GAUSSIAN_END, _GAUSSIAN_END)
        stop = np.clip(stop, -_GAUSSIAN_END, _GAUSSIAN_END)
        astride = start <= 0
        narrow = ~astride & (width * (start + 1) < 1)
        apart = ~astride & ~narrow
        result = np.empty(start.shape)
        a, b = start[astride] * _SQRT_HALF, stop[astride] * _SQRT_HALF
        result[astride] = (0.5 + TAIL_ERROR) * (special.erf(b) + special.erf(-a))
        result[narrow] = self._sliver(0.5 * (start[narrow] + stop[narrow]), width[narrow])
        # both tails are rounded away from each other: the second one downward
        far = stop[apart]
        shrinking = 1 - (TAIL_ERROR + TAIL_ERROR_GROWTH * far * far)
        result[apart] = self._tail(start[apart]) - 0.5 * special.erfc(far * _SQRT_HALF) * shrinking
        return np.clip(result, TINY, 1.0)

    @staticmethod
    def _tail(z: FloatArray) -> FloatArray:
        """Upper bound of P(noise > z) for |z| <= 40."""
        growth = np.maximum(z, 0.0)
        tail = 0.5 * special.erfc(z * _SQRT_HALF)
        tail *= 1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * growth * growth)
        return np.asarray(np.clip(tail, TINY, 1.0))

    @staticmethod
    def _sliver(middle: FloatArray, width: FloatArray) -> FloatArray:
        """Mass of a cell so narrow that tails would cancel: its density integrated by Gauss-Legendre (error 1e-16)."""
        square = middle * middle
        total = np.zeros_like(middle)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            aside = 0.5 * node * width
            total += weight * np.exp(-0.5 * aside * aside) * np.cosh(middle * aside)
        density = np.exp(-0.5 * square) / math.sqrt(2 * math.pi)
        return density * width * total * (1 + (TAIL_ERROR + TAIL_ERROR_GROWTH * square))


@dataclass(frozen=True, slots=True)
class Uniform(Noise):
    """Noise uniform on [-half_width, half_width]: certifies l1 balls, radius `half_width * (1 - 2 * failure)`.

    Examples
    --------
    >>> float(Uniform(4.0).radius(0.25).round(3))
    2.0
    """

    half_width: float
    units: tuple[float, ...] | None = None

    name: ClassVar[str] = "uniform"
    norm: ClassVar[int] = 1
    parameter: ClassVar[str] = "half_width"

    def __post_init__(self) -> None:
        self._check()

    def cdf(self, z: ArrayLike) -> FloatArray:
        return np.clip(0.5 * np.asarray(z, dtype=np.float64) + 0.5, 0.0, 1.0)

    def radius(self, failure: ArrayLike) -> FloatArray:
        mass = np.asarray(failure, dtype=np.float64)
        lower = _round_down(self.half_width * (1 - 2 * mass), self.half_width)
        return np.where(mass == 0, self.half_width, lower)

    def failure_at(self, radius: ArrayLike) -> FloatArray:
        return np.maximum(0.5 - np.asarray(radius, dtype=np.float64) / (2 * self.half_width), 0.0)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.uniform(-1.0, 1.0, shape)

    def _below(self, x: FloatArray, edge: FloatArray, scale: FloatArray) -> FloatArray:
        half = self._half(scale)
        stop = np.minimum(_subtract_up(edge, x), half)
        return self._share(_subtract_up(stop, -half), half)

    def _between(self, x: FloatArray, low: FloatArray, high: FloatArray, scale: FloatArray) -> FloatArray:
        half = self._half(scale)
        stop = np.minimum(_subtract_up(high, x), half)
        start = np.minimum(_subtract_up(x, low), half)  # how far the cell reaches to the left of x
        return self._share(_subtract_up(stop, -start), half)

    def _half(self, scale: FloatArray) -> FloatArray:
        """Upper bound of the half-width in raw units, exact without units."""
        return scale if self.units is None else np.nextafter(scale, np.inf)

    @staticmethod
    def _share(overlap: FloatArray, half: FloatArray) -> FloatArray:
        """Upper bound of overlap / (2 * half): exactly 0 without overlap, exactly 1 where it is full."""
        share = np.maximum(overlap, 0.0) / (2 * half) * (1 + 4 * EPSILON)
        return np.where(overlap > 0, np.clip(share, TINY, 1.0), 0.0)


def _subtract_up(a: FloatArray, b: FloatArray) -> FloatArray:
    """a - b rounded upward: exact where the difference is representable (Knuth's error-free sum)."""
    difference = a - b
    rest = difference - a
    error = (a - (difference - rest)) - (b + rest)
    return np.where(error > 0, np.nextafter(difference, np.inf), difference)


@dataclass(frozen=True, slots=True)
class Laplace(Noise):
    """Laplace noise of scale b: certifies l1 balls, radius `-b * log(2 * failure)`, without an upper limit.

    Examples
    --------
    >>> float(Laplace(1.0).radius(1e-100).round(3))
    229.565
    """

    scale: float
    units: tuple[float, ...] | None = None

    name: ClassVar[str] = "laplace"
    norm: ClassVar[int] = 1
    parameter: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        self._check()

    def cdf(self, z: ArrayLike) -> FloatArray:
        distance = np.asarray(z, dtype=np.float64)
        half = 0.5 * np.exp(-np.abs(distance))
        return np.where(distance > 0, 0.5 - 0.5 * np.expm1(-np.abs(distance)), half)

    def radius(self, failure: ArrayLike) -> FloatArray:
        mass = np.asarray(failure, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return _round_down(-self.scale * np.log(2 * np.minimum(mass, 0.5)), self.scale)

    def radius_of_log(self, log_failure: ArrayLike) -> FloatArray:
        log = np.asarray(log_failure, dtype=np.float64)
        far = _round_down(-self.scale * (np.minimum(log, -_FAR) + math.log(2)), self.scale)
        return np.where(log < -_FAR, far, self.radius(exp_upward(log)))

    def failure_at(self, radius: ArrayLike) -> FloatArray:
        return np.asarray(0.5 * np.exp(-np.asarray(radius, dtype=np.float64) / self.scale))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.laplace(size=shape)

    def _below(self, x: FloatArray, edge: FloatArray, scale: FloatArray) -> FloatArray:
        z = np.clip((x - edge) / scale, -_LAPLACE_END, _LAPLACE_END)
        decay = -np.abs(z)
        mass = np.where(z > 0, 0.5 * np.exp(decay), 0.5 - 0.5 * np.expm1(decay))
        return np.clip(mass * (1 + (TAIL_ERROR + TAIL_ERROR_GROWTH * np.maximum(z, 0.0))), TINY, 1.0)

    def _between(self, x: FloatArray, low: FloatArray, high: FloatArray, scale: FloatArray) -> FloatArray:
        start, stop, width = _mirror(x, low, high, scale)
        start = np.clip(start, -_LAPLACE_END, _LAPLACE_END)
        near = np.maximum(start, 0.0)
        one_sided = -0.5 * np.exp(-near) * np.expm1(-width)
        astride = -0.5 * (np.expm1(-stop) + np.expm1(np.minimum(start, 0.0)))
        mass = np.where(start > 0, one_sided, astride)
        return np.clip(mass * (1 + (TAIL_ERROR + TAIL_ERROR_GROWTH * near)), TINY, 1.0)


NOISES: dict[str, type[Noise]] = {kind.name: kind for kind in (Gaussian, Uniform, Laplace)}


def parse_noise(text: str) -> Noise:
    """Read a noise from text such as "gaussian:0.25".

    Examples
    --------
    >>> parse_noise("uniform:2")
    Uniform(half_width=2.0, units=None)
    """
    name, _, number = text.partition(":")
    if name not in NOISES:
        raise ValueError(f"Unknown noise {name!r} in {text!r}: use one of {', '.join(NOISES)}, as in 'gaussian:0.25'.")
    try:
        magnitude = float(number)
    except ValueError:
        raise ValueError(f"The noise {text!r} has no number after its name: write it as in '{name}:0.25'.") from None
    return NOISES[name](magnitude)  # type: ignore[call-arg]


def as_noise(noise: Noise | str) -> Noise:
    """A noise given as an object or as text."""
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str):
        return parse_noise(noise)
    raise TypeError(f"`noise` must be a noise such as Gaussian(0.25) or text such as 'gaussian:0.25', got {noise!r}.")
