"""The page to sign, also the first part of the long report: question, answer, quality, what flips, who differs.

Owns what stands on one page, and how much of it. Must not compute: all figures are those of other sections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from derand._core.text import format_count, format_short_up, plural, shorten
from derand.report import _blocks as ui
from derand.report._charts import Frame, wrap_svg
from derand.report._markup import NOTHING, percent
from derand.report.sections.guarantee import AnswerBar
from derand.report.sections.limits import list_flips
from derand.report.sections.predictions import list_errors
from derand.report.sections.subgroups import Contrast
from derand.report.sections.units import write_move

Summary = Mapping[str, Any]
MOST_LINES = 5
"""Of each of the tables."""
_MOST_BARS = 6
_MOST_TEXT = 420
_SAID_MUCH = 3
_LINE, _NAME = 30, 20
_SEGMENTS = (("bar-right", "holds"), ("bar-faint", "undecided"), ("bar-wrong", "flips"))
_KINDS = ("answer", "wrong", "certified")
"""Differences in answers come first: who gets which."""
_SIGNED = ("Name", "Role", "Date", "Signature")


def blocks(summary: Summary) -> list[ui.Block]:
    """What a signer must know on the page; in the other outputs the guarantee and what is not guaranteed."""
    found, title = summary["guarantee"], "What is not guaranteed"
    answer, *statements = found["statements"]
    words = " ".join([*summary["threat_table"]["words"], summary["threat_table"]["note"]]).strip()
    limits = ui.Bullets(found["limits"], test="limits")
    said = [ui.Group("said", [ui.Heading("What else is known", level=3), ui.Bullets(statements)])] if statements else []
    left = [*_show_bars(found["bars"]), *_tabulate_quality(summary), *said]
    right = [*_list_differences(summary), *_tabulate_reasons(summary)]
    shorter = left if right and len(statements) < _SAID_MUCH else right
    shorter.append(ui.Group("said", [ui.Heading(title, level=3), limits]))
    left_out = ui.Details("", [ui.Bullets(summary["left_out"], test="left-out")], summary="What is left out, and why")
    return [
        ui.on_page(ui.Heading(found["question"], "guarantee")),
        ui.on_page(ui.Paragraph(answer, "statement", "guarantee")),
        ui.on_page(ui.Paragraph(_tell_differences(summary), "fine", "differences-told")),
        ui.in_markdown(ui.Paragraph(found["paragraph"]), ui.Paragraph(found["measure"]), ui.Heading(title), limits),
        ui.on_page(
            ui.Paragraph(ui.tag("strong", "What may change. ") + shorten(words, _MOST_TEXT), "fine", "conditions"),
            ui.FactList([(one["name"], one["value"], one["note"]) for one in found["numbers"]], "numbers"),
            ui.Group("sheet", [ui.Group("half", left), ui.Group("half", right)]),
            _list_marks(summary),
            ui.Raw(ui.tag("dl", *(ui.tag("div", ui.tag("dt", name), ui.tag("dd")) for name in _SIGNED), class_="sign")),
            *([left_out] if summary["left_out"] else []),
        ),
    ]


def _show_bars(bars: Sequence[AnswerBar]) -> list[ui.Block]:
    """For each answer which share of its rows is proven to hold, can be flipped, or neither."""
    if not bars:
        return []
    shown = bars[: 1 + _MOST_BARS]
    frame = Frame(420, 8 + _LINE * len(shown), (0.0, 1.0), (0.0, 1.0), 142, 56, 4, 4)
    body = []
    for at, one in enumerate(shown):
        y, start = frame.top + _LINE * at, 0
        counted = format_count(one["n_rows"])
        body.append(frame.name(y + 16, f"{shorten(one['name'], _NAME - len(counted))} {counted}", _NAME))
        for kind, key in _SEGMENTS:
            size: int = one[key]  # type: ignore[literal-required]
            left, right = (frame.x(rows / one["n_rows"]) for rows in (start, start + size))
            width, start = round(right - left, 1), start + size
            body += [f'<rect class="{kind}" x="{left}" y="{y}" width="{width}" height="22"/>'] if size else []
        body.append(
            f'<text class="tick" x="{frame.width - 50}" y="{y + 16}">{percent(one["holds"] / one["n_rows"])}</text>'
        )
    told = "; ".join(
        f"{one['name']}: {one['holds']} hold, {one['flips']} flip, {one['undecided']} undecided" for one in shown
    )
    names = {"holds": "proven to hold", "undecided": "neither proven nor flipped", "flips": "can be flipped"}
    legend = [(kind, names[key]) for kind, key in _SEGMENTS if any(one[key] for one in shown)]  # type: ignore[literal-required]
    picture = wrap_svg(frame, "".join(body), "Answers that hold and flip", told)
    return [ui.Figure(picture, "By answer, and the share that is proven to hold", legend, "verdicts")]


def _choose_differences(summary: Summary) -> list[tuple[str, Contrast]]:
    """Subgroups that differ from all other rows by more than chance explains, those in answers first."""
    marked: list[tuple[str, Contrast]] = []
    for group in summary["subgroups"]:
        rows = group["groups"][:1] if len(group["groups"]) == 2 else group["groups"]  # of two, each is the other's rest
        for row in rows:
            name = f"{shorten(group['column'], 18)}: {shorten(row['name'], 18)}"
            marked += [(name, one) for one in row["contrasts"] if one["mark"]]
    marked.sort(key=lambda one: -abs(one[1]["difference"]["value"]))  # type: ignore[index]
    ranked = [[one for one in marked if one[1]["kind"] == kind] for kind in _KINDS]
    return [one for kind in ranked for one in kind[:2]] + [one for kind in ranked for one in kind[2:]]


def _tell_differences(summary: Summary) -> str:
    """The first of them in a sentence, and how many comparisons there were."""
    compared, chosen = summary["group_comparison"], _choose_differences(summary)
    if compared is None:
        return "No subgroups were compared."
    if not chosen:
        return f"Subgroups: {compared['marked']}"
    name, one = chosen[0]
    told = f"{one['title'][:1].lower()}{one['title'][1:]} {one['share_text']}, all others {one['others_text']}"
    return f"Subgroups differ. {name.replace(': ', ', ')}: {told}. {compared['marked']}"


def _list_differences(summary: Summary) -> list[ui.Block]:
    """The most telling of them as a table."""
    lines: list[ui.Line] = [
        [
            name,
            one["title"],
            one["share_text"],
            one["others_text"],
            ui.Cell(one["difference_text"], kind="beyond"),
        ]
        for name, one in _choose_differences(summary)[:MOST_LINES]
    ]
    head, label = ["group", "what", "share", "others", "points"], "Subgroups that differ beyond chance"
    return [ui.Table(head, lines, label, label, "differences", "numeric worded-first")] if lines else []


def _tabulate_quality(summary: Summary) -> list[ui.Block]:
    """The answers' quality beside a constant answer and the baselines."""
    label = "How good the answers are"
    if "errors" in summary:
        errors = summary["errors"]
        lines: list[ui.Line] = [] if errors is None else [list(line) for line in list_errors(errors)]
        return [ui.Table(["", "this model", "constant"], lines, label, label, "quality")] if lines else []
    answers = summary["answers"]
    if answers is None:
        return []
    others = summary["accuracy"]["baselines"][1:]
    shown: dict[str, list[str]] = {
        "Accuracy": [percent(one["accuracy"]) for one in others],
        "Balanced accuracy": [percent(one["balanced"]) for one in others],
    }
    nothing = [NOTHING] * len(others)
    lines = [
        [shorten(one["name"], 30), ui.Cell(one["value"], kind="quoted"), shorten(one["constant"], 30), *found]
        for one in answers["lines"]
        for found in [shown.get(one["name"], nothing)]
    ]
    at = summary["scale"]["radii"].index(summary["scale"]["quoted"])
    curves = {one["key"]: one["values"][at] for one in summary["accuracy"]["series"]}
    proven = [curves[key] for key in ("all", *(f"baseline={one['key']}" for one in summary["accuracy"]["baselines"]))]
    lines.insert(
        2, ["Right and proven", *(ui.Cell(percent(one), kind="" if k else "quoted") for k, one in enumerate(proven))]
    )
    head = ["", "this model", "constant", *(shorten(one["label"], 30) for one in others)]
    return [ui.Table(head, lines[: MOST_LINES + 1], label, label, "quality")]


