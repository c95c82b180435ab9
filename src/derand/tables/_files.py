"""Tables on disk, CSV and Parquet, whole or batch by batch.

Owns reading columns as numbers or text, with one clear error for each way a file can be wrong, and writing results
while they come. Must not know models. The work is done by pyarrow and not by polars: its readers and writers go
through a file of any size batch by batch, with column types fixed beforehand, in both formats.

A file is opened twice: once to look (`inspect_file`), once to read.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from derand._core.files import PathLike, replace_when_done, require_plain, require_utf8
from derand._core.finite import MissingNumbersError
from derand._core.text import quote_short
from derand.tables._columns import ColumnCheck, ColumnUse
from derand.tables._dates import read_days
from derand.tables._doubts import reads_as_written_number
from derand.tables._kinds import ColumnKind, kind_of_arrow_type
from derand.tables._tables import open_table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

_PARQUET = (".parquet", ".pq")
ARROW_STREAM = "a whole Arrow stream"
DELIMITERS = ",;\t"
_FORMULA = re.compile("[\\s\x00-\x1f\x7f\u200b-\u200f\u2060\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How text begins that a spreadsheet may compute: some skip what cannot be seen, some read full-width signs."""
_BLOCK_BYTES = 2**22
_BATCH_ROWS = 2**16
_COLUMN_BYTES = 2**16  # of a Parquet column, read at a time
_SHORT_BYTES, _LAST_ASCII = 256, 127
_STRAY_TEXT = re.compile(r"CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to double: invalid value '(.*)'")


STREAM = "-"
"""What stands for standard input or output where a file is named."""


def names_stream(path: object) -> bool:
    """Whether a path stands for standard input or output."""
    return str(path) == STREAM


