"""Certificates of partitions are those of the whole table, and many files those of each one."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.ensemble import GradientBoostingClassifier

import derand
from derand import AdditiveRegressor, StumpClassifier, Threat, from_model, load, save
from derand.app.jobs import CertifySettings, certify_file
from derand.distributed import certify, certify_files, connect

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


def test_imported_trees_and_regressors_are_certified_by_parts(frame: Any) -> None:
    rows = frame[["amount", "count", "age"]].fillna(0.0).assign(more=frame["count"] % 4, less=frame["amount"] % 1)
    library = GradientBoostingClassifier(n_estimators=20, max_depth=4, random_state=0).fit(
        rows.to_numpy(), frame["bad"]
    )
    trees = from_model(library, rows)
    assert trees.ensemble_.has_trees
    threat = Threat(norm=None, limits={"amount": 0.1, "age": "5%"})
    parts = dd.from_pandas(rows[:300], npartitions=3)
    assert certify(trees, parts, threat=threat).compute().equals(trees.certify(rows[:300], threat=threat).to_frame())
    reg = AdditiveRegressor(radius=0.1, regularization=1.0).fit(rows, rows["amount"] * 2)
    assert certify(reg, parts).compute().equals(reg.certify_interval(rows[:300]).to_frame())
    found = certify(reg, parts, tolerance=0.5, keep=["more"]).compute()
    assert found.drop(columns="more").equals(reg.certify_radius(rows[:300], 0.5).to_frame())


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
        certify_file(model, file, tmp_path / "alone.parquet", CertifySettings(keep=["job"]))
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


def test_processes_of_this_machine_give_the_same_bytes(model: Path, folder: Path, tmp_path: Path) -> None:
    """Also for what an earlier run left over; a file without rows is named."""
    (folder / "part-3.csv").write_text("amount,count,job,age\n")
    out = tmp_path / "out"
    counted: list[int] = []
    summary = certify_files(model, str(folder / "*"), out, workers=1, advance=counted.append, keep=["job"])
    assert (summary["files"], summary["rows"], sorted(counted)) == (4, 1_200, [400] * 3)
    assert [*summary["failed"].values()] == [f"{folder / 'part-3.csv'} has a header line but no rows."]
    wanted = {}
    for file in sorted(folder.glob("*.parquet")):
        certify_file(model, file, tmp_path / "alone.parquet", CertifySettings(keep=["job"]))
        wanted[file.name] = (tmp_path / "alone.parquet").read_bytes()
        assert (out / file.name).read_bytes() == wanted[file.name]
    (out / "part-1.parquet").unlink()
    again = certify_files(model, folder, out, workers=1, resume=True, keep=["job"])
    assert (again["done_before"], again["rows"]) == (2, 400)
    assert (out / "part-1.parquet").read_bytes() == wanted["part-1.parquet"]
    with pytest.raises(ValueError, match="1 or larger"):
        certify_files(model, folder, tmp_path / "none", workers=0)
    assert not (tmp_path / "none").exists()


_COUNT_SOCKETS = """
import os, sys
from pathlib import Path
from derand.distributed import certify_files

def list_sockets(rows):
    own = os.getpid()
    others = [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    links = [os.readlink(link) for pid in (own, *others) for link in Path(f"/proc/{pid}/fd").iterdir() if link.exists()]
    print(len(others), [link for link in links if link.startswith("socket:")])

summary = certify_files(*sys.argv[1:4], workers=2, advance=list_sockets)
assert not summary["failed"], summary
print([name for name in ("dask", "distributed", "multiprocessing") if name in sys.modules])
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="open files are listed in /proc")
def test_processes_of_this_machine_open_no_socket_and_need_no_guard(model: Path, folder: Path, tmp_path: Path) -> None:
    """A script without `if __name__ == "__main__"` starts them, too; Dask is not imported."""
    script = tmp_path / "script.py"
    script.write_text(_COUNT_SOCKETS)
    command = [sys.executable, str(script), str(model), str(folder), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    *counts, loaded = done.stdout.splitlines()
    assert counts == ["2 []"] * 3
    assert "dask" not in loaded
    assert "distributed" not in loaded


def ask_without_a_key(port: int, *, by_tls: bool) -> bytes:
    """What a server answers to whoever has no key of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        used = context.wrap_socket(plain) if by_tls else plain
        used.sendall(b"\x00" * 64)
        answer = used.recv(64)
    if not answer:
        raise ConnectionError("closed")
    return answer


def test_a_cluster_of_this_machine_talks_by_tls_and_answers_no_http(cluster: Any) -> None:
    """Whoever has no key is not served, and its HTTP servers have no page."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    assert cluster.scheduler.address.startswith("tls://127.0.0.1:")
    for by_tls in (True, False):
        with pytest.raises(OSError):  # noqa: PT011 (of TLS, or the connection is closed)
            ask_without_a_key(int(cluster.scheduler.address.rpartition(":")[2]), by_tls=by_tls)
    workers = cluster.run(lambda dask_worker: dask_worker.http_server.port)
    for port in (cluster.cluster.scheduler.http_server.port, *workers.values()):
        for page in ("", "health", "metrics", "info/main/workers.html", "json/counts.json"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60)


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
    with pytest.raises(ConnectionError, match=r"derand 99\.0, but .* has derand"), connect(cluster.scheduler.address):
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
