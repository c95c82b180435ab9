"""A browser for the tests: Debian's chromium, driven by playwright; they skip where either is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier
from derand.report import Report
from experiments._browser import CHROMIUM, open_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.is_file():
        pytest.skip(f"{CHROMIUM} is missing: install chromium, or name it in DERAND_CHROMIUM")
    with open_browser() as started:
        yield started


@pytest.fixture(scope="session")
def write_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Path]:
    """Writes a report's page, once; reports are kept, so that no two have the same identity."""
    written: dict[int, tuple[Any, Path]] = {}

    def write(report: Any) -> Path:
        if id(report) not in written:
            path = tmp_path_factory.mktemp("page") / "report.html"
            report.write_html(path)
            written[id(report)] = report, path
        return written[id(report)][1]

    return write


@pytest.fixture
def visit(browser: Any, write_page: Callable[[Any], Path]) -> Iterator[Callable[..., Any]]:
    """Opens a report, and what is folded in it; the test fails where the page logs an error or asks for anything."""
    trouble: list[str] = []
    contexts: list[Any] = []

    def go(report: Any, **options: Any) -> Any:
        path = write_page(report)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("request", lambda request: None if request.url == path.as_uri() else trouble.append(request.url))
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('.part').forEach((one) => { one.open = true; })")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not [one for one in trouble if not one.startswith("data:,")]


@pytest.fixture(scope="session")
def mixed_report() -> Report:
    """Numbers and categories, with labels, a baseline and subgroups."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "age": rng.normal(40, 12, 200).round(1),
            "income": rng.lognormal(8, 0.5, 200).round(),
            "job": rng.choice(["clerk", "smith", "cook"], 200),
            "town": rng.choice(["Málaga", "Łódź", "東京"], 200),
        }
    )
    y = np.where(rows["age"] / 12 + 2 * (rows["job"] == "smith") + rng.normal(size=200) > 4, "yes", "no")
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard", class_weight="balanced").fit(rows[:80], y[:80])
    tested = rows[80:].reset_index(drop=True)  # rows count from 1
    return Report(clf, tested, y[80:], X_train=rows[:80], y_train=y[:80], subgroups=["job", "age"])
