"""Ends `derand certify`, `train`, `report` and `run` at random moments: nothing half written, nothing left for good.

    python scripts/kill_commands.py          # kill -9 and SIGTERM, 50 times each; exit code 1 where something is wrong
    python scripts/kill_commands.py --points # kill -9 and SIGTERM at every file operation while results are moved

After each signal the output must be what stood there before (or nothing), or whole, byte for byte. After SIGTERM no
draft may be left, and the command has printed one line at most; what kill -9 leaves behind, one more run of the
command must sweep. Half of the signals come at any time, the others once a draft exists.

With `--points` a child process fills a folder of results and gets the signal before its first file operation, before
its second one, and so on until it ends by itself. After SIGTERM the folder must be wholly old or wholly new at once,
after kill -9 when the next process has begun, and the next process must succeed. Restoring is killed at every
operation, too. Other files, links and modes must stay.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypedDict

import numpy as np

from derand._core.files import fill_when_done, restore_folder
from derand.app import commands

N_SIGNALS = 50
N_ROWS = 30_000
MAIN = (sys.executable, "-c", "from derand.app.commands import main; main()")
ENVIRONMENT = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}  # so that two reports are the same bytes
BEFORE = b"what stood there before"
CONFIGURATION = """
[data]
train = "data.csv"
target = "y"
holdout = 0.5
[model]
trainer = "stumps"
[report]
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what it writes, and how it does that when nobody disturbs it."""

    arguments: tuple[str, ...]
    output: Path
    folder: Path
    """Where drafts appear."""
    whole: bytes
    seconds: float


class Tally(TypedDict):
    """What became of the commands that got one signal."""

    signals: int
    ended_by_it: int
    done_before: int
    outputs_as_before: int
    outputs_whole: int
    drafts_left: int
    drafts_left_after_one_more_run: int
    faults: list[str]


def write_table(path: Path, n_rows: int) -> None:
    """A table of numbers, categories and labels."""
    rng = np.random.default_rng(0)
    numbers, jobs = rng.normal(size=(n_rows, 4)), rng.choice(["cook", "clerk", "nurse"], n_rows)
    labels = np.where(numbers[:, 0] + (jobs == "cook") > 0.3, "yes", "no")
    lines = (
        ",".join([*map(repr, row), job, label]) for row, job, label in zip(numbers.tolist(), jobs, labels, strict=True)
    )
    path.write_text("a,b,c,d,job,y\n" + "\n".join(lines) + "\n")


def prepare_commands(folder: Path, n_rows: int) -> list[Command]:
    """The commands, each run once."""
    data, model = str(folder / "data.csv"), str(folder / "known.json")
    write_table(folder / "data.csv", n_rows)
    _run(("train", data, "--target", "y", "-o", model))
    listed = {
        "out.csv": ("certify", model, data, "--target", "y"),
        "model.json": ("train", data, "--target", "y"),
        "report.html": ("report", model, data, "--target", "y"),
    }
    complete = {name: (*arguments, "-o", str(folder / name)) for name, arguments in listed.items()}
    (folder / "derand.toml").write_text(CONFIGURATION)
    complete["results/report.html"] = ("run", str(folder / "derand.toml"), "--force")
    commands = []
    for name, arguments in complete.items():
        start = time.perf_counter()
        _run(arguments)
        seconds = time.perf_counter() - start
        commands.append(Command(arguments, folder / name, folder, (folder / name).read_bytes(), seconds))
    return commands


def send_signals(commands: Sequence[Command], number: signal.Signals, n_signals: int, seed: int = 0) -> Tally:
    """Start the commands in turn, send each one the signal, look at what it left; in the end run each once more."""
    rng, folder = random.Random(seed), commands[0].folder
    tally: Tally = {
        "signals": n_signals,
        "ended_by_it": 0,
        "done_before": 0,
        "outputs_as_before": 0,
        "outputs_whole": 0,
        "drafts_left": 0,
        "drafts_left_after_one_more_run": 0,
        "faults": [],
    }
    for turn in range(n_signals):
        command = commands[turn % len(commands)]
        before = BEFORE if rng.random() < 0.5 else None
        command.output.unlink(missing_ok=True)
        if before is not None:
            command.output.write_bytes(before)
        known = set(find_drafts(folder))
        code, errors = _disturb(command, number, rng)
        new = set(find_drafts(folder)) - known
        tally["ended_by_it" if code else "done_before"] += 1
        tally["drafts_left"] += len(new)
        found = command.output.read_bytes() if command.output.exists() else None
        tally["outputs_whole" if found == command.whole else "outputs_as_before"] += 1
        if found not in (before, command.whole) or (code == 0 and found != command.whole):
            tally["faults"].append(f"{command.output.name} is neither as before nor whole")
        tally["faults"] += _judge(number, code, errors, len(new))
    for command in commands:
        _run(command.arguments)
    tally["drafts_left_after_one_more_run"] = len(list(find_drafts(folder)))
    return tally


def find_drafts(folder: Path) -> Iterator[str]:
    """Names of drafts."""
    return (name for name in os.listdir(folder) if name.endswith(".part"))


def _disturb(command: Command, number: signal.Signals, rng: random.Random) -> tuple[int, str]:
    """Start a command and send it a signal; its exit code and what it said."""
    folder, waits_for_draft = command.folder, rng.random() < 0.5
    known = set(find_drafts(folder))
    process = subprocess.Popen(
        [*MAIN, *command.arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if waits_for_draft:
        while process.poll() is None and set(find_drafts(folder)) <= known:
            time.sleep(0.0005)
        time.sleep(rng.choice([0, 0.001, 0.01, 0.3 * command.seconds * rng.random()]))
    else:
        time.sleep(command.seconds * rng.random())
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    return process.returncode, errors


def _judge(number: signal.Signals, code: int, errors: str, n_drafts: int) -> list[str]:
    """What is wrong with how a command ended."""
    if number == signal.SIGKILL:
        return [] if code in (0, -number) and not errors else [f"exit code {code} after kill -9: {errors}"]
    expected = {0: "", -number: "", 128 + number: "Error: stopped by SIGTERM.\n"}  # -15: before Python had begun
    faults = []
    if expected.get(code) != errors:
        faults.append(f"exit code {code} after SIGTERM: {errors}")
    if n_drafts:
        faults.append(f"{n_drafts} drafts left after SIGTERM")
    return faults


def _run(arguments: Sequence[str]) -> None:
    subprocess.run([*MAIN, *arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)


FILE_EVENTS = ("open", "os.", "fcntl.", "shutil.")
"""How Python names operations on files to those who audit them."""
RESULTS = ("certified.csv", "linked.html", "private.json", "run.json")


class CrashTally(TypedDict):
    """What became of a folder whose process was ended at every file operation."""

    points: int
    """Operations at which it was ended."""
    restoring_points: int
    """Of these, operations of restoring."""
    wholly_old: int
    wholly_new: int
    faults: list[str]


class CrashPoint:
    """Ends the process by a signal before the file operation of a number."""

    def __init__(self) -> None:
        self.left, self.signal = -1, signal.SIGKILL
        self._later: tuple[int, signal.Signals] | None = None
        sys.addaudithook(self._count)

        def count_only(handle: int) -> None:
            self._count("os.fsync", ())  # is not audited; the system keeps what a killed process wrote

        os.fsync = count_only

    def arm(self, place: int, number: signal.Signals) -> None:
        """Count from now on."""
        self.left, self.signal = place, number

    def arm_later(self, place: int, number: signal.Signals) -> None:
        """Count from where a journal is begun."""
        self._later = place, number

    def _count(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._later is not None and event == "open" and str(arguments[0]).endswith(".journal.json.new"):
            self.arm(*self._later)
            self._later = None
        if self.left >= 0 and event.startswith(FILE_EVENTS) and event not in ("os.fork", "os.kill"):
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), self.signal)


def crash_everywhere(folder: Path, number: signal.Signals, *, is_first: bool) -> CrashTally:
    """Fill a folder of results again and again, each time one file operation further."""
    crash = CrashPoint()
    with suppress(SystemExit):
        _fill_by_command(folder)  # imports what it needs
    tally: CrashTally = {"points": 0, "restoring_points": 0, "wholly_old": 0, "wholly_new": 0, "faults": []}
    for place in range(10_000):
        here = folder / f"{number.name}-{place}"
        states = _prepare_results(here, is_first=is_first)
        code = _fork(lambda here=here, place=place: _fill_by_command(here, lambda: crash.arm(place, number)))
        if code == 0:
            break
        tally["points"] += 1
        if number == signal.SIGKILL:
            tally["restoring_points"] += _crash_restoring(here, crash)
        found = _list_files(here, with_drafts=number != signal.SIGKILL)
        tally["wholly_old"] += found == states["old"]
        tally["wholly_new"] += found == states["new"]
        if found not in states.values():
            tally["faults"].append(f"before operation {place}: neither old nor new: {found}")
        if _fork(lambda here=here: _fill_by_command(here)) or _list_files(here) != states["new"]:
            tally["faults"].append(f"before operation {place}: the next process did not succeed")
    return tally


def crash_run(configuration: Path, place: int, number: signal.Signals) -> int:
    """Run a configuration in a process that gets a signal while it moves results; how it ended."""
    program = (
        "import signal; from derand.app.commands import main; from scripts.kill_commands import CrashPoint; "
        f"CrashPoint().arm_later({place}, signal.{number.name}); main()"
    )
    command = [sys.executable, "-c", program, "run", os.path.abspath(configuration)]
    root = Path(__file__).parents[1]
    return subprocess.run(command, env=ENVIRONMENT, cwd=root, capture_output=True, check=False).returncode


def _crash_restoring(folder: Path, crash: CrashPoint) -> int:
    """Restore a folder, ended before each operation in turn, until nothing is left to do; how many there were."""

    def restore(place: int) -> None:
        crash.arm(place, signal.SIGKILL)
        restore_folder(folder / "results")

    place = 0
    while _fork(partial(restore, place)):
        place += 1
    return place


def _fork(do: Callable[[], None]) -> int:
    """Do something in a child process; how it ended."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115 # until the process ends
            do()
            code = 0
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _fill_by_command(folder: Path, begin: Callable[[], None] = lambda: None) -> None:
    """Fill the folder of results as a command does, which ends orderly on SIGTERM."""
    application = commands.make_app("fill", "Fills a folder.")

    @application.command()
    def fill() -> None:
        begin()
        with fill_when_done(folder / "results", "run.json") as draft:
            for name in RESULTS:
                (draft / name).write_text("new")

    sys.argv = ["fill"]
    commands.run_app(application)


