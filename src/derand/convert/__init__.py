"""Fitted models of other libraries, read as sums of functions.

`readers/` has one module per library, which is imported where used; `pipelines/` folds a pipeline's steps into the
model behind them; `onnx/` writes models for others. A new reader is one module and one row in `_registry`:
`derand.from_model`, the command line and the parity tests then know it. Must not know estimators.
"""

from __future__ import annotations

from derand.convert._columns import adopt_table, decode_rows
from derand.convert._files import PICKLES, SKOPS, load_pickle, load_skops, read_file
from derand.convert._probing import compare_scores, is_explained, probe_rows
from derand.convert._reading import Reading
from derand.convert._registry import IMPORTERS, read_model
from derand.convert.readers import Wrapped, has_own_threshold, unwrap_threshold

__all__ = [
    "IMPORTERS",
    "PICKLES",
    "SKOPS",
    "Reading",
    "Wrapped",
    "adopt_table",
    "compare_scores",
    "decode_rows",
    "has_own_threshold",
    "is_explained",
    "load_pickle",
    "load_skops",
    "probe_rows",
    "read_file",
    "read_model",
    "truncates_categories",
    "unwrap_threshold",
]


def truncates_categories(source: str) -> bool:
    """Whether the library of a `Reading.source` takes 1.5 for the category 1 of a column of whole numbers."""
    return source.startswith(("lightgbm.", "xgboost."))
