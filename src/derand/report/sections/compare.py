"""Two models on the same rows, against the same changes: shares, curves, and rows on which they differ.

Owns the way from the columns, categories and units of the one model to those of the other, and what is refused.

Every share and probability comes from `derand.metrics`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

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
    quote_short,
    shorten,
)
from derand.certificates import Certificates
from derand.metrics import EstimateSummary, certified_share, compare_paired, compute_wilson_interval
from derand.perturbation import Perturbation
from derand.report import _blocks as ui
from derand.report._charts import draw_shares, mark_radius, wrap_svg
from derand.report._facts import Facts, Scale
from derand.report._inputs import LabelInputs, Subject, name_estimator, name_features
from derand.report._markup import percent
from derand.report._settings import ReportSettings
from derand.report.sections.accuracy import choose_end, name_budget, spread_radii
from derand.report.sections.subgroups import LEVEL, write_interval
from derand.report.sections.threat import describe_trained
from derand.threat import EVERY, Threat

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier


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
_QUOTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class OtherModel:
    """A second classifier, certified as that of the report."""

    name: str
    classifier: CertifiedClassifier
    certificates: tuple[Certificates, ...]
    """One per certificate of the report, in the same order."""
    places: tuple[int, ...]
    """The number that each of its columns has in the table of the report."""

    @property
    def kind(self) -> str:
        """What it is."""
        return name_estimator(self.classifier)


def read_other(other: object, X: object, inputs: LabelInputs, asked: ReportSettings) -> OtherModel:
    """Certify the rows of a report by another classifier, against the report's own threats.

    A rule that was asked for holds for both, and so does a report on the model as deployed, without its noise.
    """
    from derand.estimators import CertifiedClassifier
    from derand.fitted import certify_encoded, encode_rows

    if not isinstance(other, CertifiedClassifier) or not hasattr(other, "ensemble_"):
        raise TypeError(f"`compare` must be a fitted classifier of derand, got {type(other).__name__}.")
    subject = inputs.subject
    _require_classes(subject, other)
    places = _match_columns(subject, other)
    threats = [_translate(one.threat, subject, other, places) for one in inputs.certificates]
    as_deployed = subject.noise is None and (subject.estimator is None or subject.estimator.noise_ is not None)
    rule, noise = (inputs.plain.rule, "none") if as_deployed else (asked.rule, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model of the report has said what is to be said
            rows = encode_rows(other, _take_columns(X, places, other.encoding_.names is not None))
            found = certify_encoded(other, rows, threats, rule=rule, proof=asked.proof, noise=noise)
    except ValueError as error:
        raise ValueError(f"`compare`: the other model cannot be certified as that of the report: {error}") from None
    return OtherModel(asked.compare_name or "the other model", other, tuple(found), places)


def _require_classes(subject: Subject, other: CertifiedClassifier) -> None:
    own, theirs = (list(map(repr, np.asarray(one).tolist())) for one in (subject.classes, other.classes_))
    if sorted(own) != sorted(theirs):
        raise ValueError(
            f"`compare` must answer with the same classes, {join_words(own[:_QUOTED])}, got a model that answers with "
            f"{join_words(theirs[:_QUOTED])}."
        )


def _match_columns(subject: Subject, other: CertifiedClassifier) -> tuple[int, ...]:
    """Which column of the report's table each column of the other model is, by name, or by number without names."""
    names, own = other.encoding_.names, subject.names
    n_features = other.ensemble_.n_features
    if names is None or own == name_features(subject.model, None):
        if n_features != len(own):
            raise ValueError(
                f"`compare` has {n_features} columns without names, and the model of the report has {len(own)}: "
                "without names both must read the same table."
            )
        places = tuple(range(n_features))
    else:
        unknown = [quote_short(one) for one in names if one not in own]
        if unknown:
            raise ValueError(
                f"`compare` reads {join_words(unknown[:_QUOTED])}, which the model of the report does not know: "
                "nothing says what may change there. Make the report on the other model, and compare it with this one."
            )
        places = tuple(own.index(one) for one in names)
    for at, place in enumerate(places):
        if (at in other.encoding_.categories) != (place in subject.categories):
            kinds = ("a category", "a number") if at in other.encoding_.categories else ("a number", "a category")
            raise ValueError(
                f"`compare` reads {quote_short(own[place])} as {kinds[0]}, and the model of the report as {kinds[1]}: "
                "they cannot be certified against the same changes. Train both on columns of the same kinds."
            )
    return places


