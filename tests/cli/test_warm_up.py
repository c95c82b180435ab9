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

from derand import warming
from derand.cli import app
from derand.kernels import compiling
from derand.kernels.interval import bound_sides


def test_it_says_what_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is enough to see: its name, and the folder that holds the code."""

    def work() -> None:
        bound_sides(np.zeros((1, 1)), np.zeros(1), np.ones(1))

    monkeypatch.setattr(warming, "STEPS", {"sides": work})
    printed = CliRunner().invoke(app, ["warm-up"]).stdout
    assert "sides" in printed
    assert "kept in: " in printed
    told = json.loads(CliRunner().invoke(app, ["warm-up", "--json"]).stdout)
    assert told["steps"][0]["name"] == "sides"
    assert told["steps"][0]["compiled"] == 0  # the second time
    assert told["folders"] == compiling.list_folders() != []


_ALL = """
from derand.kernels import compiling
from derand.warming import run_warm_up
run_warm_up()
kernels = [loop for loop in compiling.LOOPS if loop.__module__.startswith("derand.kernels")]
print(*[loop.__name__ for loop in kernels if not {"entry", "_part"} & set(vars(loop))])
"""


@pytest.mark.long
def test_it_reaches_every_kernel(tmp_path: Path) -> None:
    """With an empty cache all are, alone or within others; but for jump_search and one that only tests call."""
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _ALL], capture_output=True, text=True, env=surroundings, check=True)
    jump_search = {"_find_squares", "_average", "_bound", "_search", "_climb"}
    assert set(done.stdout.split()) <= {"lose_jump"} | jump_search
