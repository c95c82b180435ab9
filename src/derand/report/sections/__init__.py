"""The sections of a report, one module each: what is computed, its types, and how it is shown.

A module has `compute` (inputs -> a part of the report's dict), `html` and `markdown` (the report's dict -> text), and a
`Section` that says whether a report has it. `derand.report._page` lists them in their order. Sections read what they
need of the dict: their `Parts` names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup


def _say_nothing(summary: Any) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, under its own anchor."""

    anchor: str
    link: Callable[[Any], str]
    """What the navigation calls it; "" where the report does not have it."""
    html: Callable[[Any], Markup]
    markdown: Callable[[Any], list[str]] = _say_nothing
    latex: Callable[[Any], list[str]] = _say_nothing
