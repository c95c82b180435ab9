"""The page to sign prints to exactly one A4 page, whatever is on it, and its first screen says who differs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, AdditiveRegressor, Threat
from derand.report import Report
from derand.storage import FileMark

Visit = Callable[..., Any]
OPEN = "parts => parts.filter((one) => one.open).map((one) => one.parentElement.id)"
LONG = "a name that somebody gave who had a lot of time and a wide table, "


def make_full(kind: str) -> Report:
    """A report that has all that a page can hold, with names, limits, notes and titles that are too long."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 8)), columns=[f"{LONG}{at}" for at in range(8)])
    frame["group"] = rng.choice([f"{LONG}{at}" for at in range(6)], 600)
    score = frame.iloc[:, :8].to_numpy() @ np.arange(8.0) + 4 * (frame["group"] == f"{LONG}1")
    options: dict[str, Any] = {
        "title": 3 * LONG,
        "notes": [3 * LONG] * 4,
        "subgroups": [f"{LONG}7", "group"],
        "configuration": f"{LONG}, sha256 {'0' * 64}",
        "what_if": False,
        "marks": {what: FileMark(LONG, "0" * 64) for what in ("model", "data", "training data", "other model")},
    }
    if kind == "numbers":
        reg = AdditiveRegressor(radius=0.2, regularization=1.0).fit(frame[:300], score[:300])
        return Report(reg, frame[300:], score[300:], radius=0.2, **options)
    n_classes = 9 if kind == "classes" else 2
    names = [f"{at} {LONG}" for at in range(n_classes)]
    y = np.array(names)[np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))]
    clf = AdditiveClassifier(radius=0.1, regularization=1.0).fit(frame[:300], y[:300])
    options |= {"X_train": frame[:300], "y_train": y[:300]}
    if kind == "limits":
        limits = dict.fromkeys(frame.columns[:8], 0.2)
        options["threat"] = Threat(norm=None, limits=limits, domain={frame.columns[0]: (-9, 9)}, l0=1)
    return Report(clf, frame[300:], y[300:], **options)


@pytest.mark.parametrize("kind", ["limits", "ball", "classes", "numbers"])
def test_it_prints_to_exactly_one_page(browser: Any, kind: str) -> None:
    report, context = make_full(kind), browser.new_context()
    page = context.new_page()
    page.set_content(report.to_html(one_page=True))
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert re.search(rb"/MediaBox\s*\[\s*0 0 59[45][.\d]* 84[12][.\d]*\s*\]", printed)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 695, "height": 1030})  # A4 within its margins, at 96 dots an inch
    assert page.evaluate("document.documentElement.scrollWidth") <= 695
    assert page.locator(".sign").bounding_box()["y"] < 1030
    context.close()


def test_differences_beyond_chance_are_on_the_first_screen(visit: Visit, mixed_report: Report) -> None:
    assert mixed_report.to_dict()["group_comparison"]["n_marked"]
    page = visit(mixed_report)
    assert page.locator("[data-test=differences] tbody tr").first.bounding_box()["y"] < 900
    phone = visit(mixed_report, viewport={"width": 390, "height": 844})
    assert "all others" in phone.locator("[data-test=differences-told]").inner_text()
    assert phone.locator("[data-test=differences-told]").bounding_box()["y"] < 700


def test_folded_parts_open_when_they_are_gone_to(visit: Visit, mixed_report: Report) -> None:
    page = visit(mixed_report)
    page.evaluate("document.querySelectorAll('.part').forEach((one) => { one.open = false; })")
    page.click("nav a[href='#rows']")
    assert page.eval_on_selector_all(".part", OPEN) == ["rows"]
    page.locator("#units > .part > summary").press("Enter")
    assert page.eval_on_selector_all(".part", OPEN) == ["units", "rows"]


def test_contents_fold_on_a_phone(visit: Visit, mixed_report: Report) -> None:
    """They stay in sight, open at a tap, and fold when a part is chosen."""
    page = visit(mixed_report, viewport={"width": 390, "height": 844})
    assert not page.locator("nav ol").is_visible()
    page.locator("nav summary").click()
    ends = page.eval_on_selector_all("nav a", "links => links.map((link) => link.getBoundingClientRect().right)")
    assert max(ends) <= 390
    page.click("nav a[href='#shapes']")
    assert not page.locator("nav ol").is_visible()
    assert page.locator("#shapes svg").first.is_visible()
    page.wait_for_function("() => document.querySelector('#shapes').getBoundingClientRect().top < innerHeight / 2")
    assert page.locator("nav summary").bounding_box()["y"] >= 0
