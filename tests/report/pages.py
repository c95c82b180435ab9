"""What every page must be, whatever the report is about."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from derand.report import Report, ReportSummary

SIZE_LIMIT = 3 * 2**20


class Page(HTMLParser):
    """Tags with their attributes, in order, and whether every one was closed."""

    VOID = frozenset({"meta", "link", "input", "br", "line", "rect", "path", "polyline", "circle"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def join_words(summary: ReportSummary) -> str:
    """What a report says of its guarantee: the paragraph, and what stands in tables."""
    words = [summary["guarantee"]["paragraph"], summary["rule"]["sentence"], summary["rule"]["proof_sentence"]]
    return " ".join([*words, *summary["threat"]["sentences"]])


def count_lines(summary: ReportSummary) -> int:
    """Lines of the tables in LaTeX: that of accuracy, or those of verdicts and witnesses; answers; two models."""
    verdicts, answers = summary["verdicts"], summary["answers"]
    figures = 0
    if answers is not None:
        figures = 1 + len(answers["lines"])
        figures += 0 if summary["confusion"] else 1 + len(summary["model"]["classes"])
    compared = summary["comparison"]
    if compared is not None:
        figures += 1 + len(compared["lines"]) + (3 if len(compared["radii"]) > 1 else 0)
    if verdicts is None:
        return figures + 1 + len(summary["table"]["rows"])
    return figures + 1 + len(verdicts["counts"]) + bool(verdicts["witnesses"]) + len(verdicts["witnesses"])


def check_page(report: Report) -> Page:
    """What every page must be: whole, small, without network, with names for what is seen."""
    text = report.to_html()
    assert len(text.encode()) < SIZE_LIMIT
    page = Page(text)
    assert not page.open
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    assert all((link["href"] or "")[1:] in names for link in page.all("a"))
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    assert "http://" not in text
    assert "https://" not in text
    assert all(image.get("aria-label") or image.get("aria-hidden") for image in page.all("svg"))
    assert report.to_markdown().startswith("# ")
    assert report.to_latex().count("\\\\\n") == count_lines(report.to_dict())
    assert json.loads(report.to_json()) == report.to_dict()
    return page


class _Tables(HTMLParser):
    """The text of each table's cells, by the name that tests know it by."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] | None = None
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows = self.tables.setdefault(str(dict(attrs).get("data-test")), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")
        self._rows = None if tag == "table" else self._rows

    def handle_data(self, data: str) -> None:
        if self._in_cell and self._rows:
            self._rows[-1][-1] += data.replace("\N{NO-BREAK SPACE}", " ")


def read_tables(page: str) -> dict[str, list[list[str]]]:
    """The tables of a page as text, heads first; tables of one name follow each other."""
    return _Tables(page).tables
