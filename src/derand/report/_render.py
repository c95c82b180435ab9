"""The summary dict -> HTML, Markdown, LaTeX, JSON. Renders what is there: computes nothing.

Text from the user's data is escaped by the template engine (HTML) or here (Markdown, LaTeX).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

import jinja2
from markupsafe import Markup

from derand.report import _charts
from derand.report._packing import pack
from derand.report._text import percent, plural, shorten
from derand.report._types import Answers, Computed, ListedRows, NoiseFacts, ReportSummary, Row, Size, Verdicts, Witness
from derand.text import format_count, format_exactly, format_short, format_short_down

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "“": "``", "”": "''", "±": r"$\pm$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_NAME_LENGTH = 60
_LISTED_NAMES = 12
_LISTED_CHANGES = 6
_FIGURES = ["measure", "this model", "constant answer", "95 % interval"]
_VERDICTS = ["all", "can be flipped", "proven to hold", "undecided"]
_SCRIPTS = ("common.js", "rows.js", "report.js")
_DETAILS: tuple[Literal["failure_text", "score_text", "margin_text", "pushes", "law"], ...] = (
    "failure_text", "score_text", "margin_text", "pushes", "law",
)  # fmt: skip


def to_json(summary: ReportSummary) -> str:
    """The dict itself."""
    return json.dumps(summary, allow_nan=False, ensure_ascii=False)


def to_html(summary: ReportSummary) -> str:
    """One page with its styles, script and data inside."""
    return (
        open_environment()
        .get_template("report.html.j2")
        .render(
            s=summary,
            charts=_charts,
            style=Markup(read_static("report.css")),
            script=Markup("\n".join(map(read_static, _SCRIPTS))),
            data=_embed(_page_data(summary)),
            what_if=_list_what_if(summary),
            facts=list_facts(summary),
            quoted_at=summary["scale"]["radii"].index(summary["scale"]["quoted"]),
        )
    )


def _list_what_if(summary: ReportSummary) -> dict[str, Markup | str]:
    """Style, script, data and the name of the score of the part "What if"; nothing where the page has none."""
    what_if = summary["what_if"]
    if what_if is None:
        return {}
    unit = " (in its own units)" if summary["model"]["score_unit"] == "log-odds" else ""
    names = {"vote": "Share of noisy copies", "mean": f"Expected score{unit}", "none": "Score without noise"}
    score = names.get(what_if["decides"], f"Score{unit}")
    return {
        "style": Markup(read_static("whatif.css")),
        "script": Markup(read_static("whatif.js")),
        "data": _embed({**what_if, "cells": [pack(column) for column in what_if["cells"]]}),
        "score": score if what_if["weights"] is None else "Weight of the members",
    }


def frame_page(page: str, title: str) -> str:
    """A page in a frame of its own, so that neither it nor the notebook changes the other's styles."""
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" title="{html.escape(title)}" '
        'style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 8px"></iframe>'
    )


def _page_data(summary: ReportSummary) -> dict[str, object]:
    """What the page's script needs: the rows, and for each radius how many rows are certified."""
    budgets = [one for one in summary["accuracy"]["series"] if one["role"] == "l0"]
    axis, n_rows = summary["rows"]["law_axis"], summary["data"]["n_rows"]
    return {
        "radii": summary["scale"]["radii"],
        "radii_text": [format_exactly(radius) for radius in summary["scale"]["radii"]],
        "shares": [[percent(share) for share in one["values"]] for one in budgets],
        "counts": [[format_count(round(share * n_rows)) for share in one["values"]] for one in budgets],
        "n_rows": format_count(n_rows),
        "radius_name": name_radius(summary),
        "score_name": name_score(summary).capitalize(),
        "together": "together" if summary["noise"]["magnitude"] is None else "together, on average",
        "has_radius": summary["verdicts"] is None,
        "names": summary["model"]["feature_names"],
        "classes": summary["model"]["classes"],
        "axis": None if axis is None else {key: axis[key] for key in ("n_bins", "threshold_bin")},
        "listed": _pack_listed(summary["rows"]["listed"]),
        "details": [{key: row[key] for key in _DETAILS} for row in summary["rows"]["table"]],
        "n_movable": 0 if summary["what_if"] is None else summary["what_if"]["n_rows"],
    }


def _pack_listed(listed: ListedRows) -> dict[str, object]:
    """The columns of the row table, numbers among them as short text."""
    truth, rivals = listed["truth"], listed["runner_up"]
    return {
        **listed,
        "row": pack(listed["row"]),
        "label": pack(listed["label"]),
        "truth": None if truth is None else pack(truth),
        "runner_up": None if rivals is None else pack(rivals),
        "radius": [pack(column) for column in listed["radius"]],
    }


