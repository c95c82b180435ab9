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
from options import write_options

INCLUDED = {"rounding.md": "src/derand/kernels/README.md", "deduction.md": "scripts/prove_deduction.md"}
"""Pages of the site, and the files of the repository that hold their text."""

WEIGHTS = {"data.md": 4.0, "quickstart.md": 2.0, "credit.md": 2.0, "tune.md": 2.0, "api.md": 0.5, "settings.md": 0.5}
"""Weight of pages in a search: what is read comes before what is looked up."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Teach Markdown formulas."""
    config.markdown_extensions.append(Mathematics())  # type: ignore[arg-type]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and the one that is written from the program."""
    root = Path(config.config_file_path).parent
    for page, source in INCLUDED.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))
    files.append(File.generated(config, "settings.md", content=write_options()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to included files, right for readers of the repository, lead to their pages here. Weighs pages."""
    if page.file.src_uri in WEIGHTS:
        page.meta["search"] = {"boost": WEIGHTS[page.file.src_uri]}
    for name, source in INCLUDED.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}")
    return markdown
