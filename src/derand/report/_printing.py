"""A page printed to PDF by the chromium that is installed; nothing else can be trusted with styles for paper."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from derand._core.files import PathLike, replace_when_done

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 120.0


def find_browser() -> str | None:
    """Chromium, by DERAND_CHROMIUM or on the PATH; None where there is none."""
    named = os.environ.get("DERAND_CHROMIUM")
    return next((found for one in ([named] if named else _BROWSERS) if (found := shutil.which(one))), None)


def require_browser(path: PathLike) -> str:
    """Chromium, which a PDF needs."""
    browser = find_browser()
    if browser is None:
        raise ValueError(
            f"{path} needs chromium, which was not found: install it, name it in DERAND_CHROMIUM, or write .html and "
            "print that in any browser."
        )
    return browser


def print_pdf(page: str, path: PathLike) -> None:
    """Print a page, whole or not at all."""
    browser = require_browser(path)
    with replace_when_done(path) as draft, tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # chromium has no sandbox for root
        command = [browser, "--headless", "--disable-gpu", *(["--no-sandbox"] if is_root else [])]
        command += ["--disable-background-networking", "--no-pdf-header-footer", f"--user-data-dir={folder}/profile"]
        command += [f"--print-to-pdf={made}", source.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{browser} did not print {path} within {_PATIENCE:.0f} s: write .html instead.") from None
        if not made.is_file():
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise ValueError(f"{browser} could not print {path} ({last}): write .html instead.")
        draft.write_bytes(made.read_bytes())
