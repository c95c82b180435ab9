"""The results folder: what is kept, and when it is used again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.reproduce import Report, reproduce
from experiments.reproduce._plans import make_plan
from experiments.reproduce._specification import find_item
from experiments.reproduce._store import Store
from tests.experiments.reproduce.examples import SMALL


def test_provenance_is_kept(report: Report) -> None:
    """Versions, checksums, the seed and the time are in the report and beside every outcome."""
    assert {"versions", "machine", "seconds", "seed", "data_sha256"} <= set(report.provenance)
    notes = list((report.files[0].parent.parent / "outcomes").glob("*.json"))
    assert len(notes) == 23  # mle and its variant, default, sampling with twenty seeds
    note = json.loads(notes[0].read_text(encoding="utf-8"))
    assert {"plan", "seed", "seconds", "finished", "derand", "data_sha256", "versions"} <= set(note)


def test_damaged_and_stale_outcomes_are_computed_again(report: Report, tmp_path: Path) -> None:
    """A cut file, and one of another version, count as missing."""
    plans = [make_plan(line.recipe) for line in find_item(SMALL).lines]
    store = Store.open(tmp_path)
    arrays = tmp_path / "outcomes" / f"{plans[0].key}.npz"
    arrays.write_bytes(arrays.read_bytes()[:200])
    note = tmp_path / "outcomes" / f"{plans[2].key}.json"
    note.write_text(note.read_text(encoding="utf-8").replace('"derand": "', '"derand": "9'), encoding="utf-8")
    assert [store.read(plan) is None for plan in plans] == [True, False, True]
    told: list[int] = []
    reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
    assert told[0] == 2


def test_a_results_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The error names the folder."""
    (tmp_path / "results").write_text("", encoding="utf-8")
    with pytest.raises(OSError, match=r"Cannot use .*results as a results folder"):
        reproduce(["tab:details-treeboost"], tmp_path / "results")
