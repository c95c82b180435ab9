"""The summary dict -> HTML, Markdown, LaTeX, JSON. Renders what is there: computes nothing.

Text from the user's data is escaped by the template engine (HTML) or here (Markdown, LaTeX).
"""

from __future__ import annotations

import html
import json
import re
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from derand.report import _charts
from derand.report._text import percent, plural, shorten
from derand.report._types import Computed, ReportSummary, Size
from derand.text import format_count, format_exactly, format_short, format_short_down

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "“": "``", "”": "''", "±": r"$\pm$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_NAME_LENGTH = 60
_LISTED_NAMES = 12
_ROW_KEYS = {"row", "label", "truth", "correct", "is_one", "radius", "radius_text", "failure_text", "pushes", "law"}


def to_json(summary: ReportSummary) -> str:
    """The dict itself."""
    return json.dumps(summary, allow_nan=False, ensure_ascii=False)


def to_html(summary: ReportSummary) -> str:
    """One page with its styles, script and data inside."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            s=summary,
            charts=_charts,
            style=Markup(_read("report.css")),
            script=Markup(_read("report.js")),
            data=_embed(_page_data(summary)),
            facts=list_facts(summary),
            quoted_at=summary["scale"]["radii"].index(summary["scale"]["quoted"]),
        )
    )


def to_notebook(summary: ReportSummary) -> str:
    """The page in a frame of its own, so that neither it nor the notebook changes the other's styles."""
    page = html.escape(to_html(summary), quote=True)
    return (
        f'<iframe srcdoc="{page}" title="{html.escape(summary["title"])}" '
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
        "names": summary["model"]["feature_names"],
        "classes": summary["model"]["classes"],
        "axis": None if axis is None else {key: axis[key] for key in ("n_bins", "threshold_bin")},
        "rows": [{key: value for key, value in row.items() if key in _ROW_KEYS} for row in summary["rows"]["table"]],
    }


def _embed(data: dict[str, object]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def _environment() -> jinja2.Environment:
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
    environment.globals["plural"] = plural
    return environment


def _read(name: str) -> str:
    return resources.files("derand.report").joinpath("static", name).read_text(encoding="utf-8")


def to_markdown(summary: ReportSummary) -> str:
    """The guarantee, the tables and how they were computed."""
    measure = summary["accuracy"]["measure"].capitalize()
    by_radius = [[row["label"], *row["text"]] for row in summary["table"]["rows"]]
    parts = [
        f"# {_mark(summary['title'])}",
        _mark(summary["guarantee"]["paragraph"]),
        _mark(summary["guarantee"]["measure"]),
        "\n".join(f"- {_mark(limit)}" for limit in summary["guarantee"]["limits"]),
        f"## {measure}",
        _pipe_table(["radius", *(format_exactly(radius) for radius in summary["table"]["radii"])], by_radius),
        *_mark_moves(summary),
        *_mark_weakest(summary),
        *_mark_subgroups(summary),
        "## How it was computed",
        "\n".join(f"- {_mark(name)}: {_mark(value)}" for name, value in list_facts(summary)),
    ]
    if summary["left_out"]:
        parts += ["## Left out", "\n".join(f"- {_mark(note)}" for note in summary["left_out"])]
    return "\n\n".join(filter(None, parts)) + "\n"


def _mark_moves(summary: ReportSummary) -> list[str]:
    rows = [
        [move["name"], _say_move(move["half_of_rows"]), _say_move(move["nine_in_ten"])] for move in summary["moves"]
    ]
    head = ["feature", "half of the rows", "nine rows in ten"]
    return ["## Radii in your own units", _pipe_table(head, rows)] if rows else []


def _say_move(move: Size) -> str:
    if move == "inf":
        return "any move"
    return f"±{format_short_down(move)}" if move > 0 else "none"


def _mark_weakest(summary: ReportSummary) -> list[str]:
    weakest = [summary["rows"]["table"][one["at"]] for one in summary["rows"]["explained"]]
    rows = [
        [str(row["row"]), row["label"], row["truth"] or "", row["radius_text"][0], row["failure_text"] or ""]
        for row in weakest
    ]
    head = ["row", "answer", "truth", "radius", "failure mass"]
    return ["## Rows with the smallest radius", _pipe_table(head, rows)] if rows else []


def _mark_subgroups(summary: ReportSummary) -> list[str]:
    head = ["group", "rows", "median radius", f"certified at {format_exactly(summary['scale']['quoted'])}"]
    parts = []
    for group in summary["subgroups"]:
        rows = [
            [one["name"], format_count(one["n_rows"]), one["median_radius_text"], one["certified_text"]]
            for one in group["groups"]
        ]
        parts += [f"## Subgroups: {_mark(shorten(group['column'], _NAME_LENGTH))}", _pipe_table(head, rows)]
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
    magnitude = f"{noise['parameter'].replace('_', ' ')} {format_short(noise['magnitude'])}"
    parameters = ", ".join(f"{name}={value}" for name, value in model["parameters"].items())
    facts = [
        ("Model", f"{kind}, {', '.join(counted)}"),
        ("Parameters", parameters),
        ("Columns that the model does not read", _list_not_read(model["not_read"])),
        ("Noise", f"{noise['name']}, {magnitude}; certifies l{noise['norm']} balls"),
        ("Measure", noise["measure"]),
        ("Rows", f"{plural(data['n_rows'], 'row')}, {plural(data['n_features'], 'column')}"),
        ("Checksum of the rows", f"sha256 {data['sha256']}"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in computed["versions"].items())),
        ("Time", _describe_time(computed)),
    ]
    return [(name, value) for name, value in facts if value]


def _describe_time(computed: Computed) -> str:
    certifying, reporting = computed["certify_seconds"], computed["report_seconds"]
    if certifying is None or reporting is None:
        return computed["when"]
    return f"{computed['when']}; certificates {format_short(certifying, 2)} s, report {format_short(reporting, 2)} s"


def _list_not_read(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
    return ", ".join(shorten(name, 30) for name in names[:_LISTED_NAMES]) + f"{more}: they may change at will"


def _mark(text: str) -> str:
    """Text with Markdown's signs escaped, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _pipe_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    listed = [[_mark(shorten(cell, _NAME_LENGTH)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, *listed])


def to_latex(summary: ReportSummary) -> str:
    """The table of certified accuracy, in per cent."""
    radii = summary["table"]["radii"]
    head = [f"radius (l{summary['noise']['norm']})", *(format_exactly(radius) for radius in radii)]
    rows = [
        [_tex(shorten(row["label"], _NAME_LENGTH)), *(text.removesuffix("\N{NO-BREAK SPACE}%") for text in row["text"])]
        for row in summary["table"]["rows"]
    ]
    lines = [
        f"% {summary['accuracy']['measure']} in per cent; needs \\usepackage{{booktabs}}",
        r"\begin{tabular}{l" + "r" * len(radii) + "}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
