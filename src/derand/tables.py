"""Tables on disk, CSV and Parquet, whole or batch by batch.

Owns reading columns as numbers or text, with one clear error for each way a file can be wrong, and writing results
while they come. Must not know models. The work is done by pyarrow and not by polars: its readers and writers go
through a file of any size batch by batch, with column types fixed beforehand, in both formats.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from derand.files import PathLike, replace_when_done

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET = (".parquet", ".pq")
_DELIMITERS = ",;\t"
_BLOCK_BYTES = 2**22
_BATCH_ROWS = 2**16
_STRAY_TEXT = re.compile(r"CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to double: invalid value '(.*)'")


class ColumnKind(Enum):
    """What the cells of a column are."""

    NUMBER = "numbers"
    TEXT = "text"
    EMPTY = "empty"
    OTHER = "neither numbers nor text"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of equal length, by name.

    Attributes
    ----------
    columns : dict of arrays of shape (n_rows,)
        float64 with NaN for an empty cell where the kind is NUMBER; of dtype object, str with None for an empty cell,
        where it is TEXT; columns of other kinds are not read and have no entry.
    kinds : dict of ColumnKind
        For all columns, in the order of the file.
    whole : frozenset of str
        NUMBER columns whose cells are all whole numbers in the file.
    n_rows : int
    """

    columns: Mapping[str, NDArray[Any]]
    kinds: Mapping[str, ColumnKind]
    whole: frozenset[str]
    n_rows: int

    def stack(self, names: Collection[str]) -> NDArray[Any]:
        """Some columns side by side, shape (n_rows, n_names): float64, or object where text is among them."""
        kinds = {self.kinds[name] for name in names}
        rows = np.empty((self.n_rows, len(names)), dtype=object if ColumnKind.TEXT in kinds else np.float64)
        for at, name in enumerate(names):
            rows[:, at] = self.columns[name]
        return rows


def read_table(path: PathLike, as_text: Collection[str] = ()) -> Table:
    """Read all columns of a file, with the kinds that are found.

    Parameters
    ----------
    path : path-like
        Parquet where the name ends with .parquet or .pq, otherwise CSV with a header line, separated by commas,
        semicolons or tabs (the most frequent of them in the header).
    as_text : collection of str
        Columns to be read as text, whatever they look like.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("age,job\\n31,clerk\\n,\\n")
    ...     read_table(file).columns
    {'age': array([31., nan]), 'job': array(['clerk', None], dtype=object)}
    """
    names = read_names(path)
    require_columns(path, names, as_text)
    with _clear_errors(path):
        content = _read_arrow(path, as_text)
    if not content.num_rows:
        raise ValueError(f"{path} has a header line but no rows.")
    kinds = {name: ColumnKind.TEXT if name in as_text else _kind_of(content.schema.field(name).type) for name in names}
    columns = {
        name: _as_array(content.column(name), kind)
        for name, kind in kinds.items()
        if kind in (ColumnKind.NUMBER, ColumnKind.TEXT)
    }
    whole = frozenset(name for name in columns if _is_whole(content.schema.field(name).type))
    return Table(columns, kinds, whole, content.num_rows)


def read_names(path: PathLike) -> tuple[str, ...]:
    """Column names of a file, in order; none may be there twice."""
    with _clear_errors(path):
        if _is_parquet(path):
            import pyarrow.parquet as pq

            names = tuple(pq.read_schema(path).names)
        else:
            names = tuple(_open_csv(path, {}).schema.names)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} has two columns named {name!r}: rename one.")
    if not names:
        raise ValueError(f"{path} has no columns.")
    return names


