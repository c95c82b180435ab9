"""`derand warm-up`: what it prints; that all is compiled is a long test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from derand.app import warm_up
from derand.app.commands import app
from derand.kernels import compiling
from derand.kernels.cells.interval import bound_sides


def test_it_says_what_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is enough to see: its name, and the folder that holds the code."""

    def work() -> None:
        bound_sides(np.zeros((1, 1)), np.zeros(1), np.ones(1))

    monkeypatch.setattr(warm_up, "STEPS", {"sides": work})
    printed = CliRunner().invoke(app, ["warm-up"]).stdout
    assert "sides" in printed
    assert "kept in: " in printed
    told = json.loads(CliRunner().invoke(app, ["warm-up", "--json"]).stdout)
    assert told["steps"][0]["name"] == "sides"
    assert told["steps"][0]["compiled"] == 0  # the second time
    assert told["folders"] == compiling.list_folders() != []


_ALL = """
from derand.kernels import compiling
from derand.app.warm_up import run_warm_up
run_warm_up()
import derand.train.losses.product_loops, derand.train.losses.softmax_loops
print(*[loop.__name__ for loop in compiling.LOOPS if not {"entry", "_part"} & set(vars(loop))])
"""
_README = """
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from derand import AdditiveClassifier
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
AdditiveClassifier(radius=0.25).fit(X_train, y_train).certify(X_test)
"""
_RUN = """
from typer.testing import CliRunner
from derand.app.commands import app
run = CliRunner().invoke
for line in ("datasets --write loans.csv", "init loans.csv --target outcome", "run"):
    assert run(app, line.split()).exit_code == 0, line
"""
_COUNT = """
from derand.kernels.compiling import count_compiled
print(count_compiled())
"""


@pytest.mark.long
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    """With an empty cache all are, alone or within others; then what users do."""
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(code: str) -> str:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env=surroundings, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert not run(_ALL).split()
    for code in (_README, _RUN):
        assert run(code + _COUNT) == "0\n"
