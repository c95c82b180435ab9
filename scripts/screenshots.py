"""Take pictures of reports: `python scripts/screenshots.py`, of the demo into docs/images, those of README and docs.

`--parts FOLDER` takes every part of reports of every kind, wide and narrow, light and dark, to be looked at; parts are
found by themselves. Needs chromium (at /usr/bin/chromium, or where DERAND_CHROMIUM says) and playwright.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from sample_reports import REPORTS

from derand.app.demo import run_demo
from experiments._browser import open_browser

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


SIZES = {"desktop": (1200, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
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
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.evaluate("document.querySelectorAll('.part').forEach((one) => { one.open = true; })")
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
    make_small(path)
    return path


def take_one_page(browser: Any, folder: Path) -> Path:
    """The page to sign, of loans within limits."""
    path = folder / "one-page.png"
    context = browser.new_context(viewport={"width": 1000, "height": 1000})
    page = context.new_page()
    page.set_content(REPORTS["limits"]().to_html(one_page=True))
    page.screenshot(path=path, full_page=True)
    context.close()
    make_small(path)
    return path


def make_small(path: Path) -> None:
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def take_parts(browser: Any, page_address: str, name: str, folder: Path) -> list[Path]:
    """Every part of a page, wide and narrow, light and dark; what is folded is open."""
    paths = []
    for (size, (width, height)), scheme in itertools.product(SIZES.items(), SCHEMES):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        page.goto(page_address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.set_viewport_size({"width": width, "height": page.evaluate("document.documentElement.scrollHeight")})
        for place, box in page.eval_on_selector_all("main > header, main > section[id]", _PLACES):
            path = folder / f"{name}-{place}-{size}-{scheme}.png"
            page.screenshot(path=path, clip=box)
            make_small(path)
            paths.append(path)
        context.close()
    return paths


# a margin on both sides, where there is room
_PLACES = """
parts => parts.map((part) => {
  const { x, y, width, height } = part.getBoundingClientRect();
  const margin = Math.min(x, 24);
  return [part.id || "header", { x: x - margin, y, width: width + 2 * margin, height: height + 24 }];
})
"""


def take_documented(folder: Path) -> None:
    """The pictures of README and docs."""
    with tempfile.TemporaryDirectory() as temporary, open_browser() as browser:
        made = run_demo(temporary)
        shutil.copyfile(made["plot"], folder / "demo.png")
        for shot in SHOTS:
            path = take(browser, Path(made["report"]).resolve().as_uri(), shot, folder)
            print(f"{path} {path.stat().st_size // 1024} kB")
        print(take_one_page(browser, folder))


def take_all_parts(folder: Path, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as temporary, open_browser() as browser:
        for name in names:
            path = Path(temporary) / f"{name}.html"
            REPORTS[name]().write_html(path)
            print(f"{name}: {len(take_parts(browser, path.as_uri(), name, folder))} pictures in {folder}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "images")
    parser.add_argument("--parts", type=Path, metavar="FOLDER", help="every part of every kind of report, instead")
    parser.add_argument("--only", nargs="*", choices=list(REPORTS), default=list(REPORTS), help="kinds for --parts")
    asked = parser.parse_args()
    folder = asked.parts or asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    if asked.parts:
        take_all_parts(folder, asked.only)
    else:
        take_documented(folder)


if __name__ == "__main__":
    main()