def read_batches(path: PathLike, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
    """Read some columns of a file batch by batch, as numbers or text; memory does not grow with the file.

    Parameters
    ----------
    path : path-like
    kinds : mapping of str to ColumnKind
        The columns to read, NUMBER or TEXT each.

    Yields
    ------
    Table
        At most some ten thousand rows; never an empty one.
    """
    names = read_names(path)
    require_columns(path, names, kinds)
    with _clear_errors(path, names):
        for batch in _batches(path, kinds):
            if batch.num_rows:
                columns = {name: _as_array(batch.column(name), kind) for name, kind in kinds.items()}
                yield Table(columns, kinds, frozenset(), batch.num_rows)


def require_columns(path: PathLike, names: Collection[str], wanted: Collection[str]) -> None:
    """Refuse a file in which columns are missing; suggests the nearest name."""
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    close = difflib.get_close_matches(missing[0], names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else f" Its columns are {_list_some(names)}."
    noun = "column" if len(missing) == 1 else "columns"
    raise ValueError(f"{path} has no {noun} {_list_some(missing)}.{hint}")


def require_complete(path: PathLike, table: Table, names: Collection[str], first_row: int | None = None) -> None:
    """Refuse NaN, infinity and empty cells in number columns; says which columns and how many cells.

    Parameters
    ----------
    path : path-like
    table : Table
    names : collection of str
        The number columns to look at.
    first_row : int or None
        Number of the table's first row in the file where the table is only a part of it.
    """
    counts = {name: int((~np.isfinite(table.columns[name])).sum()) for name in names}
    bad = [f"{name!r} ({count} of {table.n_rows} cells)" for name, count in counts.items() if count]
    if bad:
        where = "" if first_row is None else f" in rows {first_row} to {first_row + table.n_rows - 1}"
        raise ValueError(
            f"{path} has empty or infinite cells in {_list_some(bad, quote=False)}{where}: "
            "drop those rows or fill the gaps first."
        )


@contextmanager
def write_batches(path: PathLike) -> Iterator[Callable[[Mapping[str, NDArray[Any]]], None]]:
    """Write a table batch by batch; the file appears when all is written, or not at all.

    Parameters
    ----------
    path : path-like
        Ends with .csv, .parquet or .pq.

    Yields
    ------
    callable
        Takes a mapping of names to arrays of equal length, the same names and types each time.
    """
    if Path(path).suffix.lower() not in (*_PARQUET, ".csv"):
        raise ValueError(f"Cannot write {path}: the name must end with .csv or .parquet.")
    with replace_when_done(path) as draft:
        writer: Any = None

        def write(columns: Mapping[str, NDArray[Any]]) -> None:
            nonlocal writer
            import pyarrow as pa

            batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
            if writer is None:
                writer = _open_writer(draft, batch.schema, parquet=_is_parquet(path))
            writer.write_batch(batch)

        try:
            yield write
        finally:
            if writer is not None:
                writer.close()


def _open_writer(path: Path, schema: pa.Schema, *, parquet: bool) -> Any:
    if parquet:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    import pyarrow.csv as arrow_csv

    return arrow_csv.CSVWriter(path, schema)


def _is_parquet(path: PathLike) -> bool:
    return Path(path).suffix.lower() in _PARQUET


def _list_some(names: Collection[str], *, quote: bool = True) -> str:
    shown = [repr(name) if quote else name for name in list(names)[:8]]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(shown) + more


def require_numbers_or_text(path: PathLike, table: Table, names: Collection[str]) -> None:
    """Refuse text columns of which most cells are numbers: a number column with stray text in it."""
    for name in names:
        counts = Counter(value for value in table.columns[name] if value is not None)
        stray = {value: count for value, count in counts.items() if not _reads_as_number(value)}
        n_stray = sum(stray.values())
        if 0 < n_stray < 0.5 * counts.total():
            raise ValueError(
                f"{path} has text in the number column {name!r}: {_list_some(stray)} in {n_stray} of {table.n_rows} "
                "cells. Correct the cells, or declare the column as categorical."
            )


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_arrow(path: PathLike, as_text: Collection[str]) -> pa.Table:
    import pyarrow as pa

    if _is_parquet(path):
        import pyarrow.parquet as pq

        return pq.read_table(path)
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(path, **_csv_options(path, {name: pa.string() for name in as_text}))


def _batches(path: PathLike, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
    if _is_parquet(path):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            _check_parquet_kinds(path, file.schema_arrow, kinds)
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(kinds))
        return
    import pyarrow as pa

    types = {name: pa.string() if kind is ColumnKind.TEXT else pa.float64() for name, kind in kinds.items()}
    with _open_csv(path, types) as reader:
        yield from reader


def _check_parquet_kinds(path: PathLike, schema: pa.Schema, kinds: Mapping[str, ColumnKind]) -> None:
    for name, kind in kinds.items():
        found = _kind_of(schema.field(name).type)
        if kind is ColumnKind.NUMBER and found is not ColumnKind.NUMBER:
            raise ValueError(f"{path} has text in the number column {name!r}: its type is {schema.field(name).type}.")


def _open_csv(path: PathLike, types: Mapping[str, pa.DataType]) -> Any:
    import pyarrow.csv as arrow_csv

    return arrow_csv.open_csv(path, **_csv_options(path, types, only=list(types)))


def _csv_options(path: PathLike, types: Mapping[str, pa.DataType], only: Collection[str] = ()) -> dict[str, Any]:
    """Options of pyarrow's CSV readers: types fixed for some columns, found for the others; no truth values."""
    import pyarrow.csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=not only),  # one thread counts lines
        "parse_options": arrow_csv.ParseOptions(delimiter=_find_delimiter(path), newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict(types), include_columns=list(only), true_values=[], false_values=[]
        ),
    }


def _find_delimiter(path: PathLike) -> str:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        header = stream.read(2**16).split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return max(_DELIMITERS, key=header.count)


def _kind_of(kind: pa.DataType) -> ColumnKind:
    import pyarrow.types as types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ColumnKind.NUMBER
    if types.is_null(kind):
        return ColumnKind.EMPTY
    if any(test(kind) for test in (types.is_string, types.is_large_string, types.is_boolean, types.is_dictionary)):
        return ColumnKind.TEXT
    return ColumnKind.OTHER


def _is_whole(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind))


def _as_array(column: Any, kind: ColumnKind) -> NDArray[Any]:
    import pyarrow as pa

    if kind is ColumnKind.NUMBER:
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values = column.to_pylist()  # also decodes categories and truth values
    return np.array([None if value is None or value == "" else str(value) for value in values], dtype=object)


@contextmanager
def _clear_errors(path: PathLike, names: Collection[str] = ()) -> Iterator[None]:
    """Turn what pyarrow says about a file with these columns into one line that names the file."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise type(error)(f"{path} cannot be read: {error.strerror or error}.") from None
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        message = " ".join(str(error).split())
        if "Empty CSV file" in message:
            raise ValueError(f"{path} is empty.") from None
        stray = _STRAY_TEXT.search(message)
        if stray:
            line = f" (line {stray[2]})" if stray[2] else ""
            name, text = list(names)[int(stray[1])], _printable(stray[3])
            raise ValueError(f"{path} has text in the number column {name!r}: {text!r}{line}.") from None
        wanted = "a Parquet file" if _is_parquet(path) else "a CSV file with a header line"
        shown = message if len(message) <= 200 else message[:197] + "..."
        raise ValueError(f"{path} is not {wanted}, or is damaged: {_printable(shown)}") from None


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
