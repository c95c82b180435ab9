"""Kernels: sums over all outcomes of independent terms, and the probabilities of cells, on arrays alone.

README.md beside this file holds the contract and the rounding argument. A backend is one module with `prepare`, which
turns a model's arrays into a plan, and the three functions `failures`, `tails` and `pmfs` that take the plan; it is
named in BACKENDS. Cells of a noise: `normal`, `interval`, `laplace`. Kernels trust their input and import nothing of
derand outside this folder but array types, constants and `threads`.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, BoolArray, FloatArray, IntArray
from derand.kernels.tails.costs import MIN_TERMS_FOR_FOURIER, Work, suits_device

TAIL_ERROR = 96 * EPSILON
"""Relative error of a computed cell probability away from the tails (README.md, step 1)."""
TAIL_ERROR_GROWTH = 8 * EPSILON
"""Its growth per unit of z**2 (Gaussian) or z (Laplace), z being the distance in noise scales."""
LOG_HALF = -0.6931471805599454
"""Below log(1/2)."""
NEGLIGIBLE = 1e-307
"""Mass that may be dropped at each end of a pmf after each term: in all, it weighs less than FLOOR."""
FLOOR = 1e-300
"""Added to each mass that is not impossible: more than dropping and underflow can have lost (README.md, step 3)."""


STEEPEST = 700.0
"""Largest exponent of a tilted weight: its exponential is a normal double (README.md, step 6)."""

PATHS = ("law", "tilted", "inverted")
"""How a mass was computed: from the pmf itself, from a tilted pmf, or by Fourier inversion of a tilted one."""
LAW, TILTED, INVERTED = range(3)
PATH_REASONS = (
    "several thresholds of a row share one distribution",
    "a tilted distribution costs less than inversion, or what inversion drops could not be bounded well enough",
    "inversion of a tilted distribution costs less than the distribution, and what it drops is bounded",
)
"""Why each of them is taken: by costs.py, from the row and the sizes of the call alone."""


class Failures(NamedTuple):
    """The failing side of each row; arrays of shape (n_rows,)."""

    proven: BoolArray
    """Whether P(S <= threshold) < 1/2 is proven."""
    log_mass: FloatArray
    """The logarithm of the failing side's mass, rounded upward."""
    path: NDArray[np.uint8]
    """How it was computed: a place in PATHS."""


class Plan(Protocol):
    """What a backend prepares once per model. Immutable: any number of threads may use it at the same time."""

    @property
    def starts(self) -> IntArray: ...

    @property
    def scores(self) -> IntArray: ...


