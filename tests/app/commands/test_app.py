"""The command line as a whole: usage, errors in one line with exit code 2, progress, and one file per command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from derand._core import progress
from derand.app import commands
from derand.app.commands import _app
from derand.estimators import TRAINERS
from tests.app.commands.running import run, run_in_shell, run_process

on_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such shell, pipes and signals")
has_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")

TUNE = ("tune", "data.csv", "--target", "label")
BAD_INPUT = {
    "missing target": (["train", "data.csv", "--target", "labell", "-o", "m.json"], "Did you mean 'label'?"),
    "missing file": (["train", "absent.csv", "--target", "label", "-o", "m.json"], "absent.csv does not exist"),
    "empty file": (["train", "empty.csv", "--target", "label", "-o", "m.json"], "empty.csv is empty"),
    "not a table": (["train", "noise.csv", "--target", "label", "-o", "m.json"], "noise.csv is not a CSV file"),
    "unknown noise": (["train", "data.csv", "--target", "label", "-o", "m.json", "--noise", "pink:1"], "pink"),
    "noise of zero": (["train", "data.csv", "--target", "label", "-o", "m.json", "--noise", "gaussian:0"], "positive"),
    "unknown model": (
        ["train", "data.csv", "--target", "label", "-o", "m.json", "--model", "forest"],
        f"--model must be one of {', '.join(TRAINERS)}, got 'forest'",
    ),
    "scaling": (
        ["train", "data.csv", "--target", "label", "-o", "m.json", "--scaling", "log"],
        "--scaling must be one",
    ),
    "tuning by an unknown model": ([*TUNE, "--model", "forest"], "--model must be one"),
    "tuning for no radius": ([*TUNE, "--radii", "0"], "--radii must be numbers, above 0"),
    "tuning in no norm": ([*TUNE, "--norm", "3"], "--norm must be one of 0, 1, 2, inf"),
    "tuning with no scaling": ([*TUNE, "--scaling", "log"], "--scaling must be one of"),
    "tuning by no rule": ([*TUNE, "--rule", "dice"], "--rule must be one of vote, mean"),
    "tuning without a table": (["tune", "absent.csv", "--target", "label"], "absent.csv does not exist"),
    "tuning without labels": (["tune", "data.csv", "--target", "labell"], "Did you mean 'label'?"),
    "tuning around no noise": ([*TUNE, "--model", "stumps", "--noise", "pink:1"], "Unknown noise 'pink'"),
    "tuning in too many folds": ([*TUNE, "--folds", "500"], "must be at most 212"),
    "tuning for everything": ([*TUNE, "--accuracy-loss", "1"], "`accuracy_loss` must be"),
    "a picture of no known kind": ([*TUNE, "-o", "t.doc"], "must end with one of .png"),
    "costs of no mistakes": (
        ["train", "data.csv", "--target", "label", "-o", "m.json", "--model", "additive", "--cost", "fn=5,fp=1"],
        "--cost must say what both mistakes cost, each a number above 0, such as false_negative=5,false_positive=1",
    ),
    "no such folder": (["train", "data.csv", "--target", "label", "-o", "no/m.json"], "Cannot write no"),
    "radii": (["certify", "model.json", "data.csv", "-o", "o.csv", "--radii", "0,x"], "--radii must be numbers"),
    "negative radii": (
        ["certify", "model.json", "data.csv", "-o", "o.csv", "--radii", "-1"],
        "--radii must be numbers",
    ),
    "not a model": (
        ["certify", "data.csv", "data.csv", "-o", "o.csv"],
        "data.csv is not a model file: it holds something else",
    ),
    "no model": (["certify", "absent.json", "data.csv", "-o", "o.csv"], "absent.json"),
    "output name": (["certify", "model.json", "data.csv", "-o", "o.txt"], "must end with .csv or .parquet"),
    "negative l0": (["certify", "model.json", "data.csv", "-o", "o.csv", "--l0", "-2"], "`l0` must be"),
    "a report of no known kind": (["report", "model.json", "data.csv", "-o", "report.doc"], "must end with one of"),
    "a report on an unknown group": (["report", "model.json", "data.csv", "-o", "r.md", "--subgroup", "x"], "'x'"),
    "a file as folder": (["demo", "-o", "data.csv"], "data.csv"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, nothing on stdout, no new file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "noise.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\xff,\xff\n\xff\n")
    before = sorted(tmp_path.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "data.csv"], "Error: Missing option '--target'"),
        (["nothing"], "Error: No such command 'nothing'"),
        (["certify", "a", "b", "-o", "c", "--l0", "two"], "Error: Invalid value for '--l0'"),
        (["certify", "a", "b", "-o", "c", "--l0", "9" * 400], "'--l0': it must be a whole number up to 2147483647"),
        (["train", "a", "--target", "b", "-o", "c", "--min-rows-per-category", "9" * 400], "it must be a whole number"),
    ],
)
def test_wrong_usage_is_one_line_too(arguments: list[str], message: str) -> None:
    """The command itself, run as a process, answers wrong usage with a single line and exit code 2."""
    done = run_process(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert message in line


def test_the_command_alone_shows_its_help() -> None:
    """`derand` without a command lists the commands."""
    done = run_process()
    assert done.returncode == 0
    assert "certify" in done.stdout
    assert done.stderr == ""


def test_a_piped_run_is_quiet(data: Path, tmp_path: Path) -> None:
    """From start to end as a user would: no progress bar, no colour, nothing on stderr when piped."""
    model, out = tmp_path / "model.json", tmp_path / "out.parquet"
    trained = run_process("train", data, "--target", "label", "-o", model, "--model", "stumps")
    assert (trained.returncode, trained.stderr) == (0, "")
    certified = run_process("certify", model, data, "-o", out, "--target", "label")
    assert (certified.returncode, certified.stderr) == (0, "")
    assert "\x1b" not in trained.stdout + certified.stdout
    assert len(pd.read_parquet(out)) == 569


@on_posix
@pytest.mark.parametrize("arguments", [["--help"], ["datasets"], ["datasets", "--json"]])
@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param('"$@" > /dev/full', "No space left on device", marks=has_full),
        ('"$@" >&-', "Bad file descriptor"),
    ],
)
def test_what_cannot_be_printed_is_one_line(arguments: list[str], line: str, fault: str) -> None:
    """A full disk behind stdout, or none at all: exit code 2, no traceback."""
    done = run_in_shell(line, *arguments)
    assert done.returncode == 2
    assert done.stderr == f"Error: Cannot print to stdout: {fault}.\n"


@on_posix
@pytest.mark.parametrize("arguments", [["--help"], ["datasets"], ["datasets", "--json"]])
def test_a_reader_who_has_had_enough_is_no_error(arguments: list[str]) -> None:
    """A pipe that is closed at the other end ends the command quietly."""
    done = run_in_shell('{ "$@"; echo "$?" >&2; } | true', *arguments)
    assert done.stderr == "0\n"


@on_posix
def test_closed_streams_do_not_end_in_a_file(data: Path, tmp_path: Path) -> None:
    """With all streams closed the model is still what it is otherwise, and nothing was printed into it."""
    arguments = ["train", data, "--target", "label", "--model", "stumps", "-o"]
    run(*arguments, tmp_path / "open.json")
    run_in_shell('"$@" <&- >&- 2>&-', *arguments, tmp_path / "closed.json")
    assert (tmp_path / "closed.json").read_bytes() == (tmp_path / "open.json").read_bytes()


@on_posix
def test_sigterm_removes_what_was_begun(tmp_path: Path) -> None:
    """Like Ctrl-C: the draft goes, one line, and the exit code that shells give to SIGTERM."""
    program = (
        "import sys, time; from derand.app import commands; from derand._core.files import replace_when_done\n"
        "app = commands.make_app('wait', 'Waits.')\n"
        "@app.command()\n"
        "@commands.clear_errors\n"
        "def wait(path: str) -> None:\n"
        "    with replace_when_done(path) as draft:\n"
        "        draft.write_text('half')\n"
        "        print('begun', flush=True)\n"
        "        time.sleep(600)\n"
        "commands.run_app(app)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "note.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 143
    assert errors == "Error: stopped by SIGTERM.\n"
    assert not list(tmp_path.iterdir())


@on_posix
@pytest.mark.parametrize("output", ["out.csv", pytest.param("out.parquet", marks=pytest.mark.long)])
def test_an_output_without_room_is_named(output: str, data: Path, model: Path, tmp_path: Path) -> None:
    """One line that says which file could not be written; what stood there before is still there."""
    (tmp_path / output).write_text("old")
    done = run_in_shell('ulimit -f 8; "$@"', "certify", model, data, "-o", tmp_path / output)  # blocks of 512 bytes
    assert done.returncode == 2
    assert done.stderr == f"Error: Cannot write {tmp_path / output}: File too large.\n"
    assert (tmp_path / output).read_text() == "old"
    assert not list(tmp_path.glob("*.part"))


@on_posix
def test_a_pipe_as_output_is_refused(data: Path, tmp_path: Path) -> None:
    """It is not replaced by a file, and nobody waits for a reader."""
    os.mkfifo(tmp_path / "pipe.json")
    result = run("train", data, "--target", "label", "-o", tmp_path / "pipe.json")
    assert result.exit_code == 2
    assert "it is a pipe or a device" in result.stderr


@on_posix
@pytest.mark.parametrize("place", ["pipe.json", "/dev/zero"])
def test_a_pipe_or_a_device_is_not_read(place: str, data: Path, model: Path, tmp_path: Path) -> None:
    """As a model, a configuration, a threat or a table: one line, and nobody waits."""
    os.mkfifo(tmp_path / "pipe.json")
    path, out = tmp_path / place, tmp_path / "out.csv"
    for arguments in (
        ["certify", path, data, "-o", out],
        ["certify", model, path, "-o", out],
        ["certify", model, data, "-o", out, "--threat", path],
        ["run", path],
        ["run", path, "--check"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr == f"Error: Cannot read {path}: it is a pipe or a device, not a plain file. Name a file.\n"


INTERRUPTED = """
import signal, sys
class Stop:
    n_left = int(sys.argv.pop(1))
    def find_spec(self, name, path=None, target=None):
        Stop.n_left -= 1
        if Stop.n_left == 0:
            signal.raise_signal(signal.SIGINT)
