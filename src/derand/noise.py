"""Noise distributions: all that the package knows about a noise stands in its one class.

Owns the probabilities of a feature's cells under noise, the radius that follows from a failure mass, and sampling.
Must not know models or estimators. Every probability used by a certificate is an upper bound of the true one, and
every radius a lower bound; `kernels/README.md` derives the constants.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray, Numbers, is_number
from derand._core.units import NamedUnits, as_positive, as_units, require_numbered
from derand.kernels import TAIL_ERROR, TAIL_ERROR_GROWTH

if TYPE_CHECKING:
    from derand.kernels.worst_case.jumps import JumpTable

Units = Any
"""Of a noise: one positive number per column, a dict of column name to number, or None; kept as a tuple."""

RADIUS_ERROR = 64 * EPSILON
"""Error of a computed radius, relative to the radius and to the noise scale (kernels/README.md, step 4)."""

_CHUNK_NUMBERS = 2**14  # edges of all rows that are worked on together: larger arrays leave the cache and the heap
_CHUNK_EDGES = 2**11  # edges of a row among them, but terms stay whole
_NEGLIGIBLE = 2.0**-60  # a share of a row too small to change a sum that holds a whole one
_FAR = 600.0  # masses below exp(-600) are handled by their logarithm


class _EdgeGroups(NamedTuple):
    """The edges of many terms: those that are their term's only one, as of stumps, and the others."""

    alone: IntArray | slice
    cells_of_alone: IntArray | slice
    others: IntArray | slice
    cells_of_others: IntArray | slice
    starts: IntArray
    """Where among the other edges a term begins, and their number."""

    @classmethod
    def of(cls, terms: IntArray) -> Self:
        """The groups, from the term of each edge."""
        left = np.arange(terms.size) + terms  # the cell left of each edge: every term before has one more than edges
        opens = np.ones(terms.size + 1, dtype=bool)
        opens[1:-1] = terms[1:] != terms[:-1]
        is_alone = opens[:-1] & opens[1:]
        alone, others = np.flatnonzero(is_alone), np.flatnonzero(~is_alone)
        is_other = np.zeros(left[-1] + 2, dtype=bool)
        is_other[left[others]] = is_other[left[others] + 1] = True
        cells = (left[alone, None] + np.arange(2)).ravel(), np.flatnonzero(is_other)
        starts = np.flatnonzero(np.append(opens[others], True))
        return cls(_as_slice(alone), _as_slice(cells[0]), _as_slice(others), _as_slice(cells[1]), starts)


def _as_slice(indices: IntArray) -> IntArray | slice:
    """Increasing indices as a slice where none is left out: NumPy copies slices faster, or not at all."""
    if indices.size and indices[-1] - indices[0] == indices.size - 1:
        return slice(indices[0], indices[-1] + 1)
    return indices


def _blocks(terms: IntArray) -> Iterator[tuple[slice, slice]]:
    """The edges of all terms, from the term of each, in blocks of whole terms; and the cells of each block."""
    starts = sorted(set(np.searchsorted(terms, terms[::_CHUNK_EDGES]).tolist()))
    for start, stop in zip(starts, [*starts[1:], terms.size], strict=True):
        yield slice(start, stop), slice(start + terms[start], stop + terms[stop - 1] + 1)


