"""Checksums of what a report was made from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from derand import save
from derand.report import Report
from derand.storage import hash_model, mark_file
from tests.report.samples import make_vote, report_on_bare


def test_the_checksum_of_a_model_is_that_of_its_file(numbers: Any, tmp_path: Path) -> None:
    """Whether it came from a file or not; and every format tells it."""
    clf, X, y = numbers
    save(clf, tmp_path / "model.json")
    expected = hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()
    assert hash_model(clf) == mark_file(tmp_path / "model.json").sha256 == expected
    options: dict[str, Any] = {"what_if": False, "n_explained": 0}
    plain = Report(clf, X, y, **options)
    marked = Report(clf, X, y, marks={"model": mark_file(tmp_path / "model.json")}, **options)
    for report, file in ((plain, None), (marked, "model.json")):
        model, rows = report.to_dict()["checksums"]
        assert (model["what"], model["file"], model["sha256"]) == ("model", file, expected)
        assert (rows["what"], rows["sha256"]) == ("rows", report.to_dict()["data"]["sha256"])
        assert expected in report.to_html()
        assert expected in report.to_markdown()
    (bare, _) = report_on_bare(make_vote(), what_if=False).to_dict()["checksums"]
    assert bare["sha256"] == hash_model(make_vote())


def test_another_row_has_another_checksum(numbers: Any) -> None:
    """Of rows and of labels."""
    clf, X, y = numbers
    found = {
        Report(clf, rows, labels, what_if=False, n_explained=0).to_dict()["checksums"][-1]["sha256"]
        for rows, labels in ((X, y), (X[::-1], y[::-1]), (X, None))
    }
    assert len(found) == 3
