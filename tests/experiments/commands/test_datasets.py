"""`python -m experiments datasets`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.__main__ import app
from experiments.datasets import CATALOG


def test_the_catalog_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset has a line, and a JSON entry that says whether its file is here."""
    monkeypatch.setenv("DERAND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "adult.csv").touch()
    listed = CliRunner().invoke(app, ["datasets"]).output
    entries = json.loads(CliRunner().invoke(app, ["datasets", "--json"]).stdout)
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert all(name in listed for name in CATALOG)
    available = {entry["name"] for entry in entries if entry["available"]}
    assert available == {name for name, entry in CATALOG.items() if entry.file in (None, "adult.csv")}
