"""What each way to a failing mass costs, in nanoseconds, as measured: the one place from which kernels choose.

The choice depends on a row and on the sizes of its call alone, never on a clock: the same call gives the same bits.
`python -m experiments bench kernels` measures again what these numbers stand for.
"""

from __future__ import annotations

from typing import NamedTuple

LAW_CELL = 0.3
LAW_STUMP = 0.6
"""By tilted pmfs: per cell and tilted deviation; of terms of two cells."""
FOURIER_ROW = 2000.0
FOURIER_CELL = 12.0
"""By inversion: tilting a cell and turning it by all frequencies that are kept."""
POLYNOMIAL_POINT = 3.0
POLYNOMIAL_PAIR = 2.0
"""Bound by a cosine polynomial: per point of its transform, and per pair of cells."""
SPECTRUM_POINT = 5.0
"""Bound by characteristic functions: per chosen term and interval of the grid."""
DEVICE_STUMP = 3.0
DEVICE_LAW_CELL = 0.05
"""On a GPU, transfers included: per term of two cells that is inverted; by pmfs, per cell and tilted deviation."""
BIG_WORK = 2**26
"""Cells of all rows together below which a GPU is not chosen without being asked for: its start would cost more."""
MIN_TERMS_FOR_FOURIER = 64
"""From that many terms on inversion is as accurate as pmfs; fewer are inverted only where they have many cells."""
WHOLE_SINGLES = 2.0**24
"""Whole numbers below are exact in single precision, in which a GPU finds the angles of its frequencies."""
_PERIODS = 13.0  # deviations in the period of an inversion
_TYPICAL = 0.6  # deviations of trained models, over the largest possible one


class Work(NamedTuple):
    """The sizes of a call."""

    n_rows: int
    n_terms: int
    n_cells: int
    """Of all terms together."""
    largest: float
    """Largest range of a term's scores."""
    widest: float
    """Largest deviation that the score can have."""
    n_threads: int


def suits_device(work: Work) -> bool:
    """Whether a GPU is likely to be faster than the threads of a call, and the call large enough for its start."""
    if work.n_rows * work.n_cells < BIG_WORK:
        return False
    deviation, are_stumps = _TYPICAL * work.widest, work.n_cells == 2 * work.n_terms
    pmf = (LAW_STUMP if are_stumps else LAW_CELL) * work.n_cells * deviation
    host, device = pmf, DEVICE_LAW_CELL * work.n_cells * deviation
    if work.n_terms >= MIN_TERMS_FOR_FOURIER and are_stumps:
        points = min(2.5 * work.widest, max(2048.0, 0.3 * work.widest))
        host = min(pmf, FOURIER_ROW + FOURIER_CELL * work.n_cells + POLYNOMIAL_POINT * points)
        if 0.5 * _PERIODS * deviation * work.largest < WHOLE_SINGLES:
            device = DEVICE_STUMP * work.n_terms
    return device < host / work.n_threads
