"""The dict of a report on intervals -> HTML, Markdown, LaTeX, JSON. Renders what is there: computes nothing."""

from __future__ import annotations

import json

from derand._core.text import format_count, format_exactly, format_short, format_short_down, format_short_up
from derand.report import _interval_charts
from derand.report._interval_errors import list_errors
from derand.report._interval_types import IntervalRow, IntervalSummary, WidthCurve
from derand.report._packing import pack_listed
from derand.report._render import (
    describe_noise,
    describe_time,
    embed,
    fill_what_if,
    list_code,
    list_not_read,
    list_sums,
    make_pipe_table,
    make_tabular,
    mark_banner,
    mark_notes,
    mark_text,
    mark_threat,
    open_environment,
    put_on_one_line,
    write_notes,
)
from derand.report._text import plural, shorten
from derand.report._types import Size


def to_json(summary: IntervalSummary) -> str:
    """The dict itself."""
    return json.dumps(summary, allow_nan=False, ensure_ascii=False)


def to_html(summary: IntervalSummary) -> str:
    """One page with its styles, script and data inside."""
    what_if = {} if summary["what_if"] is None else fill_what_if(summary["what_if"], "Value")
    return (
        open_environment()
        .get_template("intervals.html.j2")
        .render(
            s=summary,
            charts=_interval_charts,
            **list_code(("report.css", "audit.css", "intervals.css"), "intervals.js", what_if),
            data=embed(_page_data(summary)),
            what_if=what_if,
            facts=list_facts(summary),
            head=_list_head(summary),
            wide_head=_list_head(summary, with_radius=summary["tolerance"] is not None),
            tolerance=tell_tolerance(summary),
            errors=[] if summary["errors"] is None else list_errors(summary["errors"]),
            table=[_list_row(row, with_radius=summary["tolerance"] is not None) for row in summary["rows"]["table"]],
            widest=[_list_row(row) for row in summary["rows"]["widest"]],
            smallest=_list_smallest(summary),
            widths=_list_widths(summary),
        )
    )


def _page_data(summary: IntervalSummary) -> dict[str, object]:
    """What the page's scripts need of the rows."""
    radius: Size = "inf" if summary["radius"] is None else summary["radius"]
    found = summary["tolerance"]
    return {
        "classes": [],
        "report_radius": radius,
        "report_radius_text": "within the limits" if summary["radius"] is None else format_exactly(summary["radius"]),
        "tolerance_name": None if found is None else f"Radius for ±{format_exactly(found['tolerance'])}",
        "listed": pack_listed(summary["rows"]["listed"]),
        "n_movable": 0 if summary["what_if"] is None else summary["what_if"]["n_rows"],
    }


def _list_head(summary: IntervalSummary, *, with_radius: bool = False) -> list[str]:
    truth = ["Truth"] if summary["data"]["has_targets"] else []
    return ["Row", "Answer", "Lowest", "Highest", "Width", *truth, *(["Radius"] if with_radius else [])]


def _list_row(row: IntervalRow, *, with_radius: bool = False) -> list[str]:
    """The cells of a row: lowest rounded down, highest and width rounded up, a radius cut."""
    cells = [
        _name_row(row),
        format_short(row["value"], 6),
        format_short_down(float(row["low"]), 6),
        format_short_up(float(row["high"]), 6),
        format_short_up(float(row["width"])),
        *([] if row["truth"] is None else [format_short(row["truth"], 6)]),
    ]
    return [*cells, format_short_down(float(row["radius"] or 0.0))] if with_radius else cells


def _name_row(row: IntervalRow) -> str:
    """What a row is called, or its number."""
    return format_count(row["row"]) if row["name"] is None else shorten(row["name"], 40)


def _list_smallest(summary: IntervalSummary) -> list[list[str]]:
    """Rows whose answers move by the tolerance soonest: their names, answers and radii."""
    rows = [] if summary["tolerance"] is None else summary["tolerance"]["smallest"]
    return [
        [_name_row(row), format_short(row["value"], 6), format_short_down(float(row["radius"] or 0.0))] for row in rows
    ]


def _say_errors(summary: IntervalSummary) -> list[str]:
    """Markdown of the part on errors."""
    if summary["errors"] is None:
        return []
    return ["## Are the answers any good?", make_pipe_table(_ERROR_HEAD, list_errors(summary["errors"]))]


def _say_tolerance(summary: IntervalSummary) -> list[str]:
    """Markdown of the part on the tolerance."""
    found = summary["tolerance"]
    if found is None:
        return []
    head = f"## Within which radius answers move by {format_exactly(found['tolerance'])} at most"
    return [head, mark_text(tell_tolerance(summary)), make_pipe_table(_SMALLEST_HEAD, _list_smallest(summary))]


