"""Kernels: sums over all outcomes of independent terms, on arrays alone.

README.md beside this file holds the contract and the rounding argument. A backend is one module with the three
functions `failures`, `tails` and `laws`, named in BACKENDS. Kernels trust their input and import nothing of derand
outside this folder.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EPSILON = 2.0**-52
TINY = 2.0**-1022
"""Smallest normal double."""
LOG_HALF = -0.6931471805599454
"""Below log(1/2)."""
NEGLIGIBLE = 1e-307
"""Mass that may be dropped at each end of a law after each term: in all, it weighs less than FLOOR."""
FLOOR = 1e-300
"""Added to each mass that is not impossible: more than dropping and underflow can have lost (README.md, step 3)."""


class Backend(Protocol):
    """What a backend offers; README.md says what the arrays hold."""

    HOLDS_ALL_LAWS: bool
    """Whether the laws of all rows of a call are in memory at the same time."""

    def failures(
        self, table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""

    def tails(
        self, table: FloatArray, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """P(S <= low) and P(S > high) for each row and each of its thresholds."""

    def laws(self, table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
        """P(S = s) for each row and s = 0, 1, ..., largest score."""


@runtime_checkable
class DeviceBackend(Backend, Protocol):
    """A backend on a device of its own, which also computes the probability table there."""

    BLOCK_ROWS: int
    """Rows that a call should get: one call keeps the device busy, callers need not split rows among threads."""
    NOISES: frozenset[str]
    """Names of the noises whose tables it computes."""

    def failures_from_edges(
        self,
        rows: FloatArray,
        edges: FloatArray,
        edge_features: IntArray,
        units: FloatArray,
        magnitude: float,
        noise: str,
        starts: IntArray,
        scores: IntArray,
        thresholds: IntArray,
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """`failures`, the table computed from rows, edges grouped by term, and one unit per edge."""

    def tails_from_edges(
        self,
        rows: FloatArray,
        edges: FloatArray,
        edge_features: IntArray,
        units: FloatArray,
        magnitude: float,
        noise: str,
        starts: IntArray,
        scores: IntArray,
        low: IntArray,
        high: IntArray,
    ) -> tuple[FloatArray, FloatArray]:
        """`tails`, the table computed in the same way."""


BACKENDS = {"numba": "derand.kernels._numba", "numpy": "derand.kernels._numpy", "cuda": "derand.kernels._cuda"}
DEFAULT_BACKEND = "numba"
BIG_WORK = 2**26
"""Cells of all rows together from which on a GPU, where there is one, is chosen without being asked for."""


def load_backend(name: str | None, work: int = 0) -> Backend:
    """The backend of that name, imported on first use; None chooses for so many cells: the default, or a GPU."""
    chosen = name
    if name is None:
        chosen = "cuda" if work >= BIG_WORK and has_gpu() else DEFAULT_BACKEND
    if chosen not in BACKENDS:
        raise ValueError(f"`backend` must be one of {', '.join(BACKENDS)} or None, got {name!r}.")
    return cast(Backend, import_module(BACKENDS[chosen]))


def has_gpu() -> bool:
    """Whether the backend "cuda" can work here."""
    return import_module("derand.kernels._cuda_device").explain_absence() is None


MIN_TERMS_FOR_FOURIER = 64
INVERSION_EXCESS = 1e-10
"""By how much, at most, Fourier inversion overestimates a mass near 1/2 (README.md, step 7)."""


def failure_excess(n_terms: int, n_cells: int) -> float:
    """By how much `failures` and `tails` can overestimate a mass near 1/2 (README.md, steps 2, 6 and 7)."""
    roundings = 2 * n_cells + 8 * n_terms + 2048
    return roundings * EPSILON + (INVERSION_EXCESS if n_terms >= MIN_TERMS_FOR_FOURIER else 0.0)


def rounding_bound(n_cells: int) -> float:
    """Relative error of every mass that a backend returns, for a model of this many cells (README.md, step 2)."""
    return (n_cells + 64) * EPSILON
