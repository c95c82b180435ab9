"""A golden set of the project's own: small models trained on bundled data, and what exact arithmetic says of rows.

`python -m tests.golden` makes it anew. Models and values have the names and the form of the published set, so that
`tests/certificates/test_golden.py` checks both in the same way.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def list_names(kind: str) -> list[str]:
    """The models of a kind: independent, boosted, joint, adaboost."""
    return [name for name in NAMES if name.startswith(f"own_{kind}_")]


@functools.cache
def read_golden(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A model, and arrays by name: its rows and what is known of them."""
    read = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read["model"], {key: np.array(values) for key, values in read["numbers"].items()}
