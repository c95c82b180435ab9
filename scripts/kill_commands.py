"""Ends `derand certify`, `train`, `report` and `run` at random moments: nothing half written, nothing left for good.

    python scripts/kill_commands.py          # kill -9 and SIGTERM, 50 times each; exit code 1 where something is wrong

After each signal the output must be what stood there before (or nothing), or whole, byte for byte. After SIGTERM no
draft may be left, and the command has printed one line at most; what kill -9 leaves behind, one more run of the
command must sweep. Half of the signals come at any time, the others once a draft exists.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

N_SIGNALS = 50
N_ROWS = 30_000
MAIN = (sys.executable, "-c", "from derand.cli import main; main()")
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


def main() -> int:
    """Send all signals, print what became of it, and say whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        commands = prepare_commands(Path(folder), N_ROWS)
        found = {number.name: send_signals(commands, number, N_SIGNALS) for number in (signal.SIGKILL, signal.SIGTERM)}
    print(json.dumps(found, indent=2))
    return int(any(tally["faults"] or tally["drafts_left_after_one_more_run"] for tally in found.values()))


if __name__ == "__main__":
    sys.exit(main())
