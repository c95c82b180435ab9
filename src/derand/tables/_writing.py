"""Tables that are written batch by batch, to CSV and Parquet files or to standard output.

Owns that a file appears whole or not at all, and text that no spreadsheet computes. Must not know what batches mean.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from derand._core.arrays import Cells
from derand._core.files import PathLike, replace_when_done
from derand.tables._arrow import PARQUET, is_parquet, names_stream
from derand.tables._kinds import ColumnKind, kind_of_arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = re.compile("[\\s\x00-\x1f\x7f\u200b-\u200f\u2060\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How text begins that a spreadsheet may compute: some skip what cannot be seen, some read full-width signs."""
_SHORT_BYTES, _LAST_ASCII = 256, 127


class _Writer(Protocol):
    """What pyarrow's writers of all formats have in common."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


WriteColumns = Callable[[Mapping[str, "Cells | pa.Array"]], None]


@contextmanager
def write_batches(path: PathLike, *, safe_csv: bool = False, arrow: bool = False) -> Iterator[WriteColumns]:
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
        if safe_csv and arrow:
            raise ValueError(
                "Cannot write safe CSV to standard output, because it is an Arrow stream, as the input is."
            )
        with _write_to(partial(_open_stdout, arrow=arrow), safe_csv, is_stream=True) as write:
            yield write
        return
    if Path(path).suffix.lower() not in (*PARQUET, ".csv"):
        raise ValueError(f"Cannot write {path}: the name must end with .csv or .parquet.")
    if safe_csv and is_parquet(path):
        raise ValueError(f"Cannot write {path} as safe CSV, because it is Parquet: name a file that ends with .csv.")
    open_writer = _open_parquet if is_parquet(path) else _open_csv
    with replace_when_done(path) as draft, _write_to(partial(open_writer, draft), safe_csv, is_stream=False) as write:
        yield write


@contextmanager
def _write_to(open_writer: Callable[[pa.Schema], _Writer], safe: bool, *, is_stream: bool) -> Iterator[WriteColumns]:
    """Write batches with a writer that the first one opens; a stream gets each at once."""
    writer: _Writer | None = None

    def write(columns: Mapping[str, Cells | pa.Array]) -> None:
        nonlocal writer
        batch = _make_batch(columns, safe)
        if writer is None:
            writer = open_writer(batch.schema)
        writer.write_batch(batch)
        if is_stream:
            sys.stdout.buffer.flush()

    done = False
    try:
        yield write
        done = True
    finally:
        if writer is not None and (done or not is_stream):  # a stream that breaks off must not look whole
            writer.close()
    if is_stream:
        sys.stdout.buffer.flush()


def _open_parquet(path: Path, schema: pa.Schema) -> _Writer:
    import pyarrow.parquet as pq

    writer: _Writer = pq.ParquetWriter(path, schema)
    return writer


def _open_csv(path: Path | pa.NativeFile, schema: pa.Schema) -> _Writer:
    import pyarrow.csv as arrow_csv

    writer: _Writer = arrow_csv.CSVWriter(path, schema)
    return writer


def _open_stdout(schema: pa.Schema, *, arrow: bool) -> _Writer:
    import pyarrow as pa

    sink = pa.PythonFile(sys.stdout.buffer, mode="w")
    return pa.ipc.new_stream(sink, schema) if arrow else _open_csv(sink, schema)


def _make_batch(columns: Mapping[str, Cells | pa.Array], safe: bool) -> pa.RecordBatch:
    """Columns to write; if safe, neither names nor cells are formulas to a spreadsheet."""
    import pyarrow as pa

    names = [_disarm(name) if safe else name for name in columns]
    return pa.record_batch([_as_column(values, safe) for values in columns.values()], names=names)


def _as_column(values: Cells | pa.Array, safe: bool) -> pa.Array:
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


def _as_array(values: Cells) -> pa.Array:
    """NumPy's array as pyarrow's, from its bytes: pyarrow would import pandas first, and make text of Python's strings.

    What has no such bytes goes the long way.
    """
    import pyarrow as pa

    kind, values = values.dtype.kind, np.ascontiguousarray(values)
    if kind in "iuf" and values.dtype.isnative:
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(values)])
    if kind == "b":
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), values.size, [None, pa.py_buffer(bits)])
    if kind != "U" or not values.size or not 0 < values.dtype.itemsize <= _SHORT_BYTES:
        return pa.array(values)
    signs = values.view(np.uint32).reshape(values.size, -1)
    is_sign = signs != 0
    if signs.max() > _LAST_ASCII or (is_sign[:, 1:] & ~is_sign[:, :-1]).any():  # the sign 0 within text
        return pa.array(values)
    ends = np.zeros(values.size + 1, dtype=np.int32)
    np.cumsum(is_sign.sum(axis=1), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(signs[is_sign].astype(np.uint8))]
    return pa.Array.from_buffers(pa.string(), values.size, buffers)
