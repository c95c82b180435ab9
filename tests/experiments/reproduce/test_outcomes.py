"""Carrying out plans."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from experiments.reproduce._outcomes import _load, carry_out
from experiments.reproduce._plans import make_plan
from experiments.reproduce._specification import find_item


def test_a_corrupted_data_file_is_refused(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with another checksum is not used."""
    shutil.copy(data / "mammographic.csv", tmp_path)
    with (tmp_path / "mammographic.csv").open("a", encoding="ascii") as stream:
        stream.write("5,67,3,5,3,1\n")
    monkeypatch.setenv("DERAND_DATA", str(tmp_path))
    item = find_item("tab:joint-cv-balanced-l2")
    line = next(line for line in item.lines if line.fields["dataset"] == "mammographic")
    _load.cache_clear()
    with pytest.raises(ValueError, match=r"sha256 is .*expected"):
        carry_out(make_plan(line.recipe))