def name_radius(summary: ReportSummary) -> str:
    """What the certificate of a row is called."""
    return "Certified radius" if summary["verdicts"] is None else "Within the limits"


def name_score(summary: ReportSummary) -> str:
    """What decides by the rule "mean"."""
    return "score" if summary["noise"]["magnitude"] is None else "expected score"


def _embed(data: Mapping[str, object]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def open_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("derand.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cut=format_short_down, show=format_short, count=format_count, exactly=format_exactly)
    environment.filters.update(percent=percent, shorten=shorten)
    environment.filters["radius"] = _charts.cut_radius
    environment.globals.update(plural=plural, name_radius=name_radius, name_score=name_score)
    return environment


def read_static(name: str) -> str:
    return resources.files("derand.report").joinpath("static", name).read_text(encoding="utf-8")


def to_markdown(summary: ReportSummary) -> str:
    """The guarantee, the tables and how they were computed."""
    measure = summary["accuracy"]["measure"].capitalize()
    by_radius = [[row["label"], *row["text"]] for row in summary["table"]["rows"]]
    head = ["radius", *(format_exactly(radius) for radius in summary["table"]["radii"])]
    if summary["verdicts"] is not None:
        head = ["right and proven to hold" if summary["data"]["has_labels"] else "proven to hold", "share"]
    parts = [
        f"# {mark_text(summary['title'])}",
        _mark_banner(summary),
        *mark_notes(summary["notes"]),
        mark_text(summary["guarantee"]["paragraph"]),
        mark_text(summary["guarantee"]["measure"]),
        "\n".join(f"- {mark_text(limit)}" for limit in summary["guarantee"]["limits"]),
        *_mark_answers(summary),
        *_mark_verdicts(summary),
        f"## {measure}",
        make_pipe_table(head, by_radius),
        *_mark_confusion(summary),
        *_mark_moves(summary),
        *_mark_weakest(summary),
        *_mark_subgroups(summary),
        "## How it was computed",
        "\n".join(f"- {mark_text(name)}: {mark_text(value)}" for name, value in list_facts(summary)),
    ]
    if summary["left_out"]:
        parts += ["## Left out", "\n".join(f"- {mark_text(note)}" for note in summary["left_out"])]
    return "\n\n".join(filter(None, parts)) + "\n"


def _mark_banner(summary: ReportSummary) -> str:
    """What a reader must know first, as a quotation."""
    banner = summary["banner"]
    return "" if banner is None else f"> **{mark_text(banner['title'])}.** {mark_text(banner['text'])}"


def mark_notes(notes: list[str]) -> list[str]:
    """What else a reader must know, as quotations."""
    return [f"> {mark_text(note)}" for note in notes]


def write_notes(notes: list[str]) -> list[str]:
    """The same as paragraphs of LaTeX."""
    return [rf"\noindent {_tex(put_on_one_line(note))}\par\medskip" for note in notes]


def _mark_answers(summary: ReportSummary) -> list[str]:
    """How good the answers are, beside a constant one."""
    answers = summary["answers"]
    if answers is None:
        return []
    parts = ["## Is the model any good?", make_pipe_table(_FIGURES, _list_figures(answers))]
    if summary["confusion"] is None:
        parts.append(make_pipe_table(*_list_confusion(answers)))
    if answers["calibration"]:
        head = ["predicted, on average", "rows", "observed", "95 % interval"]
        bins = [[one["predicted"], one["rows"], one["observed"], one["interval"]] for one in answers["calibration"]]
        parts.append(make_pipe_table(head, bins))
    return [*parts, mark_text(" ".join(answers["figures"]["left_out"]))]


def _list_figures(answers: Answers) -> list[list[str]]:
    return [[line["name"], line["value"], line["constant"], line["interval"]] for line in answers["lines"]]


def _list_confusion(answers: Answers) -> tuple[list[str], list[list[str]]]:
    """Rows by true class and answer: the head of the table, and its lines."""
    figures = answers["figures"]
    head = ["truth", *(f"answer {shorten(name, 16)}" for name in figures["classes"])]
    counts = zip(figures["classes"], figures["confusion"], strict=True)
    return head, [[name, *map(format_count, numbers)] for name, numbers in counts]


def _mark_verdicts(summary: ReportSummary) -> list[str]:
    """Within the limits: how many answers hold, and the changes that flip some."""
    if summary["verdicts"] is None:
        return []
    parts = ["## Within the limits", make_pipe_table(["rows", *_VERDICTS], _list_verdicts(summary["verdicts"]))]
    if summary["verdicts"]["witnesses"]:
        head = ["row", "answer", "other answer", "columns", "changes"]
        lines = [f"| {' | '.join(head)} |", "| ---: | --- | --- | ---: | --- |"]
        lines += [
            f"| {' | '.join(mark_text(cell) for cell in _list_witness(one))} |"
            for one in summary["verdicts"]["witnesses"]
        ]
        parts += ["## Changes within the limits that flip an answer", "\n".join(lines)]
    return parts


def _list_verdicts(verdicts: Verdicts) -> list[list[str]]:
    first, *classes = verdicts["counts"]
    named = [(first["name"], first), *((f"class {one['name']}", one) for one in classes)]
    keys: tuple[Literal["n_rows", "flips", "holds", "undecided"], ...] = ("n_rows", "flips", "holds", "undecided")
    return [[name, *(format_count(one[key]) for key in keys)] for name, one in named]


def _list_witness(witness: Witness) -> list[str]:
    """A line of the table of witnesses: row, both answers, and the largest changes."""
    changes = witness["changes"]
    told = [
        f"{shorten(one['name'], 40)}: {shorten(one['before'], 30)} → {shorten(one['after'], 30)}"
        for one in changes[:_LISTED_CHANGES]
    ]
    if len(changes) > _LISTED_CHANGES:
        told.append(plural(len(changes) - _LISTED_CHANGES, "more column"))
    answers = [shorten(witness[key], 40) for key in ("label", "other")]
    return [_name_row(witness), *answers, str(len(changes)), "; ".join(told)]


def _name_row(row: Witness | Row) -> str:
    """What a row is called, or its number."""
    return str(row["row"]) if row["name"] is None else shorten(row["name"], 40)


def _mark_confusion(summary: ReportSummary) -> list[str]:
    """Answers by true class, of several classes."""
    confusion = summary["confusion"]
    if confusion is None:
        return []
    head = ["truth", "rows", *(shorten(name, 16) for name in confusion["classes"]), "right", "certified"]
    rows = [
        [
            one["name"],
            format_count(one["n_rows"]),
            *map(format_count, one["answers"]),
            one["right_text"],
            one["certified_text"],
        ]
        for one in confusion["rows"]
    ]
    return ["## Which class is taken for which", make_pipe_table(head, rows)]


def _mark_moves(summary: ReportSummary) -> list[str]:
    rows = [
        [move["name"], _say_move(move["half_of_rows"]), _say_move(move["nine_in_ten"]), move["limit"]]
        for move in summary["moves"]
    ]
    head = ["feature", "half of the rows", "nine rows in ten", "limit"]
    if not any(move["limit"] for move in summary["moves"]):
        head, rows = head[:3], [row[:3] for row in rows]
    return ["## Radii in your own units", make_pipe_table(head, rows)] if rows else []


def _say_move(move: Size) -> str:
    if move == "inf":
        return "any move"
    return f"±{format_short_down(move)}" if move > 0 else "no move proven"


def _mark_weakest(summary: ReportSummary) -> list[str]:
    weakest = [summary["rows"]["table"][one["at"]] for one in summary["rows"]["explained"]]
    by_mean = any(row["score_text"] is not None for row in weakest)
    rows = [
        [
            _name_row(row),
            row["label"],
            row["truth"] or "",
            row["radius_text"][0],
            *([row["score_text"] or "", row["margin_text"] or ""] if by_mean else [row["failure_text"] or ""]),
        ]
        for row in weakest
    ]
    has_radius = summary["verdicts"] is None
    title = "## Rows with the smallest radius" if has_radius else "## The weakest rows"
    head = ["row", "answer", "truth", "radius" if has_radius else "within the limits"]
    head += [name_score(summary), "margin"] if by_mean else ["failure mass"]
    return [title, make_pipe_table(head, rows)] if rows else []


def _mark_subgroups(summary: ReportSummary) -> list[str]:
    head = ["group", "rows", "median radius", f"certified at {format_exactly(summary['scale']['quoted'])}"]
    if summary["verdicts"] is not None:
        head = ["group", "rows", "can be flipped", "certified"]
    parts = []
    for group in summary["subgroups"]:
        rows = [
            [
                one["name"],
                format_count(one["n_rows"]),
                format_count(one["flips"]) if "flips" in one else one["median_radius_text"],
                one["certified_text"],
            ]
            for one in group["groups"]
        ]
        parts += [f"## Subgroups: {mark_text(shorten(group['column'], _NAME_LENGTH))}", make_pipe_table(head, rows)]
    return parts


def list_facts(summary: ReportSummary) -> list[tuple[str, str]]:
    """How it was computed, as pairs of a name and a text."""
    model, data, noise, computed = summary["model"], summary["data"], summary["noise"], summary["computed"]
    kind = model["kind"] if model["estimator"] is None else f"{model['estimator']} ({model['kind']})"
    counted = [
        plural(model["n_terms"], "term"),
        plural(model["n_numerical"], "numerical feature"),
        plural(model["n_categorical"], "categorical feature"),
    ]
    parameters = ", ".join(f"{name}={value}" for name, value in model["parameters"].items())
    facts = [
        ("Model", f"{kind}, {', '.join(counted)}"),
        ("Parameters", parameters),
        ("Columns that the model does not read", list_not_read(model["not_read"])),
        ("Noise", describe_noise(noise)),
        ("Rule", summary["rule"]["sentence"]),
        ("Proof", summary["rule"]["proof_sentence"]),
        ("Threat", " ".join(summary["threat"]["sentences"])),
        ("Measure", noise["measure"]),
        ("Rows", f"{plural(data['n_rows'], 'row')}, {plural(data['n_features'], 'column')}"),
        ("Checksum of the rows", f"sha256 {data['sha256']}"),
        ("Configuration", computed["configuration"] or ""),
        ("Versions", ", ".join(f"{name} {version}" for name, version in computed["versions"].items())),
        ("Time", describe_time(computed)),
    ]
    return [(name, value) for name, value in facts if value]


def describe_noise(noise: NoiseFacts) -> str:
    if noise["magnitude"] is None:
        return "none: the model as deployed"
    magnitude = f"{noise['parameter'].replace('_', ' ')} {format_short(noise['magnitude'])}"
    return f"{noise['name']}, {magnitude}; certifies l{noise['norm']} balls"


def describe_time(computed: Computed) -> str:
    certifying, reporting = computed["certify_seconds"], computed["report_seconds"]
    if certifying is None or reporting is None:
        return computed["when"]
    return f"{computed['when']}; certificates {format_short(certifying, 2)} s, report {format_short(reporting, 2)} s"


def list_not_read(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
    return ", ".join(f"“{shorten(name, 30)}”" for name in names[:_LISTED_NAMES]) + f"{more}: they may change at will"


def mark_text(text: str) -> str:
    """Text with Markdown's signs escaped, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def make_pipe_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    listed = [[mark_text(shorten(cell, _NAME_LENGTH)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, *listed])


def to_latex(summary: ReportSummary) -> str:
    """The table of certified accuracy, in per cent; where limits alone say what may change, verdicts and witnesses.

    What a reader must know first stands above it, and figures of the answers below.
    """
    words = [summary["rule"]["sentence"], *summary["threat"]["sentences"]]
    lines = _warn_in_latex(summary) + write_notes(summary["notes"])
    lines += [f"% {put_on_one_line(sentence)}" for sentence in words]
    if summary["verdicts"] is None:
        radii = summary["table"]["radii"]
        head = [f"radius ({summary['threat']['norm_text']})", *(format_exactly(radius) for radius in radii)]
        rows = [
            [shorten(row["label"], _NAME_LENGTH), *(text.removesuffix("\N{NO-BREAK SPACE}%") for text in row["text"])]
            for row in summary["table"]["rows"]
        ]
        lines.append(f"% {summary['accuracy']['measure']} in per cent; needs \\usepackage{{booktabs}}")
        lines += make_tabular("l" + "r" * len(radii), head, rows)
    else:
        lines.append("% answers within the limits; needs \\usepackage{booktabs}")
        lines += make_tabular("lrrrr", ["rows", *_VERDICTS], _list_verdicts(summary["verdicts"]))
        listed = [_list_witness(one) for one in summary["verdicts"]["witnesses"]]
        if listed:
            lines.append("% changes within the limits that flip an answer")
            lines += make_tabular("rllrp{8cm}", ["row", "answer", "other answer", "columns", "changes"], listed)
    return "\n".join([*lines, *_add_answers(summary)]) + "\n"


def _warn_in_latex(summary: ReportSummary) -> list[str]:
    """What a reader must know first, as a paragraph of its own."""
    banner = summary["banner"]
    if banner is None:
        return []
    title, text = (_tex(put_on_one_line(banner[key])) for key in ("title", "text"))
    return [rf"\noindent\textbf{{{title}.}} {text}\par\medskip"]


def _add_answers(summary: ReportSummary) -> list[str]:
    """How good the answers are, as tables below the first."""
    answers = summary["answers"]
    if answers is None:
        return []
    lines = ["% figures of the answers", *make_tabular("lrrr", _FIGURES, _list_figures(answers))]
    if summary["confusion"] is None:
        head, rows = _list_confusion(answers)
        lines += ["% rows by true class and answer", *make_tabular("l" + "r" * (len(head) - 1), head, rows)]
    return lines


def make_tabular(columns: str, head: list[str], rows: list[list[str]]) -> list[str]:
    listed = [[_tex(put_on_one_line(cell)) for cell in row] for row in [head, *rows]]
    top, *body = [" & ".join(cells) + r" \\" for cells in listed]
    start, end = r"\begin{tabular}{" + columns + "}", r"\end{tabular}"
    return [start, r"\toprule", top, r"\midrule", *body, r"\bottomrule", end]


def put_on_one_line(text: str) -> str:
    return " ".join(text.split())


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
