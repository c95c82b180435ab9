"""Pieces of HTML, Markdown and LaTeX that sections are made of. Text from the user's data is escaped here.

Must not know what a section says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from derand._core.text import format_count, format_exactly, format_short, format_short_down, plural, shorten
from derand.report._charts import cut_radius
from derand.report._facts import Facts
from derand.report._text import percent
from derand.tables import format_moment

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "“": "``", "”": "''", "±": r"$\pm$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
NAME_LENGTH = 60


def render(template: str, summary: Mapping[str, Any], **more: object) -> Markup:
    """A template of the report, filled with the report's dict as `s` and with what else it needs."""
    return Markup(_open_environment().get_template(f"{template}.html.j2").render(s=summary, **more))


@cache
def _open_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("derand.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cut=format_short_down, show=format_short, count=format_count, exactly=format_exactly)
    environment.filters.update(percent=percent, shorten=shorten)
    environment.filters.update(radius=cut_radius, moment=format_moment)
    environment.globals.update(plural=plural, name_radius=name_radius, name_score=name_score)
    return environment


def read_static(name: str) -> str:
    return resources.files("derand.report").joinpath("static", name).read_text(encoding="utf-8")


def embed(data: Mapping[str, object]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def name_radius(summary: Facts) -> str:
    """What the certificate of a row is called."""
    return "Certified radius" if summary["threat"]["norm"] is not None else "Within the limits"


def name_score(summary: Facts) -> str:
    """What decides by the rule "mean"."""
    return "score" if summary["noise"]["magnitude"] is None else "expected score"


def name_row(row: Mapping[str, Any]) -> str:
    """What a row is called, or its number."""
    return str(row["row"]) if row["name"] is None else shorten(row["name"], 40)


def mark_text(text: str) -> str:
    """Text with Markdown's signs escaped, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def make_pipe_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [[mark_text(name) for name in head], ["---", *["---:"] * (len(head) - 1)]]
    listed = [[mark_text(shorten(cell, NAME_LENGTH)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, *listed])


def put_on_one_line(text: str) -> str:
    return " ".join(text.split())


def escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)


def make_tabular(columns: str, head: list[str], rows: list[list[str]]) -> list[str]:
    listed = [[escape_latex(put_on_one_line(cell)) for cell in row] for row in [head, *rows]]
    top, *body = [" & ".join(cells) + r" \\" for cells in listed]
    start, end = r"\begin{tabular}{" + columns + "}", r"\end{tabular}"
    return [start, r"\toprule", top, r"\midrule", *body, r"\bottomrule", end]


def mark_list(lines: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {mark_text(line)}" for line in lines)
