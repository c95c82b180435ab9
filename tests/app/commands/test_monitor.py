"""`derand monitor`: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.running import run


@pytest.fixture
def batches(data: Path, tmp_path: Path) -> list[Path]:
    """Two halves of a table, and one of a single answer."""
    head, *lines = data.read_text().splitlines()
    label = head.split(",").index("label")
    one = [line for line in lines if line.split(",")[label] == lines[0].split(",")[label]]
    found = []
    for name, rows in (("january", lines[::2]), ("february", lines[1::2]), ("march", one)):
        found.append(tmp_path / f"{name}.csv")
        found[-1].write_text("\n".join([head, *rows, ""]))
    return found


def test_a_batch_that_differs_ends_with_one(batches: list[Path], data: Path, model: Path, tmp_path: Path) -> None:
    page = tmp_path / "monitor.html"
    asked = ["--subgroup", "size", "--train", data, "--target", "label", "--radius", "0.1", "--rate", "0.01"]
    found = run("monitor", model, *batches[:2], "-o", page, *asked)
    assert found.exit_code == 0, found.output
    assert "does not differ from the first one by more than chance" in " ".join(found.output.split())
    assert "Does the guarantee still hold?" in page.read_text(encoding="utf-8")
    found = run("monitor", model, *batches, "-o", tmp_path / "monitor.md", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["alarms"] == ["march.csv"]
    assert [one["alarm"] for one in told["batches"]] == [False, False, True]
    assert (tmp_path / "monitor.md").read_text(encoding="utf-8").startswith("# Monitor: ")


def test_what_may_change_is_as_for_certify(batches: list[Path], model: Path, tmp_path: Path) -> None:
    page, threat = tmp_path / "monitor.json", tmp_path / "threat.toml"
    limits = ["--norm", "none", "--limits", "*=1%", "--rule", "mean", "--noise", "none"]
    assert run("monitor", model, *batches[:2], "-o", page, *limits).exit_code == 0
    by_flags = json.loads(page.read_text())
    assert by_flags["batches"][1]["flips"] is not None
    threat.write_text('norm = "none"\n[limits]\n"*" = "1%"\n')
    assert run("monitor", model, *batches[:2], "-o", page, "--threat", threat, *limits[4:]).exit_code == 0
    assert json.loads(page.read_text()) == by_flags
    both = run("monitor", model, *batches[:2], "-o", page, "--threat", threat, "--l0", "1")
    assert both.exit_code == 2
    assert "says all of what may change" in " ".join(both.stderr.split())


def test_one_batch_and_a_file_that_would_be_lost_are_refused(batches: list[Path], model: Path, tmp_path: Path) -> None:
    assert "two tables or more" in run("monitor", model, batches[0], "-o", tmp_path / "m.html").stderr
    before = batches[1].read_bytes()
    assert run("monitor", model, *batches[:2], "-o", batches[1]).exit_code == 2
    assert batches[1].read_bytes() == before
    twice = run("monitor", model, batches[0], batches[0], "-o", tmp_path / "m.html").stderr
    assert "Each batch must be a file of its own" in " ".join(twice.split())