def tell_tolerance(summary: IntervalSummary) -> str:
    """What is known of the tolerance, in sentences."""
    found = summary["tolerance"]
    if found is None:
        return ""
    half, nine = (format_short_down(float(found[key])) for key in ("half_of_rows", "nine_in_ten"))
    rows = plural(found["n_rows"], "row")
    whose = rows if found["n_rows"] == summary["rows"]["n_rows"] else f"{rows} drawn at random"
    below = ""
    if summary["radius"]:
        count = (
            f"{format_count(found['below'])} {'has' if found['below'] == 1 else 'have'}"
            if found["below"]
            else "None has"
        )
        below = f" {count} less than the radius of this report."
    return (
        f"How far a row may change while its answer is proven to move by {format_exactly(found['tolerance'])} at most "
        f"({found['reason']}). Of {whose}, half have a radius of {half} or more, nine in ten of {nine} or more.{below}"
    )


def _list_widths(summary: IntervalSummary) -> list[list[str]]:
    """Lines of the table of widths: radius, half of the rows, nine in ten; some four points of a long curve."""
    curve = summary["curve"]
    if curve is None:
        widths = summary["widths"]
        shown = [format_short_up(float(widths[key])) for key in ("half_of_rows", "nine_in_ten")]
        return [["within the limits" if summary["radius"] is None else format_exactly(summary["radius"]), *shown]]
    step = len(curve["radii"]) // 4 if len(curve["radii"]) > 8 else 1
    return [_list_point(curve, at) for at in range(step, len(curve["radii"]), step)]


def _list_point(curve: WidthCurve, at: int) -> list[str]:
    widths = [format_short_up(float(curve[key][at])) for key in ("half_of_rows", "nine_in_ten")]
    return [format_exactly(curve["radii"][at]), *widths]


_WIDTH_HEAD = ["radius", "half of the rows", "nine rows in ten"]
_ERROR_HEAD = ["without any change", "this model", "constant"]
_SMALLEST_HEAD = ["row", "answer", "radius"]


def to_markdown(summary: IntervalSummary) -> str:
    """The guarantee, the tables and how they were computed."""
    parts = [
        f"# {mark_text(summary['title'])}",
        mark_banner(summary["banner"]),
        *mark_notes(summary["notes"]),
        mark_text(summary["guarantee"]["paragraph"]),
        mark_text(" ".join(summary["threat"]["sentences"])),
        "\n".join(f"- {mark_text(limit)}" for limit in summary["guarantee"]["limits"]),
        *mark_threat(summary["threat_table"]),
        *_say_errors(summary),
        "## Width of intervals, at most",
        make_pipe_table(_WIDTH_HEAD, _list_widths(summary)),
        f"## Rows with the widest intervals: {len(summary['rows']['widest'])} of {summary['data']['n_rows']:,}",
        make_pipe_table(list(map(str.lower, _list_head(summary))), list(map(_list_row, summary["rows"]["widest"]))),
        *_say_tolerance(summary),
        "## How it was computed",
        "\n".join(f"- {mark_text(name)}: {mark_text(value)}" for name, value in list_facts(summary)),
    ]
    if summary["left_out"]:
        parts += ["## Left out", "\n".join(f"- {mark_text(note)}" for note in summary["left_out"])]
    return "\n\n".join(filter(None, parts)) + "\n"


def to_latex(summary: IntervalSummary) -> str:
    """The table of widths."""
    words = [summary["rule"]["sentence"], *summary["threat"]["sentences"]]
    lines = write_notes(summary["notes"]) + [f"% {put_on_one_line(sentence)}" for sentence in words]
    lines.append("% width of intervals, at most; needs \\usepackage{booktabs}")
    return "\n".join([*lines, *make_tabular("lrr", _WIDTH_HEAD, _list_widths(summary))]) + "\n"


def list_facts(summary: IntervalSummary) -> list[tuple[str, str]]:
    """How it was computed, as pairs of a name and a text."""
    model, data, computed = summary["model"], summary["data"], summary["computed"]
    counted = [
        plural(model["n_terms"], "term"),
        plural(model["n_numerical"], "numerical feature"),
        plural(model["n_categorical"], "categorical feature"),
    ]
    facts = [
        ("Model", f"{model['estimator']}, {', '.join(counted)}"),
        ("Parameters", ", ".join(f"{name}={value}" for name, value in model["parameters"].items())),
        ("Columns that the model does not read", list_not_read(model["not_read"])),
        ("Noise", describe_noise(summary["noise"])),
        ("Rule", summary["rule"]["sentence"]),
        ("Threat", " ".join(summary["threat"]["sentences"])),
        ("Measure", summary["guarantee"]["measure"]),
        ("Rows", f"{plural(data['n_rows'], 'row')}, {plural(data['n_features'], 'column')}"),
        *list_sums(summary["checksums"]),
        ("Configuration", computed["configuration"] or ""),
        ("Versions", ", ".join(f"{name} {version}" for name, version in computed["versions"].items())),
        ("Time", describe_time(computed)),
    ]
    return [(name, value) for name, value in facts if value]
