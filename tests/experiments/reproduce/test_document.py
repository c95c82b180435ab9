"""The summary of all reports, and the list of cells that differ."""

from __future__ import annotations

from experiments.reproduce import Report, render_cells, render_document
from experiments.reproduce._specification import read_reasons
from tests.experiments.reproduce.examples import SMALL


def test_the_document_explains_what_is_outside(report: Report) -> None:
    """Cells outside their tolerance are counted under their reason, and listed; none is "Not explained"."""
    text, cells = render_document([report]), render_cells([report])
    title = read_reasons()["seed"]["title"]
    n_outside = sum(cell.reason == "seed" for cell in report.cells)
    assert f"### {title}" in text
    assert f"Cells: `{SMALL}` {n_outside}." in text
    assert f"## {title}" in cells
    assert cells.count(f"| `{SMALL}` |") >= 1
    assert "Not explained" not in text + cells
