"""Two models on the same rows, against the same changes: shares, curves, and rows on which they differ.

Every share and probability comes from `derand.metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import (
    format_count,
    format_exactly,
    format_short,
    format_short_down,
    format_up,
    join_words,
    plural,
    shorten,
)
from derand.certificates import Certificates
from derand.metrics import EstimateSummary, certified_share, compare_paired, compute_wilson_interval
from derand.report._blocks import (
    Block,
    Cell,
    Comment,
    Details,
    Figure,
    Group,
    Heading,
    Line,
    Paragraph,
    Section,
    Table,
    Text,
    in_latex,
    in_markdown,
    on_page,
    quiet,
    tag,
)
from derand.report._charts import draw_shares, mark_radius, wrap_svg
from derand.report._facts import Facts, Scale
from derand.report._inputs import LabelInputs, name_estimator
from derand.report._markup import percent
from derand.report._other import OtherModel
from derand.report.sections.accuracy import choose_end, name_budget, spread_radii
from derand.report.sections.subgroups import LEVEL, write_interval
from derand.report.sections.threat import describe_trained


class ComparedLine(TypedDict):
    """A figure of both models, as text, with its intervals where it has any."""

    name: str
    texts: list[str]
    intervals: list[str]


class ComparedShare(TypedDict):
    """A share of the rows by both models, and on how many rows the one has it and the other has not."""

    name: str
    shares: list[EstimateSummary]
    only: list[int]
    chance: float
    """The probability of so uneven a split of these rows, or a more uneven one, where both are of equal worth."""


class Disagreement(TypedDict):
    """A row on which two models differ."""

    row: int
    name: str | None
    truth: str | None
    labels: list[str]
    radii: list[float | Literal["inf"]]
    texts: list[str]
    """Their radii as text, or verdicts."""


class DisagreementTable(TypedDict):
    """Rows on which two models differ in one way: how many there are, and the first of them."""

    key: Literal["answers", "first", "second"]
    title: str
    n_rows: int
    rows: list[Disagreement]


class Comparison(TypedDict):
    """Two models on the same rows, against the same changes; the first is that of the report."""

    names: list[str]
    measure: str
    sentence: str
    remarks: list[str]
    """Where the two differ in what they were trained for: a reader must not compare unlike things."""
    same_answers: int
    shares: list[ComparedShare]
    lines: list[ComparedLine]
    radii: list[float]
    end: float
    """Where the chart ends."""
    curves: list[list[float]]
    """The share of rows that each has certified (and right, with labels) over these radii."""
    major: list[float]
    table: list[list[str]]
    """The same at some of them, as text."""
    disagreements: list[DisagreementTable]


class Parts(Facts):
    """What this section reads."""

    comparison: Comparison | None


THIS = "this model"
MOST_ROWS = 20
"""Rows of a table of disagreements."""
_NAMED = 3
CURVES = ("line-main", "line-family line-1")
"""Classes of the two curves."""
_NAME_LENGTH = 40


def compute(inputs: LabelInputs, other: OtherModel | None, scale: Scale) -> Comparison | None:
    """The model of a report beside another one; None where there is none."""
    if other is None:
        return None
    both = (inputs.plain, other.certificates[0])
    right = _mark_right(inputs, both)
    radii, major, end = _choose_radii(both, scale)
    curves = [certified_share(ok, one.radius, radii).tolist() for ok, one in zip(right, both, strict=True)]
    shares = _list_shares(inputs, other, right, scale["quoted"])
    same = np.asarray(both[0].label == both[1].label)
    at = [radii.index(radius) for radius in major]
    return {
        "names": [THIS, other.name],
        "measure": "certified share" if inputs.truth is None else "certified accuracy",
        "sentence": _say(inputs, shares, int(same.sum()), scale),
        "remarks": _list_remarks(inputs, other),
        "same_answers": int(same.sum()),
        "shares": shares,
        "lines": [*_list_facts(inputs, other), *map(_write_share, shares), *_list_medians(both)],
        "radii": radii,
        "end": end,
        "curves": curves,
        "major": major,
        "table": [[percent(curve[k]) for k in at] for curve in curves],
        "disagreements": _list_disagreements(inputs, both, right, same, scale["quoted"]),
    }


def _mark_right(inputs: LabelInputs, both: Sequence[Certificates]) -> list[BoolArray]:
    """Which answers of each are right; all count where there are no labels."""
    if inputs.truth is None:
        return [np.ones(inputs.n_rows, dtype=bool) for _ in both]
    return [np.asarray(one.label == inputs.truth) for one in both]


def _choose_radii(both: Sequence[Certificates], scale: Scale) -> tuple[list[float], list[float], float]:
    """Radii of the curves, as far as the larger ones of both go, those of the table, and the end of the chart."""
    if both[0].norm is None:
        return [0.0], [0.0], 0.0
    quoted = scale["quoted"]
    radii, major = max((spread_radii(one) for one in both), key=lambda found: found[0][-1])
    return sorted({*radii, quoted}), sorted({*major, quoted}), choose_end(radii[-1], quoted)


def _hold(certificates: Certificates, radius: float) -> BoolArray:
    """Which rows are certified at a radius, as `certified_share` counts them."""
    return np.asarray((certificates.radius >= radius) & (certificates.radius > 0))


def _list_shares(inputs: LabelInputs, other: OtherModel, right: list[BoolArray], radius: float) -> list[ComparedShare]:
    """Right answers, where there are labels, and what is certified, also with categories changed."""
    found = [] if inputs.truth is None else [_compare_share("Right answers", *right)]
    at_radius = f" at {format_exactly(radius)}" if radius else ""
    start = ("Certified" if inputs.truth is None else "Right and certified") + at_radius
    for mine, theirs in zip(inputs.certificates, other.certificates, strict=True):
        held = [ok & _hold(one, radius) for ok, one in zip(right, (mine, theirs), strict=True)]
        many = len(inputs.certificates) > 1 and mine.l0 > 0
        found.append(_compare_share(f"{start}, {name_budget(mine.l0, np.zeros(0))['label']}" if many else start, *held))
    return found


def _compare_share(name: str, first: BoolArray, second: BoolArray) -> ComparedShare:
    only = [int((first & ~second).sum()), int((second & ~first).sum())]
    return {
        "name": name,
        "shares": [compute_wilson_interval(int(one.sum()), one.size).to_dict() for one in (first, second)],
        "only": only,
        "chance": compare_paired(*only),
    }


def _write_share(one: ComparedShare) -> ComparedLine:
    texts = [percent(share["value"]) for share in one["shares"]]
    intervals = [write_interval(share["value"], share["low"], share["high"]) for share in one["shares"]]
    return {"name": one["name"], "texts": texts, "intervals": intervals}


def _list_medians(both: Sequence[Certificates]) -> list[ComparedLine]:
    if both[0].norm is None:
        return []
    medians = [float(np.quantile(one.radius, 0.5, method="lower")) for one in both]
    return [{"name": "Median radius", "texts": [format_short_down(one) for one in medians], "intervals": ["", ""]}]


def _list_facts(inputs: LabelInputs, other: OtherModel) -> list[ComparedLine]:
    """What the two are."""
    subject, theirs = inputs.subject, other.certificates[0]
    own = "bare model" if subject.estimator is None else name_estimator(subject.estimator)
    noises = ["none" if noise is None else str(noise) for noise in (subject.noise, theirs.noise)]
    told = {
        "Model": [own, other.kind],
        "Noise": [shorten(noise.split("(")[0], 40) for noise in noises],
        "Rule": [inputs.rule, theirs.rule],
        "Trained for": [describe_trained(subject.estimator), describe_trained(other.classifier)],
    }
    return [
        {"name": name, "texts": texts, "intervals": ["", ""]}
        for name, texts in told.items()
        if name != "Trained for" or any(texts)
    ]


def _list_remarks(inputs: LabelInputs, other: OtherModel) -> list[str]:
    """What a reader must know to compare the two."""
    threat, theirs = inputs.threat, other.classifier.default_threat.resolve(other.classifier.noise_)
    remarks = ["Both are certified on the same rows, against the same changes: those of this report."]
    if theirs.norm != threat.norm:
        norms = [f"l{one}" if one is not None else "limits alone" for one in (theirs.norm, threat.norm)]
        remarks.append(
            f"The other model was trained for another kind of change, {norms[0]}; here both are certified for "
            f"{norms[1]}."
        )
    trained = [describe_trained(inputs.subject.estimator), describe_trained(other.classifier)]
    if all(trained) and trained[0] != trained[1]:
        remarks.append(
            f"The two were trained for different changes, this model for {trained[0]}, the other for {trained[1]}: "
            "what is certified may differ for that reason alone."
        )
    differ = _list_other_units(inputs, other)
    if differ:
        more = f" and {len(differ) - _NAMED:,} more" if len(differ) > _NAMED else ""
        remarks.append(
            "The other model counts changes in other units; here both count in those of this report, which may cost "
            f"the other one some of its radii. What is a change of 1: {'; '.join(differ[:_NAMED])}{more}."
        )
    missed = [name for at, name in enumerate(inputs.subject.names) if at not in other.places]
    if missed:
        named = [f"“{shorten(name, 30)}”" for name in missed[:_NAMED]]
        named += [f"{len(missed) - _NAMED:,} more"] if len(missed) > _NAMED else []
        remarks.append(f"The other model does not know {join_words(named)}: there they may become anything.")
    return remarks


def _list_other_units(inputs: LabelInputs, other: OtherModel) -> list[str]:
    """Numbers that the other model counts in another unit than the report."""
    if inputs.threat.norm in (None, 0):
        return []
    theirs = other.classifier.units
    own, numbers = inputs.units, set(other.classifier.ensemble_.numerical_features)
    found = []
    for at, place in enumerate(other.places):
        unit = 1.0 if theirs is None else float(theirs[at])
        if at in numbers and not math.isclose(unit, float(own[place]), rel_tol=1e-9):
            name = shorten(inputs.subject.names[place], 30)
            found.append(f"“{name}”: {format_short(float(own[place]))} here, {format_short(unit)} there")
    return found


def _say(inputs: LabelInputs, shares: list[ComparedShare], same: int, scale: Scale) -> str:
    """The comparison in a few sentences."""
    certified = next(one for one in shares if "ertified" in one["name"])
    counts = [round(share["value"] * inputs.n_rows) for share in certified["shares"]]
    what = "proven" if inputs.truth is None else "right and proven"
    where = f" at radius {format_exactly(scale['quoted'])}" if scale["quoted"] else ""
    mine, theirs = certified["only"]
    chance = certified["chance"]
    verdict = "more than chance explains" if chance <= LEVEL else "no more than chance explains"
    return (
        f"Both give the same answer to {format_count(same)} of {plural(inputs.n_rows, 'row')}. Of all "
        f"{plural(inputs.n_rows, 'row')}, {THIS} is {what}{where} on {format_count(counts[0])}, the other one on "
        f"{format_count(counts[1])}: "
        f"{plural(mine, 'row')} by this one alone, {format_count(theirs)} by the other alone. That is {verdict} "
        f"(McNemar's exact test: {format_up(chance, 2)})."
    )


def _list_disagreements(
    inputs: LabelInputs, both: Sequence[Certificates], right: list[BoolArray], same: BoolArray, radius: float
) -> list[DisagreementTable]:
    """Rows with other answers, those that both are surest of first; and rows that one certifies alone, by how much."""
    first, second = (ok & _hold(one, radius) for ok, one in zip(right, both, strict=True))
    mine, theirs = (np.asarray(one.radius, dtype=np.float64) for one in both)
    proven = "proven" if inputs.truth is None else "right and proven"
    wanted: list[tuple[Literal["answers", "first", "second"], str, BoolArray, FloatArray]] = [
        ("answers", "Rows with different answers", ~same, np.minimum(mine, theirs)),
        ("first", f"Rows that this model alone has {proven}", first & ~second, _subtract(mine, theirs)),
        ("second", f"Rows that the other model alone has {proven}", second & ~first, _subtract(theirs, mine)),
    ]
    found: list[DisagreementTable] = []
    for key, title, mask, worth in wanted:
        rows = np.flatnonzero(mask)
        chosen = rows[np.argsort(-worth[rows], kind="stable")][:MOST_ROWS]
        listed = [_describe_row(inputs, both, int(row)) for row in chosen]
        found.append({"key": key, "title": title, "n_rows": int(rows.size), "rows": listed})
    return found


def _subtract(one: FloatArray, other: FloatArray) -> FloatArray:
    """A difference of radii; two without a limit differ by nothing."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(one - other, nan=0.0)


