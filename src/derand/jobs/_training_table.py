"""Files to learn from: labels, and the columns that are useful.

Owns what a table needs so that something can be learnt from it. Must not know what is trained, nor how files are read
and columns judged: `derand.frames` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from derand.estimators import MOST_CLASSES
from derand.files import PathLike
from derand.frames import (
    ColumnCheck,
    ColumnKind,
    ColumnUse,
    Labels,
    TableFile,
    check_columns,
    inspect_file,
    kind_of_arrow_type,
)
from derand.text import quote_short

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """The rows and labels of a file, and what was found out about every column."""

    rows: pa.Table
    """The columns to learn from."""
    labels: Labels
    checks: tuple[ColumnCheck, ...]
    """Of all columns but the target."""


def read_training_data(
    data: PathLike, target: str, *, categorical: Collection[str], ignored: Collection[str]
) -> TrainingData:
    """Read a file to learn from; what cannot be learnt from is refused by name."""
    file = inspect_file(data)
    table = file.read(as_text=categorical)
    file.require_columns([target, *ignored])
    if target in categorical or target in ignored:
        raise ValueError(f"The column {target!r} is the target: it cannot be categorical or ignored as well.")
    labels = _read_labels(file, table, target)
    features = _read_features(table, target)
    checks = check_columns(features, categorical=categorical, ignored=ignored)
    used = [str(check.name) for check in checks if check.use is not ColumnUse.IGNORED]
    if not used:
        raise ValueError(f"{data} has no column to learn from: {_describe_reasons(checks)}.")
    file.require_usable(checks, table.num_rows)
    return TrainingData(features.select(used), labels, checks)


def _read_labels(file: TableFile, table: pa.Table, target: str) -> Labels:
    """The labels as whole numbers or text."""
    file.require_complete(table, [target])
    column = table.column(target)
    kind = kind_of_arrow_type(column.type)
    if kind not in (ColumnKind.NUMBER, ColumnKind.TEXT):
        raise ValueError(f"{file.path} has labels in the column {target!r} that are {kind.value}: use numbers or text.")
    values = column.to_pylist()
    if kind is ColumnKind.NUMBER:
        values = [int(value) for value in values] if all(value == int(value) for value in values) else values
    labels = np.array(values)
    found = np.unique(labels)
    if not 2 <= len(found) <= MOST_CLASSES:
        shown = ", ".join(map(quote_short, found[:5].tolist())) + (", ..." if len(found) > 5 else "")
        raise ValueError(
            f"{file.path} has {len(found)} different labels in the column {target!r} ({shown}): there must be two at "
            f"least and {MOST_CLASSES} at most."
        )
    return labels if np.issubdtype(labels.dtype, np.integer) else labels.astype(str)


def _read_features(table: pa.Table, target: str) -> pa.Table:
    """All columns but the target, numbers as float64."""
    import pyarrow as pa

    features = table.drop_columns([target])
    columns = [
        column.cast("float64", safe=False) if kind_of_arrow_type(column.type) is ColumnKind.NUMBER else column
        for column in features.columns
    ]
    return pa.table(columns, names=features.column_names) if columns else features


def _describe_reasons(checks: Iterable[ColumnCheck]) -> str:
    reasons = [f"{quote_short(check.name)} {check.reason}" for check in checks]
    return "; ".join(reasons[:8]) or "only the target is there"