def name_table(path: PathLike) -> str:
    """How messages name a file, or standard input."""
    return "Standard input" if names_stream(path) else str(path)


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table on disk that was looked at; `inspect_file` makes it.

    Attributes
    ----------
    path : path-like
    names : tuple of str
        Column names, in order; none is there twice.
    delimiter : str or None
        What separates the cells of a CSV file; None for Parquet.
    booleans : tuple of str
        Columns whose type in the file is boolean; CSV has no types.
    """

    path: PathLike
    names: tuple[str, ...]
    delimiter: str | None
    booleans: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """How messages name it."""
        return name_table(self.path)

    def read(self, as_text: Collection[str] = ()) -> pa.Table:
        """Read all columns, with the types that are found; truth values and categories become text.

        Parameters
        ----------
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
        ...     inspect_file(file).read().to_pydict()
        {'age': [31, None], 'job': ['clerk', None]}
        """
        import pyarrow as pa

        self.require_columns(as_text)
        with clear_errors(self.path, self.names):
            content = _read_arrow(self, as_text)
        self.require_rows(content.num_rows)
        broken = [name for name in self.names if pa.types.is_binary(content.schema.field(name).type)]
        if broken and self.delimiter is not None:
            raise ValueError(
                f"{self.label} has text that is not UTF-8 in {_list_some(broken)}: save the file as UTF-8."
            )
        columns = [
            _as_text(content.column(name), f"{self.label}, column {name!r},")
            if name in as_text or kind_of_arrow_type(content.schema.field(name).type).is_categorical
            else content.column(name)
            for name in self.names
        ]
        return pa.table(columns, names=list(self.names))

    def read_batches(
        self, kinds: Mapping[str, ColumnKind], as_is: Collection[str] = ()
    ) -> Generator[pa.Table, None, None]:
        """Read some columns batch by batch, with fixed types; memory does not grow with the file.

        Parameters
        ----------
        kinds : mapping of str to ColumnKind
            The columns to read, NUMBER, TEXT, BOOLEAN or DATE each; dates are read as days.
        as_is : collection of str
            Other columns, whose cells are only copied: with the types that Parquet has, of CSV as they are written.

        Yields
        ------
        pyarrow.Table
            float64, text or truth values; never without rows.
        """
        import pyarrow as pa

        others = [name for name in as_is if name not in kinds]
        self.require_columns([*kinds, *others])
        with clear_errors(self.path, self.names, wanted=ARROW_STREAM if self.is_arrow_stream else None):
            for batch in self.iterate({**kinds, **dict.fromkeys(others, ColumnKind.TEXT)}):
                if batch.num_rows:
                    columns = [
                        self.read_dates(batch.column(name), name)
                        if kind is ColumnKind.DATE
                        else _as_kind(batch.column(name), kind)
                        for name, kind in kinds.items()
                    ]
                    copied = [_as_plain(batch.column(name), f"{self.label}, column {name!r},") for name in others]
                    yield pa.table([*columns, *copied], names=[*kinds, *others])

    @property
    def is_arrow_stream(self) -> bool:
        """Whether it comes as Arrow's IPC stream: what is made of it goes out alike."""
        return False

    def iterate(self, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        """Batches as the reader of the format gives them."""
        yield from _batches(self, kinds)

    def read_dates(self, column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
        """A column of this file that holds dates, or text that reads as dates, in days since 1970-01-01; null stays."""
        import pyarrow as pa

        try:
            return pa.array(read_days(open_table(pa.table([column], names=[name])), 0), from_pandas=True)
        except ValueError as error:
            raise ValueError(f"{self.label}: {str(error).replace(' of `X`', '')}") from None

    def require_rows(self, n_rows: int) -> None:
        """Refuse a table of which no row was read."""
        if not n_rows:
            what = "columns" if self.delimiter is None else "a header line"
            raise ValueError(f"{self.label} has {what} but no rows.")

    def require_columns(self, wanted: Collection[str]) -> None:
        """Refuse a file in which columns are missing; suggests the nearest name.

        Parameters
        ----------
        wanted : collection of str
        """
        known = set(self.names)
        missing = [name for name in wanted if name not in known]
        if not missing:
            return
        same = [name for name in self.names if name.casefold() == missing[0].casefold()]
        close = same or difflib.get_close_matches(missing[0], self.names, n=1, cutoff=0.6)
        hint = f" Did you mean {quote_short(close[0])}?" if close else f" Its columns are {_list_some(self.names)}."
        noun = "column" if len(missing) == 1 else "columns"
        raise ValueError(f"{self.label} has no {noun} {_list_some(missing)}.{hint}")

    @contextmanager
    def name_gaps(self, names: Sequence[str], n_rows: int, first_row: int) -> Iterator[None]:
        """Where the block finds gaps in rows of this file, say so with the file, its columns and the rows.

        Parameters
        ----------
        names : sequence of str
            Names of the columns that the block looks at, by number.
        n_rows, first_row : int
            How many rows it looks at, and the number of the first one in the file.
        """
        try:
            yield
        except MissingNumbersError as error:
            rows = f" in rows {first_row} to {first_row + n_rows - 1}"
            counts = {names[column]: count for column, count in error.counts.items()}
            if error.may_miss:
                self._refuse_gaps(counts, n_rows, rows, what="infinite")
            self._refuse_gaps(counts, n_rows, rows, more=" A model that was trained with missing values takes them.")

    def require_complete(
        self, table: pa.Table, names: Collection[str], first_row: int | None = None, *, may_miss: bool = False
    ) -> None:
        """Refuse empty cells, NaN and infinity; says which columns and how many cells.

        Parameters
        ----------
        table : pyarrow.Table
            What was read, or a part of it.
        names : collection of str
            The columns to look at.
        first_row : int or None
            Number of the table's first row in the file where the table is only a part of it.
        may_miss : bool
            Whether cells may be empty or NaN; then infinity alone is refused.
        """
        rows = "" if first_row is None else f" in rows {first_row} to {first_row + table.num_rows - 1}"
        counts = {name: _count_gaps(table.column(name), may_miss) for name in names}
        self._refuse_gaps(counts, table.num_rows, rows, what="infinite" if may_miss else "empty or infinite")

    def require_usable(self, checks: Iterable[ColumnCheck], n_rows: int) -> None:
        """Refuse number columns that hold infinity, or else text among their numbers.

        Parameters
        ----------
        checks : iterable of ColumnCheck
            Of columns that were read from this file, numbers as doubles: there is no other reason to refuse one.
        n_rows : int
        """
        refused = [check for check in checks if check.use is ColumnUse.REFUSED]
        self._refuse_gaps({str(check.name): check.gaps for check in refused}, n_rows, what="infinite")
        for check in refused:
            texts, counts = zip(*check.stray, strict=True)
            raise ValueError(
                f"{self.label} has text in the number column {quote_short(check.name)}: {_list_some(texts)} in "
                f"{sum(counts)} of {n_rows} cells. {_advise_on_stray(texts)}"
                "Correct the cells, or declare the column as categorical."
            )

    def _refuse_gaps(
        self,
        counts: Mapping[str, int],
        n_rows: int,
        rows: str = "",
        *,
        what: str = "empty or infinite",
        more: str = "",
    ) -> None:
        bad = [f"{quote_short(name)} ({count} of {n_rows} cells)" for name, count in counts.items() if count]
        if bad:
            raise ValueError(
                f"{self.label} has {what} cells in {_list_some(bad, quote=False)}{rows}: "
                f"drop those rows or fill the gaps first.{more}"
            )


def _advise_on_stray(texts: Sequence[str]) -> str:
    """How numbers must be written, where stray text looks like some."""
    return "Numbers are written plainly, as 1234.5. " if any(map(reads_as_written_number, texts)) else ""


def inspect_file(path: PathLike) -> TableFile:
    """Look at a file: which columns it has, and how its cells are separated.

    Parameters
    ----------
    path : path-like
        Parquet where the name ends with .parquet or .pq, otherwise CSV with a header line, separated by commas,
        semicolons or tabs (the most frequent of them in the header).

    Returns
    -------
    TableFile
        With which it is read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("age;job\\n31;clerk\\n")
    ...     inspect_file(file).names
    ('age', 'job')
    """
    if names_stream(path):
        from derand.tables._streams import open_stream

        return _require_names(open_stream(sys.stdin.buffer))
    require_utf8(path)
    if os.path.exists(path):
        require_plain(path)
    with clear_errors(path):
        if _is_parquet(path):
            import pyarrow.parquet as pq

            schema = pq.read_schema(path)
            file = TableFile(path, tuple(schema.names), None, list_booleans(schema))
        else:
            file = TableFile(path, *_look_at_csv(path))
    return _require_names(file)


def list_booleans(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the columns whose type is boolean."""
    return tuple(field.name for field in schema if kind_of_arrow_type(field.type) is ColumnKind.BOOLEAN)


def _require_names(file: TableFile) -> TableFile:
    """The file, where its columns have names and no two the same."""
    name, count = next(iter(Counter(file.names).most_common(1)), ("", 0))
    if count > 1:
        raise ValueError(f"{file.label} has two columns named {quote_short(name)}: rename one.")
    if not file.names:
        raise ValueError(f"{file.label} has no columns.")
    return file


@contextmanager
def write_batches(
    path: PathLike, *, safe_csv: bool = False, arrow: bool = False
) -> Iterator[Callable[[Mapping[str, NDArray[Any] | pa.Array]], None]]:
    """Write a table batch by batch; the file appears when all is written, or not at all.

    Parameters
    ----------
    path : path-like
        Ends with .csv, .parquet or .pq.
    safe_csv : bool
        Put an apostrophe before text and column names that begin with =, +, -, @ or the full-width forms of these,
        also after blanks, or with a tab or a line end: a spreadsheet would compute them. For .csv alone.
    arrow : bool
        Write Arrow's IPC stream, and not CSV, to standard output, which "-" stands for.

    Yields
    ------
    callable
        Takes a mapping of names to arrays of equal length, NumPy's or pyarrow's, the same names and types each time.
    """
    if names_stream(path):
        with _write_stream(safe_csv=safe_csv, arrow=arrow) as write_out:
            yield write_out
        return
    if Path(path).suffix.lower() not in (*_PARQUET, ".csv"):
        raise ValueError(f"Cannot write {path}: the name must end with .csv or .parquet.")
    if safe_csv and _is_parquet(path):
        raise ValueError(f"Cannot write {path} as safe CSV, because it is Parquet: name a file that ends with .csv.")
    with replace_when_done(path) as draft:
        writer: _Writer | None = None

        def write(columns: Mapping[str, NDArray[Any] | pa.Array]) -> None:
            nonlocal writer
            batch = _make_batch(columns, safe_csv)
            if writer is None:
                writer = _open_writer(draft, batch.schema, parquet=_is_parquet(path))
            writer.write_batch(batch)

        try:
            yield write
        finally:
            if writer is not None:
                writer.close()


@contextmanager
def _write_stream(*, safe_csv: bool, arrow: bool) -> Iterator[Callable[[Mapping[str, NDArray[Any] | pa.Array]], None]]:
    """Write a table to standard output, each batch at once."""
    from derand.tables._streams import open_stream_writer

    if safe_csv and arrow:
        raise ValueError("Cannot write safe CSV to standard output, because it is an Arrow stream, as the input is.")
    writer: _Writer | None = None

    def write(columns: Mapping[str, NDArray[Any] | pa.Array]) -> None:
        nonlocal writer
        batch = _make_batch(columns, safe_csv)
        if writer is None:
            writer = open_stream_writer(batch.schema, arrow=arrow)
        writer.write_batch(batch)

    yield write
    if writer is not None:
        writer.close()


class _Writer(Protocol):
    """What pyarrow's writers of both formats have in common."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def _as_column(values: NDArray[Any] | pa.Array, safe: bool) -> pa.Array:
    """A column to write; if safe, text that a spreadsheet would take for a formula begins with an apostrophe."""
    import pyarrow as pa

    column = values if isinstance(values, pa.Array) else _as_array(values)
    if not safe or kind_of_arrow_type(column.type) is not ColumnKind.TEXT:
        return column
    cells = column.to_pylist()
    return pa.array([None if cell is None else _disarm(cell) for cell in cells], type=column.type)


def _disarm(text: str) -> str:
    """Text with an apostrophe before it, where a spreadsheet would compute it."""
    return f"'{text}" if _FORMULA.match(text) else text


def _make_batch(columns: Mapping[str, NDArray[Any] | pa.Array], safe: bool) -> pa.RecordBatch:
    """Columns to write; if safe, neither names nor cells are formulas to a spreadsheet."""
    import pyarrow as pa

    names = [_disarm(name) if safe else name for name in columns]
    return pa.record_batch([_as_column(values, safe) for values in columns.values()], names=names)


def _as_array(values: NDArray[Any]) -> pa.Array:
    """NumPy's array as pyarrow's; that of short text without Python's strings, several times as fast."""
    import pyarrow as pa

    if values.dtype.kind != "U" or not values.size or not 0 < values.dtype.itemsize <= _SHORT_BYTES:
        return pa.array(values)
    signs = np.ascontiguousarray(values).view(np.uint32).reshape(values.size, -1)
    is_sign = signs != 0
    if signs.max() > _LAST_ASCII or (is_sign[:, 1:] & ~is_sign[:, :-1]).any():  # the sign 0 within text
        return pa.array(values)
    ends = np.zeros(values.size + 1, dtype=np.int32)
    np.cumsum(is_sign.sum(axis=1), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(signs[is_sign].astype(np.uint8))]
    return pa.Array.from_buffers(pa.string(), values.size, buffers)


def _open_writer(path: Path, schema: pa.Schema, *, parquet: bool) -> _Writer:
    if parquet:
        import pyarrow.parquet as pq

        writer: _Writer = pq.ParquetWriter(path, schema)
    else:
        import pyarrow.csv as arrow_csv

        writer = arrow_csv.CSVWriter(path, schema)
    return writer


def _name_format(path: PathLike) -> str:
    return "a Parquet file" if _is_parquet(path) else "a CSV file with a header line"


def _is_parquet(path: PathLike) -> bool:
    return Path(path).suffix.lower() in _PARQUET


def _list_some(names: Collection[str], *, quote: bool = True) -> str:
    shown = [quote_short(name) if quote else name for name in list(names)[:8]]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(shown) + more


def _look_at_csv(path: PathLike) -> tuple[tuple[str, ...], str]:
    """Column names and delimiter, from the beginning of a file, in which a row too long or too short is an error."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(2 * _BLOCK_BYTES)  # the reader parses one block; its last row may end in the next
    header = head[: 2**16].split(b"\n", 1)[0].decode("utf-8", errors="replace")
    delimiter = max(DELIMITERS, key=header.count)
    options = _csv_options(delimiter, {})
    options["read_options"].use_threads = False  # a thread that still reads ahead when the process ends aborts it
    with arrow_csv.open_csv(pa.BufferReader(head), **options) as reader:
        return tuple(reader.schema.names), delimiter


def _read_arrow(file: TableFile, as_text: Collection[str]) -> pa.Table:
    import pyarrow as pa

    if file.delimiter is None:
        import pyarrow.parquet as pq

        with pq.ParquetFile(file.path) as content:  # read_table would open it twice
            table = content.read()
        table.validate(full=True)
        return table
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(file.path, **_csv_options(file.delimiter, {name: pa.string() for name in as_text}))


def _batches(file: TableFile, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
    if file.delimiter is None:
        import pyarrow.parquet as pq

        # else column chunks are read whole and ahead of time, and stay: memory would grow with the file
        with pq.ParquetFile(file.path, pre_buffer=False, buffer_size=_COLUMN_BYTES) as content:
            check_kinds(file.path, content.schema_arrow, kinds)
            for batch in content.iter_batches(batch_size=_BATCH_ROWS, columns=list(kinds)):
                batch.validate(full=True)
                yield batch
        return
    import pyarrow.csv as arrow_csv

    with arrow_csv.open_csv(file.path, **make_csv_options(file.delimiter, kinds)) as reader:
        yield from reader


def make_csv_options(delimiter: str, kinds: Mapping[str, ColumnKind], *, block_bytes: int | None = None) -> CsvOptions:
    """Options of pyarrow's CSV reader for some columns, with their types."""
    import pyarrow as pa

    arrow_types = {ColumnKind.NUMBER: pa.float64(), ColumnKind.TEXT: pa.string(), ColumnKind.BOOLEAN: pa.bool_()}
    arrow_types[ColumnKind.DATE] = pa.string()
    types = {name: arrow_types[kind] for name, kind in kinds.items()}
    options = _csv_options(delimiter, types, only=list(types))
    if block_bytes is not None:
        options["read_options"].block_size = block_bytes
    return options


def check_kinds(path: PathLike, schema: pa.Schema, kinds: Mapping[str, ColumnKind]) -> None:
    """Refuse columns of typed tables that hold something else where numbers or booleans are read."""
    path = name_table(path)
    for name, kind in kinds.items():
        found = schema.field(name).type
        own = kind_of_arrow_type(found)
        if kind is ColumnKind.NUMBER and own is not kind:
            what = own.value if own in (ColumnKind.BOOLEAN, ColumnKind.DATE) else "text"
            raise ValueError(f"{path} has {what} in the number column {quote_short(name)}: its type is {found}.")
        if kind is ColumnKind.BOOLEAN and own is ColumnKind.NUMBER:
            raise ValueError(f"{path} has numbers in the column of booleans {quote_short(name)}: its type is {found}.")


class CsvOptions(TypedDict):
    """What pyarrow's CSV readers are told."""

    read_options: arrow_csv.ReadOptions
    parse_options: arrow_csv.ParseOptions
    convert_options: arrow_csv.ConvertOptions


def _csv_options(delimiter: str, types: Mapping[str, pa.DataType], only: Collection[str] = ()) -> CsvOptions:
    """Options of pyarrow's CSV readers: types fixed for some columns, found for the others; no truth values."""
    import pyarrow.csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=not only),  # one thread counts lines
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict(types),
            include_columns=list(only),
            **({} if only else {"true_values": [], "false_values": []}),  # unless asked for, truth values are text
        ),
    }


