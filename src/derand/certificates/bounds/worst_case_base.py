"""What every worst case of a sum answers, whatever its terms are made of. Must not know how distances are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, Numbers
from derand.kernels.worst_case.steps import Reach

DUAL, EXACT = range(2)
"""How a distance was found: by a multiplier per distance or another bound, or without any gap."""


class WorstCase(ABC):
    """How far rows can be moved before a sum of functions can fall to a threshold."""

    together: ClassVar[int] = 1
    """How many thresholds of a row are best asked for at a time: more than one where they cost little more."""

    def list_arrays(self) -> list[Numbers]:
        """The arrays that it keeps, which may be shared with others: what it takes of memory."""
        return collect_arrays(list(vars(self).values()))

    @abstractmethod
    def bound_radii(
        self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found, both (n_rows, n_thresholds).

        Within a smaller distance, and within the box, the sum stays above the threshold. 0 where nothing is proven;
        for norm 0 the number of columns that may be moved anywhere. Without a norm infinite where the sum stays above
        the threshold within the whole reach.
        """

    def sketch_radii(self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None) -> FloatArray | None:
        """Lower bounds of what `bound_radii` finds, at far less cost; None where there are none to be had.

        An infinite one is what `bound_radii` finds, too.
        """
        return None

    @abstractmethod
    def compute_lowest(self, rows: FloatArray, box: Reach) -> FloatArray:
        """Lower bounds of the least sum within the box, (n_rows,)."""

    @abstractmethod
    def compute_floors(self, rows: FloatArray, box: Reach) -> NDArray[np.generic]:
        """Lower bounds of the least value of each function within the box, (n_rows, n_terms).

        Their sum may be off by as much as `compute_lowest` takes into account. Whole numbers without noise.
        """


def collect_arrays(held: object) -> list[NDArray[np.generic]]:
    """All arrays in lists, tuples and dicts."""
    if isinstance(held, np.ndarray):
        return [held]
    parts = list(held.values()) if isinstance(held, dict) else held if isinstance(held, list | tuple) else []
    return [array for part in parts for array in collect_arrays(part)]