def _tabulate_reasons(summary: Summary) -> list[ui.Block]:
    """Why answers flip, by column and direction; else how far columns, or answers, can move."""
    verdicts, moves = summary.get("verdicts"), summary.get("moves")
    if verdicts is not None:
        return list_flips(verdicts["flips"], MOST_LINES)
    if isinstance(moves, list) and moves:
        head, label = ["column, alone", "half of the rows", "nine in ten"], "How far a column may move"
        lines: list[ui.Line] = [
            [
                ui.name_cell(one["name"], 30),
                *(write_move(one[key], days=one["days"]) for key in ("half_of_rows", "nine_in_ten")),
            ]
            for one in moves[:MOST_LINES]
        ]
        return [ui.Table(head, lines, label, label, "moves-in-short")]
    if isinstance(moves, dict):
        head, label = ["", "half of the rows", "nine in ten", "all"], "How far answers can move, at most"
        rows: list[ui.Line] = [
            [name, *(format_short_up(float(summary[key][size])) for size in ("half_of_rows", "nine_in_ten", "largest"))]
            for name, key in (("Move of the answer", "moves"), ("Width of the interval", "widths"))
        ]
        return [ui.Table(head, rows, label, label, "moves-in-short")]
    return []


def _list_marks(summary: Summary) -> ui.Block:
    """What it was made from and when, with checksums."""
    computed, model = summary["computed"], summary["model"]
    named = [
        (", ".join(filter(None, [one["what"].capitalize(), shorten(one["file"] or "", 30)])), f"sha256 {one['sha256']}")
        for one in summary["checksums"][:MOST_LINES]
    ]
    rows = plural(summary["data"]["n_rows"], "row")
    made = f"{model['estimator'] or model['kind']}, {rows}; rule “{summary['rule']['name']}”"
    when = f"{computed['when']}, derand {computed['versions']['derand']}"
    configuration = [("Configuration", shorten(computed["configuration"], 110))] if computed["configuration"] else []
    return ui.FactList([("Model and rows", made), ("Made", when), *configuration, *named], "facts wide marks")


SECTION = ui.Section("guarantee", lambda s: "Guarantee", blocks)
