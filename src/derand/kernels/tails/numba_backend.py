"""The default backend: compiled kernels, one file per method. Serial and without the GIL: callers run threads."""

from __future__ import annotations

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.tails import pmfs as _pmfs
from derand.kernels.tails.failures import Plan, failures, prepare

__all__ = ["HOLDS_ALL_PMFS", "failures", "pmfs", "prepare", "tails"]

HOLDS_ALL_PMFS = False


def tails(plan: Plan, table: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    masses: tuple[FloatArray, FloatArray] = _pmfs.tails(table, plan.starts, plan.scores, low, high)
    return masses


def pmfs(plan: Plan, table: FloatArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    found: FloatArray = _pmfs.pmfs(table, plan.starts, plan.scores)
    return found
