"""Tables: kinds of columns, arrays and frames as matrices with category codes, files of rows, and the column check.

Must not know models, noise or scikit-learn. pandas, polars and pyarrow are imported only where a table or file of
theirs is read.
"""

from __future__ import annotations

from derand._core.arrays import Labels
from derand._core.origin import take_rows
from derand.tables._arrow import names_stream
from derand.tables._columns import (
    ColumnCheck,
    ColumnUse,
    ColumnWarning,
    check_columns,
    describe_data_checks,
    format_data_checks,
)
from derand.tables._data_checks import FEW_CLASSES, MOST_CLASSES, check_target, refuse_identifiers
from derand.tables._dates import SECONDS, dates_to_numbers, format_days, format_moment
from derand.tables._encoding import CategoricalFeatures, CategoryKindError, TableEncoding, count_decimals, is_whole
from derand.tables._files import TableFile, inspect_file
from derand.tables._kinds import Category, ColumnKind, is_missing, kind_of_arrow_type, kind_of_values
from derand.tables._matching import MatchedFile, make_unseen, match_file
from derand.tables._tables import as_rows, is_frame, list_other_floats, stack_copies
from derand.tables._writing import write_batches

__all__ = [
    "FEW_CLASSES",
    "MOST_CLASSES",
    "SECONDS",
    "CategoricalFeatures",
    "Category",
    "CategoryKindError",
    "ColumnCheck",
    "ColumnKind",
    "ColumnUse",
    "ColumnWarning",
    "Labels",
    "MatchedFile",
    "TableEncoding",
    "TableFile",
    "as_rows",
    "check_columns",
    "check_target",
    "count_decimals",
    "dates_to_numbers",
    "describe_data_checks",
    "format_data_checks",
    "format_days",
    "format_moment",
    "inspect_file",
    "is_frame",
    "is_missing",
    "is_whole",
    "kind_of_arrow_type",
    "kind_of_values",
    "list_other_floats",
    "make_unseen",
    "match_file",
    "names_stream",
    "refuse_identifiers",
    "stack_copies",
    "take_rows",
    "write_batches",
]
