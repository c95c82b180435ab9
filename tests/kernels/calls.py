"""The kernels called with a model's arrays: prepares the plan on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from derand.kernels import Failures, load_backend


def failures(
    backend: str,
    table: np.ndarray,
    starts: np.ndarray,
    scores: np.ndarray,
    thresholds: np.ndarray,
    *,
    invert: bool = True,
) -> Failures:
    kernels: Any = load_backend(backend)
    return kernels.failures(kernels.prepare(starts, scores, invert=invert), table, thresholds)


def tails(
    backend: str, table: np.ndarray, starts: np.ndarray, scores: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    kernels: Any = load_backend(backend)
    return kernels.tails(kernels.prepare(starts, scores), table, low, high)


def laws(backend: str, table: np.ndarray, starts: np.ndarray, scores: np.ndarray) -> np.ndarray:
    kernels: Any = load_backend(backend)
    return kernels.pmfs(kernels.prepare(starts, scores), table)