def _prepare_results(folder: Path, *, is_first: bool) -> dict[str, object]:
    """A folder of results of before, with links, modes and files of others; what it may look like later."""
    folder.mkdir()
    if not is_first:
        (folder / "results").mkdir()
        (folder / "elsewhere").mkdir()
        (folder / "results" / "linked.html").symlink_to(folder / "elsewhere" / "page.html")
        for name in RESULTS:
            (folder / "results" / name).write_text("old")
        (folder / "results" / "private.json").chmod(0o600)
        (folder / "results" / "mine.txt").write_text("mine")
        (folder / "results" / "link").symlink_to("mine.txt")
    old = _list_files(folder)
    mode = 0o666 & ~_read_umask()
    made = {f"results/{name}": (mode, "new") for name in RESULTS} if is_first else {}
    new = {name: (found[0], "new") if found[1] == "old" else found for name, found in old.items()}
    return {"old": old, "new": {**new, **made}}


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _list_files(folder: Path, *, with_drafts: bool = True) -> dict[str, tuple[int, str]]:
    """Mode and text of every file, and where links lead."""
    return {
        str(path.relative_to(folder)): (0, os.readlink(path))
        if path.is_symlink()
        else (path.stat().st_mode & 0o7777, path.read_text())
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and (with_drafts or ".part/" not in str(path))
    }


def crash_all_points() -> dict[str, CrashTally]:
    """Every file operation, both signals, with results of before and without."""
    found = {}
    for number in (signal.SIGKILL, signal.SIGTERM):
        for is_first in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                name = f"{number.name}, {'first' if is_first else 'second'} run"
                found[name] = crash_everywhere(Path(folder), number, is_first=is_first)
    return found


def main() -> int:
    """Send all signals, print what became of it, and say whether all is well."""
    if "--points" in sys.argv[1:]:
        points = crash_all_points()
        print(json.dumps(points, indent=2))
        return int(any(tally["faults"] for tally in points.values()))
    with tempfile.TemporaryDirectory() as folder:
        commands = prepare_commands(Path(folder), N_ROWS)
        found = {number.name: send_signals(commands, number, N_SIGNALS) for number in (signal.SIGKILL, signal.SIGTERM)}
    print(json.dumps(found, indent=2))
    return int(any(tally["faults"] or tally["drafts_left_after_one_more_run"] for tally in found.values()))


if __name__ == "__main__":
    sys.exit(main())