def _describe_row(inputs: LabelInputs, both: Sequence[Certificates], row: int) -> Disagreement:
    radii = [float(one.radius[row]) for one in both]
    verdicts = [one.verdict for one in both]
    texts = [
        format_short_down(radius) if verdict is None else str(verdict[row])
        for radius, verdict in zip(radii, verdicts, strict=True)
    ]
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "truth": None if inputs.truth is None else str(inputs.truth[row]),
        "labels": [str(one.label[row]) for one in both],
        "radii": radii,  # type: ignore[typeddict-item] # infinity becomes text with all the others
        "texts": texts,
    }


def _name_models(comparison: Comparison) -> list[str]:
    """Both models as heads of columns."""
    return [shorten(name, _NAME_LENGTH) for name in comparison["names"]]


def _draw_comparison(summary: Parts) -> Markup | None:
    """The certified share of both models over the radius, in one chart."""
    comparison = summary["comparison"]
    if comparison is None or len(comparison["radii"]) < 2:
        return None
    radii, end, quoted = comparison["radii"], comparison["end"], summary["scale"]["quoted"]
    frame, body = draw_shares(summary, radii, end, list(zip(CURVES, comparison["curves"], strict=True)))
    body.append(mark_radius(frame, quoted, "mark"))
    at = radii.index(quoted)
    told = ", ".join(
        f"{name} {percent(values[at])}" for name, values in zip(comparison["names"], comparison["curves"], strict=True)
    )
    title = f"{comparison['measure'].capitalize()} of both models over the radius"
    return wrap_svg(frame, "".join(body), title, f"At radius {format_exactly(quoted)}: {told}")


