"""A corpus of command lines, run in this process in an empty folder: what they print with --json, and write."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.snapshot.recording import Recorder
from scripts.snapshot.training import make_table, read_page, take_target

LEFT_OUT = frozenset(
    {"seconds", "seconds_per_row", "slowest_row", "certify_seconds", "report_seconds", "rows_per_second"}
    | {"when", "sha256", "checksum"}
)
"""Keys whose values depend on the clock, or on the bytes of a model's file."""
LINES = (
    "datasets",
    "train loans.csv --target outcome --radius 0.2 --regularization 1 -o additive.json",
    "train loans.csv --target outcome --model stumps --noise gaussian:0.25 --scaling standard -o stumps.json",
    "train loans.csv --target outcome --model tree-boost --noise uniform:0.5 --scaling standard -o boosted.json",
    "train loans.csv --target outcome --model ada-boost --noise laplace:0.5 --ignored purpose -o voting.json",
    "train classes.csv --target outcome --regularization 1 --radius 0.1 -o classes.json",
    "train prices.csv --target price --radius 0.1 --regularization 1 -o prices.json",
    "train prices.csv --target price --model stumps --noise gaussian:0.25 -o price-stumps.json",
    "certify additive.json loans.csv --target outcome -o additive.csv",
    "certify additive.json loans.csv --threat threat.toml -o limits.csv",
    "certify additive.json loans.csv --norm inf --frozen age -o cube.csv",
    "certify stumps.json loans.csv --target outcome --l0 1 --proof paper -o paper.csv",
    "certify stumps.json loans.csv --rule mean --norm 1 -o mean.csv",
    "certify boosted.json loans.csv -o boosted.csv",
    "certify voting.json loans.csv -o voting.csv",
    "certify classes.json classes.csv --target outcome -o classes-out.csv",
    "certify prices.json prices.csv --target price --radius 0.1 -o intervals.csv",
    "certify prices.json prices.csv --tolerance 20 -o tolerance.csv",
    "certify price-stumps.json prices.csv --radius 0.1 -o price-stumps.csv",
    "audit additive.json loans.csv additive.csv --rows 3 --seed 0",
    "audit additive.json loans.csv limits.csv --rows 3 --seed 0",
    "audit stumps.json loans.csv paper.csv --rows 3 --seed 0",
    "audit classes.json classes.csv classes-out.csv --rows 2 --seed 0",
    "audit prices.json prices.csv intervals.csv --rows 2 --seed 0",
    "report additive.json loans.csv --target outcome --subgroup purpose -o additive.html",
    "report additive.json loans.csv --target outcome --threat threat.toml -o limits.html",
    "report prices.json prices.csv --target price --radius 0.1 -o prices.html",
    "tune loans.csv --target outcome --radii 0.2 --folds 2",
    "import other.pkl --trust-pickle --data numbers.csv --target outcome -o imported.json",
    "certify imported.json numbers.csv -o imported.csv",
    "export stumps.json -o stumps.onnx",
    "init loans.csv --target outcome",
    "run derand.toml --check",
    "run derand.toml",
    "certify missing.json loans.csv -o none.csv",
    "train loans.csv --target nothing -o none.json",
    "certify additive.json loans.csv --norm 3 -o none.csv",
)
"""Each line runs with --json, after those before it."""
SLOW = ("train loans.csv --target outcome --model ada-boost", "tune", "run derand.toml", "export")
"""Left out of the quick set, with what reads their files."""
THREAT = """
norm = "none"
limits = { income = "10%", debt = 500 }
frozen = ["age"]
"""


def record_commands(recorder: Recorder, quick: bool) -> None:
    """Run all lines one after the other, and keep what they print and the tables and pages that they write."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs()
        for line in LINES:
            if quick and (line.startswith(SLOW) or "voting.json" in line):
                continue
            with recorder.at(f"commands/{line}"):
                code, text = run_line([*recorder.words.write_line(line), "--json"])
                recorder.add("code", code)
                text = text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")
                for at, document in enumerate(read_documents(text)):
                    recorder.add_json(f"printed {at}", document, LEFT_OUT)
                output = line.partition(" -o ")[2]
                if output.endswith(".csv") and Path(output).exists():
                    recorder.add("file", Path(output).read_text(encoding="utf-8").splitlines())
                if output.endswith(".html") and Path(output).exists():
                    for section, lines in read_page(Path(output).read_text(encoding="utf-8")).items():
                        recorder.add(f"html {section}", lines)


def write_inputs() -> None:
    """Write the tables, a threat and a model of another library."""
    import pickle

    from sklearn.linear_model import LogisticRegression

    frame, _ = make_table()
    frame = frame[:200]
    labels = take_target("labels")[:200]
    frame.assign(outcome=labels).to_csv("loans.csv", index=False)
    frame.assign(outcome=take_target("classes")[:200]).to_csv("classes.csv", index=False)
    frame.assign(price=take_target("regression")[:200].round(2)).to_csv("prices.csv", index=False)
    numbers = frame[["age", "income", "late"]]
    numbers.assign(outcome=labels).to_csv("numbers.csv", index=False)
    Path("threat.toml").write_text(THREAT, encoding="utf-8")
    Path("other.pkl").write_bytes(pickle.dumps(LogisticRegression(max_iter=1000).fit(numbers, labels)))


def run_line(arguments: list[str]) -> tuple[int, str]:
    """Run `python -m derand` with these arguments: its exit code, and what it prints."""
    printed, before = io.StringIO(), sys.argv
    sys.argv = ["derand", *arguments]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module("derand", run_name="__main__")
        code: object = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return int(str(code)), printed.getvalue()


def read_documents(text: str) -> Iterator[object]:
    """The JSON documents of a text, one after the other; what is none is kept as a line."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            document, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            document, _, _ = text[at:].partition("\n")
            at += len(str(document))
        yield document
