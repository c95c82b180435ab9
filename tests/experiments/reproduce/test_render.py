"""Showing reports: Markdown, LaTeX and JSON."""

from __future__ import annotations

import json

from experiments.reproduce import Report, summarize
from experiments.reproduce._render import render_latex, render_markdown


def test_files_hold_all_cells(report: Report) -> None:
    """Markdown, LaTeX and JSON have one line per cell and mark what is outside."""
    markdown, latex, plain = (path.read_text(encoding="utf-8") for path in report.files)
    assert markdown == render_markdown(report)
    assert latex == render_latex(report)
    assert markdown.count("| l2 |") == len(report.cells) == latex.count("l2 & breast")
    cells = json.loads(plain)["cells"]
    assert {"paper", "ours", "difference", "ok", "reason"} <= set(cells[0])
    assert markdown.count("outside: seed") == sum(cell["ok"] is False for cell in cells)
    assert r"breast\_cancer" in latex
    assert "within tolerance" in summarize(report)
