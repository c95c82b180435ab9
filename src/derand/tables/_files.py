"""Tables that were looked at, in CSV and Parquet files or in a stream, read whole or batch by batch.

Owns reading columns as numbers or text, and what is refused in them. Must not know models, nor how pyarrow is asked
(`_arrow`).

A file is opened twice: once to look (`inspect_file`), once to read. A stream is read once.
"""

from __future__ import annotations

import csv
import difflib
import os
import sys
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from derand._core.files import PathLike, require_plain, require_utf8
from derand._core.finite import MissingNumbersError
from derand._core.text import quote_short
from derand.tables._arrow import (
    ARROW_STREAM,
    DELIMITERS,
    STREAM,
    as_kind,
    as_plain,
    check_kinds,
    clear_errors,
    count_missing,
    is_parquet,
    list_booleans,
    list_csv_types,
    list_some,
    make_csv_options,
    name_table,
    names_stream,
    to_text,
)
from derand.tables._columns import ColumnCheck, ColumnUse
from derand.tables._data_checks import reads_as_written_number
from derand.tables._dates import read_days
from derand.tables._kinds import ColumnKind, kind_of_arrow_type
from derand.tables._streams import Lines, Whole, read_head
from derand.tables._tables import open_table

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 2**22
_BATCH_ROWS = 2**16
_COLUMN_BYTES = 2**16  # of a Parquet column, read at a time
_STREAM_BYTES = 2**20  # of CSV in a stream
_IPC_STREAM, _IPC_FILE, _PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"


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
    source : object or None
        Where the rest of a stream comes from; None for a file.
    """

    path: PathLike
    names: tuple[str, ...]
    delimiter: str | None
    booleans: tuple[str, ...] = ()
    source: pa.RecordBatchReader | None = None

    @property
    def label(self) -> str:
        """How messages name it."""
        return name_table(self.path)

    def read(self, as_text: Collection[str] = ()) -> pa.Table:
        """Read all columns, with the types that are found; truth values and categories become text, an empty cell null.

        `as_text`: columns to be read as text, whatever they look like.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "table.csv"
        ...     _ = file.write_text("age,job\\n31,clerk\\n,\\n")
        ...     inspect_file(file).read().to_pydict()
        {'age': [31, None], 'job': ['clerk', None]}
        """
        import pyarrow as pa

        self.require_columns(as_text)
        with clear_errors(self.path, self.names):
            content = self._read_arrow(as_text)
        self.require_rows(content.num_rows)
        broken = [name for name in self.names if pa.types.is_binary(content.schema.field(name).type)]
        if broken and self.delimiter is not None:
            raise ValueError(f"{self.label} has text that is not UTF-8 in {list_some(broken)}: save the file as UTF-8.")
        columns = [
            to_text(content.column(name), f"{self.label}, column {name!r},")
            if name in as_text or kind_of_arrow_type(content.schema.field(name).type).is_categorical
            else content.column(name)
            for name in self.names
        ]
        return pa.table(columns, names=list(self.names))

    def _read_arrow(self, texts: Collection[str]) -> pa.Table:
        if self.delimiter is not None:
            import pyarrow as pa
            import pyarrow.csv as arrow_csv

            options = make_csv_options(self.delimiter, dict.fromkeys(texts, pa.string()), _BLOCK_BYTES)
            return arrow_csv.read_csv(self.path, **options)
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:  # read_table would open it twice
            table = file.read()
        table.validate(full=True)
        return table

    def read_batches(
        self, kinds: Mapping[str, ColumnKind], as_is: Collection[str] = ()
    ) -> Generator[pa.Table, None, None]:
        """Read some columns batch by batch, with fixed types; memory does not grow with the file.

        `kinds`: the columns to read, NUMBER, TEXT, BOOLEAN or DATE each; dates are read as days. `as_is`: other
        columns, whose cells are only copied: with the types that Parquet has, of CSV as they are
        written. No batch is empty.
        """
        import pyarrow as pa

        others = [name for name in as_is if name not in kinds]
        self.require_columns([*kinds, *others])
        with clear_errors(self.path, self.names, wanted=ARROW_STREAM if self.is_arrow_stream else None):
            for batch in self._iterate({**kinds, **dict.fromkeys(others, ColumnKind.TEXT)}):
                if batch.num_rows:
                    columns = [
                        self.read_dates(batch.column(name), name)
                        if kind is ColumnKind.DATE
                        else as_kind(batch.column(name), kind)
                        for name, kind in kinds.items()
                    ]
                    copied = [as_plain(batch.column(name), f"{self.label}, column {name!r},") for name in others]
                    yield pa.table([*columns, *copied], names=[*kinds, *others])

    @property
    def is_arrow_stream(self) -> bool:
        """Whether it comes as Arrow's IPC stream: what is made of it goes out alike."""
        return self.source is not None and self.delimiter is None

    def _iterate(self, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        """Batches as the reader of the format gives them."""
        if self.delimiter is not None:
            import pyarrow as pa
            import pyarrow.csv as arrow_csv

            types, is_file = list_csv_types(kinds), self.source is None
            size = _BLOCK_BYTES if is_file else _STREAM_BYTES
            content = self.path if is_file else pa.PythonFile(self.source, mode="r")
            with arrow_csv.open_csv(content, **make_csv_options(self.delimiter, types, size, list(kinds))) as reader:
                yield from reader
        elif self.source is not None:
            check_kinds(self.path, self.source.schema, kinds)
            for batch in self.source:
                batch.validate(full=True)  # offsets of a damaged one point anywhere, and pyarrow would follow them
                yield batch.select(list(kinds))
        else:
            import pyarrow.parquet as pq

            # else column chunks are read whole and ahead of time, and stay: memory would grow with the file
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_COLUMN_BYTES) as file:
                check_kinds(self.path, file.schema_arrow, kinds)
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(kinds)):
                    batch.validate(full=True)
                    yield batch

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
        """Refuse a file in which columns are missing; suggests the nearest name."""
        known = set(self.names)
        missing = [name for name in wanted if name not in known]
        if not missing:
            return
        same = [name for name in self.names if name.casefold() == missing[0].casefold()]
        close = same or difflib.get_close_matches(missing[0], self.names, n=1, cutoff=0.6)
        hint = f" Did you mean {quote_short(close[0])}?" if close else f" Its columns are {list_some(self.names)}."
        noun = "column" if len(missing) == 1 else "columns"
        raise ValueError(f"{self.label} has no {noun} {list_some(missing)}.{hint}")

    @contextmanager
    def name_gaps(self, names: Sequence[str], n_rows: int, first_row: int) -> Iterator[None]:
        """Where the block finds missing numbers in rows of this file, name the file, its columns and the rows.

        `names`: of the columns that the block looks at, by number; `first_row`: number of its first row in the file.
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

        `first_row`: number of the table's first row where the table is a part of the file; `may_miss`: whether infinity
        alone is refused.
        """
        rows = "" if first_row is None else f" in rows {first_row} to {first_row + table.num_rows - 1}"
        counts = {name: count_missing(table.column(name), may_miss) for name in names}
        self._refuse_gaps(counts, table.num_rows, rows, what="infinite" if may_miss else "empty or infinite")

    def require_usable(self, checks: Iterable[ColumnCheck], n_rows: int) -> None:
        """Refuse number columns that hold infinity, or else text among their numbers.

        `checks`: of columns that were read from this file, numbers as doubles: there is no other reason to refuse one.
        """
        refused = [check for check in checks if check.use is ColumnUse.REFUSED]
        self._refuse_gaps({str(check.name): check.gaps for check in refused}, n_rows, what="infinite")
        for check in refused:
            texts, counts = zip(*check.stray, strict=True)
            advice = "Numbers are written plainly, as 1234.5. " if any(map(reads_as_written_number, texts)) else ""
            raise ValueError(
                f"{self.label} has text in the number column {quote_short(check.name)}: {list_some(texts)} in "
                f"{sum(counts)} of {n_rows} cells. {advice}Correct the cells, or declare the column as categorical."
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
                f"{self.label} has {what} cells in {list_some(bad, quote=False)}{rows}: "
                f"drop those rows or fill the missing values first.{more}"
            )


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
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("age;job\\n31;clerk\\n")
    ...     inspect_file(file).names
    ('age', 'job')
    """
    if names_stream(path):
        return _require_names(open_stream(sys.stdin.buffer))
    require_utf8(path)
    if os.path.exists(path):
        require_plain(path)
    with clear_errors(path):
        if is_parquet(path):
            import pyarrow.parquet as pq

            schema = pq.read_schema(path)
            file = TableFile(path, tuple(schema.names), None, list_booleans(schema))
        else:
            file = TableFile(path, *_look_at_csv(path))
    return _require_names(file)


def _require_names(file: TableFile) -> TableFile:
    """The file, where its columns have names and no two the same."""
    name, count = next(iter(Counter(file.names).most_common(1)), ("", 0))
    if count > 1:
        raise ValueError(f"{file.label} has two columns named {quote_short(name)}: rename one.")
    if not file.names:
        raise ValueError(f"{file.label} has no columns.")
    return file


def _look_at_csv(path: PathLike) -> tuple[tuple[str, ...], str]:
    """Column names and delimiter, from the beginning of a file, in which a row too long or too short is an error."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(2 * _BLOCK_BYTES)  # the reader parses one block; its last row may end in the next
    header = head[: 2**16].split(b"\n", 1)[0].decode("utf-8", errors="replace")
    delimiter = max(DELIMITERS, key=header.count)
    options = make_csv_options(delimiter, {}, _BLOCK_BYTES)
    options["read_options"].use_threads = False  # a thread that still reads ahead when the process ends aborts it
    with arrow_csv.open_csv(pa.BufferReader(head), **options) as reader:
        return tuple(reader.schema.names), delimiter


def open_stream(stream: IO[bytes]) -> TableFile:
    """Look at the beginning of a stream: which kind of table it is, and which columns it has."""
    head = read_head(stream, (_IPC_STREAM,))
    if head.startswith((_IPC_FILE, _PARQUET)):
        kind = "a Parquet file" if head.startswith(_PARQUET) else "an Arrow file"
        raise ValueError(f"Standard input holds {kind}, which cannot be read as it comes: give its name, or a stream.")
    if not head:
        raise ValueError("Standard input is empty: it must hold CSV with a header line, or Arrow's IPC stream.")
    if head.startswith(_IPC_STREAM):
        import pyarrow as pa

        with clear_errors(STREAM, wanted=ARROW_STREAM):
            reader = pa.ipc.open_stream(pa.PythonFile(Whole(head, stream), mode="r"))
            return TableFile(STREAM, tuple(reader.schema.names), None, list_booleans(reader.schema), reader)
    line = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    delimiter = max(DELIMITERS, key=line.count)
    names = tuple(next(csv.reader([line], delimiter=delimiter)))
    return TableFile(STREAM, names, delimiter, source=Lines(head, stream))