def blocks(summary: Parts) -> list[Block]:
    """Both in numbers and in one chart, and rows on which they differ."""
    found = summary["comparison"]
    assert found is not None  # asked by the section
    names, chart = _name_models(found), _draw_comparison(summary)
    quoted, measure = summary["scale"]["quoted"], found["measure"].capitalize()
    legend = [(style, name) for style, name in zip(CURVES, names, strict=True)]
    figure = Figure(chart, f"{measure} of both", [*legend, ("line-mark", f"radius {format_exactly(quoted)}")])
    return [
        Heading(f"Beside {names[1]}", "compare"),
        Paragraph(found["sentence"], "example", "comparison"),
        on_page(*(Paragraph(remark, "fine") for remark in found["remarks"])),
        in_markdown(Paragraph(" ".join(found["remarks"]))),
        in_latex(*(Comment(text) for text in (found["sentence"], *found["remarks"]))),
        Group("beside compared", [_tabulate_lines(found, summary["data"]["n_rows"]), figure]),
        *([] if chart is None else [_tabulate_curves(found, quoted)]),
        *(
            _show_disagreements(summary, table, names, is_open=at == 0)
            for at, table in enumerate(found["disagreements"])
        ),
    ]


def _tabulate_lines(comparison: Comparison, n_rows: int) -> Table:
    """The figures of both models, with their intervals."""
    lines: list[Line] = []
    for line in comparison["lines"]:
        pairs = zip(line["texts"], line["intervals"], strict=True)
        shown = [(f"{text} ({small})" if small else text, tag("small", small), text) for text, small in pairs]
        cells = [Cell(told, Markup("{}{}").format(text, small), "wrapped") for told, small, text in shown]
        lines.append([line["name"], *cells])
    heads = [Cell(name) for name in _name_models(comparison)]
    head = [Cell("", quiet(plural(n_rows, "row"))), *heads]
    return Table(head, lines, "Both models in numbers", test="compared", kind="numeric contrasts", latex_title="")


