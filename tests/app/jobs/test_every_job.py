"""What all jobs have in common: how they read files, labels and long cells, and that no input is lost."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

import pytest

from derand.app.jobs import CertifySettings, certify_file, report_file, train_file
from derand.tables import _files
from tests.app.jobs.tables import make_frame


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_categorical_columns_without_any_value_are_reported(
    suffix: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty in every batch; one that holds a value anywhere is none of them."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2**10)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 20)
    frame = make_frame(200).astype({"job": object})
    frame["job"], frame.loc[:198, "floor"] = None, None
    new = tmp_path / f"new.{suffix}"
    frame.to_csv(new, index=False) if suffix == "csv" else frame.to_parquet(new)
    summary = certify_file(model, new, tmp_path / "out.csv")
    assert summary["empty_columns"] == ["job"]
    assert report_file(model, new, tmp_path / "report.md")["empty_columns"] == ["job"]


@pytest.mark.parametrize("place", ["x", "label"])
def test_long_cells_are_quoted_in_short(place: str, model: Path, tmp_path: Path) -> None:
    """A cell of a million letters does not make a message of a million letters."""
    frame = make_frame(10).astype({"x": object})
    frame.loc[3, place] = "a" * 1_000_000
    frame.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match=r"aaa'\.\.\.") as told:
        certify_file(model, tmp_path / "new.csv", tmp_path / "out.csv", CertifySettings(target="label"))
    assert len(str(told.value)) < 500
    words = r"aaa'\.\.\." if place == "x" else "cannot be saved"  # as a label it is a class of its own
    with pytest.raises(ValueError, match=words) as told:
        train_file(tmp_path / "new.csv", "label", tmp_path / "new.json", model="stumps")
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("labels", [("0", "1"), ("-1", "1"), ("1.0", "2.0"), ("True", "False"), ("b", "a")])
def test_labels_of_any_kind_go_from_file_to_file(labels: tuple[str, str], tmp_path: Path) -> None:
    """Whole numbers, truth values and text are matched again when the true labels are read for certifying."""
    lines = [f"{x},{labels[int(x > 5)]}" for x in range(11)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]))
    train_file(tmp_path / "data.csv", "y", tmp_path / "model.json", model="stumps")
    summary = certify_file(
        tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", CertifySettings(target="y")
    )
    assert summary["accuracy"] > 0.8


class OpenCounter:
    """Counts how often the operating system opens a file."""

    OPEN, CLOSE = 0x20, 0x10  # closing is watched as well, because equal events in a row are merged into one

    def __init__(self, path: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = self._libc.inotify_init1(os.O_NONBLOCK)
        assert self._libc.inotify_add_watch(self._watch, os.fsencode(path), self.OPEN | self.CLOSE) >= 0

    def count(self) -> int:
        """Opens since the counter was made; it is used up."""
        events = os.read(self._watch, 2**16)
        os.close(self._watch)
        masks = [struct.unpack_from("iIII", events, start)[1] for start in range(0, len(events), 16)]
        return sum(bool(mask & self.OPEN) for mask in masks)


@pytest.mark.skipif(sys.platform != "linux", reason="opens are counted by inotify")
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_file_is_opened_once_to_look_and_once_to_read(suffix: str, model: Path, tmp_path: Path) -> None:
    """Training opens a table twice, however large it is; certifying and reporting once more, for its checksum."""
    new = tmp_path / f"new.{suffix}"
    if suffix == "parquet":
        make_frame(500).to_parquet(new)
    else:
        make_frame(500).to_csv(new, index=False)
    counter = OpenCounter(new)
    certify_file(model, new, tmp_path / "out.csv", CertifySettings(target="label"))
    assert counter.count() == 3
    counter = OpenCounter(new)
    report_file(model, new, tmp_path / "report.md", target="label", subgroups=["word"])
    assert counter.count() == 3
    counter = OpenCounter(new)
    train_file(new, "label", tmp_path / "again.json", model="stumps")
    assert counter.count() == 2


@pytest.mark.parametrize("lost", ["data", "model"])
def test_an_output_that_is_an_input_is_refused(tmp_path: Path, lost: str) -> None:
    """Neither the table nor the model is replaced by what is made from it."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    data.write_text("x,y\n" + "".join(f"{number},{'no' if number < 5 else 'yes'}\n" for number in range(10)))
    train_file(data, "y", model, model="stumps")
    target = {"data": data, "model": model}[lost]
    before = target.read_bytes()
    with pytest.raises(ValueError, match="is also an input, which would be lost"):
        certify_file(model, data, target)
    with pytest.raises(ValueError, match=r"is also an input, which would be lost|must end with one of"):
        report_file(model, data, target, target="y")
    with pytest.raises(ValueError, match="is also an input, which would be lost"):
        train_file(data, "y", data)
    assert target.read_bytes() == before
