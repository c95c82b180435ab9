"""Reading, working and writing at the same time: results and errors of one after the other, and no threads left."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from derand.app.jobs import CertifySettings, certify_file
from derand.app.jobs._pipeline import run_pipeline
from derand.tables import _files, _writing
from tests.app.jobs.tables import make_frame, make_prices

STAGES = ("read", "work", "write", "done")


class Line:
    """Five items that go through, and what was done to them; some stage fails at some item."""

    def __init__(self, *faults: tuple[str, int], error: type[BaseException] = ValueError) -> None:
        self.faults, self.error = set(faults), error
        self.calls: dict[str, list[int]] = {stage: [] for stage in STAGES}
        self.is_closed = False

    def act(self, stage: str, item: int) -> int:
        if (stage, item) in self.faults:
            raise self.error(f"{stage} of {item}")
        self.calls[stage].append(item)
        return item

    def read(self) -> Generator[int, None, None]:
        try:
            for item in range(5):
                yield self.act("read", item)
        finally:
            self.is_closed = True

    def run(self, n_threads: int, data: str = "a.csv", output: str = "b.csv") -> None:
        def write(item: int) -> None:
            self.act("write", item)

        def done(item: int) -> None:
            assert item in self.calls["write"]
            self.act("done", item)

        work = lambda item: self.act("work", item)  # noqa: E731
        run_pipeline(self.read(), work, write, done, data=data, output=output, n_threads=n_threads)


def find_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith(("read-ahead", "write-behind"))]


@pytest.mark.parametrize(("data", "output"), [*itertools.product(["a.csv", "-"], ["b.csv", "-"])])
def test_everything_is_done_once_and_in_order(data: str, output: str) -> None:
    """Whatever is a stream."""
    line = Line()
    line.run(2, data, output)
    assert all(calls == [0, 1, 2, 3, 4] for calls in line.calls.values())
    assert line.is_closed
    assert not find_threads()


@pytest.mark.parametrize("first", [*itertools.product(STAGES, (0, 4))], ids=str)
def test_the_error_is_that_of_one_after_the_other(first: tuple[str, int]) -> None:
    """Even where several stages fail, and what was written before it is the same; nothing goes on after it."""
    for second in (None, *itertools.product(STAGES, (1, 2))):
        faults = [first] if second is None else [first, second]
        lines = []
        for n_threads in (1, 2):
            line = Line(*faults)
            with pytest.raises(ValueError, match=" of ") as caught:
                line.run(n_threads)
            lines.append((str(caught.value), line.calls["write"]))
            assert line.is_closed
        assert lines[0] == lines[1], second
        assert not find_threads()


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_ends_it_and_no_thread_is_left(stage: str) -> None:
    """Wherever it comes."""
    line = Line((stage, 2), error=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        line.run(2)
    assert line.is_closed
    assert not find_threads()


def test_the_next_batch_is_read_and_the_last_one_written_meanwhile() -> None:
    """While one is worked on; and no more than one each, so that memory is bounded."""
    reads, writes = [threading.Event() for _ in range(6)], [threading.Event() for _ in range(6)]
    worked = [threading.Event() for _ in range(6)]
    most = 0

    def read() -> Generator[int, None, None]:
        nonlocal most
        for item in range(6):
            most = max(most, item - sum(event.is_set() for event in worked))
            reads[item].set()
            yield item

    def work(item: int) -> int:
        assert item == 5 or reads[item + 1].wait(600)
        assert item < 2 or writes[item - 2].is_set()
        worked[item].set()
        return item

    def write(item: int) -> None:
        assert item == 5 or worked[item + 1].wait(600)  # not before the next one is worked on
        writes[item].set()

    run_pipeline(read(), work, write, lambda item: None, data="a.csv", output="b.csv", n_threads=2)
    assert all(event.is_set() for event in writes)
    assert most == 1


def test_a_stream_is_answered_before_more_of_it_is_asked_for() -> None:
    """Whoever waits for the answer to one batch before he sends the next one is not kept waiting."""
    answers: list[int] = []

    def read() -> Generator[int, None, None]:
        for item in range(3):
            assert answers == list(range(item))
            yield item

    run_pipeline(read(), int, answers.append, lambda item: None, data="-", output="-", n_threads=2)
    assert answers == [0, 1, 2]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2048)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 64)


@pytest.fixture(params=["classes", "numbers"])
def job(request: pytest.FixtureRequest) -> tuple[Any, Path, Any]:
    """A job, its model, and a table for it."""
    if request.param == "classes":
        return certify_file, request.getfixturevalue("model"), make_frame(700, seed=1)
    return certify_file, request.getfixturevalue("regressor"), make_prices(700)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_have_the_same_bytes_and_progress_is_that_of_rows(
    job: tuple[Any, Path, Any], suffix: str, tmp_path: Path
) -> None:
    """With threads and without."""
    certify, model, frame = job
    data = tmp_path / f"rows.{suffix}"
    frame.to_csv(data, index=False) if suffix == "csv" else frame.to_parquet(data)
    found = []
    for n_jobs in (1, 2):
        out, rows = tmp_path / f"out-{n_jobs}.{suffix}", list[int]()
        summary = certify(
            model, data, out, CertifySettings(keep=["x"] if "x" in frame else [], n_jobs=n_jobs), advance=rows.append
        )
        shown = {name: value for name, value in summary.items() if name not in ("seconds", "output", "record")}
        found.append((out.read_bytes(), shown, rows))
    assert found[0] == found[1]
    assert len(found[0][2]) > 5
    assert sum(found[0][2]) == len(frame)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("fault", ["read", "certify", "write", "interrupt"])
def test_a_late_error_is_as_clear_and_leaves_nothing(
    job: tuple[Any, Path, Any], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any stage: a cell that is no number, an infinite one, a full disk, Ctrl-C."""
    certify, model, frame = job
    number = next(name for name in frame.columns if frame[name].dtype == float)
    cells = frame[number].astype(object)
    cells[650] = {"read": "many", "certify": float("inf")}.get(fault, 0.5)
    data = tmp_path / "rows.csv"
    frame.assign(**{number: cells}).to_csv(data, index=False)
    before = sorted(path.name for path in tmp_path.iterdir())
    rows: list[int] = []

    def advance(count: int) -> None:
        rows.append(count)
        if fault == "interrupt" and len(rows) == 4:
            raise KeyboardInterrupt

    def fail(*arguments: Any) -> Any:
        if len(rows) == 4:
            raise OSError(28, "No space left on device")
        return as_column(*arguments)

    as_column = _writing._as_column
    if fault == "write":
        monkeypatch.setattr(_writing, "_as_column", fail)
    expected: dict[str, tuple[type[BaseException], str]] = {
        "read": (ValueError, f"rows.csv has text in the number column '{number}': 'many'"),
        "certify": (ValueError, f"rows.csv has .*infinite cells in '{number}' \\(1 of .* cells\\) in rows .* to "),
        "write": (OSError, "No space left on device"),
        "interrupt": (KeyboardInterrupt, "^$"),
    }
    kind, message = expected[fault]
    for n_jobs in (1, 2):
        rows.clear()
        with pytest.raises(kind, match=message):
            certify(model, data, tmp_path / "out.csv", CertifySettings(n_jobs=n_jobs), advance=advance)
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert rows
        assert not find_threads()
