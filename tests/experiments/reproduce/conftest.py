"""A small table, carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduce import Report, reproduce
from tests.experiments.reproduce.examples import SMALL


@pytest.fixture
def report(data: Path, tmp_path: Path) -> Report:
    """A small table carried out."""
    (done,) = reproduce([SMALL], tmp_path)
    return done
