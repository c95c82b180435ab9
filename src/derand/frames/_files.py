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
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    TRUTH = "true or false"
    EMPTY = "nothing"
    OTHER = "neither numbers nor text"


def read_table(path: PathLike, as_text: Collection[str] = ()) -> pa.Table:
    """Read all columns of a file, with the types that are found; truth values and categories become text.

    Parameters
    ----------
    path : path-like
        Parquet where the name ends with .parquet or .pq, otherwise CSV with a header line, separated by commas,
        semicolons or tabs (the most frequent of them in the header).
    as_text : collection of str
        Columns to be read as text, whatever they look like.

    Returns
    -------
    pyarrow.Table
        An empty cell is null.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("age,job\\n31,clerk\\n,\\n")
    ...     read_table(file).to_pydict()
    {'age': [31, None], 'job': ['clerk', None]}
    """
    import pyarrow as pa

    names = read_names(path)
    require_columns(path, names, as_text)
    with _clear_errors(path, names):
        content = _read_arrow(path, as_text)
    if not content.num_rows:
        raise ValueError(f"{path} has a header line but no rows.")
    broken = [name for name in names if pa.types.is_binary(content.schema.field(name).type)]
    if broken and not _is_parquet(path):
        raise ValueError(f"{path} has text that is not UTF-8 in {_list_some(broken)}: save the file as UTF-8.")
    columns = [
        _as_text(content.column(name))
        if name in as_text or kind_of(content, name) in (ColumnKind.TEXT, ColumnKind.TRUTH)
        else content.column(name)
        for name in names
    ]
    return pa.table(columns, names=list(names))


def kind_of(table: pa.Table, name: str) -> ColumnKind:
    """Kind of a column of a table that was read."""
    return _kind_of_type(table.schema.field(name).type)


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


def read_batches(path: PathLike, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.Table]:
    """Read some columns of a file batch by batch, with fixed types; memory does not grow with the file.

    Parameters
    ----------
    path : path-like
    kinds : mapping of str to ColumnKind
        The columns to read, NUMBER, TEXT or TRUTH each.

    Yields
    ------
    pyarrow.Table
        float64, text or truth values; never without rows.
    """
    import pyarrow as pa

    names = read_names(path)
    require_columns(path, names, kinds)
    with _clear_errors(path, names):
        for batch in _batches(path, kinds):
            if batch.num_rows:
                columns = [_as_kind(batch.column(name), kind) for name, kind in kinds.items()]
                yield pa.table(columns, names=list(kinds))


def require_columns(path: PathLike, names: Collection[str], wanted: Collection[str]) -> None:
    """Refuse a file in which columns are missing; suggests the nearest name."""
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    same = [name for name in names if name.casefold() == missing[0].casefold()]
    close = same or difflib.get_close_matches(missing[0], names, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]!r}?" if close else f" Its columns are {_list_some(names)}."
    noun = "column" if len(missing) == 1 else "columns"
    raise ValueError(f"{path} has no {noun} {_list_some(missing)}.{hint}")


def require_complete(path: PathLike, table: pa.Table, names: Collection[str], first_row: int | None = None) -> None:
    """Refuse empty cells, NaN and infinity; says which columns and how many cells.

    Parameters
    ----------
    path : path-like
    table : pyarrow.Table
    names : collection of str
        The columns to look at.
    first_row : int or None
        Number of the table's first row in the file where the table is only a part of it.
    """
    counts = {name: _count_gaps(table.column(name)) for name in names}
    bad = [f"{name!r} ({count} of {table.num_rows} cells)" for name, count in counts.items() if count]
    if bad:
        where = "" if first_row is None else f" in rows {first_row} to {first_row + table.num_rows - 1}"
        raise ValueError(
            f"{path} has empty or infinite cells in {_list_some(bad, quote=False)}{where}: "
            "drop those rows or fill the gaps first."
        )


def require_numbers_or_text(path: PathLike, table: pa.Table, names: Collection[str]) -> None:
    """Refuse text columns of which most cells are numbers: a number column with stray text in it."""
    for name in names:
        counts = Counter(value for value in table.column(name).to_pylist() if value is not None)
        stray = {value: count for value, count in counts.items() if not reads_as_number(value)}
        n_stray = sum(stray.values())
        if 0 < n_stray < 0.5 * counts.total():
            raise ValueError(
                f"{path} has text in the number column {name!r}: {_list_some(stray)} in {n_stray} of {table.num_rows} "
                "cells. Correct the cells, or declare the column as categorical."
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


def reads_as_number(text: str) -> bool:
    """Whether text would be a number in a number column."""
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

    arrow_types = {ColumnKind.NUMBER: pa.float64(), ColumnKind.TEXT: pa.string(), ColumnKind.TRUTH: pa.bool_()}
    types = {name: arrow_types[kind] for name, kind in kinds.items()}
    with _open_csv(path, types) as reader:
        yield from reader


def _check_parquet_kinds(path: PathLike, schema: pa.Schema, kinds: Mapping[str, ColumnKind]) -> None:
    for name, kind in kinds.items():
        found = _kind_of_type(schema.field(name).type)
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
            column_types=dict(types),
            include_columns=list(only),
            **({} if only else {"true_values": [], "false_values": []}),  # unless asked for, truth values are text
        ),
    }


def _find_delimiter(path: PathLike) -> str:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        header = stream.read(2**16).split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return max(_DELIMITERS, key=header.count)


def _kind_of_type(kind: pa.DataType) -> ColumnKind:
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ColumnKind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_dictionary(kind):
        return ColumnKind.TEXT
    if types.is_boolean(kind):
        return ColumnKind.TRUTH
    return ColumnKind.EMPTY if types.is_null(kind) else ColumnKind.OTHER


def _as_kind(column: Any, kind: ColumnKind) -> Any:
    import pyarrow as pa

    if kind is ColumnKind.TEXT:
        return _as_text(column)
    return column.cast(pa.bool_() if kind is ColumnKind.TRUTH else pa.float64(), safe=False)


def _as_text(column: Any) -> Any:
    """The cells as text, null where a cell is empty; truth values as True and False."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _count_gaps(column: Any) -> int:
    import pyarrow.compute as pc

    gaps = column.null_count
    if _kind_of_type(column.type) is ColumnKind.NUMBER:
        gaps += pc.sum(pc.invert(pc.is_finite(column.cast("float64", safe=False)))).as_py() or 0
    return int(gaps)


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
    return "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in text)
