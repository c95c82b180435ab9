"""Take the README's pictures of the demo and its report: `python scripts/screenshots.py [folder]`.

Needs chromium (at /usr/bin/chromium, or where DERAND_CHROMIUM says) and playwright. Pictures go to docs/images.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from derand.demo import run_demo

CHROMIUM = os.environ.get("DERAND_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
COLOURS = 128
"""Enough for the page's few colours; a picture then takes some tens of kilobytes."""


@dataclass(frozen=True)
class Shot:
    """A picture: its name, the size of the window, the theme, and the section at its top."""

    name: str
    size: tuple[int, int]
    scheme: str
    section: str
    radius: int = 24


SHOTS = (
    Shot("report-guarantee", (1200, 860), "light", "guarantee"),
    Shot("report-shapes", (1200, 700), "light", "shapes"),
    Shot("report-rows", (1200, 900), "dark", "rows", radius=10),
    Shot("report-whatif", (1200, 820), "light", "whatif"),
    Shot("report-threat", (1200, 640), "light", "threat"),
    Shot("report-subgroups", (1200, 860), "light", "subgroups"),
    Shot("report-phone", (390, 844), "light", "accuracy"),
)


def take(browser: Any, page_address: str, shot: Shot, folder: Path) -> Path:
    """Take one picture and make it small."""
    width, height = shot.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=shot.scheme)
    page = context.new_page()
    page.goto(page_address)
    page.add_style_tag(content="html { scroll-behavior: auto !important; }")
    page.locator(".radius-input").first.evaluate(
        "(input, at) => { input.value = at; input.dispatchEvent(new Event('input')) }", shot.radius
    )
    if shot.section == "rows":
        page.locator("#row-table tbody tr:nth-child(9) button").click()
    if shot.section == "whatif":
        page.locator(".whatif-line input[type=range]").first.focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
    if shot.section != "guarantee":
        page.locator(f"#h-{shot.section}").evaluate("element => window.scrollTo(0, element.offsetTop - 30)")
    path = folder / f"{shot.name}.png"
    page.wait_for_timeout(200)
    page.screenshot(path=path)
    context.close()
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        made = run_demo(temporary)
        shutil.copyfile(made["plot"], folder / "demo.png")
        report = Path(made["report"]).resolve()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        for shot in SHOTS:
            path = take(browser, report.as_uri(), shot, folder)
            print(f"{path} {path.stat().st_size // 1024} kB")
        browser.close()


if __name__ == "__main__":
    main()
