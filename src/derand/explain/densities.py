"""Where the rows of a column lie: counts in bins, or of categories. Owns how few numbers of a column a picture needs.

Must not know models or what is drawn above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, IntArray

BINS = 40


class Density(NamedTuple):
    """How often values of a column occur.

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
        Ends of the bins; of categories their codes, (n_codes,).
    counts : array of shape (n_bins,)
    is_category : bool
    """

    edges: FloatArray
    counts: IntArray
    is_category: bool

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest number; None where there is none."""
        return (float(self.edges[0]), float(self.edges[-1])) if self.edges.size else None

    def count(self, code: float) -> int:
        """How many rows have a category."""
        return int(self.counts[self.edges == code].sum())


def measure_density(column: ArrayLike, is_category: bool = False) -> Density:
    """How often values of a column occur; missing ones are left out.

    Parameters
    ----------
    column : array-like of shape (n_rows,)
        Numbers, or codes of categories.
    is_category : bool

    Returns
    -------
    Density

    Examples
    --------
    >>> found = measure_density([1.0, 1.0, 3.0, float("nan")])
    >>> found.ends, int(found.counts.sum())
    ((1.0, 3.0), 3)
    >>> measure_density([0, 1, 1], is_category=True).count(1)
    2
    """
    values = np.asarray(column, dtype=np.float64)
    values = values[~np.isnan(values)]
    if is_category:
        codes, counts = np.unique(values, return_counts=True)
        return Density(codes, counts.astype(np.int64), True)
    if not values.size:
        return Density(np.empty(0), np.empty(0, dtype=np.int64), False)
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high, BINS + 1) if math.isfinite(high - low) else np.array([low, high])
    if not (edges[1:] > edges[:-1]).all() or edges.size == 2:  # all equal, or too far apart or too close for bins
        return Density(np.array([low, high]), np.array([values.size]), False)
    at = np.clip(((values - low) * (BINS / (high - low))).astype(np.int64), 0, BINS - 1)
    return Density(edges, np.bincount(at, minlength=BINS), False)
