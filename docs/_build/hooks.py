"""What the build of the site does beyond mkdocs: formulas, and pages whose text lives elsewhere in the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from mathematics import Mathematics

INCLUDED = {"rounding.md": "src/derand/kernels/README.md"}
"""Pages of the site, and the files of the repository that hold their text."""

WRITTEN_BY_COMMANDS = frozenset({"reproduction.md", "performance.md"})
"""Pages that runs of the program write: without such a run the site is built without them."""


BOOST = {"guide.md": 4.0, "quickstart.md": 2.0, "credit.md": 2.0, "faq.md": 2.0, "api.md": 0.5, "theory.md": 0.5}
"""Weight of pages in a search: what is read comes before what is looked up."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Teach Markdown formulas, and leave out of the navigation what has not been written yet."""
    config.markdown_extensions.append(Mathematics())  # type: ignore[arg-type]
    missing = {page for page in WRITTEN_BY_COMMANDS if not (Path(config.docs_dir) / page).exists()}
    config.nav = _without(config.nav, missing)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere."""
    root = Path(config.config_file_path).parent
    for page, source in INCLUDED.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to included files, right for readers of the repository, lead to their pages here. Weighs pages."""
    if page.file.src_uri in BOOST:
        page.meta["search"] = {"boost": BOOST[page.file.src_uri]}
    for name, source in INCLUDED.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}")
    return markdown


def _without(nav: list[dict[str, Any]], missing: set[str]) -> list[dict[str, Any]]:
    """The navigation, less some pages and the sections that are then empty."""
    kept = []
    for entry in nav:
        ((title, content),) = entry.items()
        if isinstance(content, list):
            content = _without(content, missing)
        elif content in missing:
            content = None
        if content:
            kept.append({title: content})
    return kept
