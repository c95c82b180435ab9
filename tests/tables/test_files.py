"""Tables on disk: kinds of columns, batches, whole writes, and one clear line for each wrong file."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from derand.tables import (
    ColumnKind,
    TableFile,
    _files,
    _writing,
    check_columns,
    inspect_file,
    kind_of_arrow_type,
    write_batches,
)
from tests.counting import CountedName, count_names

MIXED = "age,job,member,seen,gap\n31,clerk,True,2020-01-01,\n,,False,2020-01-02,\n4.5,cook,True,2020-01-03,\n"


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_table(path: Path, as_text: Collection[str] = ()) -> pa.Table:
    return inspect_file(path).read(as_text)


def kind_of(table: pa.Table, name: str) -> ColumnKind:
    return kind_of_arrow_type(table.schema.field(name).type)


def test_columns_are_numbers_text_or_neither(tmp_path: Path) -> None:
    """Kinds are found; truth values are text, empty cells null."""
    table = read_table(write(tmp_path, MIXED))
    kinds = {name: kind_of(table, name) for name in table.column_names}
    number, text, date, empty = ColumnKind.NUMBER, ColumnKind.TEXT, ColumnKind.DATE, ColumnKind.EMPTY
    assert kinds == {"age": number, "job": text, "member": text, "seen": date, "gap": empty}
    assert table.column("age").to_pylist() == [31.0, None, 4.5]
    assert table.column("job").to_pylist() == ["clerk", None, "cook"]
    assert table.column("member").to_pylist() == ["True", "False", "True"]


def test_numbers_are_read_as_text_where_asked(tmp_path: Path) -> None:
    """A code such as 007 keeps its zeros."""
    table = inspect_file(write(tmp_path, "code,x\n007,1\n8,2\n")).read(as_text=["code"])
    assert table.column("code").to_pylist() == ["007", "8"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(delimiter: str, tmp_path: Path) -> None:
    """Commas, semicolons and tabs separate cells."""
    path = write(tmp_path, delimiter.join("abc") + "\n" + delimiter.join("123") + "\n")
    assert read_table(path).to_pydict() == {"a": [1], "b": [2], "c": [3]}


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    """A .csv.gz file is read like the file in it."""
    path = write(tmp_path, gzip.compress(b"a,b\n1,2\n"), "table.csv.gz")
    assert read_table(path).to_pydict() == {"a": [1], "b": [2]}


def test_parquet_types_become_the_same_kinds(tmp_path: Path) -> None:
    """Integers, categories, truth values and dates of a Parquet file are sorted like those of a CSV file."""
    content = pa.table(
        {
            "whole": pa.array([1, None], pa.int8()),
            "category": pa.array(["a", "b"]).dictionary_encode(),
            "truth": [True, False],
            "day": pa.array([1, 2], pa.date32()),
        }
    )
    pq.write_table(content, tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert kind_of(table, "whole") is ColumnKind.NUMBER
    assert table.column("category").to_pylist() == ["a", "b"]
    assert table.column("truth").to_pylist() == ["True", "False"]
    assert kind_of(table, "day") is ColumnKind.DATE


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_batches_add_up_to_the_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading in batches gives every row once, in order, in the types asked for and only the columns asked for."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 4096)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 100)
    path = tmp_path / f"table.{suffix}"
    with write_batches(path) as write_batch:
        for start in range(0, 5000, 1000):
            rows = np.arange(start, start + 1000)
            write_batch({"x": rows, "name": np.array([f"n{row}" for row in rows]), "unused": rows})
    kinds = {"name": ColumnKind.TEXT, "x": ColumnKind.NUMBER}
    batches = list(inspect_file(path).read_batches(kinds))
    assert len(batches) > 5
    assert all(batch.schema.field("x").type == pa.float64() for batch in batches)
    joined = pa.concat_tables(batches)
    assert joined.column_names == ["name", "x"]
    assert joined.column("x").to_pylist() == list(range(5000))
    assert joined.column("name").to_pylist() == [f"n{row}" for row in range(5000)]


def test_truth_values_are_read_as_such_where_asked(tmp_path: Path) -> None:
    """A model that learnt from booleans gets booleans."""
    path = write(tmp_path, "a\nTrue\nfalse\n\n1\n")
    (batch,) = inspect_file(path).read_batches({"a": ColumnKind.BOOLEAN})
    assert batch.column("a").to_pylist() == [True, False, True]


def test_doubles_survive_a_csv_file(tmp_path: Path) -> None:
    """Numbers are written so that they read back bit for bit."""
    values = np.array([0.1, 1 / 3, 5e-324, 1e300, np.nextafter(2.0, 3.0), 1e-17])
    with write_batches(tmp_path / "out.csv") as write_batch:
        write_batch({"x": values})
    (batch,) = inspect_file(tmp_path / "out.csv").read_batches({"x": ColumnKind.NUMBER})
    assert batch.column("x").to_numpy().tobytes() == values.tobytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_failing_write_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    """An error between two batches removes the half-written file and keeps an older one."""
    path = tmp_path / f"out.{suffix}"
    path.write_text("old")

    def write_and_fail() -> None:
        with write_batches(path) as write_batch:
            write_batch({"x": np.arange(10)})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_and_fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [("out.txt", r"must end with \.csv or \.parquet"), ("absent/out.csv", "Cannot write .*absent.out.csv: No such")],
)
def test_an_output_path_that_cannot_be_written_is_refused(name: str, message: str, tmp_path: Path) -> None:
    """The path is checked before any work is done."""
    with pytest.raises((OSError, ValueError), match=message), write_batches(tmp_path / name):
        pytest.fail("the block must not run")


def read_x(path: Path) -> None:
    for _ in inspect_file(path).read_batches({"x": ColumnKind.NUMBER}):
        pass


WRONG: dict[str, tuple[str | bytes, Callable[[Path], Any], str]] = {
    "empty": ("", read_table, r"table\.csv is empty"),
    "blank lines": ("\n\n", read_table, r"table\.csv is empty"),
    "header only": ("a,b\n", read_table, "has a header line but no rows"),
    "a row too long": ("a,b\n1,2,3\n", read_table, "is not a CSV file .*Expected 2 columns, got 3"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\xff,\xff\n\xff\n", read_table, "is not a CSV file"),
    "a name twice": ("a,a\n1,2\n", read_table, "two columns named 'a'"),
    "text in a number column": ("x,y\n1,2\nfour,5\n", read_x, r"text in the number column 'x': 'four' \(line 3\)"),
    "another case": ("X,yy\n1,2\n", read_x, r"has no column 'x'\. Did you mean 'X'\?"),
    "no such column": ("xx,y\n1,2\n", read_x, r"has no column 'x'\. Did you mean 'xx'\?"),
    "nothing similar": ("abc,def\n1,2\n", read_x, r"has no column 'x'\. Its columns are 'abc', 'def'"),
}


@pytest.mark.parametrize(("content", "read", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_csv_file_gives_one_clear_line(
    content: str | bytes, read: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    """The error is a ValueError of one line that names the file."""
    with pytest.raises(ValueError, match=message) as caught:
        read(write(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert "table.csv" in str(caught.value)


def test_a_wrong_parquet_file_gives_one_clear_line(tmp_path: Path) -> None:
    """Bytes that are no Parquet file, and text where numbers are needed, are named."""
    with pytest.raises(ValueError, match=r"table\.parquet is not a Parquet file"):
        read_table(write(tmp_path, "x\n1\n", "table.parquet"))
    pq.write_table(pa.table({"x": ["a"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match="text in the number column 'x': its type is string"):
        read_x(tmp_path / "text.parquet")


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    """Paths that hold no file are told apart from damaged ones."""
    with pytest.raises(FileNotFoundError, match=r"absent\.csv does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises((OSError, ValueError), match=str(tmp_path)):
        read_table(tmp_path)


def test_gaps_are_counted_by_column(tmp_path: Path) -> None:
    """Empty cells, NaN and infinity are gaps; complete columns pass."""
    file = TableFile("t.csv", ("a", "b", "c"), ",")
    table = read_table(write(tmp_path, "a,b,c\n1,,x\nnan,inf,\n3,4,y\n"))
    file.require_complete(table.slice(2), ["a", "b", "c"])
    expected = r"t\.csv has empty or infinite cells in 'a' \(1 of 3 cells\), 'b' \(2 of 3 cells\), 'c' \(1 of 3 cells\)"
    with pytest.raises(ValueError, match=expected):
        file.require_complete(table, ["a", "b", "c"])
    with pytest.raises(ValueError, match="in rows 101 to 103"):
        file.require_complete(table, ["a"], first_row=101)


def test_stray_text_in_a_number_column_is_found(tmp_path: Path) -> None:
    """A column of numbers with a few words is a mistake; words with a few numbers are categories."""
    stray = "\n".join(["age,job", *(f"{age},clerk{age}" for age in range(9)), "unknown,7"])
    table = read_table(write(tmp_path, stray))
    file = TableFile("t.csv", ("age", "job"), ",")
    file.require_usable(check_columns(table.select(["job"])), table.num_rows)
    with pytest.raises(ValueError, match=r"text in the number column 'age': 'unknown' in 1 of 10 cells\. Correct"):
        file.require_usable(check_columns(table), table.num_rows)


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """A CSV file that is not UTF-8 gets an error that names the column, not a column that is left out."""
    path = tmp_path / "latin.csv"
    path.write_bytes("age,city\n31,Köln\n".encode("latin-1"))
    with pytest.raises(ValueError, match="text that is not UTF-8 in 'city': save the file as UTF-8"):
        read_table(path)


def test_many_columns_take_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are compared by a table of them, not each with all: at most once or twice each."""
    names = [f"column {number}" for number in range(4000)]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    assert inspect_file(path).names == tuple(names)
    with monkeypatch.context() as patched:
        patched.setattr(_files, "_look_at_csv", lambda path: (count_names(names), ","))
        inspect_file(path).require_columns(list(map(CountedName, names)))
    assert len(names) <= CountedName.compared <= 2 * len(names)
    with pytest.raises(ValueError, match="two columns named 'column 7'"):
        inspect_file(write(tmp_path, ",".join([*names, "column 7"]) + "\n"))


