"""What tests of the experiments share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import shared_folder


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the paper's datasets, announced to the experiments."""
    folder = shared_folder("data")
    monkeypatch.setenv("DERAND_DATA", str(folder))
    return folder
