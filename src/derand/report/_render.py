"""The summary dict -> HTML, Markdown, LaTeX, JSON. Renders what is there: computes nothing.

Text from the user's data is escaped by the template engine (HTML) or here (Markdown, LaTeX).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import jinja2
from markupsafe import Markup

from derand._core.text import format_count, format_exactly, format_short, format_short_down
from derand.frames import format_moment
from derand.report import _charts, _compare_render, _rival_charts
from derand.report._audit_types import Checksum, Contrast, ThreatTable
from derand.report._packing import pack, pack_listed
from derand.report._text import percent, plural, shorten
from derand.report._types import Answers, Banner, Computed, NoiseFacts, ReportSummary, Row, Size, Verdicts, Witness
from derand.report._what_if_types import WhatIf

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "“": "``", "”": "''", "±": r"$\pm$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_NAME_LENGTH = 60
_LISTED_NAMES = 12
_LISTED_COLUMNS = 60
_LISTED_CHANGES = 6
_MOVES: tuple[Literal["half_of_rows", "nine_in_ten"], ...] = ("half_of_rows", "nine_in_ten")
_FIGURES = ["measure", "this model", "constant answer", "95 % interval"]
_VERDICTS = ["all", "can be flipped", "proven to hold", "undecided"]
_DETAILS: tuple[Literal["failure_text", "score_text", "margin_text", "pushes", "law"], ...] = (
    "failure_text", "score_text", "margin_text", "pushes", "law",
)  # fmt: skip


def to_json(summary: ReportSummary) -> str:
    """The dict itself."""
    return json.dumps(summary, allow_nan=False, ensure_ascii=False)


def to_html(summary: ReportSummary) -> str:
    """One page with its styles, script and data inside."""
    what_if = _list_what_if(summary)
    return (
        open_environment()
        .get_template("report.html.j2")
        .render(
            s=summary,
            charts=_charts,
            class_charts=_rival_charts,
            sides=_compare_render,
            **list_code(("report.css", "audit.css"), "report.js", what_if),
            data=embed(_page_data(summary)),
            what_if=what_if,
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
    return fill_what_if(what_if, score if what_if["weights"] is None else "Weight of the members")


def fill_what_if(what_if: WhatIf, score: str) -> dict[str, Markup | str]:
    """Style, script and data of the part "What if", and what its score is called."""
    return {
        "style": Markup(read_static("whatif.css")),
        "script": Markup(read_static("whatif.js")),
        "data": embed({**what_if, "cells": [pack(column) for column in what_if["cells"]]}),
        "score": score,
    }


def list_code(styles: Sequence[str], own: str, what_if: Mapping[str, str]) -> dict[str, Markup]:
    """Style and script of a page, and the policy that lets a browser run these and no others."""
    style = Markup("".join([*map(read_static, styles), what_if.get("style", "")]))
    script = Markup("\n".join(map(read_static, ("common.js", "rows.js", own))))
    scripts = [script, what_if["script"]] if what_if else [script]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash_code, scripts))}; style-src 'unsafe-inline'; "
        f"style-src-elem {_hash_code(style)}; style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return {"style": style, "script": script, "policy": Markup(policy)}


def _hash_code(code: str) -> str:
    """How a content security policy names an inline script or style."""
    digest = hashlib.sha256(code.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


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
        "sampled": summary["rows"]["sampled"],
        "radius_name": name_radius(summary),
        "score_name": name_score(summary).capitalize(),
        "together": "together" if summary["noise"]["magnitude"] is None else "together, on average",
        "has_radius": summary["verdicts"] is None,
        "names": summary["model"]["feature_names"],
        "classes": summary["model"]["classes"],
        "axis": None if axis is None else {key: axis[key] for key in ("n_bins", "threshold_bin")},
        "listed": pack_listed(summary["rows"]["listed"]),
        "details": [{key: row[key] for key in _DETAILS} for row in summary["rows"]["table"]],
        "n_movable": 0 if summary["what_if"] is None else summary["what_if"]["n_rows"],
    }


def name_radius(summary: ReportSummary) -> str:
    """What the certificate of a row is called."""
    return "Certified radius" if summary["verdicts"] is None else "Within the limits"


def name_score(summary: ReportSummary) -> str:
    """What decides by the rule "mean"."""
    return "score" if summary["noise"]["magnitude"] is None else "expected score"


def embed(data: Mapping[str, object]) -> Markup:
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
    environment.filters.update(radius=_charts.cut_radius, moment=format_moment)
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
        mark_banner(summary["banner"]),
        *mark_notes(summary["notes"]),
        mark_text(summary["guarantee"]["paragraph"]),
        mark_text(summary["guarantee"]["measure"]),
        "## What is not guaranteed",
        "\n".join(f"- {mark_text(limit)}" for limit in summary["guarantee"]["limits"]),
        *mark_threat(summary["threat_table"]),
        *_mark_answers(summary),
        *_mark_verdicts(summary),
        f"## {measure}",
        make_pipe_table(head, by_radius),
        *_mark_comparison(summary),
        *_mark_confusion(summary),
        *_mark_rivals(summary),
        *_mark_moves(summary),
        *_mark_weakest(summary),
        *_mark_subgroups(summary),
        "## How it was computed",
        "\n".join(f"- {mark_text(name)}: {mark_text(value)}" for name, value in list_facts(summary)),
    ]
    if summary["left_out"]:
        parts += ["## Left out", "\n".join(f"- {mark_text(note)}" for note in summary["left_out"])]
    return "\n\n".join(filter(None, parts)) + "\n"


def mark_banner(banner: Banner | None) -> str:
    """The banner as a quotation; nothing where there is none."""
    return "" if banner is None else f"> **{mark_text(banner['title'])}.** {mark_text(banner['text'])}"


def mark_notes(notes: list[str]) -> list[str]:
    """What else a reader must know, as quotations."""
    return [f"> {mark_text(note)}" for note in notes]


def write_notes(notes: list[str]) -> list[str]:
    """The same as paragraphs of LaTeX."""
    return [rf"\noindent {_tex(put_on_one_line(note))}\par\medskip" for note in notes]


def mark_threat(table: ThreatTable) -> list[str]:
    """What may change, in words and by column."""
    columns = table["columns"][:_LISTED_COLUMNS]
    titles = ["column", "kind", "may change", "direction", "stays", "values", "gaps"]
    cells = [
        [one["column"], one["kind"], one["change"], one["direction"], one["domain"], one["values"], one["missing"]]
        for one in columns
    ]
    keep = [at for at in range(len(titles)) if any(line[at] for line in cells)]
    lines = [[line[at] or "-" for at in keep] for line in cells]
    parts = ["## What may change", mark_text(" ".join([*table["words"], table["note"]]))]
    parts.append(make_pipe_table([titles[at] for at in keep], lines))
    if len(columns) < len(table["columns"]):
        parts.append(f"{len(columns)} of {plural(len(table['columns']), 'column')}.")
    return parts


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


def _mark_comparison(summary: ReportSummary) -> list[str]:
    """Two models side by side, and rows on which they differ."""
    found = summary["comparison"]
    if found is None:
        return []
    names = _compare_render.name_models(found)
    parts = [
        f"## Beside {mark_text(names[1])}",
        mark_text(found["sentence"]),
        mark_text(" ".join(found["remarks"])),
        make_pipe_table(["", *map(mark_text, names)], _compare_render.list_lines(found)),
    ]
    if len(found["radii"]) > 1:
        parts.append(make_pipe_table(*_compare_render.list_curves(found)))
    for table in found["disagreements"]:
        parts += [f"### {mark_text(table['title'])}", _compare_render.say_shown(table)]
        head, rows = _compare_render.list_disagreements(found, table, summary["verdicts"] is None)
        parts += [make_pipe_table([mark_text(name) for name in head], rows)] if rows else []
    return parts


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


def _mark_rivals(summary: ReportSummary) -> list[str]:
    """What stands out of several classes, and the pairs that are least apart."""
    rivals = summary["rivals"]
    if rivals is None:
        return []
    head = ["classes", "rows between them", "not certified", "confused", "median radius", "smallest"]
    kept = [True, True, True, summary["data"]["has_labels"], *[summary["verdicts"] is None] * 2]
    rows = [
        [
            f"{shorten(pair['names'][0], 24)} and {shorten(pair['names'][1], 24)}",
            *(format_count(number) for number in (pair["n_rows"], pair["open"], pair["confused"] or 0)),
            pair["median_text"],
            pair["smallest_text"],
        ]
        for pair in rivals["pairs"]
    ]
    chosen = [[cell for cell, is_kept in zip(line, kept, strict=True) if is_kept] for line in [head, *rows]]
    told = "\n".join(f"- {mark_text(sentence)}" for sentence in rivals["sentences"])
    return ["## Which classes are least apart", told, make_pipe_table(chosen[0], chosen[1:])]


def _mark_moves(summary: ReportSummary) -> list[str]:
    rows = [
        [move["name"], *(_say_move(move[key], days=move["days"]) for key in _MOVES), move["limit"]]
        for move in summary["moves"]
    ]
    head = ["feature", "half of the rows", "nine rows in ten", "limit"]
    if not any(move["limit"] for move in summary["moves"]):
        head, rows = head[:3], [row[:3] for row in rows]
    return ["## Radii in your own units", make_pipe_table(head, rows)] if rows else []


def _say_move(move: Size, *, days: bool) -> str:
    if move == "inf":
        return "any move"
    return f"±{format_short_down(move)}{' days' if days else ''}" if move > 0 else "no move proven"


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
    shown = f"{format_count(len(rows))} of {plural(summary['data']['n_rows'], 'row')}"
    title = f"## {'Rows with the smallest radius' if has_radius else 'The weakest rows'}: {shown}"
    head = ["row", "answer", "truth", "radius" if has_radius else "within the limits"]
    head += [name_score(summary), "margin"] if by_mean else ["failure mass"]
    return [title, make_pipe_table(head, rows)] if rows else []


def _mark_subgroups(summary: ReportSummary) -> list[str]:
    """Groups beside all other rows, with differences in percentage points, marked where chance hardly explains them."""
    parts = []
    for group in summary["subgroups"]:
        titles = [one["title"] for one in group["groups"][0]["contrasts"]]
        head = ["group", "rows", "median radius" if summary["verdicts"] is None else "can be flipped"]
        head += [mark_text(text) for title in titles for text in (title, "95 % interval", "difference")]
        rows = [
            [
                one["name"],
                format_count(one["n_rows"]),
                format_count(one["flips"]) if "flips" in one else one["median_radius_text"],
                *(text for contrast in one["contrasts"] for text in _list_contrast(contrast)),
            ]
            for one in group["groups"]
        ]
        parts += [f"## Subgroups: {mark_text(shorten(group['column'], _NAME_LENGTH))}", make_pipe_table(head, rows)]
    if summary["group_comparison"] is not None and parts:
        parts.append(mark_text(f"{summary['group_comparison']['sentence']} The mark is “(beyond chance)”."))
    return parts


def _list_contrast(contrast: Contrast) -> list[str]:
    """Share, interval and difference of a group."""
    mark = " (beyond chance)" if contrast["mark"] else ""
    interval = contrast["difference_interval_text"]
    difference = f"{contrast['difference_text']}{f' ({interval})' if interval else ''}{mark}"
    return [contrast["share_text"], contrast["interval_text"], difference]


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
        *list_sums(summary["checksums"]),
        ("Configuration", computed["configuration"] or ""),
        ("Versions", ", ".join(f"{name} {version}" for name, version in computed["versions"].items())),
        ("Time", describe_time(computed)),
    ]
    return [(name, value) for name, value in facts if value]


def list_sums(checksums: list[Checksum]) -> list[tuple[str, str]]:
    """What a report was made from, as pairs of a name and a text."""
    return [
        (
            f"Checksum of the {one['what']}",
            f"sha256 {one['sha256']}, of {one['of'] if one['file'] is None else one['file']}",
        )
        for one in checksums
    ]


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
    lines = [[mark_text(name) for name in head], ["---", *["---:"] * (len(head) - 1)]]
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
    return "\n".join([*lines, *_add_answers(summary), *_add_comparison(summary)]) + "\n"


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


def _add_comparison(summary: ReportSummary) -> list[str]:
    """Two models side by side, as tables below the others."""
    found = summary["comparison"]
    if found is None:
        return []
    lines = [f"% {put_on_one_line(sentence)}" for sentence in (found["sentence"], *found["remarks"])]
    lines += make_tabular("lrr", ["", *_compare_render.name_models(found)], _compare_render.list_lines(found))
    if len(found["radii"]) > 1:
        head, rows = _compare_render.list_curves(found)
        lines += [f"% {found['measure']} of both", *make_tabular("l" + "r" * (len(head) - 1), head, rows)]
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