from derand.__main__ import main
sys.meta_path.insert(0, Stop())
main()
"""


@on_posix
@pytest.mark.parametrize("n_imports", [2, 300, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 30, 100, 700))])
def test_ctrl_c_is_one_line_from_the_beginning(n_imports: int, data: Path, model: Path, tmp_path: Path) -> None:
    """While the command line is being imported, and later on."""
    asked = ["certify", str(model), str(data), "-o", str(tmp_path / "out.csv")]
    command = [sys.executable, "-c", INTERRUPTED, str(n_imports), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Error: stopped by Ctrl-C.\n")
    assert not (tmp_path / "out.csv").exists()


class ElapsedTimer:
    """A timer whose time is up at the end of the work, whatever the clock says."""

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        assert seconds == _app.PATIENCE
        self._function = function

    def start(self) -> None:
        """It has begun."""

    def cancel(self) -> None:
        self._function()

    def join(self) -> None:
        """It has ended."""


def test_the_progress_bar_appears_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, work that outlasts the patience shows a bar on stderr; shorter work shows none."""
    monkeypatch.setattr(_app, "PATIENCE", 3600.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with commands.show_progress("digging", unit="rows") as advance:
        advance(5)
    assert "digging" not in capsys.readouterr().err
    monkeypatch.setattr(threading, "Timer", ElapsedTimer)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with commands.show_progress("digging", unit="rows") as advance:
        advance(5)
    assert "digging" in capsys.readouterr().err


def test_the_progress_bar_says_what_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What training tells of itself, and that something is being compiled."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(threading, "Timer", ElapsedTimer)
    with commands.show_progress("training"):
        progress.tell("training: penalty 3 of 5")
    assert "penalty 3 of 5" in capsys.readouterr().err


def test_every_file_of_a_command_is_listed() -> None:
    """A file in commands/ is a command, and its test lies beside the others."""
    folder, tests = Path(_app.__file__).parent, Path(__file__).parent
    shared = {"_app.py", "_answers.py", "_many.py", "_options.py"}
    assert {f"_{name}.py" for name in commands.COMMANDS} == {path.name for path in folder.glob("_[a-z]*.py")} - shared
    assert all((tests / f"test_{name}.py").exists() for name in commands.COMMANDS)


def test_helpers_for_other_programs_are_exported() -> None:
    """What is exported has a docstring."""
    for name in commands.__all__:
        assert name in ("COMMANDS", "AsJson", "app") or getattr(commands, name).__doc__, name


def test_an_application_of_others_tells_errors_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An application made with these helpers turns bad input into one line and exit code 2."""
    application = commands.make_app("other", "Another program.")

    @application.command()
    @commands.clear_errors
    def fail(name: str) -> None:
        raise ValueError(f"{name} is\nwrong")

    @application.command()
    def idle() -> None:
        pass

    monkeypatch.setattr(sys, "argv", ["other", "fail", "this"])
    with pytest.raises(SystemExit) as stop:
        commands.run_app(application)
    assert stop.value.code == 2
    assert capsys.readouterr().err == "Error: this is wrong\n"


def test_steps_are_told_to_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar of steps shows what is next and how many are done."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(threading, "Timer", ElapsedTimer)
    with commands.show_steps("reproducing", "models") as tell:
        tell(3, 10, "the fourth")
    shown = capsys.readouterr().err
    assert "the fourth" in shown
    assert "3 models" in shown


@on_posix
def test_nothing_in_names_and_labels_controls_the_terminal(tmp_path: Path) -> None:
    """Of files, columns, labels, categories and TOML keys, in results, warnings and errors."""
    evil = "\x1b]0;owned\x07\x9b2J\u202e"
    signs = ("\x1b", "\x07", "\x9b", "\u202e")
    numbers = [float(row) for row in range(40)]
    table = {f"x{evil}": numbers, f"id{evil}": range(40), f"one{evil}": 1, "y": [f"no{evil}", "yes"] * 20}
    data, model, out = (tmp_path / f"{name}{evil}{end}" for name, end in (("d", ".csv"), ("m", ".json"), ("o", ".csv")))
    pd.DataFrame(table).to_csv(data, index=False)
    (tmp_path / "threat.toml").write_text(f'"bad\\u001b{evil[-1]}" = 1\n')
    commands = [
        ["train", data, "--target", "y", "-o", model, "--model", "stumps"],
        ["certify", model, data, "-o", out, "--target", "y"],
        ["train", data, "--target", f"z{evil}", "-o", model],
        ["certify", model, data, "-o", out, "--threat", tmp_path / "threat.toml"],
        ["certify", tmp_path / f"absent{evil}", data, "-o", out],
        ["train", data, "--target", "y", "-o", model, "--model", f"forest{evil}"],
    ]
    codes = []
    for command in commands:
        done = run(*command)
        codes.append(done.exit_code)
        assert not [sign for sign in signs if sign in done.output], command
    assert codes == [0, 0, 2, 2, 2, 2]
    assert "\\x1b]0;owned\\x07" in done.stderr
    usage = run_process("certify", model, data, "-o", out, f"--{evil}")
    assert usage.returncode == 2
    assert not [sign for sign in signs if sign in usage.stdout + usage.stderr]


def test_a_line_end_in_a_name_begins_no_fact_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    _app.print_facts(_app.make_console(), {"model": "m\ncertified: 100 %"})
    assert capsys.readouterr().out == "model: m\\ncertified: 100 %\n"
