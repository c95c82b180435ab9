"""Finds the shared folder with published models and datasets; what is in it is not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DERAND_SHARED") or Path(__file__).resolve().parents[2] / "shared")


def shared_folder(name: str) -> Path:
    """The folder of that name; skips the test where it is absent."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: set DERAND_SHARED to the folder that holds {name}/")
    return folder
