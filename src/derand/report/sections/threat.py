"""What may change: in sentences, column by column, and how the size of a change is measured.

Owns all words of a report about threats; those of a single limit or change are in `derand.explain`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Literal, TypedDict

from derand._core.text import format_count, format_exactly, format_short_down, join_words, plural, shorten
from derand.explain import SCALING_UNITS, describe_domain, describe_limit, multiply_down
from derand.perturbation import Perturbation
from derand.report import _blocks as ui
from derand.report._facts import LimitFacts, ThreatFacts
from derand.report._inputs import Inputs
from derand.report._markup import NOTHING
from derand.tables import format_moment
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


_LISTED_WORDS = 20
_NAME_LENGTH = 60
_NAMED = 3
_STAYS = "stays as it is"
_HEAD = ["column", "kind", "may change", "direction", "stays", "values", "gaps"]
_LISTED = 6
_SHOWN_COLUMNS, _LISTED_COLUMNS, _MOST_COLUMNS = 12, 60, 100


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
        "note": _describe_together(inputs, radius),
        "columns": columns,
        "n_moving": sum(one["moves"] for one in columns),
    }


def _begin(sentence: str) -> str:
    """A sentence that begins with a capital."""
    return sentence[:1].upper() + sentence[1:]


def _describe_together(inputs: Inputs, radius: float | None) -> str:
    norm = inputs.threat.norm
    if norm is None or not radius or not inputs.moving:
        return ""
    size = format_exactly(radius)
    if norm == 0:
        return f"At radius {size}: any {plural(int(radius), 'number')} of these may change, to what the table allows."
    if norm == math.inf:
        return f"Radius {size}: all columns may change by {size} of their unit at the same time."
    share = "their sizes add up" if norm == 1 else "the squares of their sizes add up"
    return f"Radius {size}: one column may change by {size} of its unit; of several at once, {share}, so each less."


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
    if feature in threat.linked:
        return {**found, "moves": True, "change": f"follows: {_describe_link(inputs, feature)}"}
    limit = threat.limits.get(feature, threat.limits.get(EVERY))
    return {
        **found,
        "moves": True,
        "change": _describe_change(inputs, feature, radius, limit),
        "direction": _describe_direction(limit),
        "domain": describe_ends(inputs, feature) if feature in threat.domain else "",
        "values": _describe_values(inputs, feature),
    }


def _describe_change(inputs: Inputs, feature: int, radius: float | None, limit: Limit | None) -> str:
    """By how much a number may change, by the ball and by its limit."""
    norm, parts = inputs.threat.norm, []
    if norm == 0:
        parts.append("to any date" if feature in inputs.subject.dates else "to any number")
    elif norm is not None and radius:
        unit = float(inputs.units[feature])
        parts.append(f"by less than {format_short_down(multiply_down(radius, unit))}{unit_of(inputs, feature)}")
    if limit is not None:
        parts.append(describe_limit(limit, unit_of(inputs, feature)).split(", not ")[0])
    if not parts:
        return "within its ends" if feature in inputs.threat.domain else "by less than the radius"
    return ", and ".join(parts)


def _describe_direction(limit: Limit | None) -> str:
    if not isinstance(limit, tuple):
        return "up and down"
    ways = [name for name, size in zip(("down", "up"), limit, strict=True) if size > 0]
    return "neither" if not ways else f"{ways[0]} only" if len(ways) == 1 else "up and down"


def _describe_values(inputs: Inputs, feature: int) -> str:
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


def describe_unit(inputs: Inputs) -> dict[str, str]:
    """By what the change of a column is divided (nothing, where it counts as it is), and a short name for it."""
    estimator, units = inputs.subject.estimator, inputs.threat.units
    if units is None:
        return {"divide": "", "short": "own"}
    scaling = None if estimator is None else getattr(estimator, "scaling", None)
    if scaling in SCALING_UNITS and estimator is not None and units == estimator.units:
        return {"divide": f"its {SCALING_UNITS[scaling]}", "short": scaling}
    return {"divide": "the unit given for it", "short": "given"}


def name_norm(inputs: Inputs) -> str:
    """The norm as it is written, such as "l2"; nothing where there is no ball."""
    norm = inputs.threat.norm
    return "" if norm is None else f"l{norm}"


def describe_measure(inputs: Inputs) -> str:
    """How the size of a change is measured; nothing without a ball and for a model that reads no numbers."""
    norm = inputs.threat.norm
    if not inputs.subject.model.numerical_features or norm is None:
        return ""
    if norm == 0:
        return (
            "The size of a change is the number of numerical columns that it changes, each to anything that is allowed "
            "(norm l0); a radius counts how many may change."
        )
    unit = describe_unit(inputs)["divide"]
    each = f"the change of each column is divided by {unit}" if unit else "each column's change is taken as it is"
    combine = {
        1: "all are added up without sign",
        2: "the squares are added up and the root is taken",
        math.inf: "and the largest counts, so that all columns may move by that much at the same time",
    }[float(norm)]
    named = f" ({name_norm(inputs)} norm)" if inputs.has_threat else ""
    return f"The size of a change is one number{named}: {each}, {combine}."


def describe_threat(inputs: Inputs) -> ThreatFacts:
    """The threat with its sentences, which are there where one was given."""
    threat = inputs.threat
    limits: list[LimitFacts] = [
        {"column": _name(inputs, column), "text": describe_limit(limit, unit_of(inputs, column))}
        for column, limit in threat.limits.items()
    ]
    domain: list[LimitFacts] = [
        {"column": _name(inputs, column), "text": describe_ends(inputs, column)} for column in threat.domain
    ]
    frozen = [_name(inputs, column) for column in threat.frozen]
    return {
        "given": inputs.has_threat,
        "bounded": Perturbation.of(threat, inputs.subject.model.n_features, ()).has_box,
        "norm": None if threat.norm is None else float(threat.ball_norm or 0),
        "norm_text": name_norm(inputs),
        "l0": threat.l0,
        "missing": threat.missing_budget,
        "unseen": bool(threat.unseen),
        "frozen": frozen,
        "limits": limits,
        "domain": domain,
        "sentences": _list_sentences(inputs, limits, domain, frozen) if inputs.has_threat else [],
    }


def limit_of(inputs: Inputs, feature: int) -> str:
    """What keeps a column within a ball as well, in words; nothing where nothing does."""
    threat = inputs.threat
    limit = threat.limits.get(feature, threat.limits.get(EVERY))
    parts = [] if limit is None else [describe_limit(limit, unit_of(inputs, feature))]
    if feature in threat.domain:
        parts.append(describe_ends(inputs, feature))
    return ", ".join(parts)


def unit_of(inputs: Inputs, column: int | str) -> str:
    """What stands behind a size of a column: nothing, or that it is in days."""
    return " days" if column in inputs.subject.dates else ""


def describe_ends(inputs: Inputs, column: int | str) -> str:
    """Between which ends a column stays, dates as such."""
    write = format_moment if column in inputs.subject.dates else format_exactly
    return describe_domain(*inputs.threat.domain[column], write)


def _name(inputs: Inputs, column: int | str) -> str:
    return str(column) if isinstance(column, str) else inputs.subject.names[column]


def list_words(inputs: Inputs) -> list[str]:
    """What may change, in sentences, whether a threat was given or not."""
    if inputs.has_threat:
        return describe_threat(inputs)["sentences"]
    return [sentence for sentence in (_describe_numbers(inputs, [], []), _describe_categories(inputs)) if sentence]


def _list_sentences(inputs: Inputs, limits: list[LimitFacts], domain: list[LimitFacts], frozen: list[str]) -> list[str]:
    sentences = [_describe_numbers(inputs, limits, domain)]
    told = [f"{_quote(one['column'])} {one['text']}" for one in limits if one["column"] != EVERY]
    every = "every other number" if told or frozen else "every number"
    told += [f"{every} {one['text']}" for one in limits if one["column"] == EVERY]
    if told:
        sentences.append(f"Limits: {_list_some(told)}.")
    if domain:
        stays = [f"{_quote(one['column'])} stays {one['text']}" for one in domain]
        sentences.append(f"Domains: {_list_some(stays)}.")
    sentences += [_describe_whole(inputs), _describe_steps(inputs)]
    if frozen:
        verb = "does" if len(frozen) == 1 else "do"
        sentences.append(f"Frozen: {join_words(_cut([_quote(name) for name in frozen]))} {verb} not change.")
    linked = [f"{_quote(_name(inputs, column))} is {_describe_link(inputs, column)}" for column in inputs.threat.linked]
    if linked:
        sentences.append(f"Linked: {_list_some(linked)}, and changes with them alone.")
    sentences += [_describe_categories(inputs), _describe_missing(inputs)]
    return [sentence for sentence in sentences if sentence]


def _describe_link(inputs: Inputs, column: int | str) -> str:
    """What a linked number follows from."""
    left, sign, right, tolerance = inputs.threat.linked[column]
    rounded = f" within {format_exactly(tolerance)}" if tolerance else ""
    return f"{_quote(_name(inputs, left))} {sign} {_quote(_name(inputs, right))}{rounded}"


def _list_counts(inputs: Inputs) -> list[int | str]:
    """Columns that held whole numbers in training and change by whole numbers."""
    return [at for at, step in inputs.threat.steps.items() if step == 1 and at in inputs.subject.whole]


def _describe_whole(inputs: Inputs) -> str:
    counts = [_quote(_name(inputs, at)) for at in _list_counts(inputs)]
    if not counts:
        return ""
    verb = "changes" if len(counts) == 1 else "change"
    return f"Counts stay whole numbers: {join_words(_cut(counts))} {verb} by whole numbers alone."


def _describe_steps(inputs: Inputs) -> str:
    counts = _list_counts(inputs)
    others = {at: step for at, step in inputs.threat.steps.items() if at not in counts}
    steps = [f"{_quote(_name(inputs, at))} by {format_exactly(step)}" for at, step in others.items()]
    return f"Whole steps: {_list_some(steps)}." if steps else ""


def _describe_numbers(inputs: Inputs, limits: list[LimitFacts], domain: list[LimitFacts]) -> str:
    """Which numbers may change by which norm."""
    norm = inputs.threat.norm
    if not inputs.subject.model.numerical_features:
        return ""
    if not inputs.moving:
        return "What may change: no number that the model reads."
    if norm is None:
        others = "" if any(one["column"] == EVERY for one in limits) else "; every other number stays as it is"
        return f"What may change: numbers within the limits below, all at the same time{others}."
    bounded = ", each within its limits" if limits or domain else ""
    unit = describe_unit(inputs)["divide"]
    counted = f", each counted in {unit}" if unit else ""
    return {
        0: f"What may change: any numbers, as many columns as the radius says{bounded} (norm l0).",
        1: f"What may change: all numbers, the sum of their changes below the radius{counted}{bounded} (l1 norm).",
        2: (
            "What may change: all numbers, the root of the sum of their squared changes below the radius"
            f"{counted}{bounded} (l2 norm)."
        ),
        math.inf: f"What may change: every number by less than the radius, all at once{counted}{bounded} (linf norm).",
    }[float(norm)]


def _describe_categories(inputs: Inputs) -> str:
    threat, columns = inputs.threat, inputs.subject.model.categorical_features
    free = [inputs.subject.names[column] for column in columns if column not in threat.frozen]
    if not columns:
        return ""
    if not threat.l0 or not free:
        return "Categories stay as they are."
    values = "any value, also one that training did not see" if threat.unseen else "any value that training saw"
    names = join_words(_cut([_quote(name) for name in free]))
    which = f"{'any one' if threat.l0 == 1 else f'up to {threat.l0}'} of {names}"
    if len(free) <= threat.l0:
        which = names if len(free) == 1 else f"all of {names}"
    allowed = [
        f"{_quote(_name(inputs, at))} only {' or '.join(inputs.subject.describe_value(int(at), one) for one in codes)}"
        for at, codes in threat.may_become.items()
    ]
    exceptions = f", but {'; '.join(allowed)}" if allowed else ""
    return f"At the same time {which} may take {values}{exceptions}."


def _describe_missing(inputs: Inputs) -> str:
    """Which numbers may go missing or appear."""
    threat = inputs.threat
    free = [at for at in inputs.subject.model.missing_features if at not in threat.frozen]
    if not inputs.subject.model.missing_features:
        return ""
    if not threat.missing_budget or not free:
        return "No number goes missing, and none that is missing appears."
    names = join_words(_cut([_quote(inputs.subject.names[at]) for at in free]))
    which = f"up to {plural(threat.missing_budget, 'number')} of {names}" if len(free) > 1 else names
    return f"At the same time {which} may go missing or, where it is missing, appear as any number."


def _quote(name: str) -> str:
    return f"“{shorten(name, _NAME_LENGTH)}”"


def _list_some(parts: list[str]) -> str:
    return "; ".join(_cut(parts))


def _cut(parts: list[str]) -> list[str]:
    """The first of many, and how many more there are."""
    more = len(parts) - _LISTED_WORDS
    return parts if more <= 0 else [*parts[:_LISTED_WORDS], plural(more, "more column")]


def describe_covered(radius: float | None, norm: float | str | None) -> str:
    """The changes that intervals cover, such as "change smaller than 0.25"."""
    if radius is None:
        return "change within the limits"
    if norm == 0:
        return f"change of up to {plural(int(radius), 'number')}, to anything,"
    return f"change smaller than {format_exactly(radius)}"


def describe_size(inputs: Inputs, quoted: float) -> str:
    """Changes of a size, by the threat's norm."""
    size, norm = format_exactly(quoted), inputs.threat.norm
    if norm == 0:
        return f"of any {size if quoted > 1 else 'one'} of the row's numbers"
    if norm == math.inf:
        return f"of the row's numbers, all at once and each by less than {size},"
    named = f" in the {name_norm(inputs)} norm" if inputs.has_threat else ""
    return f"of the row's numbers that is smaller than {size}{named}"


