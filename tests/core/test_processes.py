"""Processes of their own: results and errors come back, and one that is lost is one error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from derand._core.processes import LostProcessError, WorkerPool, WorkerProcess


def test_errors_come_back_as_they_are() -> None:
    """Those of other libraries as text: this process need not know them."""
    with WorkerProcess() as worker:
        with pytest.raises(FileNotFoundError, match="nowhere") as caught:
            worker.call(open, "nowhere")
        assert caught.value.filename == "nowhere"
        with pytest.raises(RuntimeError, match="JSONDecodeError: Expecting value"):
            worker.call(eval, "__import__('json').loads('')")
        assert worker.call(divmod, 7, 2) == (3, 1)


def test_what_is_printed_is_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerProcess() as worker:
        assert worker.call(os.system, "echo out; read line || echo nothing") == 0
    assert capfd.readouterr() == ("", "out\nnothing\n")
    with WorkerProcess(silent=True) as worker:
        worker.call(print, "unheard")
    assert capfd.readouterr() == ("", "")


def test_a_process_that_is_lost_says_how() -> None:
    with WorkerProcess(silent=True) as worker, pytest.raises(LostProcessError, match="was ended by SIGABRT"):
        worker.call(os.abort)
    with WorkerProcess() as worker, pytest.raises(LostProcessError, match="ended with code 3"):
        worker.call(os._exit, 3)


def leave_once(path: str) -> str:
    """Kill the process that comes first."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "done"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def test_a_task_whose_process_was_killed_is_tried_once_more(tmp_path: Path) -> None:
    """One that kills every process is one error, and the others are done."""
    tasks = {name: (str(tmp_path / name),) for name in ("a", "b", "c")}
    with WorkerPool(2) as pool:
        assert sorted(pool.run(leave_once, tasks)) == [(name, "done", None) for name in tasks]
        found = {key: (result, type(error)) for key, result, error in pool.run(os._exit, {"lost": (1,)})}
        assert found == {"lost": (None, LostProcessError)}
        assert next(pool.run(divmod, {"next": (7, 2)})) == ("next", (3, 1), None)


def test_all_processes_end_with_the_pool(tmp_path: Path) -> None:
    """Also where it is left while they work; they tidy up, because SIGTERM is an error to them."""
    with WorkerPool(2) as pool:
        waiting = threading.Thread(
            target=lambda: list(pool.run(begin_and_wait, {at: (str(tmp_path / str(at)),) for at in range(2)}))
        )
        waiting.start()
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
    waiting.join()
    assert all(worker._process.returncode == 128 + signal.SIGTERM for worker in pool._all)
    assert not list(tmp_path.iterdir())


def begin_and_wait(path: str) -> None:
    """Leave a file behind until the process is told to end."""
    Path(path).write_text(str(os.getpid()))
    try:
        while True:
            time.sleep(60)
    finally:
        os.unlink(path)


_KILLED = """
import sys
from derand._core.processes import WorkerProcess
from tests.core.test_processes import begin_and_wait
WorkerProcess().call(begin_and_wait, sys.argv[1])
"""


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """Even where that is killed at once."""
    file = tmp_path / "begun"
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(file)], cwd=Path(__file__).parents[2]) as parent:
        while not file.exists() or not file.read_text():
            time.sleep(0.01)
        parent.kill()
    while file.exists():  # removed as it ends
        time.sleep(0.01)
