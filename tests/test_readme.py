"""The examples of the README, run as written."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_examples_of_the_readme_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `>>>` line of the README runs, in order, and prints the lines below it."""
    monkeypatch.chdir(tmp_path)  # examples may write files
    text = "\n".join(line for line in README.read_text(encoding="utf-8").splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert test.examples, "the README shows no example"
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert failed == 0, "".join(report)