def describe_also(inputs: Inputs) -> str:
    """What the threat allows or forbids besides a size, in short: its own sentences say it in full."""
    threat = inputs.threat
    also = f" and of up to {plural(threat.l0, 'category', 'categories')}" if threat.l0 else ""
    if threat.missing_budget:
        also += f" and of up to {plural(threat.missing_budget, 'number')} that may go missing or appear"
    if threat.limits or threat.domain:
        return f"{also} within what the table below allows"
    return f"{also} that leaves frozen columns alone" if threat.frozen else also


def describe_trained(estimator: object) -> str:
    """All that a model was trained for, such as "0.1 in l2, one category, “age” frozen"; nothing for any other."""
    radius, threat = getattr(estimator, "radius", None), getattr(estimator, "default_threat", None)
    if threat is None or not isinstance(radius, int | float):
        return ""
    parts = ["limits alone" if threat.norm is None else f"{format_exactly(float(radius))} in l{threat.norm:g}"]
    if not radius and threat.norm is not None and not threat.l0 and not threat.missing_budget:
        return "no change"
    if threat.l0:
        parts.append("one category" if threat.l0 == 1 else f"{threat.l0} categories")
    if threat.missing_budget:
        parts.append(f"{plural(threat.missing_budget, 'number')} missing")
    names = getattr(getattr(estimator, "encoding_", None), "names", None)
    parts += _name_some([f"{_quote_column(names, one)} frozen" for one in threat.frozen])
    limits = [f"{_quote_column(names, one)} {describe_limit(limit)}" for one, limit in threat.limits.items()]
    domain = [f"{_quote_column(names, one)} {describe_domain(*ends)}" for one, ends in threat.domain.items()]
    return ", ".join([*parts, *_name_some(limits + domain)])


