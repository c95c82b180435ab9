"""Pieces of HTML, Markdown and LaTeX that sections are made of. Text from the user's data is escaped here.

Must not know what a section says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

import jinja2
from markupsafe import Markup

from derand._core.text import (
    format_count,
    format_exactly,
    format_percent,
    format_short,
    plural,
    shorten,
)
from derand.report._facts import Facts

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "“": "``", "”": "''", "±": r"$\pm$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
NAME_LENGTH = 60
NOTHING = "\N{EN DASH}"
"""An empty cell."""


def render(template: str, summary: Mapping[str, object], **more: object) -> Markup:
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
    environment.filters.update(show=format_short, count=format_count, exactly=format_exactly, shorten=shorten)
    environment.globals.update(plural=plural, name_radius=name_radius, name_score=name_score)
    return environment


def read_static(name: str) -> str:
    return resources.files("derand.report").joinpath("static", name).read_text(encoding="utf-8")


def embed(data: Mapping[str, object]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def percent(share: float, way: Literal["down", "up", "nearest"] = "down") -> str:
    r"""A share as per cent, cut after one decimal or as `format_percent` says; the sign never has a line of its own.

    Examples
    --------
    >>> [percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.29, 0.99999, 1.0)]
    ['29.0 %', '99.9 %', '100.0 %']
    """
    return format_percent(share, space="\N{NO-BREAK SPACE}", way=way)


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


def put_on_one_line(text: str) -> str:
    return " ".join(text.split())


def escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
