"""`derand demo`: what it prints and where it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.running import run


@pytest.mark.long
def test_the_demo_prints_its_tables_and_names_what_it_wrote(tmp_path: Path) -> None:
    """Certified accuracy, the most and least certain rows, the time; a picture and a report in the folder asked for."""
    result = run("demo", "--output", tmp_path / "here")
    assert result.exit_code == 0, result.output
    for part in ("Certified accuracy", "Most certain", "Least certain", "average certified radius: ", "time: training"):
        assert part in result.output
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["certified_accuracy.png", "report.html"]
    assert str(tmp_path / "here" / "report.html") in result.output.splitlines()[-1]


@pytest.mark.long
def test_the_demo_writes_into_the_folder_demo_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an option the plot lies in ./demo."""
    monkeypatch.chdir(tmp_path)
    assert json.loads(run("demo", "--json").stdout)["plot"] == str(Path("demo") / "certified_accuracy.png")
    assert (tmp_path / "demo" / "certified_accuracy.png").exists()
