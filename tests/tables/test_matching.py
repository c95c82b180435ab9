"""Files for a classifier that exists: columns by name or position, labels and new categories."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derand.tables import ColumnKind, TableEncoding, match_file

NAMED = TableEncoding(3, ("x", "job", "owns"), {1: ("clerk", "cook"), 2: (False, True)})
CLASSES = np.array(["no", "yes"])


def write(folder: Path, text: str) -> Path:
    (folder / "new.csv").write_text(text)
    return folder / "new.csv"


def test_columns_are_matched_by_name_and_read_as_training_had_them(tmp_path: Path) -> None:
    """Order does not matter, other columns are not read, categories keep their type."""
    path = write(tmp_path, "more,owns,job,y,x\n1,true,cook,yes,0.5\n2,false,pilot,no,1\n")
    found = match_file(path, NAMED, target="y", classes=CLASSES)
    kinds = {"x": ColumnKind.NUMBER, "job": ColumnKind.TEXT, "owns": ColumnKind.BOOLEAN, "y": ColumnKind.TEXT}
    assert found.kinds == kinds
    (batch,) = found.read_batches()
    rows, labels = found.split(batch, first_row=1)
    assert rows.to_pydict() == {"x": [0.5, 1.0], "job": ["cook", "pilot"], "owns": [True, False]}
    assert labels is not None
    assert labels.tolist() == ["yes", "no"]
    assert found.count_unseen(batch) == {"job": 1}


def test_columns_are_matched_by_position_where_there_are_no_names(tmp_path: Path) -> None:
    """The target apart, there must be as many columns as in training."""
    path = write(tmp_path, "a,y,b\n1,no,2\n")
    nameless = TableEncoding(2, None, {})
    found = match_file(path, nameless, target="y", classes=CLASSES)
    rows, _ = found.split(found.read_all(), first_row=1)
    assert (found.names, rows.tolist()) == (("a", "b"), [[1.0, 2.0]])
    with pytest.raises(ValueError, match="has 3 columns of features, but the model was trained on 2, without names"):
        match_file(path, nameless, classes=CLASSES)


def test_other_columns_are_read_beside_as_text(tmp_path: Path) -> None:
    """Groups of a report need not be features."""
    found = match_file(write(tmp_path, "x,floor\n1,2\n3,4\n"), TableEncoding(1, ("x",), {}), classes=CLASSES)
    assert found.read_all(["floor"]).to_pydict() == {"floor": ["2", "4"], "x": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,job,owns,y\n,cook,true,no\n", r"cells in 'x' \(1 of 1 cells\) in rows 11 to 11: drop"),
        ("x,job,owns,y\n1,cook,true,\n", r"cells in 'y' \(1 of 1 cells\) in rows 11 to 11: drop"),
        ("x,job,owns,y\n1,cook,true,perhaps\n", "has the label 'perhaps' in row 11 of the column 'y': the model knows"),
        ("x,job,owns,y\n", "has a header line but no rows"),
        ("x,jobs,owns,y\n1,cook,true,no\n", "has no column 'job'. Did you mean 'jobs'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The error names the file, the column and the rows."""

    def read(path: Path) -> None:
        found = match_file(path, NAMED, target="y", classes=CLASSES)
        table = found.read_all()
        rows, _ = found.split(table, first_row=11)
        with found.name_gaps(table, first_row=11):
            NAMED.encode_finite(rows)

    with pytest.raises(ValueError, match=rf"new\.csv .*{message}"):
        read(write(tmp_path, text))


def test_labels_of_another_type_are_told_the_classes(tmp_path: Path) -> None:
    """A model of 0 and 1, and a file of Y and N; text in a feature is another matter."""
    encoding = TableEncoding(1, ("x",), {})
    found = match_file(write(tmp_path, "x,y\n1,Y\n2,N\n"), encoding, target="y", classes=np.array([0, 1]))
    with pytest.raises(ValueError, match=r"text in the number column 'y': 'Y' .* of which the model knows 0, 1\."):
        found.read_all()
    found = match_file(write(tmp_path, "x,y\na,1\n"), encoding, target="y", classes=np.array([0, 1]))
    with pytest.raises(ValueError, match=r"column 'x': 'a' \(line 2\)\.$"):
        list(found.read_batches())


def test_a_feature_is_no_target(tmp_path: Path) -> None:
    """A column cannot be both."""
    with pytest.raises(ValueError, match="'x' is a feature of the model"):
        match_file(write(tmp_path, "x\n1\n"), NAMED, target="x", classes=CLASSES)


def test_rows_of_the_model_are_written_in_the_columns_of_the_file(tmp_path: Path) -> None:
    """Categories by name; -1 leaves a value that training did not see, or makes one up; NaN empties a cell."""
    text = "owns,x,job\ntrue,1,pilot\nfalse,2,cook\ntrue,3,clerk\n,4,\nfalse,5,cook\n"
    found = match_file(write(tmp_path, text), NAMED, classes=CLASSES)
    nan = np.nan
    rows = np.array([[1.5, -1, 0], [2, nan, 0], [3, 1, nan], [4, 0, nan], [nan, -1, 1]])
    columns = {name: column.to_pylist() for name, column in found.decode(found.read_all(), rows).items()}
    assert columns == {
        "x": [1.5, 2.0, 3.0, 4.0, None],
        "job": ["pilot", None, "cook", "clerk", "cook?"],
        "owns": [False, False, None, None, True],
    }
    nothing = found.decode(found.read_all().slice(0, 0), rows[:0])
    assert {name: str(column.type) for name, column in nothing.items()} == {
        "x": "double",
        "job": "string",
        "owns": "bool",
    }


def test_numbers_outside_of_their_ends_are_named_with_the_row(tmp_path: Path) -> None:
    """The first of them; ends are included, and gaps are no business of this."""
    found = match_file(write(tmp_path, "x,job,owns\n1,a,true\n,a,true\n2,a,true\n"), NAMED, classes=CLASSES)
    found.require_between(found.read_all(), 0, (1, 2), first_row=11)
    with pytest.raises(
        ValueError, match=r"new\.csv has 2 in row 13 of the column 'x', outside of its domain from 0 to"
    ):
        found.require_between(found.read_all(), 0, (0, 1.5), first_row=11)


@pytest.mark.parametrize("is_stream", [False, True])
def test_booleans_of_a_typed_file_in_place_of_numbers(
    is_stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused, as in Python, unless training held booleans there; numbers in place of booleans are refused."""

    def match(table: pa.Table, encoding: TableEncoding) -> list[pa.Table]:
        path = "-" if is_stream else tmp_path / "new.parquet"
        if is_stream:
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sink.getvalue())))
        else:
            pq.write_table(table, path)
        return list(match_file(path, encoding, classes=CLASSES).read_batches())

    table = pa.table({"x": [True, None, False]})
    with pytest.raises(ValueError, match="has booleans in the number column 'x': its type is bool"):
        match(table, TableEncoding(1, ("x",), {}, booleans=()))
    for booleans in ((0,), None):
        encoding = TableEncoding(1, ("x",), {}, booleans=booleans)
        (batch,) = match(table, encoding)
        np.testing.assert_array_equal(encoding.encode(batch)[:, 0], [1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="has numbers in the column of booleans 'x': its type is int64"):
        match(pa.table({"x": [5, 0]}), TableEncoding(1, ("x",), {0: (False, True)}, booleans=()))
