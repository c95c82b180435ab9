"""What may change, column by column and in words, for a reader who has never seen a threat."""

from __future__ import annotations

import math
from itertools import compress
from typing import Literal, TypedDict

from derand._core.text import format_exactly, format_short_down, join_words, plural, shorten
from derand.explain import multiply_down
from derand.report._blocks import Block, Heading, Paragraph, Raw, Section, Table, in_markdown
from derand.report._inputs import Inputs
from derand.report._markup import render
from derand.report._threat import list_words, say_ends, say_limit, unit_of
from derand.threat import EVERY, Limit


class ThreatColumn(TypedDict):
    """What may become of one column."""

    column: str
    kind: Literal["number", "date", "category"]
    moves: bool
    change: str
    """By how much it may change, or to what."""
    direction: str
    domain: str
    """Between which ends it stays; nothing where there are none."""
    values: str
    """What it may hold, such as whole numbers."""
    missing: str
    """Whether it may go missing; nothing where the model takes no gaps in it."""


class ThreatTable(TypedDict):
    """What may change: in words, and column by column."""

    words: list[str]
    note: str
    """How moves of several columns go together."""
    columns: list[ThreatColumn]
    n_moving: int


class Parts(TypedDict):
    """What this section reads."""

    threat_table: ThreatTable


_STAYS = "stays as it is"
_HEAD = ["column", "kind", "may change", "direction", "stays", "values", "gaps"]
_LISTED = 6
_LISTED_COLUMNS = 60


def compute(inputs: Inputs, radius: float | None, budgets: int = 0) -> ThreatTable:
    """What may become of each column at a radius.

    `radius`: that of the text; None where limits alone say what may change; `budgets`: up to how many categories may
    change in other certificates of the same report.
    """
    model = inputs.subject.model
    read = {feature for term in model.member_terms for feature in term.features}
    columns = [_describe(inputs, feature, radius, budgets, feature in read) for feature in range(model.n_features)]
    words = list_words(inputs)
    if budgets:
        most = "one" if budgets == 1 else f"1 to {budgets}"
        words.append(f"Where it says “changed” beside a share, any {most} of the categories may become anything, too.")
    return {
        "words": [_begin(sentence.removeprefix("What may change: ")) for sentence in words],
        "note": _say_together(inputs, radius),
        "columns": columns,
        "n_moving": sum(one["moves"] for one in columns),
    }


def _begin(sentence: str) -> str:
    """A sentence that begins with a capital."""
    return sentence[:1].upper() + sentence[1:]


def _say_together(inputs: Inputs, radius: float | None) -> str:
    norm = inputs.threat.norm
    if norm is None or not radius or not inputs.moving:
        return ""
    size = format_exactly(radius)
    if norm == 0:
        return f"At radius {size}: any {plural(int(radius), 'number')} of these may change, to what the table allows."
    if norm == math.inf:
        return f"At radius {size}, all columns at the same time."
    share = "their sizes add up" if norm == 1 else "the squares of their sizes add up"
    return f"At radius {size}, each column alone; where several change at once, {share}, so that each may change less."


def _describe(inputs: Inputs, feature: int, radius: float | None, budgets: int, is_read: bool) -> ThreatColumn:
    subject, threat = inputs.subject, inputs.threat
    is_category = feature in subject.model.categorical_features or feature in subject.categories
    found: ThreatColumn = {
        "column": subject.names[feature],
        "kind": "category" if is_category else "date" if feature in subject.dates else "number",
        "moves": False,
        "change": _STAYS,
        "direction": "",
        "domain": "",
        "values": "",
        "missing": "",
    }
    if not is_read:
        return {**found, "moves": True, "change": "anything: the model does not read it"}
    if feature in threat.frozen:
        return {**found, "change": "frozen: stays as it is"}
    if is_category:
        return {**found, **_describe_category(inputs, feature, budgets)}  # type: ignore[typeddict-item]
    if feature in subject.model.missing_features and threat.missing_budget:
        found["missing"] = "may go missing, or appear"
    if feature not in inputs.moving:
        return found
    limit = threat.limits.get(feature, threat.limits.get(EVERY))
    return {
        **found,
        "moves": True,
        "change": _say_change(inputs, feature, radius, limit),
        "direction": _say_direction(limit),
        "domain": say_ends(inputs, feature) if feature in threat.domain else "",
        "values": _say_values(inputs, feature),
    }


