"""The summary of all reports."""

from __future__ import annotations

from experiments.reproduce import Report, render_document
from experiments.reproduce._specification import read_reasons
from tests.experiments.reproduce.examples import SMALL


def test_the_document_explains_what_is_outside(report: Report) -> None:
    """Every cell outside its tolerance is listed under its reason, none under "Not explained"."""
    text = render_document([report])
    assert read_reasons()["seed"]["title"] in text
    assert "Not explained" not in text
    assert f"`{SMALL}`" in text
