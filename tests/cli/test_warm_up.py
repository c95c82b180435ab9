"""`derand warm-up`: what it prints; that all is compiled is a long test."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from derand import warming
from derand.cli import app
from derand.kernels import compiling
from derand.kernels.interval import bound_sides


def test_it_says_what_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is enough to see: its name, and the folder that holds the code."""
    import numpy as np

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


@pytest.mark.long
def test_it_reaches_every_compiled_function() -> None:
    """Those of the modules that it loads are all compiled, on their own or within another one."""
    warming.run_warm_up()
    missed = [loop.__name__ for loop in compiling.LOOPS if not {"entry", "_part"} & set(vars(loop))]
    assert missed == []
