"""A page of many rows: all of them can be found, sorted and moved, a page of the table at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, certified_accuracy
from derand._core.text import format_short_down
from derand.report import Report

Visit = Callable[..., Any]
N_ROWS, ON_A_PAGE = 20_000, 200


@pytest.fixture(scope="module")
def long_report() -> Report:
    X = np.random.default_rng(0).normal(size=(N_ROWS, 6))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return Report(StumpClassifier(noise="gaussian:0.5").fit(X[:2000], y[:2000]), X, y, n_explained=1)


def shown_places(page: Any) -> list[int]:
    """Places, among the listed rows, of those that the table shows."""
    return page.eval_on_selector_all("#row-table tbody tr", "rows => rows.map((row) => Number(row.dataset.at))")


def test_all_rows_are_listed_page_by_page(visit: Visit, long_report: Report) -> None:
    """Few elements at a time; pages, sorting, filters and the slider speak of all rows."""
    page, summary = visit(long_report), long_report.to_dict()
    listed, found = summary["rows"]["listed"], long_report._inputs.plain
    assert page.evaluate("document.querySelectorAll('*').length") < 8_000
    assert page.locator("#shown").inner_text() == "20,000 of 20,000 rows"
    assert shown_places(page) == list(range(ON_A_PAGE))
    page.locator("#page-on").press("Enter")
    assert page.locator("#page-text").inner_text() == "Rows 201 to 400 of 20,000"
    assert shown_places(page) == list(range(ON_A_PAGE, 2 * ON_A_PAGE))
    texts = page.locator("#row-table tbody td.radius").all_inner_texts()
    assert texts == [format_short_down(radius, 4) for radius in listed["radius"][0][ON_A_PAGE : 2 * ON_A_PAGE]]
    page.click("th[data-sort=radius] button")
    assert shown_places(page)[0] == next(
        at for at, radius in enumerate(listed["radius"][0]) if radius == found.radius.max()
    )
    page.select_option("#show", "wrong")
    wrong = int((found.label != long_report._inputs.truth).sum())
    assert page.locator("#shown").inner_text() == f"{wrong:,} of 20,000 rows"
    radius = summary["scale"]["radii"][19]
    page.locator("#radius-b").evaluate("(input) => { input.value = 19; input.dispatchEvent(new Event('input')) }")
    expected = round(certified_accuracy(long_report._inputs.truth, found, [radius])[0] * N_ROWS)
    assert f"{expected:,} of 20,000" in page.locator("[data-test=budget-text]").inner_text()
    page.select_option("#show", "held")
    assert page.locator("#shown").inner_text() == f"{int((found.radius >= radius).sum()):,} of 20,000 rows"


def test_any_row_is_found_and_moved(visit: Visit, long_report: Report) -> None:
    """By its number or a value; its details say what the page lacks, and "What if" takes it over with its values."""
    page, summary = visit(long_report), long_report.to_dict()
    listed, what_if = summary["rows"]["listed"], summary["what_if"]
    at = next(at for at in range(9_000, N_ROWS) if at not in set(listed["detailed"]))
    value = what_if["cells"][0][at]
    page.fill("#find", f"{listed['row'][at]} {value:.6g}")
    assert shown_places(page) == [at]
    page.locator("#row-table tbody button").press("Enter")
    assert page.locator("#detail-title").inner_text() == f"Row {listed['row'][at]:,}"
    assert "has those of 300 rows" in page.locator("[data-test=detail-less]").inner_text()
    assert not page.locator("#detail .law").is_visible()
    page.locator("#detail-whatif").press("Enter")
    assert page.locator("#whatif-row").input_value() == str(at)
    assert page.locator(".whatif-number").first.get_attribute("title") == repr(value)
    assert page.locator("#whatif").get_attribute("data-label") == str(listed["label"][at])
    page.fill("#find", "no such value")
    assert shown_places(page) == []
    page.fill("#find", "")
    page.locator("#row-table tbody tr button").first.press("Enter")
    assert page.locator("#detail .law").is_visible()


def test_radii_are_cut_as_the_library_cuts_them(visit: Visit, long_report: Report) -> None:
    """The page writes radii itself: never above the true one, to the last digit as elsewhere."""
    random = np.random.default_rng(1)
    values = [0.0, 0.25, 0.3, 1.0, 0.1 + 0.2, 9.9995, 999.99, 1000.0, 12345.6, 1e-4, 9.9e-5, 1e7, 5e-324, 1.7e308]
    values += (10.0 ** random.uniform(-8, 9, 400)).tolist() + (random.integers(1, 9999, 400) / 10_000).tolist()
    found = visit(long_report).evaluate("(values) => values.map(derand.cut)", values)
    assert found == [format_short_down(value, 4) for value in values]


def test_without_javascript_some_rows_are_shown_and_counted(visit: Visit, long_report: Report) -> None:
    page = visit(long_report, java_script_enabled=False)
    assert page.locator("#row-table tbody tr").count() == 300
    told = page.locator("[data-test=without-script]").inner_text()
    assert told.startswith("Shown are 300 rows of 20,000, the 75 weakest and a random sample")
