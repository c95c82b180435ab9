"""Models of other libraries: what can be certified of them, plain and trained for smoothing."""

from __future__ import annotations

from experiments.importing._table import IMPORT_DATASETS, RADII, Imported, compare_imported, list_models

__all__ = ["IMPORT_DATASETS", "RADII", "Imported", "compare_imported", "list_models"]
