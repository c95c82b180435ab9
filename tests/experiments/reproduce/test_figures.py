"""Figures: drawn from small models and from outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduce import reproduce

DRAWINGS = ["fig:overview", "fig:metastump", "fig:categorical", "fig:cdf_loss"]


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_need_no_data(name: str, tmp_path: Path) -> None:
    """Figures of small models are drawn as SVG and PNG, the same each time."""
    (first,) = reproduce([name], tmp_path / "a")
    (second,) = reproduce([name], tmp_path / "b")
    assert [path.suffix for path in first.files] == [".svg", ".png"]
    assert first.files[0].read_bytes() == second.files[0].read_bytes()
    assert first.files[1].read_bytes().startswith(b"\x89PNG")


def test_curves_show_the_published_numbers(data: Path, tmp_path: Path) -> None:
    """A figure of outcomes has a curve per line, and dots where the paper prints numbers."""
    (figure,) = reproduce(["fig:joint-ca"], tmp_path, quick=True)
    svg = figure.files[0].read_text(encoding="utf-8")
    assert svg.count("<use") > 30
    assert figure.ok
