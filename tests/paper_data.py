"""The paper's datasets and published numbers, read from the shared folder; tests skip where it is absent."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any
from unittest.mock import patch

from experiments.datasets import Dataset, load
from tests.shared import shared_folder


@cache
def load_paper_data(name: str) -> Dataset:
    """A dataset of the paper by its name in the catalog."""
    with patch.dict(os.environ, DERAND_DATA=str(shared_folder("data"))):
        return load(name)


def read_published(table: str) -> list[dict[str, Any]]:
    """Rows of one of the paper's tables, by its label."""
    path = shared_folder("paper") / "tables.json"
    return list(json.loads(path.read_text(encoding="utf-8"))[table]["rows"])