def _say_change(inputs: Inputs, feature: int, radius: float | None, limit: Limit | None) -> str:
    """By how much a number may change, by the ball and by its limit."""
    norm, parts = inputs.threat.norm, []
    if norm == 0:
        parts.append("to any date" if feature in inputs.subject.dates else "to any number")
    elif norm is not None and radius:
        unit = float(inputs.units[feature])
        parts.append(f"by less than {format_short_down(multiply_down(radius, unit))}{unit_of(inputs, feature)}")
    if limit is not None:
        parts.append(say_limit(limit, unit_of(inputs, feature)).split(", not ")[0])
    if not parts:
        return "within its ends" if feature in inputs.threat.domain else "by less than the radius"
    return ", and ".join(parts)


def _say_direction(limit: Limit | None) -> str:
    if not isinstance(limit, tuple):
        return "up and down"
    ways = [name for name, size in zip(("down", "up"), limit, strict=True) if size > 0]
    return "neither" if not ways else f"{ways[0]} only" if len(ways) == 1 else "up and down"


def _say_values(inputs: Inputs, feature: int) -> str:
    step, is_date = inputs.threat.steps.get(feature), feature in inputs.subject.dates
    if step is None:
        return "any date and time" if is_date else "any number"
    if is_date:
        return "whole days" if step == 1 else f"steps of {format_exactly(step)} days"
    return "whole numbers" if step == 1 and feature in inputs.subject.whole else f"steps of {format_exactly(step)}"


def _describe_category(inputs: Inputs, feature: int, budgets: int) -> dict[str, object]:
    """To what a category may change, and which values there are."""
    threat, subject = inputs.threat, inputs.subject
    known = [subject.describe_value(feature, float(code)) for code in range(len(subject.categories.get(feature, ())))]
    allowed = threat.may_become.get(feature)
    if allowed is not None:
        known = [subject.describe_value(feature, float(code)) for code in allowed]
    values = join_words([*(f"“{shorten(name, 24)}”" for name in known[:_LISTED])])
    if len(known) > _LISTED:
        values = f"{', '.join(f'“{shorten(name, 24)}”' for name in known[:_LISTED])} and {len(known) - _LISTED:,} more"
    if not threat.l0:
        return {"change": "to any value, where it says “changed”" if budgets else _STAYS, "values": values}
    change = "to any value" if threat.unseen else "to any value that training saw"
    return {"moves": True, "change": "to these values alone" if allowed is not None else change, "values": values}


def blocks(summary: Parts) -> list[Block]:
    """The words, and the table; the page folds most of many columns away."""
    table = summary["threat_table"]
    columns = table["columns"][:_LISTED_COLUMNS]
    lines = [
        [one["column"], one["kind"], one["change"], one["direction"], one["domain"], one["values"], one["missing"]]
        for one in columns
    ]
    kept = [any(cells) for cells in zip(*lines, strict=True)]
    told = [[cell or "-" for cell in compress(line, kept)] for line in lines]
    n_columns = plural(len(table["columns"]), "column")
    return [
        Raw(render("threat", summary)),
        in_markdown(
            Heading("What may change"),
            Paragraph(" ".join([*table["words"], table["note"]])),
            Table(list(compress(_HEAD, kept)), told),
            Paragraph(f"{len(columns)} of {n_columns}." if len(columns) < len(table["columns"]) else ""),
        ),
    ]


SECTION = Section("threat", lambda s: "What may change", blocks)
