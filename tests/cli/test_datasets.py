"""`derand datasets`: the catalog."""

from __future__ import annotations

import json

from derand.datasets import CATALOG
from tests.cli.running import run


def test_the_catalog_is_listed() -> None:
    """Every dataset has a line and a JSON entry, and the last line says where those of the paper are."""
    listed = run("datasets").output
    entries = json.loads(run("datasets", "--json").stdout)
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert all(name in listed for name in CATALOG)
    assert set(entries[0]) == {"name", "summary"}
    assert "python -m experiments datasets" in listed