def _as_kind(column: pa.Array, kind: ColumnKind) -> pa.Array:
    import pyarrow as pa

    if kind is ColumnKind.TEXT:
        return _as_text(column)
    return column.cast(pa.bool_() if kind is ColumnKind.BOOLEAN else pa.float64(), safe=False)


def _as_plain(column: pa.Array, where: str) -> pa.Array:
    """A column as it is, with a type that can be written: text that is empty is null, categories are their values."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return _as_text(column, where)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ValueError(f"{where} holds {kind}, which cannot be copied: leave it out or store it as text.")
    return column


def _as_text(column: pa.Array | pa.ChunkedArray, where: str = "A column") -> pa.Array | pa.ChunkedArray:
    """The cells as text, null where a cell is empty; truth values as True and False."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{where} has cells that are no text ({reason}): leave it out or store it as text.") from None
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _count_gaps(column: pa.ChunkedArray, may_miss: bool = False) -> int:
    import pyarrow.compute as pc

    gaps = 0 if may_miss else column.null_count
    if kind_of_arrow_type(column.type) is ColumnKind.NUMBER:
        numbers = column.cast("float64", safe=False)
        gaps += pc.sum(pc.is_inf(numbers) if may_miss else pc.invert(pc.is_finite(numbers))).as_py() or 0
    return int(gaps)


@contextmanager
def clear_errors(path: PathLike, names: Collection[str] = (), *, wanted: str | None = None) -> Iterator[None]:
    """Turn what pyarrow says about a file with these columns into one line that names the file, and what it must be."""
    import pyarrow as pa

    path, wanted = name_table(path), wanted or _name_format(path)
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
            raise ValueError(
                f"{path} has text in the number column {quote_short(name)}: {quote_short(text)}{line}."
            ) from None
        shown = message if len(message) <= 200 else message[:197] + "..."
        raise ValueError(f"{path} is not {wanted}, or is damaged: {_printable(shown)}") from None


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in text)