def _take_columns(X: object, places: tuple[int, ...], has_names: bool) -> object:
    """Columns of a table by number, in a table of the same kind; an array for a model without names."""
    if hasattr(X, "iloc"):
        taken = X.iloc[:, list(places)]
    elif hasattr(X, "select") and hasattr(X, "columns"):  # polars, pyarrow
        names = getattr(X, "column_names", X.columns)
        taken = X.select([names[at] for at in places])
    else:
        return np.asarray(X)[:, list(places)]
    return taken if has_names or not hasattr(taken, "to_numpy") else taken.to_numpy()


def _translate(threat: Threat, subject: Subject, other: CertifiedClassifier, places: Sequence[int]) -> Threat:
    """The same changes in the columns, and the codes of categories, of the other model."""
    at = {place: number for number, place in enumerate(places)}
    units = Perturbation.of(threat, subject.model.n_features, ()).units
    kept: dict[str, Any] = {
        name: {
            column if column == EVERY else at[int(column)]: value
            for column, value in getattr(threat, name).items()
            if column == EVERY or int(column) in at
        }
        for name in ("limits", "domain", "steps")
    }
    kept["may_become"] = {
        at[int(column)]: tuple(_translate_value(subject, other, int(column), at[int(column)], code) for code in codes)
        for column, codes in threat.may_become.items()
        if int(column) in at
    }
    for column, (left, sign, right, tolerance) in threat.linked.items():
        if any(int(one) not in at for one in (column, left, right)):
            raise ValueError(
                f"`linked` of Threat names {subject.names[int(column)]!r}, which follows from columns that the other "
                "model does not have all: leave that model out, or the link."
            )
        kept.setdefault("linked", {})[at[int(column)]] = at[int(left)], sign, at[int(right)], tolerance
    takes_gaps = bool(other.ensemble_.missing_features)
    return replace(
        threat,
        units=tuple(float(units[place]) for place in places),
        frozen=tuple(at[int(column)] for column in threat.frozen if int(column) in at),
        missing=threat.missing if takes_gaps else "fixed",
        **kept,
    )


def _translate_value(subject: Subject, other: CertifiedClassifier, own: int, theirs: int, code: float) -> object:
    """A category as the other model's threat takes it: its value, None for a missing one; a code without values."""
    known = subject.categories.get(own, ())
    if math.isnan(code):
        return None
    if not other.encoding_.categories.get(theirs):
        return code
    return known[int(code)] if 0 <= code < len(known) else _NEVER_SEEN


class _Never:
    """A category that no table holds."""

    def __repr__(self) -> str:
        return "(never seen)"


_NEVER_SEEN = _Never()


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
        "sentence": _describe_comparison(inputs, shares, int(same.sum()), scale),
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


def _describe_comparison(inputs: LabelInputs, shares: list[ComparedShare], same: int, scale: Scale) -> str:
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


def blocks(summary: Parts) -> list[ui.Block]:
    """Both in numbers and in one chart, and rows on which they differ."""
    found = summary["comparison"]
    assert found is not None  # asked by the section
    names, chart = _name_models(found), _draw_comparison(summary)
    quoted, measure = summary["scale"]["quoted"], found["measure"].capitalize()
    legend = [(style, name) for style, name in zip(CURVES, names, strict=True)]
    figure = ui.Figure(chart, f"{measure} of both", [*legend, ("line-mark", f"radius {format_exactly(quoted)}")])
    return [
        ui.Heading(f"Beside {names[1]}", "compare"),
        ui.Paragraph(found["sentence"], "example", "comparison"),
        ui.on_page(*(ui.Paragraph(remark, "fine") for remark in found["remarks"])),
        ui.in_markdown(ui.Paragraph(" ".join(found["remarks"]))),
        ui.in_latex(*(ui.Comment(text) for text in (found["sentence"], *found["remarks"]))),
        ui.Group("beside compared", [_tabulate_lines(found, summary["data"]["n_rows"]), figure]),
        *([] if chart is None else [_tabulate_curves(found, quoted)]),
        *(
            _show_disagreements(summary, table, names, is_open=at == 0)
            for at, table in enumerate(found["disagreements"])
        ),
    ]


