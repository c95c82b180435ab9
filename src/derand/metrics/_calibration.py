"""Probabilities beside what happened: log-loss and the calibration curve. Must not know where they come from."""

from __future__ import annotations

import math
from typing import NamedTuple, TypedDict

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray
from derand.metrics._shares import Estimate, EstimateSummary, Z, compute_wilson_interval

_BINS = 10
_ROWS_PER_BIN = 20


class CalibrationSummary(TypedDict):
    """Rows of like probabilities, as results for others hold them."""

    low: float
    high: float
    rows: int
    mean_predicted: float
    observed: EstimateSummary


class CalibrationBin(NamedTuple):
    """Rows of like probabilities: what was predicted on average, and the share that was of class 1 indeed."""

    low: float
    high: float
    n_rows: int
    mean_predicted: float
    observed: Estimate

    def to_dict(self) -> CalibrationSummary:
        """The same as a plain dict."""
        return {
            "low": self.low,
            "high": self.high,
            "rows": self.n_rows,
            "mean_predicted": self.mean_predicted,
            "observed": self.observed.to_dict(),
        }


class LossSums:
    """The log-loss of all rows so far, as sums."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._sum = self._squares = 0.0

    def add(self, probability: FloatArray) -> None:
        """Count rows by the probability of their true class; none counts as less than 2**-52."""
        losses = -np.log(np.maximum(probability, EPSILON))
        self._n_rows += losses.size
        self._sum += float(losses.sum())
        self._squares += float(losses @ losses)

    def measure(self) -> Estimate:
        """The mean, and a normal interval by its standard error."""
        mean = self._sum / self._n_rows
        variance = max(0.0, self._squares / self._n_rows - mean * mean)
        half = Z * math.sqrt(variance / self._n_rows)
        return Estimate(mean, max(0.0, mean - half), mean + half)


def draw_calibration(probability: FloatArray, is_one: BoolArray) -> tuple[CalibrationBin, ...]:
    """Rows in ten bins of about the same size, by their probability; in fewer where a bin would have less than 20 rows.

    `probability` (n_rows,): of class 1; `is_one` has shape (n_rows,). The result: from the lowest to the highest; rows
    of one probability are never torn apart.
    """
    n_bins = max(1, min(_BINS, probability.size // _ROWS_PER_BIN))
    edges = np.unique(np.quantile(probability, np.arange(1, n_bins) / n_bins, method="lower"))
    at = np.searchsorted(edges, probability, side="left")
    found = []
    for place in range(edges.size + 1):
        chosen = np.flatnonzero(at == place)
        if chosen.size:
            inside = probability[chosen]
            observed = compute_wilson_interval(int(is_one[chosen].sum()), chosen.size)
            mean = min(max(float(inside.mean()), float(inside.min())), float(inside.max()))
            found.append(CalibrationBin(float(inside.min()), float(inside.max()), int(chosen.size), mean, observed))
    return tuple(found)


def measure_entropy(shares: FloatArray) -> float:
    """The log-loss of the shares of the classes themselves, given to every row."""
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum())
