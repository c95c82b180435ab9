"""All visible text stands out from what lies beneath it, by the measure of the accessibility guidelines (WCAG AA)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derand import AdditiveRegressor, StumpClassifier
from derand.report import Report
from tests.browser.test_intervals_page import make_report
from tests.report.samples import LIMITS, make_rows, report_under

Visit = Callable[..., Any]
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
ADD_STYLE = """css => {
  const sheet = new CSSStyleSheet(); sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
STILL = "*, *::before { transition: none !important; animation: none !important; }"


def measure(page: Any) -> dict[str, Any]:
    """How many texts were looked at, and those that do not stand out; all that is folded is open, all is on screen."""
    page.evaluate(ADD_STYLE, STILL)  # a style element would be refused by the page's policy
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": min(height + 200, 30_000)})
    found: dict[str, Any] = page.evaluate(CONTRAST)
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_all_text_stands_out(visit: Visit, mixed_report: Report, scheme: str, width: int) -> None:
    """Text of the page and of its charts, at any radius, with a row picked and moved."""
    page = visit(mixed_report, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.locator("#row-table tbody tr[data-at='5'] button").click()
    page.locator(".whatif-line input[type=range]").first.press("End")
    found = measure(page)
    assert found["found"] == []
    assert found["checked"] > 400


@cache
def make_other(kind: str) -> Any:
    """Reports of other kinds, each once."""
    if kind == "verdicts":
        return report_under(rule="mean", threat=LIMITS)
    if kind == "numbers":
        return make_report(AdditiveRegressor(radius=0.2, regularization=1.0))
    X, _ = make_rows(160)
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])]
    one, other = (StumpClassifier(noise=noise, rule="mean").fit(X, y) for noise in ("gaussian:0.2", "gaussian:0.4"))
    return Report(one, X, y, compare=other)


@pytest.mark.parametrize(
    ("kind", "scheme"), [("verdicts", "light"), ("numbers", "dark"), ("classes and two models", "light")]
)
def test_other_reports_stand_out(visit: Visit, kind: str, scheme: str) -> None:
    found = measure(visit(make_other(kind), color_scheme=scheme))
    assert found["found"] == []
    assert found["checked"] > 200


def test_faint_text_is_found(visit: Visit, mixed_report: Report) -> None:
    """The check itself: grey on white, white on white in a chart, and text that is nearly transparent."""
    page = visit(mixed_report)
    page.evaluate(ADD_STYLE, ".lede { color: #999 } h1 { opacity: .2 } svg text.mid { fill: #fefefe }")
    faint = measure(page)["found"]
    assert any("P.lede" in one for one in faint)
    assert any("(H1." in one for one in faint)
    assert any("(text" in one for one in faint)