def _tabulate_lines(comparison: Comparison, n_rows: int) -> ui.Table:
    """The figures of both models, with their intervals."""
    lines: list[ui.Line] = []
    for line in comparison["lines"]:
        pairs = zip(line["texts"], line["intervals"], strict=True)
        shown = [(f"{text} ({small})" if small else text, ui.tag("small", small), text) for text, small in pairs]
        cells = [ui.Cell(told, Markup("{}{}").format(text, small), "wrapped") for told, small, text in shown]
        lines.append([line["name"], *cells])
    heads = [ui.Cell(name) for name in _name_models(comparison)]
    head = [ui.Cell("", ui.quiet(plural(n_rows, "row"))), *heads]
    return ui.Table(head, lines, "Both models in numbers", test="compared", kind="numeric contrasts", latex_title="")


def _tabulate_curves(comparison: Comparison, quoted: float) -> ui.Table:
    """The shares of both models by radius."""
    kinds = ["quoted" if radius == quoted else "" for radius in comparison["major"]]
    heads = [
        ui.Cell(format_exactly(radius), kind=kind) for radius, kind in zip(comparison["major"], kinds, strict=True)
    ]
    lines: list[ui.Line] = [
        [name, *(ui.Cell(text, kind=kind) for text, kind in zip(texts, kinds, strict=True))]
        for name, texts in zip(_name_models(comparison), comparison["table"], strict=True)
    ]
    head, label = (
        [ui.Cell("radius", ui.quiet("radius")), *heads],
        f"{comparison['measure'].capitalize()} of both models by radius",
    )
    return ui.Table(head, lines, label, test="compared-curves", latex_title=f"{comparison['measure']} of both")


def _count_shown(table: DisagreementTable) -> str:
    """How many of the rows are listed, of how many."""
    if not table["n_rows"]:
        return "There are none."
    if len(table["rows"]) == table["n_rows"]:
        return f"All {plural(table['n_rows'], 'row')}." if table["n_rows"] > 1 else "One row."
    return f"{format_count(len(table['rows']))} of {plural(table['n_rows'], 'row')}."


def _show_disagreements(summary: Parts, table: DisagreementTable, names: list[str], *, is_open: bool) -> ui.Details:
    """Rows on which the two differ in one way."""
    what, has_truth = "radius" if summary["threat"]["norm"] is not None else "verdict", summary["data"]["has_labels"]
    heads = [cell for name in names for cell in (ui.Cell(name), ui.Cell(f"{what}, {name}", what.capitalize()))]
    lines: list[ui.Line] = []
    for row in table["rows"]:
        number = ui.Cell(str(row["row"]), format_count(row["row"]))
        name = number if row["name"] is None else ui.Cell(shorten(row["name"], _NAME_LENGTH))
        truth = (
            [] if row["truth"] is None else [ui.Cell(shorten(row["truth"], _NAME_LENGTH), shorten(row["truth"], 30))]
        )
        cells = [
            cell
            for label, text in zip(row["labels"], row["texts"], strict=True)
            for cell in (_write_label(label, row["truth"]), ui.Cell(text))
        ]
        lines.append([name, *truth, *cells])
    head: ui.Line = ["row", *(["truth"] if has_truth else []), *heads]
    order = ""
    if len(lines) < table["n_rows"]:
        sure = table["key"] == "answers"
        order = " Those that both are surest of come first." if sure else " Those whose radii differ most come first."
    rows = [ui.Table(head, lines, table["title"], test="disagreement-rows", kind="")] if lines else []
    counted = f"{format_count(table['n_rows'])} of {format_count(summary['data']['n_rows'])}"
    shown = _count_shown(table)
    return ui.Details(
        "",
        [
            ui.in_markdown(ui.Heading(table["title"], level=3), ui.Paragraph(shown)),
            ui.on_page(ui.Paragraph(shown + order, "fine")),
            *rows,
        ],
        summary=f"{table['title']}: {counted}",
        test="disagreement",
        is_open=is_open and bool(lines),
    )


def _write_label(label: str, truth: str | None) -> ui.Cell:
    """An answer; the page says where it is wrong."""
    page: ui.Text = shorten(label, 30)
    if truth is not None and label != truth:
        page = Markup("{} {}").format(page, ui.tag("span", "wrong", class_="bad"))
    return ui.Cell(shorten(label, _NAME_LENGTH), page)


SECTION = ui.Section("compare", lambda s: "Two models" if s["comparison"] else "", blocks)
