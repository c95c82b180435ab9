"""What each way to a failing mass costs, in nanoseconds, as measured: the one place from which kernels choose.

The choice depends on a row and on the sizes of its call alone, never on a clock: the same call gives the same bits.
`python -m experiments bench kernels` measures again what these numbers stand for.
"""

from __future__ import annotations

LAW_CELL = 0.3
LAW_STUMP = 0.6
"""By tilted laws: per cell and tilted deviation; of terms of two cells."""
FOURIER_ROW = 2000.0
FOURIER_CELL = 12.0
"""By inversion: tilting a cell and turning it by all frequencies that are kept."""
POLYNOMIAL_POINT = 3.0
POLYNOMIAL_PAIR = 2.0
"""Bound by a cosine polynomial: per point of its transform, and per pair of cells."""
SPECTRUM_POINT = 5.0
"""Bound by characteristic functions: per chosen term and interval of the grid."""
