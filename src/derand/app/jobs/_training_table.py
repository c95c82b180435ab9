"""Files to learn from: labels or numbers to be predicted, and the columns that are useful.

Owns what a table needs so that something can be learnt from it. Must not know what is trained, nor how files are read
and columns judged: `derand.tables` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.files import PathLike
from derand._core.origin import Cell
from derand._core.text import format_exactly, quote_short
from derand.app.jobs._tasks import Task, guess_task
from derand.app.settings import NUMBER, TrainSettings
from derand.tables import (
    MOST_CLASSES,
    ColumnCheck,
    ColumnKind,
    ColumnUse,
    Labels,
    TableFile,
    check_columns,
    check_target,
    inspect_file,
    kind_of_arrow_type,
    refuse_identifiers,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """The rows and targets of a file, and what was found out about every column."""

    rows: pa.Table
    """The columns to learn from."""
    labels: Labels
    """Whole numbers or text; where a number is to be predicted, doubles."""
    task: Task
    checks: tuple[ColumnCheck, ...]
    """Of all columns but the target."""
    doubt: str | None = None
    """What is doubtful about numbers to be predicted."""


def read_training_data(data: PathLike, target: str, asked: TrainSettings) -> TrainingData:
    """Read a file to learn from; what cannot be learnt from is refused by name. A task of None is guessed."""
    file, categorical, ignored = inspect_file(data), asked.categorical, asked.ignored
    numerical, dates = asked.numerical, asked.dates
    table = file.read(as_text=categorical)
    file.require_columns([target, *ignored, *numerical, *dates])
    _require_one_use(target, {"categorical": categorical, "ignored": ignored, "numerical": numerical, "a date": dates})
    labels, found = _read_target(file, table, target, asked.task)
    for name in dates:
        days = file.read_dates(table.column(name), name)
        table = table.set_column(table.column_names.index(name), name, days)
    features = as_doubles(table.drop_columns([target]))
    checks = check_columns(
        features, categorical=categorical, ignored=ignored, numerical=[*numerical, *dates], target=labels
    )
    used = [str(check.name) for check in checks if check.use is not ColumnUse.IGNORED]
    if not used:
        raise ValueError(f"{data} has no column to learn from: {_describe_reasons(checks)}.")
    file.require_usable(checks, table.num_rows)
    doubt = check_target(target, labels) if found.name == NUMBER else None
    return TrainingData(features.select(used), labels, found, checks, doubt)


def _require_one_use(target: str, uses: Mapping[str, Collection[str]]) -> None:
    """Refuse a column that is to be two things at once."""
    taken = {target: "the target"}
    for use, names in uses.items():
        for name in dict.fromkeys(names):
            if name in taken:
                raise ValueError(f"The column {name!r} is {taken[name]}: it cannot be {use} as well.")
            taken[name] = use


def _read_target(file: TableFile, table: pa.Table, target: str, task: str | None) -> tuple[Labels, Task]:
    """The labels as whole numbers or text, or the numbers to be predicted; and which of both."""
    file.require_complete(table, [target])
    column = table.column(target)
    kind = kind_of_arrow_type(column.type)
    if kind not in (ColumnKind.NUMBER, ColumnKind.TEXT):
        raise ValueError(
            f"{file.label} has labels in the column {target!r} that are {kind.value}: use numbers or text."
        )
    values = column.to_pylist()
    numbers = values if kind is ColumnKind.NUMBER else None
    found = guess_task(numbers) if task is None else Task(task, "as asked")
    if found.name == NUMBER:
        return _read_numbers(file, values, target), found
    return _read_labels(file, values, target, is_number=numbers is not None), found


def _read_numbers(file: TableFile, values: list[object], target: str) -> FloatArray:
    """The numbers to be predicted."""
    texts = _find_texts(values)
    if texts:
        row, value = texts[0]
        raise ValueError(
            f"{file.label} has the text {quote_short(value)} in row {row} of the column {target!r} "
            f"({len(texts):,} of {len(values):,} cells are no numbers): a number to be predicted needs numbers. "
            "Correct such cells, or let the task be classes."
        )
    numbers = np.array(values, dtype=np.float64)
    if (numbers == numbers[0]).all():
        raise ValueError(
            f"{file.label} has the same number, {format_exactly(float(numbers[0]))}, in every row of the column "
            f"{target!r}: there is nothing to predict. Choose another target."
        )
    return numbers


def _find_texts(values: list[Cell]) -> list[tuple[int, str]]:
    """The cells that are no numbers, with their rows: all numbers of a column are text where one cell is."""
    found = []
    for row, value in enumerate(values, start=1):
        try:
            float(value)
        except ValueError:
            found.append((row, value))
    return found


def _explain_many(values: list[object]) -> str:
    """What may be wrong where a target has too many different labels: mostly numbers, and what is none."""
    texts = _find_texts(values)
    if 2 * len(texts) > len(values):
        return ""
    if not texts:
        return " Numbers to be predicted are another task (--task number)."
    row, value = texts[0]
    return (
        f" Most cells are numbers, but not {quote_short(value)} in row {row}: correct it for a number to be predicted."
    )


def _read_labels(file: TableFile, values: list[Cell], target: str, *, is_number: bool) -> Labels:
    """The labels as whole numbers or text."""
    if is_number:
        values = [int(value) for value in values] if all(value == int(value) for value in values) else values
    labels = np.array(values)
    found = np.unique(labels)
    refuse_identifiers(len(found), len(labels), f"{file.label}, column {target!r},", _explain_many(values))
    if not 2 <= len(found) <= MOST_CLASSES:
        shown = ", ".join(map(quote_short, found[:5].tolist())) + (", ..." if len(found) > 5 else "")
        raise ValueError(
            f"{file.label} has {len(found)} different label{'' if len(found) == 1 else 's'} in the column {target!r} "
            f"({shown}): there must be two at least and {MOST_CLASSES} at most."
            f"{_explain_many(values) if len(found) > MOST_CLASSES else ''}"
        )
    return labels if np.issubdtype(labels.dtype, np.integer) else labels.astype(str)


def as_doubles(table: pa.Table) -> pa.Table:
    """The same columns, numbers as float64."""
    import pyarrow as pa

    columns = [
        column.cast("float64", safe=False)
        if kind_of_arrow_type(column.type) is ColumnKind.NUMBER and column.type != pa.float64()
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names) if columns else table


def _describe_reasons(checks: Iterable[ColumnCheck]) -> str:
    reasons = [f"{quote_short(check.name)} {check.reason}" for check in checks]
    return "; ".join(reasons[:8]) or "only the target is there"
