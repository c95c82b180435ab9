"""Take the picture of the report of docs/credit.md: `python scripts/credit_picture.py`. It goes to docs/images.

Runs the page first, which takes a minute. Needs what scripts/screenshots.py needs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from run_page import run_page
from screenshots import ARGUMENTS, CHROMIUM, COLOURS

DOCS = Path(__file__).resolve().parents[1] / "docs"
SIZE = {"width": 1200, "height": 860}


def main() -> None:
    path = DOCS / "images" / "credit-report.png"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        run_page((DOCS / "credit.md").read_text(encoding="utf-8"), folder)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_page(viewport=SIZE)
        page.goto((Path(folder) / "results" / "report.html").resolve().as_uri())
        page.screenshot(path=path)
        browser.close()
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