HIDDEN = [
    " =1",
    "\n=1",
    "\t +1",
    "\N{NO-BREAK SPACE}-1",
    "\N{ZERO WIDTH NO-BREAK SPACE}@a",
    "\uff1d1",
    " \uff0b1",
    "\uff0d1",
    "\uff20a",
    "\x01=1",
]


def test_formulas_are_disarmed_in_text_alone(tmp_path: Path) -> None:
    """Every sign that begins a formula, in arrays of text and of objects, and in headers; numbers stay numbers."""
    texts = ["=1", "+1", "-1", "@a", "\ta", "\ra", "a=1", "", " a=1"]
    objects = np.array([*texts[:8], None], dtype=object)
    with write_batches(tmp_path / "out.csv", safe_csv=True) as add:
        add({"text": np.array(texts), "object": objects, "number": -np.arange(9.0)})
    found = pa_csv.read_csv(
        tmp_path / "out.csv", parse_options=pa_csv.ParseOptions(newlines_in_values=True)
    ).to_pydict()
    expected = ["'=1", "'+1", "'-1", "'@a", "'\ta", "'\ra", "a=1", "", " a=1"]
    assert found["text"] == expected
    assert found["object"] == [*expected[:8], ""]
    assert found["number"] == (-np.arange(9.0)).tolist()
    for text in HIDDEN:
        with write_batches(tmp_path / "out.csv", safe_csv=True) as add:
            add({text: np.array([text, "a"]), "'" + text: np.array([1.5, -1.5]), "a b=1": np.array(["b", "c"])})
        with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
            lines = list(csv.reader(stream))
        assert lines == [[f"'{text}", f"'{text}", "a b=1"], [f"'{text}", "1.5", "b"], ["a", "-1.5", "c"]]


