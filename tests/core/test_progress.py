"""Long work tells what it does, to those who listen and to nobody else."""

from __future__ import annotations

import threading

import pytest

from derand._core import progress
from derand._core.threads import run_blocks


def test_only_who_listens_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed by itself; after the block nobody listens any more."""
    heard: list[str] = []
    progress.tell("nobody")
    with progress.listen(heard.append), progress.listen(None):
        progress.tell("one")
    progress.tell("nobody")
    assert heard == ["one"]
    assert capsys.readouterr() == ("", "")


def test_the_innermost_listener_hears_it() -> None:
    """A verbose estimator within a command prints; afterwards the command hears again."""
    outer: list[str] = []
    inner: list[str] = []
    with progress.listen(outer.append):
        with progress.listen(inner.append):
            progress.tell("within")
        progress.tell("after")
    assert (outer, inner) == (["after"], ["within"])


def test_other_threads_do_not_hear_each_other() -> None:
    """But what concerns the process is told from any of them."""
    heard: list[str] = []

    def work() -> None:
        progress.tell("mine")
        progress.announce("compiling")

    with progress.listen(heard.append):
        other = threading.Thread(target=work)
        other.start()
        other.join()
    assert heard == ["compiling"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_without_a_listener_the_terminal_is_told(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What concerns the process, where a person sits there."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    progress.announce("compiling")
    assert capsys.readouterr().err == ("derand: compiling\n" if is_terminal else "")


def test_announcements_can_be_heard_alone() -> None:
    """As a command does whose standard error is a file."""
    heard: list[str] = []
    with progress.hear_announcements(heard.append):
        progress.tell("digging")
        progress.announce("compiling")
    assert heard == ["compiling"]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_are_counted_once_in_a_while(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of these rows, not those of other work within it."""
    heard: list[str] = []
    with progress.listen(heard.append), progress.counting("certifying", 1000):
        run_blocks(lambda block: None, 1000, 400, n_threads)
        assert heard == ["certifying 1,000 rows"]
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        run_blocks(lambda block: None, 1000, 400, n_threads)
        run_blocks(lambda block: None, 7, 1, n_threads)
    run_blocks(lambda block: None, 1000, 400, n_threads)
    assert heard == ["certifying 1,000 rows", "certifying 400 of 1,000 rows", "certifying 800 of 1,000 rows"]


def test_rounds_are_counted_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """As boosting does; it may end early."""
    heard: list[str] = []
    with progress.listen(heard.append):
        assert list(progress.count_rounds(2, "boosting")) == [0, 1]
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        assert next(progress.count_rounds(2, "boosting")) == 0
    assert heard == ["boosting 2 rounds", "boosting 2 rounds", "boosting 0 of 2 rounds"]


def test_a_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there to read it."""
    monkeypatch.setattr("sys.stderr", None)
    progress.print_line("digging")
    progress.announce("digging")
