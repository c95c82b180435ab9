"""Tables that come through standard input and go to standard output, CSV or Arrow's IPC stream, batch by batch.

Owns how a stream is told apart and read as it comes, and the writers for standard output. Must not know models, nor
what batches mean.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from derand.tables._files import (
    ARROW_STREAM,
    DELIMITERS,
    STREAM,
    TableFile,
    check_kinds,
    clear_errors,
    list_booleans,
    make_csv_options,
)
from derand.tables._kinds import ColumnKind

if TYPE_CHECKING:
    import pyarrow as pa

_IPC_STREAM, _IPC_FILE, _PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
_HEAD_BYTES = 2**16
_LEAST_BYTES = 2**16  # of CSV, read at a time: a line must end among them
_BLOCK_BYTES = 2**20


class _Rest:
    """A stream with what was read of it ahead put back: a readable file that cannot seek."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self._take(len(self._head)) + self._stream.read()
        if self._head:
            return self._take(size)
        return self._read_some(size)

    def _take(self, size: int) -> bytes:
        taken, self._head = self._head[:size], self._head[size:]
        return taken

    def _read_some(self, size: int) -> bytes:
        """What is there by now, as soon as something is, and no more than asked for."""
        read_once = getattr(self._stream, "read1", None)
        return bytes(self._stream.read(size) if read_once is None else read_once(size))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class _Lines(_Rest):
    """The same for readers that need a line at least: some of them at a time."""

    def read(self, size: int = -1) -> bytes:
        parts = [super().read(size)]
        n_bytes = len(parts[0])
        while parts[-1] and n_bytes < min(size, _LEAST_BYTES):
            parts.append(super().read(size - n_bytes))
            n_bytes += len(parts[-1])
        return b"".join(parts)


class _Whole(_Rest):
    """The same for readers that take a short answer for the end: as many bytes as asked for, but at the end."""

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        while size < 0 or size > 0:
            part = super().read(size)
            if not part:
                break
            parts.append(part)
            size = size if size < 0 else size - len(part)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class TableStream(TableFile):
    """A table that comes through a stream; it can be read once.

    Attributes
    ----------
    source : object
        Where the rest of it comes from.
    """

    source: Any = None

    @property
    def is_arrow_stream(self) -> bool:
        return self.delimiter is None

    def iterate(self, kinds: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self.is_arrow_stream:
            check_kinds(self.path, self.source.schema, kinds)
            for batch in self.source:
                batch.validate(full=True)  # offsets of a damaged one point anywhere, and pyarrow would follow them
                yield batch.select(list(kinds))
            return
        import pyarrow.csv as arrow_csv

        options = make_csv_options(self.delimiter or ",", kinds, block_bytes=_BLOCK_BYTES)
        with arrow_csv.open_csv(pa.PythonFile(self.source, mode="r"), **options) as reader:
            yield from reader


def open_stream(stream: IO[bytes]) -> TableStream:
    """Look at the beginning of a stream: which kind of table it is, and which columns it has."""
    head = b""
    while b"\n" not in head and not head.startswith(_IPC_STREAM) and len(head) < _HEAD_BYTES:
        more = _Rest(b"", stream).read(_HEAD_BYTES)
        if not more:
            break
        head += more
    if head.startswith((_IPC_FILE, _PARQUET)):
        kind = "a Parquet file" if head.startswith(_PARQUET) else "an Arrow file"
        raise ValueError(f"Standard input holds {kind}, which cannot be read as it comes: give its name, or a stream.")
    if not head:
        raise ValueError("Standard input is empty: it must hold CSV with a header line, or Arrow's IPC stream.")
    if head.startswith(_IPC_STREAM):
        import pyarrow as pa

        with clear_errors(STREAM, wanted=ARROW_STREAM):
            reader = pa.ipc.open_stream(pa.PythonFile(_Whole(head, stream), mode="r"))
            return TableStream(STREAM, tuple(reader.schema.names), None, list_booleans(reader.schema), reader)
    line = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    delimiter = max(DELIMITERS, key=line.count)
    names = tuple(next(csv.reader([line], delimiter=delimiter)))
    return TableStream(STREAM, names, delimiter, source=_Lines(head, stream))


def open_stream_writer(schema: pa.Schema, *, arrow: bool) -> Any:
    """What writes batches to standard output as they come."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    sink = pa.PythonFile(sys.stdout.buffer, mode="w")
    writer = pa.ipc.new_stream(sink, schema) if arrow else arrow_csv.CSVWriter(sink, schema)
    return _FlushingWriter(writer)


class _FlushingWriter:
    """Writes batches, and lets each go at once."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write_batch(self, batch: Any) -> None:
        self._writer.write_batch(batch)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        self._writer.close()
        sys.stdout.buffer.flush()
