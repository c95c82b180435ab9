"""The default backend: compiled kernels, one file per method. Serial and without the GIL: callers run threads."""

from __future__ import annotations

from derand.kernels._numba_failures import failures
from derand.kernels._numba_laws import laws, tails

__all__ = ["HOLDS_ALL_LAWS", "failures", "laws", "tails"]

HOLDS_ALL_LAWS = False