def _quote_column(names: Sequence[str] | None, column: int | str) -> str:
    """A column of a threat, by name where it has one."""
    if column == EVERY:
        return "every other number"
    name = column if isinstance(column, str) or names is None else names[column]
    return f"“{shorten(str(name), 30)}”"


def _name_some(told: list[str]) -> list[str]:
    return told if len(told) <= _NAMED else [*told[:_NAMED], f"{len(told) - _NAMED:,} more"]


def blocks(summary: Parts) -> list[ui.Block]:
    """The words, and the table; the page folds most of many columns away."""
    found = summary["threat_table"]
    columns = found["columns"][:_MOST_COLUMNS]
    lines: list[ui.Line] = [
        [
            ui.name_cell(one["column"], 40),
            one["kind"],
            ui.Cell(one["change"], kind="" if one["moves"] else "quiet"),
            *(one[key] or NOTHING for key in ("direction", "domain", "values", "missing")),
        ]
        for one in columns
    ]
    kept = [any(cell != NOTHING for cell in cells) for cells in zip(*lines, strict=True)]
    head, lines = list(compress(_HEAD, kept)), [list(compress(line, kept)) for line in lines]
    label, n_columns, shown = "What may change, by column", len(found["columns"]), [_SHOWN_COLUMNS, _LISTED_COLUMNS]
    held = f" of {format_count(n_columns - _SHOWN_COLUMNS)}; JSON holds all" if n_columns > _MOST_COLUMNS else ""
    more = plural(len(lines) - _SHOWN_COLUMNS, "more column") + held
    page, text = (ui.Table(head, lines[:most], label, test="threat-table", kind="worded") for most in shown)
    rest = ui.Table(head, lines[_SHOWN_COLUMNS:], "What may change, other columns", kind="worded")
    words = " ".join(found["words"]) or "Nothing that the model reads."
    return [
        ui.Heading("What may change", "threat"),
        ui.Paragraph(words),
        ui.Paragraph(found["note"], "fine"),
        ui.on_page(page, *([ui.Details("", [rest], summary=more)] if n_columns > _SHOWN_COLUMNS else [])),
        ui.in_markdown(text),
        ui.in_markdown(
            ui.Paragraph(f"{_LISTED_COLUMNS} of {plural(n_columns, 'column')}." if n_columns > _LISTED_COLUMNS else "")
        ),
    ]


SECTION = ui.Section("threat", lambda s: "What may change", blocks)