def _tabulate_curves(comparison: Comparison, quoted: float) -> Table:
    """The shares of both models by radius."""
    kinds = ["quoted" if radius == quoted else "" for radius in comparison["major"]]
    heads = [Cell(format_exactly(radius), kind=kind) for radius, kind in zip(comparison["major"], kinds, strict=True)]
    lines: list[Line] = [
        [name, *(Cell(text, kind=kind) for text, kind in zip(texts, kinds, strict=True))]
        for name, texts in zip(_name_models(comparison), comparison["table"], strict=True)
    ]
    head, label = (
        [Cell("radius", quiet("radius")), *heads],
        f"{comparison['measure'].capitalize()} of both models by radius",
    )
    return Table(head, lines, label, test="compared-curves", latex_title=f"{comparison['measure']} of both")


def _count_shown(table: DisagreementTable) -> str:
    """How many of the rows are listed, of how many."""
    if not table["n_rows"]:
        return "There are none."
    if len(table["rows"]) == table["n_rows"]:
        return f"All {plural(table['n_rows'], 'row')}." if table["n_rows"] > 1 else "One row."
    return f"{format_count(len(table['rows']))} of {plural(table['n_rows'], 'row')}."


def _show_disagreements(summary: Parts, table: DisagreementTable, names: list[str], *, is_open: bool) -> Details:
    """Rows on which the two differ in one way."""
    what, has_truth = "radius" if summary["threat"]["norm"] is not None else "verdict", summary["data"]["has_labels"]
    heads = [cell for name in names for cell in (Cell(name), Cell(f"{what}, {name}", what.capitalize()))]
    lines: list[Line] = []
    for row in table["rows"]:
        number = Cell(str(row["row"]), format_count(row["row"]))
        name = number if row["name"] is None else Cell(shorten(row["name"], _NAME_LENGTH))
        truth = [] if row["truth"] is None else [Cell(shorten(row["truth"], _NAME_LENGTH), shorten(row["truth"], 30))]
        cells = [
            cell
            for label, text in zip(row["labels"], row["texts"], strict=True)
            for cell in (_write_label(label, row["truth"]), Cell(text))
        ]
        lines.append([name, *truth, *cells])
    head: Line = ["row", *(["truth"] if has_truth else []), *heads]
    order = ""
    if len(lines) < table["n_rows"]:
        sure = table["key"] == "answers"
        order = " Those that both are surest of come first." if sure else " Those whose radii differ most come first."
    rows = [Table(head, lines, table["title"], test="disagreement-rows", kind="")] if lines else []
    counted = f"{format_count(table['n_rows'])} of {format_count(summary['data']['n_rows'])}"
    shown = _count_shown(table)
    return Details(
        "",
        [
            in_markdown(Heading(table["title"], level=3), Paragraph(shown)),
            on_page(Paragraph(shown + order, "fine")),
            *rows,
        ],
        summary=f"{table['title']}: {counted}",
        test="disagreement",
        is_open=is_open and bool(lines),
    )


def _write_label(label: str, truth: str | None) -> Cell:
    """An answer; the page says where it is wrong."""
    page: Text = shorten(label, 30)
    if truth is not None and label != truth:
        page = Markup("{} {}").format(page, tag("span", "wrong", class_="bad"))
    return Cell(shorten(label, _NAME_LENGTH), page)


SECTION = Section("compare", lambda s: "Two models" if s["comparison"] else "", blocks)
