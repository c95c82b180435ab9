"""Run what a user runs first, with the interpreter that runs this: `python scripts/try_commands.py`.

Demo, train, tune, certify, report, init and run, each in a process of its own, on small files in a temporary folder;
CSV and Parquet. Ends with an error where a command fails, warns more than once, or leaves its file out.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "typer", "rich", "pyarrow", "jinja2", "matplotlib")
COMMANDS = {
    "demo -o demo": "demo/report.html",
    "train table.csv --target repaid --noise gaussian:0.25 -o model.json": "model.json",
    "train table.parquet --target repaid --model tree-boost --noise uniform:0.5 -o boosted.json": "boosted.json",
    "certify model.json table.csv -o certified.csv --target repaid --l0 1": "certified.csv",
    "certify boosted.json table.parquet -o certified.parquet --json": "certified.parquet",
    "tune table.csv --target repaid --radii 0.25 --folds 2 -o tune.png": "tune.png",
    "report model.json table.csv --target repaid -o report.html": "report.html",
    "init table.csv --target repaid --test table.parquet": "derand.toml",
    "run derand.toml": "results/report.html",
}
"""Commands in order, and the file that each one writes."""


def main() -> None:
    """Run all commands; tells versions, and what each command took."""
    print(f"Python {sys.version.split()[0]},", ", ".join(f"{name} {version(name)}" for name in LIBRARIES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        for command, output in COMMANDS.items():
            start = time.perf_counter()
            notes = run_command(command, folder)
            if not (folder / output).stat().st_size:
                raise SystemExit(f"derand {command}: {output} is empty.")
            print(f"derand {command}: {time.perf_counter() - start:.1f} s {' '.join(notes)}".rstrip(), flush=True)


def write_tables(folder: Path) -> None:
    """Write the same small table of numbers, text and labels as CSV and as Parquet."""
    draw = random.Random(0)
    lines = ["age,amount,job,repaid"]
    for _ in range(300):
        age, amount, job = draw.randint(20, 70), round(draw.lognormvariate(8, 0.6), 2), draw.choice(["cook", "clerk"])
        repaid = "yes" if age / 20 - amount / 2500 + (job == "cook") + draw.gauss(0, 1) > 1 else "no"
        lines.append(f"{age},{amount},{job},{repaid}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pq.write_table(arrow_csv.read_csv(folder / "table.csv"), folder / "table.parquet")


def run_command(command: str, folder: Path) -> list[str]:
    """Run one command of `derand`; returns its warnings, at most one (libraries may write lines of their own)."""
    code = "from derand.app.commands import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, cwd=folder, check=False
    )
    notes = [line for line in done.stderr.splitlines() if line.startswith("Warning")]
    if done.returncode or len(notes) > 1 or not done.stdout:
        raise SystemExit(f"derand {command} ended with code {done.returncode}:\n{done.stderr}")
    return notes


if __name__ == "__main__":
    main()
