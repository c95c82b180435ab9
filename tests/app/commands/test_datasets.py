"""`derand datasets`: the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from derand.datasets import CATALOG, make_applications
from derand.tables import inspect_file
from tests.app.commands.running import run, run_process


def test_the_catalog_is_listed() -> None:
    """Every dataset has a line and a JSON entry, and the last line says where those of the paper are."""
    listed = run("datasets").output
    entries = json.loads(run("datasets", "--json").stdout)
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert all(name in listed for name in CATALOG)
    assert set(entries[0]) == {"name", "summary"}
    assert "python -m experiments datasets" in listed


@pytest.mark.parametrize("name", ["loans.csv", "loans.parquet"])
def test_a_raw_table_is_written(name: str, tmp_path: Path) -> None:
    """It holds what `make_applications` draws; a missing number is an empty cell."""
    path, drawn = tmp_path / name, make_applications()
    told = json.loads(run("datasets", "--write", str(path), "--json").stdout)
    assert told == {"output": str(path), "rows": 4000, "columns": list(drawn)}
    table = inspect_file(path).read()
    assert table.column_names == list(drawn)
    assert table["income"].null_count == np.isnan(drawn["income"]).sum()
    assert table["outcome"].to_pylist() == drawn["outcome"].tolist()
    assert "4,000 made-up credit applications" in run("datasets", "--write", str(path)).output


def test_a_raw_table_needs_a_name_that_says_its_kind(tmp_path: Path) -> None:
    """Another ending is refused, and nothing is written."""
    refused = run_process("datasets", "--write", tmp_path / "loans.txt")
    assert refused.returncode == 2
    assert "must end with .csv or .parquet" in refused.stderr
    assert not list(tmp_path.iterdir())
