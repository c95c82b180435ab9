"""The paper's tables, figures and claims, carried out and set beside the published numbers.

One TOML file per table and figure holds what was printed and the recipe; `_specification` reads them, `_plans` turns
recipes into plans, `_outcomes` carries plans out, `_store` keeps what came out, `_cells` and `_claims` compare,
`_render` and `_figures` show, `_document` sums up. Adding a table is adding a file and a line in `common.toml`.
"""

from __future__ import annotations

from experiments.reproduce._document import render_cells, render_document, write_document
from experiments.reproduce._render import list_short_rows, summarize
from experiments.reproduce._run import Report, choose_names, list_names, reproduce
from experiments.reproduce._specification import read_items

__all__ = [
    "Report",
    "choose_names",
    "list_names",
    "list_short_rows",
    "read_items",
    "render_cells",
    "render_document",
    "reproduce",
    "summarize",
    "write_document",
]
