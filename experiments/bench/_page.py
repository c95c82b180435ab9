"""How soon a report of many rows can be used in a browser: loading, sorting, searching; its size and memory."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from derand import StumpClassifier
from derand.report import Report
from experiments._browser import open_browser
from experiments.bench._measure import Figures

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
# seconds from an action to the page laid out anew
_ACTIONS = """
() => {
  const find = (text) => { const field = document.querySelector("#find"); field.value = text; field.dispatchEvent(new Event("input")); };
  const time = (action) => { const start = performance.now(); action(); document.body.offsetHeight; return (performance.now() - start) / 1000; };
  return {
    sort_seconds: time(() => document.querySelector("th[data-sort=row] button").click()),
    first_find_seconds: time(() => find("12")),
    next_find_seconds: time(() => find("123")),
  };
}
"""  # noqa: E501


def bench_page(n_rows: int = 100_000, n_columns: int = 6, n_loads: int = 7) -> Figures:
    """Open a report that lists every row: seconds until it is loaded and its table drawn, medians over several loads.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table: random numbers, no two alike.
    n_loads : int

    Returns
    -------
    dict
        `rows`, those that the table lists, `page_bytes`, `load_seconds` (to the load event, the table drawn),
        `slowest_load_seconds`, `processor_seconds` (of the page's main thread), `heap_bytes`, and seconds to sort, to
        search first and to search again.
    """
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    report = Report(StumpClassifier(noise="gaussian:0.5").fit(X[:2000], y[:2000]), X, y)
    with TemporaryDirectory() as folder, open_browser() as browser:
        path = Path(folder) / "report.html"
        report.write_html(path)
        loads = [measure_load(browser, path.as_uri()) for _ in range(n_loads)]
        found: Figures = {"page_bytes": path.stat().st_size}
    rows = {one["rows"] for one in loads}
    if rows != {n_rows}:
        raise RuntimeError(f"The page must list {n_rows} rows, it lists {rows}.")
    found |= {"rows": n_rows, "slowest_load_seconds": max(one["load_seconds"] for one in loads)}
    found |= {name: median(one[name] for one in loads) for name in loads[0] if name != "rows"}
    return found | {"heap_bytes": round(found["heap_bytes"] or 0)}


def measure_load(browser: Browser, address: str) -> dict[str, float]:
    """One load of a page in a context of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address)
    figures = {one["name"]: float(one["value"]) for one in devtools.send("Performance.getMetrics")["metrics"]}
    drawn = page.locator("#row-table tbody tr .row-name button").count()
    if not drawn:
        raise RuntimeError("The page was loaded without its table.")
    found = {
        "rows": float(page.evaluate("derand.size")),
        "load_seconds": float(page.evaluate(_LOADED)),
        "processor_seconds": figures["TaskDuration"],
        "heap_bytes": figures["JSHeapUsedSize"],
        **{name: float(value) for name, value in page.evaluate(_ACTIONS).items()},
    }
    context.close()
    return found
