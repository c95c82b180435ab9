"""A browser for benchmarks, pictures and tests: Debian's chromium, driven by playwright."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path(os.environ.get("DERAND_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Chromium, closed in the end."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise RuntimeError("A browser needs playwright: `pip install playwright`.") from None
    if not CHROMIUM.is_file():
        raise RuntimeError(f"{CHROMIUM} is missing: install chromium, or name it in DERAND_CHROMIUM.")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield browser
        browser.close()
