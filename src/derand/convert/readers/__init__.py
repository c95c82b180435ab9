"""Readers of fitted models, one module per library or family: `read(model)` gives a Reading or a TreeReading.

A module of a library whose own files are read has `load_file(path)` as well.
"""

from __future__ import annotations

from derand.convert.readers._sklearn_wrappers import Wrapped, has_own_threshold, unwrap_threshold

__all__ = ["Wrapped", "has_own_threshold", "unwrap_threshold"]
