"""Tables through standard input and output: read as they come, and what is no stream is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from derand.tables import ColumnKind, inspect_file, write_batches
from derand.tables._files import open_stream
from tests.tables.damaging import FORMATS, count_ends

KINDS = {"age": ColumnKind.NUMBER, "job": ColumnKind.TEXT}
TABLE = pa.table({"age": [31.0, None, 5.0], "job": ["cook", "", "clerk"], "more": [1, 2, 3]})


class Slow(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(7 if size is None or size < 0 else min(size, 7))


def as_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue().to_pybytes())


CSV = b"\xef\xbb\xbfage;job;more\r\n31;cook;1\r\n;;2\r\n5;clerk;3\r\n"


@pytest.mark.parametrize("content", [CSV, as_ipc(TABLE)], ids=["csv", "arrow"])
@pytest.mark.parametrize("kind", [io.BytesIO, Slow])
def test_both_formats_give_the_same_rows(content: bytes, kind: type[io.BytesIO]) -> None:
    stream = open_stream(kind(content))
    assert stream.names == ("age", "job", "more")
    rows = pa.concat_tables(list(stream.read_batches(KINDS))).to_pydict()
    assert rows == {"age": [31.0, None, 5.0], "job": ["cook", None, "clerk"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Standard input is empty"),
        (b"PAR1....", "a Parquet file"),
        (b"ARROW1..", "an Arrow file"),
        (b"age,age\n1,2\n", "two columns named 'age'"),
    ],
)
def test_what_is_no_stream(content: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(ValueError, match=message):
        inspect_file("-")


def test_text_among_numbers_is_named() -> None:
    stream = open_stream(io.BytesIO(b"age,job\nmany,cook\n"))
    with pytest.raises(ValueError, match="text in the number column 'age'"):
        list(stream.read_batches(KINDS))
    typed = open_stream(io.BytesIO(as_ipc(pa.table({"age": ["many"], "job": ["cook"]}))))
    with pytest.raises(ValueError, match="text in the number column 'age'"):
        list(typed.read_batches(KINDS))


@pytest.mark.parametrize("arrow", [False, True])
def test_results_go_out_at_once(arrow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out))
    sizes: list[int] = []
    with write_batches("-", arrow=arrow) as write:
        for at in range(2):
            columns: dict[str, Any] = {"row": np.array([at]), "label": np.array(["yes"])}
            write(columns)
            sizes.append(len(out.getvalue()))
    assert 0 < sizes[0] < sizes[1]
    if arrow:
        assert pa.ipc.open_stream(out.getvalue()).read_all().to_pydict() == {"row": [0, 1], "label": ["yes", "yes"]}
    else:
        assert out.getvalue() == b'"row","label"\n0,"yes"\n1,"yes"\n'


@pytest.mark.parametrize("n_tries", [60, pytest.param(5_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_tables_are_read_or_refused(kind: str, n_tries: int) -> None:
    """No damage ends the process, as an offset of text that points anywhere did, or gives another error."""
    ends = count_ends(kind, n_tries)
    assert set(ends) <= {"read", "refused"}, ends
    assert ends.total() == n_tries
    assert ends["refused"] > n_tries / 3


def test_an_arrow_stream_cut_short_is_called_so() -> None:
    """At every place but between two batches, where a stream may end."""
    content = as_ipc(TABLE)
    messages = set()
    for length in range(8, len(content) - 8):
        try:
            list(open_stream(io.BytesIO(content[:length])).read_batches(KINDS))
        except ValueError as error:
            messages.add(str(error).partition(":")[0])
    assert messages == {"Standard input is not a whole Arrow stream, or is damaged"}


@pytest.mark.parametrize(("content", "what"), [(b"age,job\n", "a header line"), (as_ipc(TABLE[:0]), "columns")])
def test_a_stream_without_rows(content: bytes, what: str) -> None:
    stream = open_stream(io.BytesIO(content))
    with pytest.raises(ValueError, match=f"Standard input has {what} but no rows"):
        stream.require_rows(len(list(stream.read_batches(KINDS))))
