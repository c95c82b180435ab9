"""`derand datasets`: the catalog."""

from __future__ import annotations

import json

from derand.datasets import CATALOG
from tests.cli.running import run


def test_the_catalog_is_listed() -> None:
    """Every dataset has a line, and a JSON entry that says whether it is here."""
    listed = run("datasets").output
    entries = json.loads(run("datasets", "--json").stdout)
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert all(name in listed for name in CATALOG)
    assert entries[0] == {**entries[0], "name": "sklearn_breast_cancer", "file": None, "available": True}
