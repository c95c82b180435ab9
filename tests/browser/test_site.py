"""The documentation site in a browser: the code of the home page is seen whole, and the search finds its pages."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CUT = """() => [...document.querySelectorAll(".md-content pre > code")]
    .filter(code => code.scrollWidth > code.clientWidth + 1).map(code => code.textContent)"""
FOUND = """() => [...document.querySelectorAll(".md-search-result__item")].map(
    item => [...item.querySelectorAll("a")].map(link => new URL(link.href).pathname + new URL(link.href).hash))"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Requests are not news."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served: its search needs a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", [1280, 390])
def test_code_of_the_home_page_is_not_cut(browser: Any, site: Path, width: int) -> None:
    """On a desk and on a phone every line of code fits, and the page does not scroll sideways."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((site / "index.html").as_uri())
    assert page.locator(".md-content pre > code").count() >= 1
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


SEARCHES = {
    "missing values": "data",
    "missing": "data",
    "threshold": "decide",
    "cost": "decide",
    "xgboost": "xgboost",
    "lightgbm": "import",
    "pipeline": "pipelines",
    "radius": "tune",
    "limits": "threats",
    "category": "data",
    "witness": "threats",
    "explain": "threats",
    "attack": "threats",
    "audit": "deploy",
    "report": "report",
    "save": "deploy",
    "tune": "tune",
    "regression": "regression",
    "onnx": "commands",
    "gpu": "performance",
    "noise": "choose",
}
"""What people look for, and the page that must be among the first three."""


def test_search_finds_what_people_look_for(browser: Any, address: str) -> None:
    """Each query shows its page among the first three; missing values are found in their section."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/index.html")
    box = page.locator("input.md-search__input")
    box.click()
    for query, wanted in SEARCHES.items():
        box.fill("")
        box.type(query)
        first = f"(({FOUND})()).slice(0, 3).map(links => links[0])"
        page.wait_for_function(f"wanted => ({first}).includes(wanted)", arg=f"/{wanted}.html", timeout=60_000)
    box.fill("")
    box.type("missing values")
    links = f"JSON.stringify((({FOUND})()[0] || []).slice(0, 2))"
    wanted_links = ["/data.html", "/data.html#missing-values"]
    page.wait_for_function(f"wanted => {links} === JSON.stringify(wanted)", arg=wanted_links, timeout=60_000)
    page.close()