def test_a_file_is_looked_at_by_its_first_block_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are found though the part that was looked at ends within a row, or within a quoted cell."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 64)
    rows = "".join(f'{row},"first line\nsecond line of {row}"\n' for row in range(50))
    file = inspect_file(write(tmp_path, "x,note\n" + rows))
    assert file.names == ("x", "note")
    assert sum(batch.num_rows for batch in file.read_batches({"x": ColumnKind.NUMBER})) == 50


def test_a_name_may_hold_the_delimiter_and_a_line_break(tmp_path: Path) -> None:
    """A quoted name is one name."""
    assert inspect_file(write(tmp_path, '"a,b","c\nd",e\n1,2,3\n')).names == ("a,b", "c\nd", "e")


_READ = """
import sys
import pyarrow
from derand.tables import ColumnKind, inspect_file
file = inspect_file(sys.argv[1])
rows = sum(batch.num_rows for batch in file.read_batches(dict.fromkeys(file.names, ColumnKind.NUMBER)))
print(rows, pyarrow.default_memory_pool().max_memory())
"""


def test_reading_parquet_in_batches_takes_the_same_memory_for_any_file(tmp_path: Path) -> None:
    """Neither a row group of a million rows nor several of them are held at once."""
    peaks = []
    for n_rows in (300_000, 2_400_000):
        numbers = np.random.default_rng(0).normal(size=n_rows)
        pq.write_table(pa.table({f"x{place}": numbers for place in range(4)}), tmp_path / "table.parquet")
        command = [sys.executable, "-c", _READ, str(tmp_path / "table.parquet")]
        rows, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(rows) == n_rows
        peaks.append(int(peak))
    assert peaks[1] < 1.2 * peaks[0]


def test_bytes_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    """A Parquet file may hold any bytes; the error names file and column."""
    path = tmp_path / "bytes.parquet"
    pq.write_table(pa.table({"age": pa.array([b"", b"\xff"]).dictionary_encode()}), path)
    with pytest.raises(ValueError, match=r"bytes\.parquet, column 'age', has cells that are no text"):
        inspect_file(path).read()


@pytest.mark.parametrize(
    "values",
    [
        ["exact", "", "no", "dual"],
        ["", ""],
        ["ja", "n\u00f6", "\u4e2d"],
        ["a\0b", "\0b", "a"],
        ["~ \t", "x" * 64],
        ["x" * 65, "y"],
        [],
    ],
)
def test_text_is_written_as_it_is(values: list[str]) -> None:
    """Without a Python string per cell where it is short and plain: in any layout the same column as pyarrow's."""
    plain = np.array(values, dtype=str)
    for one in (plain, plain[::-1], np.repeat(plain, 2)[::2], plain.astype(plain.dtype.newbyteorder(">"))):
        column = _writing._as_array(one)
        assert column.type == "string"
        assert column.equals(pa.array(one))
        column.validate(full=True)
