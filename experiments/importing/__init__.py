"""Models of other libraries: how near what stands for them comes, and what can be certified of them."""

from __future__ import annotations

from experiments.importing._cost import Cost, measure_cost
from experiments.importing._parity import Parity, compare_examples, list_examples, measure_parity
from experiments.importing._table import IMPORT_DATASETS, RADII, Imported, compare_imported, list_models

__all__ = [
    "IMPORT_DATASETS",
    "RADII",
    "Cost",
    "Imported",
    "Parity",
    "compare_examples",
    "compare_imported",
    "list_examples",
    "list_models",
    "measure_cost",
    "measure_parity",
]