class Backend(Protocol):
    """What a backend offers; README.md says what the arrays hold. It takes only plans that it has prepared itself."""

    HOLDS_ALL_PMFS: bool
    """Whether the pmfs of all rows of a call are in memory at the same time."""

    def prepare(self, starts: IntArray, scores: IntArray, *, invert: bool = True) -> Plan:
        """All that is known of a model before its rows; `invert=False` keeps Fourier inversion out of `failures`."""

    def failures(self, plan: object, table: FloatArray, thresholds: IntArray) -> Failures:
        """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""

    def tails(self, plan: object, table: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """P(S <= low) and P(S > high) for each row and each of its thresholds."""

    def pmfs(self, plan: object, table: FloatArray) -> FloatArray:
        """P(S = s) for each row and s = 0, 1, ..., largest score."""


class Edges(NamedTuple):
    """The edges of a model, grouped by term, with what a device needs to compute cell probabilities from rows."""

    values: FloatArray
    features: IntArray
    units: FloatArray
    """Unit of the noise at each edge."""
    magnitude: float
    noise: str


@runtime_checkable
class DeviceBackend(Backend, Protocol):
    """A backend on a device of its own, which also computes the probability table there."""

    BLOCK_ROWS: int
    """Rows that a call should get: one call keeps the device busy, callers need not split rows among threads."""
    NOISES: frozenset[str]
    """Names of the noises whose tables it computes; those of any other noise come from the host."""

    def failures_from_edges(
        self, plan: object, rows: FloatArray, edges: Edges, thresholds: IntArray, *, must_look: bool = False
    ) -> Failures:
        """`failures`, the table computed from rows and edges; NotFiniteError where that is asked for."""

    def tails_from_edges(
        self, plan: object, rows: FloatArray, edges: Edges, low: IntArray, high: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """`tails`, the table computed in the same way."""

    def looks_at_all(self, plan: object, edges: Edges, n_features: int) -> bool:
        """Whether `failures_from_edges`, asked to look, refuses NaN and infinity in every one of so many columns."""

    def sees_all(self, positions: object, n_features: int) -> bool:
        """The same of `bound_means`."""

    def bound_means(
        self, rows: FloatArray, curve: object, sides: object, asked: object, *, must_look: bool
    ) -> tuple[NDArray[np.int8], FloatArray]:
        """By the mean rule, from tables of `envelopes`: labels, negative where left to the host, and powers."""

    MOST_TERMS: int
    """Of which `bound_means` takes sums."""


class NotFiniteError(ValueError):
    """A device was given rows that hold NaN or infinity; whoever knows the columns says which."""


def as_device(kernels: Backend) -> DeviceBackend | None:
    """The backend as one on a device; None where it is none."""
    return cast(DeviceBackend, kernels) if hasattr(kernels, "failures_from_edges") else None


_SMALLEST, _HALF = 2.0**-1074, 0.5


def require_gradual_underflow() -> None:
    """Refuse a thread in which subnormal numbers count as zero: bounds would lose mass (README.md, step 3).

    Found by arithmetic, whatever the processor: a result below the smallest normal double, and an operand.
    """
    if not (TINY * _HALF > 0.0 and _SMALLEST * 2.0**1000 > 0.0):
        raise ValueError(
            "The processor flushes subnormal numbers to zero in this thread, which would make bounds unsound: some "
            "library has set it so, often one compiled with -ffast-math. Set it back before certifying, such as by "
            "torch.set_flush_denormal(False), or certify in a process that does not load that library."
        )


BACKENDS = {
    "numba": "derand.kernels.tails.numba_backend",
    "numpy": "derand.kernels.tails.numpy_backend",
    "cuda": "derand.kernels.cuda.backend",
}
DEFAULT_BACKEND = "numba"


def load_backend(name: str | None, work: Work | None = None) -> Backend:
    """The backend of that name, imported on first use; None chooses by the sizes of a call: the default, or a GPU."""
    chosen = name
    if name is None:
        is_for_device = work is not None and suits_device(work)
        chosen = "cuda" if is_for_device and has_gpu() else DEFAULT_BACKEND
    if chosen not in BACKENDS:
        raise ValueError(f"`backend` must be one of {', '.join(BACKENDS)} or None, got {name!r}.")
    return cast(Backend, import_module(BACKENDS[chosen]))


def has_gpu() -> bool:
    """Whether the backend "cuda" can work here."""
    return import_module("derand.kernels.cuda.device").explain_absence() is None


MANY_CELLS = 32
"""Of a term, on the average: from there on its characteristic function bounds what is dropped in inversion."""
FEWEST_TERMS, FEWEST_TERMS_OF_FEW_CELLS, FEW_CELLS = 8, 32, 8
"""Of so many terms, of many cells and of fewer ones, characteristic functions multiply to something small."""
INVERSION_EXCESS = 1e-10
"""By how much, at most, Fourier inversion overestimates a mass near 1/2 (README.md, step 7)."""
MANY_CELLS_EXCESS = 3e-9
FEW_TERMS_EXCESS = 4e-8
"""The same for terms of 32 cells and more on the average, and for fewer than 64 terms."""


def may_invert(n_terms: int, n_cells: int) -> bool:
    """Whether Fourier inversion is tried on a model of this size: fewer terms need more cells."""
    if n_terms >= MIN_TERMS_FOR_FOURIER:
        return True
    has_few = n_terms >= FEWEST_TERMS_OF_FEW_CELLS and n_cells >= FEW_CELLS * n_terms
    return has_few or (n_terms >= FEWEST_TERMS and n_cells >= MANY_CELLS * n_terms)


def failure_excess(n_terms: int, n_cells: int) -> float:
    """By how much `failures` and `tails` can overestimate a mass near 1/2 (README.md, steps 2, 6 and 7)."""
    roundings = 2 * n_cells + 8 * n_terms + 2048
    if not may_invert(n_terms, n_cells):
        return roundings * EPSILON
    if n_terms < MIN_TERMS_FOR_FOURIER:
        return roundings * EPSILON + FEW_TERMS_EXCESS
    return roundings * EPSILON + (MANY_CELLS_EXCESS if n_cells >= MANY_CELLS * n_terms else INVERSION_EXCESS)


def rounding_bound(n_cells: int) -> float:
    """Relative error of every mass that a backend returns, for a model of this many cells (README.md, step 2)."""
    return (n_cells + 64) * EPSILON
