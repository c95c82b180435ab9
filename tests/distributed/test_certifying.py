"""Certificates of partitions are those of the whole table, and many files those of each one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import derand
from derand import StumpClassifier, load, save
from derand.distributed import certify, certify_files, connect
from derand.jobs import certify_file

dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def clf() -> StumpClassifier:
    from tests.distributed.conftest import make_table

    frame = make_table(2_000)
    return StumpClassifier(noise="gaussian:0.3").fit(frame.drop(columns="bad"), frame["bad"])


@pytest.fixture
def model(clf: StumpClassifier, tmp_path: Path) -> Path:
    save(clf, tmp_path / "model.json")
    return tmp_path / "model.json"


def test_partitions_join_back_by_their_index(clf: StumpClassifier, frame: Any) -> None:
    own = frame.set_index(frame.index * 7)
    wanted = clf.certify(own.drop(columns="bad"), l0=1).to_frame()
    found = certify(clf, dd.from_pandas(own, npartitions=5), l0=1)
    assert list(found.columns) == list(wanted.columns)
    assert found.compute().equals(wanted)
    with_id = certify(clf, dd.from_pandas(own, npartitions=3), l0=1, keep=["bad", "age"]).compute()
    assert list(with_id.columns) == ["bad", "age", *wanted.columns]
    assert with_id["bad"].tolist() == own["bad"].tolist()
    empty = certify(clf, dd.from_pandas(own.iloc[:3], npartitions=1).query("age > 1e9"))
    assert len(empty.compute()) == 0


def test_what_is_refused(clf: StumpClassifier, frame: Any) -> None:
    with pytest.raises(TypeError, match="Dask dataframe"):
        certify(clf, frame)
    with pytest.raises(ValueError, match="no column 'age'"):
        certify(clf, dd.from_pandas(frame.drop(columns="age"), npartitions=2))


def test_files_are_certified_as_each_would_be(model: Path, folder: Path, tmp_path: Path, cluster: Any) -> None:
    address = cluster.scheduler.address
    counted: list[int] = []
    summary = certify_files(model, folder, tmp_path / "out", scheduler=address, advance=counted.append, keep=["job"])
    assert (summary["files"], summary["rows"], sum(counted), summary["failed"]) == (3, 1_200, 1_200, {})
    for file in sorted(folder.iterdir()):
        certify_file(model, file, tmp_path / "alone.parquet", keep=["job"])
        assert (tmp_path / "out" / file.name).read_bytes() == (tmp_path / "alone.parquet").read_bytes()


def test_what_is_done_is_not_done_again(model: Path, folder: Path, tmp_path: Path, cluster: Any) -> None:
    out, address = tmp_path / "out", cluster.scheduler.address
    certify_files(model, folder, out, scheduler=address)
    wanted = {file.name: file.read_bytes() for file in out.iterdir()}
    (out / "part-1.parquet").write_bytes(b"half")
    (out / "part-2.parquet.json").unlink()
    with pytest.raises(FileExistsError, match="--resume"):
        certify_files(model, folder, out, scheduler=address)
    with pytest.raises(FileExistsError, match="another request"):
        certify_files(model, folder, out, scheduler=address, resume=True, l0=1)
    summary = certify_files(model, folder, out, scheduler=address, resume=True)
    assert (summary["done_before"], summary["rows"], summary["rows_done_before"]) == (1, 800, 400)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == wanted


def test_a_damaged_file_is_named_and_the_others_are_done(
    model: Path, folder: Path, tmp_path: Path, cluster: Any
) -> None:
    (folder / "part-1.parquet").write_bytes(b"PAR1 and then nothing")
    summary = certify_files(model, folder, tmp_path / "out", scheduler=cluster.scheduler.address)
    assert list(summary["failed"]) == [str(folder / "part-1.parquet")]
    assert "part-1.parquet is not a Parquet file" in summary["failed"][str(folder / "part-1.parquet")]
    assert summary["rows"] == 800
    assert not (tmp_path / "out" / "part-1.parquet").exists()


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(model: Path, folder: Path, tmp_path: Path) -> None:
    with connect(workers=2) as client:
        pids = list(client.run(os.getpid).values())

        def kill_one(rows: int) -> None:
            if pids:
                os.kill(pids.pop(), signal.SIGKILL)
                pids.clear()

        summary = certify_files(model, folder, tmp_path / "out", scheduler=client.scheduler.address, advance=kill_one)
    assert (summary["rows"], summary["failed"], pids) == (1_200, {}, [])
    for file in sorted(folder.iterdir()):
        certify_file(model, file, tmp_path / "alone.parquet")
        assert (tmp_path / "out" / file.name).read_bytes() == (tmp_path / "alone.parquet").read_bytes()


def test_folders_and_names(model: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds other files"):
        certify_files(model, folder, tmp_path / "full", workers=1)
    with pytest.raises(NotADirectoryError, match="is a file"):
        certify_files(model, folder, model, workers=1)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "part-1.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match="have the same name"):
        certify_files(model, [folder, tmp_path / "more"], tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_schedulers_that_are_not_there(model: Path, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("derand.distributed._cluster._PATIENCE", "1s")
    with pytest.raises(ConnectionError, match="cannot be reached"):
        certify_files(model, folder, tmp_path / "out", scheduler="tcp://127.0.0.1:9")


def test_workers_of_another_version(cluster: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(derand, "__version__", "99.0")
    with pytest.raises(RuntimeError, match=r"derand 99\.0, but .* has derand"), connect(cluster.scheduler.address):
        pass


def test_the_model_that_travels_is_the_same(clf: StumpClassifier, tmp_path: Path) -> None:
    from derand.storage import load_bytes, write_bytes

    save(clf, tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == write_bytes(clf)
    assert write_bytes(load_bytes(write_bytes(clf))) == write_bytes(load(tmp_path / "model.json"))


@pytest.mark.parametrize("content", ["[]", "null", "[" * 100_000, "{", ""])
def test_a_damaged_note_of_an_earlier_run_is_one_line(content: str, model: Path, folder: Path, tmp_path: Path) -> None:
    """Whatever stands in derand-job.json."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "derand-job.json").write_text(content)
    with pytest.raises(ValueError, match=r"derand-job\.json is damaged, or no file of derand: name a new folder"):
        certify_files(model, folder, out, resume=True)
