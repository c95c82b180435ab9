"""The default backend: compiled kernels, one file per method. Serial and without the GIL: callers run threads."""

from __future__ import annotations

from derand.kernels._numba_laws import laws, tails
from derand.kernels._numba_tilted import failures

__all__ = ["HOLDS_ALL_LAWS", "failures", "laws", "tails"]

HOLDS_ALL_LAWS = False