@dataclass(frozen=True, slots=True)
class Noise(ABC):
    """A symmetric noise with independent coordinates; coordinate i has scale `magnitude * units[i]`."""

    name: ClassVar[str]
    norm: ClassVar[int]
    parameter: ClassVar[str]
    is_tight: ClassVar[bool] = False
    """Whether some model with that failure mass is flipped just beyond the radius, so that no larger one is sound."""
    support: ClassVar[float] = math.inf
    """Distance, in magnitudes, beyond which the noise never goes; infinite where there is none."""
    kinks: ClassVar[tuple[float, ...]] = ()
    """Where the slope of `cdf` jumps, in magnitudes, for a noise whose cdf is linear in between; none for any other."""
    bends: ClassVar[tuple[float, float]] = (math.inf, math.inf)
    """How much a function may bend that noise of magnitude 1 has smoothed: upper bounds of its second derivative, per
    unit of total variation and per unit of range. Without them less is certified, but as soundly."""

    @property
    def magnitude(self) -> float:
        """The scale of the noise, in units: sigma, half-width or Laplace scale."""
        return float(getattr(self, self.parameter))

    @property
    @abstractmethod
    def units(self) -> tuple[float, ...] | None:
        """One positive number per feature, or None when every feature counts in its own raw unit.

        Given as a dict, they are those of some columns by name, which an estimator knows; others keep that of its
        `scaling`, or 1.
        """

    @abstractmethod
    def cdf(self, z: ArrayLike) -> FloatArray:
        """P(noise <= z * magnitude), to nearest: for training and plots, never for a certificate."""

    def share_beyond(self, distances: FloatArray) -> FloatArray:
        """`cdf(-distances)` up to rounding, for distances of at least 0: for rough choices, never a bound."""
        return np.asarray(self.cdf(-distances))

    @abstractmethod
    def radius(self, failure: ArrayLike) -> FloatArray:
        """Lower bound of the radius certified by a failure mass; 0 where the mass is 1/2 or more."""

    def radius_of_log(self, log_failure: ArrayLike) -> FloatArray:
        """`radius` of a failure mass given by its natural logarithm, which may lie far below the smallest double."""
        return self.radius(exp_upward(log_failure))

    def tie_margin(self, band: float) -> float:
        """By how much a radius is reduced so that in the ball the failure mass stays below 1/2 by more than `band`.

        Right where `failure_at` falls from 1/2 by at least a third per magnitude; a noise of which it falls more slowly
        says more here (kernels/README.md, step 5).
        """
        return 3 * band * self.magnitude

    @abstractmethod
    def failure_at(self, radius: ArrayLike) -> FloatArray:
        """Inverse of `radius`, to nearest: the failure mass with which exactly this radius is certified."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise of magnitude 1."""

    @abstractmethod
    def _sides(self, x: FloatArray, edges: FloatArray, scales: FloatArray) -> FloatArray:
        """Upper bounds of P(x + scale * noise < edge) and P(x + scale * noise >= edge), shape (n_rows, n_edges, 2).

        x has shape (n_rows, n_edges), edges and scales (n_edges,). A bound is 0 only where the side is impossible.
        """

    @abstractmethod
    def _cells(self, x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray) -> FloatArray:
        """Upper bounds of the probabilities of all cells of terms with several edges, term after term.

        The edges of term t are those from `starts[t]` to `starts[t + 1] - 1`, increasing; the result has shape
        (n_rows, n_edges + n_terms). A bound is 0 only where the cell is impossible.
        """

    def with_units(self, units: Iterable[float] | None) -> Self:
        """The same noise, counting in other units."""
        return type(self)(self.magnitude, units)  # type: ignore[call-arg]

    def name_units(self, names: Sequence[str] | None, others: Sequence[float] | None) -> Self:
        """The same with one unit per column of a table, where they were given by name; `others` are those not named."""
        if not isinstance(self.units, NamedUnits):
            return self
        return self.with_units(self.units.resolve(names, others, "`units` of the noise"))

    def units_of(self, features: IntArray) -> FloatArray:
        """Unit of each of the given features; 1 where the noise has no units."""
        require_numbered(self.units, "`units` of the noise")
        return np.ones(features.shape) if self.units is None else np.asarray(self.units, dtype=np.float64)[features]

    def scales(self, features: IntArray) -> FloatArray:
        """Scale of the noise on each of the given features, in raw units."""
        return self.magnitude * self.units_of(features)

    def jump_table(self) -> JumpTable | None:
        """The worst case of a single jump by the square of a move, tabulated; None where there is no such table."""
        return None

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

    @property
    def reach(self) -> float:
        """Distance, in magnitudes, beyond which the noise carries no share of a row that could change a sum."""
        if math.isfinite(self.support):
            return self.support
        for distances in (np.arange(1.0, 129.0), 2.0 ** np.arange(8.0, 1024.0)):  # far ones for heavy tails alone
            with np.errstate(all="ignore"):
                negligible = distances[self.share_beyond(distances) <= _NEGLIGIBLE]
            if negligible.size:
                return float(negligible[0])
        return math.inf

    @property
    def overhang(self) -> float:
        """How far, in units, splits of boosting may lie beyond the values: as far as bounded noise carries a row."""
        return self.magnitude * self.support if math.isfinite(self.support) else 0.0

    def expected_left(self, levels: FloatArray, counts: Numbers, candidates: FloatArray) -> FloatArray:
        """Counts expected left of candidate splits when every counted row is moved by the noise, to nearest.

        For training, never for a certificate. A noise without a faster way need not override this.

        Parameters
        ----------
        levels : array of shape (n_levels,)
            Where the rows are, in units, increasing.
        counts : array of shape (..., n_levels)
            How many, or how heavy, they are.
        candidates : array of shape (n_candidates,)
            Increasing, in units.

        Returns
        -------
        array of shape (..., n_candidates)

        Examples
        --------
        >>> Gaussian(1.0).expected_left(np.array([0.0, 2.0]), np.array([3, 1]), np.array([0.0, 1.0])).round(3)
        array([1.523, 2.683])
        """
        from derand.kernels.cells.expectation import sum_by_cdf

        return sum_by_cdf(levels, counts, candidates, self.cdf, self.magnitude, self.reach)

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
        scales = self.scales(features)
        # finite numbers may lie infinitely far apart; their probabilities are clipped to the possible
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for block, cells in _blocks(terms):
                groups = _EdgeGroups.of(terms[block] - terms[block.start])
                size = max(1, _CHUNK_NUMBERS // (block.stop - block.start))
                for start in range(0, x.shape[0], size):
                    rows = slice(start, start + size)
                    self._fill_cells(table[rows, cells], x[rows, block], edges[block], scales[block], groups)
        return table

    def _fill_cells(
        self, table: FloatArray, x: FloatArray, edges: FloatArray, scales: FloatArray, groups: _EdgeGroups
    ) -> None:
        """Write the probabilities of all cells that have an edge."""
        alone, others = groups.alone, groups.others
        sides = self._sides(x[:, alone], edges[alone], scales[alone])
        table[:, groups.cells_of_alone] = sides.reshape(x.shape[0], -1)
        if groups.starts.size > 1:
            table[:, groups.cells_of_others] = self._cells(x[:, others], edges[others], scales[others], groups.starts)

    def __str__(self) -> str:
        return f"{self.name}:{self.magnitude!r}"

    def __post_init__(self) -> None:
        """Refuse what is not a noise and normalise the fields."""
        magnitude = as_positive(getattr(self, self.parameter), f"`{self.parameter}` of {type(self).__name__}")
        object.__setattr__(self, self.parameter, magnitude)
        if self.units is not None:
            rule = f"`units` of {type(self).__name__}"
            object.__setattr__(self, "units", as_units(self.units, rule))
            for unit in self.units:
                as_positive(magnitude * unit, f"`{self.parameter}` times every entry of {rule}")


def exp_upward(logarithm: ArrayLike) -> FloatArray:
    """A probability from its logarithm, rounded upward; 0 only for -inf."""
    log = np.asarray(logarithm, dtype=np.float64)
    with np.errstate(under="ignore"):
        return np.where(log == -np.inf, 0.0, np.clip(np.exp(log) * (1 + 8 * EPSILON), TINY, 1.0))


def _round_down(radius: FloatArray, magnitude: float) -> FloatArray:
    """Take the a-priori error off a computed radius; never below 0."""
    finite = np.minimum(np.abs(radius), 1 / TINY)  # an infinite radius stays infinite
    return np.maximum(radius - RADIUS_ERROR * (finite + magnitude), 0.0)


def _find_normal_share(z: ArrayLike) -> FloatArray:
    """P(noise <= z) of Gaussian noise of deviation 1, to nearest."""
    from scipy.special import ndtr

    return np.asarray(ndtr(z))


@cache
def _find_normal_reach() -> float:
    """`Noise.reach` of any Gaussian noise, found once: training asks for it with every column."""
    return float(Noise.reach.__get__(Gaussian(1.0)))


@dataclass(frozen=True, slots=True)
class Gaussian(Noise):
    """Normal noise of standard deviation `sigma`: certifies l2 balls, radius `-sigma * ppf(failure)`.

    Examples
    --------
    >>> float(Gaussian(0.25).radius(1e-100).round(3))
    5.318
    """

    sigma: float
    units: Units = None

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[int] = 2
    parameter: ClassVar[str] = "sigma"
    is_tight: ClassVar[bool] = True
    bends: ClassVar[tuple[float, float]] = (0.24198, 0.48395)  # 1 / sqrt(2 pi e), twice the density at 1

    def cdf(self, z: ArrayLike) -> FloatArray:
        return _find_normal_share(z)

    @property
    def reach(self) -> float:
        return _find_normal_reach()

    def share_beyond(self, distances: FloatArray) -> FloatArray:
        from derand.kernels.cells.normal import (
            upper_tail,  # without SciPy, which takes longer to load than a certificate
        )

        return upper_tail(np.minimum(distances, 40.0))

    def expected_left(self, levels: FloatArray, counts: Numbers, candidates: FloatArray) -> FloatArray:
        from derand.kernels.cells.expectation import sum_by_smooth_cdf

        return sum_by_smooth_cdf(levels, counts, candidates, _find_normal_share, self.sigma, self.reach)

    def radius(self, failure: ArrayLike) -> FloatArray:
        mass = np.minimum(np.asarray(failure, dtype=np.float64), 0.5)
        with np.errstate(divide="ignore"):
            return self._reach_of(mass, np.log(mass))

    def radius_of_log(self, log_failure: ArrayLike) -> FloatArray:
        log = np.asarray(log_failure, dtype=np.float64)
        return self._reach_of(np.minimum(exp_upward(log), 0.5), log)

    def _reach_of(self, mass: FloatArray, log_mass: FloatArray) -> FloatArray:
        """A lower bound of the distance beyond which a tail has the mass; by its logarithm where it is small."""
        from derand.kernels.cells.quantile import upper_quantile

        return _round_down(self.sigma * upper_quantile(mass, log_mass), self.sigma)

    def failure_at(self, radius: ArrayLike) -> FloatArray:
        from scipy.special import ndtr

        return np.asarray(ndtr(-np.asarray(radius, dtype=np.float64) / self.sigma))

    def jump_table(self) -> JumpTable:
        from derand.kernels.worst_case.jumps import tabulate_jumps

        return tabulate_jumps()

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.standard_normal(shape)

    def _sides(self, x: FloatArray, edges: FloatArray, scales: FloatArray) -> FloatArray:
        from derand.kernels.cells.normal import Widening, bound_sides

        return bound_sides(x, edges, scales, Widening(TAIL_ERROR, TAIL_ERROR_GROWTH, TINY))

    def _cells(self, x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray) -> FloatArray:
        from derand.kernels.cells.normal import Widening, bound_cells

        return bound_cells(x, edges, scales, starts, Widening(TAIL_ERROR, TAIL_ERROR_GROWTH, TINY))


@dataclass(frozen=True, slots=True)
class Uniform(Noise):
    """Noise uniform on [-half_width, half_width]: certifies l1 balls, radius `half_width * (1 - 2 * failure)`.

    Examples
    --------
    >>> float(Uniform(4.0).radius(0.25).round(3))
    2.0
    """

    half_width: float
    units: Units = None

    name: ClassVar[str] = "uniform"
    norm: ClassVar[int] = 1
    parameter: ClassVar[str] = "half_width"
    is_tight: ClassVar[bool] = True
    support: ClassVar[float] = 1.0
    kinks: ClassVar[tuple[float, ...]] = (-1.0, 1.0)

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

    def _sides(self, x: FloatArray, edges: FloatArray, scales: FloatArray) -> FloatArray:
        from derand.kernels.cells.interval import bound_sides

        return bound_sides(x, edges, self._halves(scales))

    def _cells(self, x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray) -> FloatArray:
        from derand.kernels.cells.interval import bound_cells

        return bound_cells(x, edges, self._halves(scales), starts)

    def _halves(self, scales: FloatArray) -> FloatArray:
        """Upper bounds of the half-widths in raw units, exact without units."""
        return scales if self.units is None else np.nextafter(scales, np.inf)

    def expected_left(self, levels: FloatArray, counts: Numbers, candidates: FloatArray) -> FloatArray:
        from derand.kernels.cells.expectation import sum_by_interval

        return sum_by_interval(levels, counts, candidates, self.half_width)


@dataclass(frozen=True, slots=True)
class Laplace(Noise):
    """Laplace noise of scale b: certifies l1 balls, radius `-b * log(2 * failure)`, without an upper limit.

    Examples
    --------
    >>> float(Laplace(1.0).radius(1e-100).round(3))
    229.565
    """

    scale: float
    units: Units = None

    name: ClassVar[str] = "laplace"
    norm: ClassVar[int] = 1
    parameter: ClassVar[str] = "scale"
    is_tight: ClassVar[bool] = True
    bends: ClassVar[tuple[float, float]] = (0.5, 1.0)  # the steepest density; g'' = g - f

    def cdf(self, z: ArrayLike) -> FloatArray:
        distance = np.asarray(z, dtype=np.float64)
        half = 0.5 * np.exp(-np.abs(distance))
        return np.where(distance > 0, 0.5 - 0.5 * np.expm1(-np.abs(distance)), half)

    def expected_left(self, levels: FloatArray, counts: Numbers, candidates: FloatArray) -> FloatArray:
        from derand.kernels.cells.expectation import sum_by_exponentials

        found = sum_by_exponentials(levels, counts, candidates, self.scale)
        return Noise.expected_left(self, levels, counts, candidates) if found is None else found

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

    def _sides(self, x: FloatArray, edges: FloatArray, scales: FloatArray) -> FloatArray:
        from derand.kernels.cells.laplace import bound_sides

        return bound_sides(x, edges, scales)

    def _cells(self, x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray) -> FloatArray:
        from derand.kernels.cells.laplace import bound_cells

        return bound_cells(x, edges, scales, starts)


NOISES: dict[str, type[Noise]] = {kind.name: kind for kind in (Gaussian, Uniform, Laplace)}


def parse_noise(text: str) -> Noise:
    """Read a noise from text such as "gaussian:0.25"; "0.25" alone is Gaussian.

    Examples
    --------
    >>> parse_noise("uniform:2")
    Uniform(half_width=2.0, units=None)
    >>> parse_noise("0.25")
    Gaussian(sigma=0.25, units=None)
    """
    name, colon, number = text.partition(":")
    magnitude = _read_number(number if colon else name)
    if not colon and magnitude is not None:
        return as_noise(magnitude)
    if name not in NOISES:
        raise ValueError(f"Unknown noise {name!r} in {text!r}: use one of {', '.join(NOISES)}, as in 'gaussian:0.25'.")
    if magnitude is None:
        raise ValueError(f"The noise {text!r} has no number after its name: write it as in '{name}:0.25'.")
    return NOISES[name](magnitude)  # type: ignore[call-arg]


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def as_noise(noise: Noise | str | float, norm: object = "auto", like: Noise | None = None) -> Noise:
    """A noise given as an object, as text, or as its magnitude alone.

    `norm`: for a number: Laplace noise in norm 1, as its ball is, and Gaussian noise in all others; `like`: for a
    number: the noise that is there already, whose kind it keeps where that certifies the norm.

    Examples
    --------
    >>> as_noise(0.25), as_noise(0.25, norm=1)
    (Gaussian(sigma=0.25, units=None), Laplace(scale=0.25, units=None))
    """
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str):
        if _read_number(noise) is None:
            return parse_noise(noise)
        noise = float(noise)
    if is_number(noise):
        kind = type(like) if like is not None and norm in ("auto", like.norm) else Laplace if norm == 1 else Gaussian
        magnitude = as_positive(noise, "`noise` as a number, the magnitude of a noise,")
        return kind(magnitude)  # type: ignore[call-arg]
    raise TypeError(
        "`noise` must be a noise such as Gaussian(0.25), text such as 'gaussian:0.25', or a number such as 0.25, "
        f"got {noise!r}."
    )


def resolve_noise(
    noise: Noise | str | float | None, default: Noise | None = None, norm: object = "auto", like: Noise | None = None
) -> Noise | None:
    """A noise as users give it: None is not given and takes the default, "none" is no noise, else as `as_noise`.

    Examples
    --------
    >>> resolve_noise(None, Gaussian(0.25)), resolve_noise("none", Gaussian(0.25))
    (Gaussian(sigma=0.25, units=None), None)
    """
    if noise is None:
        return default
    return None if isinstance(noise, str) and noise == "none" else as_noise(noise, norm, like)
