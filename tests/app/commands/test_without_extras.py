"""Without any extra every command works, or says in one line which extra it needs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from derand.app.commands import COMMANDS
from tests.app.commands.running import run
from tests.test_readme import README

ROOT = README.parent
PAGE = ROOT / "docs" / "commands.md"
_HIDE = """
from importlib.machinery import PathFinder

HIDDEN = {"xgboost", "lightgbm", "catboost", "interpret", "flint", "onnx", "onnxruntime", "skops", "dask",
          "distributed", "cryptography", "pandas", "polars", "numba_cuda"}
usual = PathFinder.find_spec

def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] in HIDDEN else usual(name, path, target)

PathFinder.find_spec = staticmethod(find_others)
"""
_WALK = """
import json, shlex, sys
from typer.testing import CliRunner
from derand.app.commands import app

for line in json.load(sys.stdin):
    found = CliRunner().invoke(app, shlex.split(line)[1:])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    print(json.dumps([line, found.exit_code, found.stderr]), flush=True)
"""
_MORE = {
    "derand certify model.json 'data/*.parquet' -o by-dask --scheduler tcp://127.0.0.1:9": "dask",
    "derand import model.json.json -o read.json": "xgboost",
    "derand import model.cbm -o read.json": "catboost",
    "derand import model.skops -o read.json": "skops",
}
_NEEDS = {"audit": "audit", "import": "xgboost", "export": "onnx"}
"""Commands of the page that need an extra."""
_SLOW = frozenset({"demo", "tune", "run"})
"""Commands that do what others do, and take longer."""


def list_commands() -> list[str]:
    """The first block of the page of commands, without comments."""
    block = PAGE.read_text(encoding="utf-8").split("```")[1]
    lines = re.findall(r"^derand .*$", block, flags=re.MULTILINE)
    return [shlex.join(shlex.split(line, comments=True)) for line in lines]


def write_inputs(folder: Path) -> None:
    """The files that the page names, with few rows."""
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    assert run("datasets", "--write", folder / "all.csv").exit_code == 0
    lines = (folder / "all.csv").read_text().splitlines(keepends=True)
    for name in ("loans.csv", "new.csv"):
        (folder / name).write_text("".join(lines[:121]))
    (folder / "data").mkdir()
    for name in ("data/part-0.parquet", "january.parquet", "february.parquet"):
        pq.write_table(arrow_csv.read_csv(folder / "loans.csv"), folder / name)
    for name in ("model.ubj", "model.json.json", "model.cbm", "model.skops"):
        (folder / name).write_bytes(b"{}")


@pytest.mark.parametrize(
    "left_out", [pytest.param(_SLOW, id="most"), pytest.param(frozenset(), id="all", marks=pytest.mark.long)]
)
def test_every_command_works_or_names_its_extra(left_out: frozenset[str], tmp_path: Path) -> None:
    commands = list_commands()
    assert {shlex.split(line)[1] for line in commands} >= set(COMMANDS) - {"warm_up", "moved"}
    commands = [line for line in commands if shlex.split(line)[1] not in left_out]
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(_HIDE)
    folder = tmp_path / "work"
    folder.mkdir()
    write_inputs(folder)
    places = [str(tmp_path / "hidden"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    done = subprocess.run(
        [sys.executable, "-c", _WALK],
        input=json.dumps([*commands, *_MORE]),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {line: (code, errors) for line, code, errors in map(json.loads, done.stdout.splitlines())}
    assert list(found) == [*commands, *_MORE]
    for line, (code, errors) in found.items():
        extra = _MORE.get(line, _NEEDS.get(shlex.split(line)[1]))
        if extra is None:
            # what is asked of a model need not be true of it, which `prove` tells by 1
            assert code in ((0, 1) if shlex.split(line)[1] == "prove" else (0,)), (line, errors)
            continue
        (last,) = [text for text in errors.splitlines() if text.startswith("Error: ")]
        assert code == 2, line
        assert f"pip install 'derand[{extra}]'" in last, line


@pytest.mark.parametrize("extra", ["audit", "onnx", "skops", "xgboost", "catboost", "dask"])
def test_the_extras_that_are_named_exist(extra: str) -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extra in declared["optional-dependencies"]
