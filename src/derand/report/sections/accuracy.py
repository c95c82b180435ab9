"""Certified accuracy over the radius, and what it is compared with.

Every number comes from `derand.metrics` over all rows; nothing here is sampled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import format_exactly, shorten
from derand.certificates import Certificates, certify
from derand.metrics import certified_accuracy, certified_share
from derand.report import _blocks as ui
from derand.report._charts import HEIGHT, SHARES, WIDTH, Frame, draw_shares, mark_radius, slide_radius, wrap_svg
from derand.report._facts import Facts, Scale
from derand.report._inputs import LabelArray, LabelInputs
from derand.report._markup import percent, render
from derand.report._settings import ReportSettings

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier


Role = Literal["all", "balanced", "class", "l0", "baseline"]


class Series(TypedDict):
    """A curve over the radii of the scale."""

    key: str
    role: Role
    label: str
    l0: int
    values: list[float]


class Baseline(TypedDict):
    """What the model is compared with, in words."""

    key: str
    label: str
    description: str
    accuracy: float
    balanced: float
    """Its mean over the classes."""


class Accuracy(TypedDict):
    """Certified accuracy over the radius; the certified share where there are no labels."""

    measure: str
    series: list[Series]
    baselines: list[Baseline]


class TableLine(TypedDict):
    """A curve at the radii of the table."""

    key: str
    label: str
    values: list[float]
    text: list[str]


class AccuracyTable(TypedDict):
    """The curves at the major radii."""

    radii: list[float]
    rows: list[TableLine]


class Parts(Facts):
    """What this section reads."""

    accuracy: Accuracy
    table: AccuracyTable


_STEPS_PER_MAJOR = 20
_USUAL, _ROOM = 0.98, 1.25
_FAR = 2.0
"""A radius of the text that lies so many times beyond all others does not stretch the charts."""
_BASELINE_SHARE = 0.01
"""The baseline is trained with this share of the noise: enough for the trainer to run, too little to matter."""
DEFAULT_RADIUS = 0.25
"""The radius that the text speaks of where none is stated: a quarter of what counts as a change of 1, whatever the
model and the rows, so that reports can be compared. In norm 0, where radii count columns, it is 1."""
_ROLE_CLASSES = {"all": "line-main", "balanced": "line-second", "baseline": "line-base"}


def choose_scale(inputs: LabelInputs, stated: float | None) -> Scale:
    """Radii at which curves are evaluated, `major` ones for tables, and the `quoted` one that the text speaks of.

    Where limits alone say what may change, and for a model that reads no numbers, there is the radius 0 alone.
    """
    certificates, trained = inputs.plain, _read_trained_radius(inputs)
    stated = None if stated is None else float(stated)
    if certificates.norm == 0 and stated is not None and not stated.is_integer():
        raise ValueError(f"`radius` must be a whole number of columns for norm 0, got {stated}.")
    if certificates.norm is None:
        radii, major, quoted = [0.0], [0.0], 0.0
    else:
        quoted = _choose_quoted(inputs) if stated is None else stated
        radii, major = spread_radii(certificates)
    named = {quoted} if trained is None else {quoted, trained}
    return {
        "radii": sorted({*radii, *named}),
        "major": sorted({*major, *named}),
        "end": choose_end(radii[-1], quoted),
        "quoted": quoted,
        "stated": stated is not None,
        "trained": trained,
    }


def choose_end(last: float, quoted: float) -> float:
    """Where charts end: at the last radius or the quoted one, unless that lies far beyond all others."""
    return last if quoted > _FAR * last > 0 else max(last, quoted)


def _read_trained_radius(inputs: LabelInputs) -> float | None:
    """The radius that the model was trained for, where it is certified in the same balls."""
    estimator, threat = inputs.subject.estimator, inputs.threat
    parameters = {} if estimator is None else estimator.get_params(deep=False)
    if estimator is None or not {"radius", "norm"} <= set(parameters) or not parameters["radius"]:
        return None
    own = estimator.default_threat
    same = threat.norm == own.norm is not None and threat.units == (own.units or estimator.units)
    same = same and bool(inputs.subject.model.numerical_features)  # without numbers there is the radius 0 alone
    return float(parameters["radius"]) if same else None


def _choose_quoted(inputs: LabelInputs) -> float:
    """The radius that the text speaks of unless one is stated: it depends on neither results nor rows."""
    if not inputs.subject.model.numerical_features:
        return 0.0
    return 1.0 if inputs.threat.norm == 0 else DEFAULT_RADIUS


def spread_radii(certificates: Certificates) -> tuple[list[float], list[float]]:
    """Radii from 0 to where few rows are left, and the round ones of them; 0 alone where all are 0 or infinite."""
    finite = certificates.radius[np.isfinite(certificates.radius)]
    largest = float(finite.max(initial=0.0))
    if largest <= 0:
        return [0.0], [0.0]
    if certificates.norm == 0:
        counts = [float(k) for k in range(int(largest) + 1)]
        return counts, counts[:: max(1, math.ceil(largest / 8))]
    usual = float(np.quantile(finite[finite > 0], _USUAL))
    end = min(largest, _ROOM * usual)  # a few rows far out must not squeeze all others into a corner
    step = _nice_step(end / 7) / _STEPS_PER_MAJOR
    count = math.ceil(end / (step * _STEPS_PER_MAJOR) - 1e-9) * _STEPS_PER_MAJOR
    digits = max(0, 6 - math.floor(math.log10(step)))
    radii = [round(k * step, digits) for k in range(count + 1)]
    return radii, radii[::_STEPS_PER_MAJOR]


def _nice_step(rough: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((power, 2 * power, 5 * power, 10 * power), key=lambda step: abs(math.log(step / rough)))


def compute(inputs: LabelInputs, scale: Scale, settings: ReportSettings) -> Accuracy:
    """Curves for all rows, each class, each number of categorical changes, and the baselines."""
    if inputs.truth is None:
        return {"measure": "certified share", "series": _measure_shares(inputs, scale["radii"]), "baselines": []}
    baselines = _compare(inputs, inputs.truth, settings)
    constant = np.full(len(scale["radii"]), 1.0 / np.unique(inputs.truth).size)  # right on one class alone
    return {
        "measure": "certified accuracy",
        "series": [
            *_measure_accuracies(inputs, inputs.truth, scale["radii"]),
            *(baseline.draw(scale["radii"]) for baseline in baselines),
            _name_series("baseline", "any constant answer, balanced", constant, key="baseline=balanced"),
        ],
        "baselines": [
            {
                "key": baseline.key,
                "label": baseline.label,
                "description": baseline.description,
                "accuracy": float(baseline.correct.mean()),
                "balanced": float(
                    np.mean([baseline.correct[inputs.truth == name].mean() for name in np.unique(inputs.truth)])
                ),
            }
            for baseline in baselines
        ],
    }


def _measure_shares(inputs: LabelInputs, radii: list[float]) -> list[Series]:
    """Shares of the rows that are certified at each radius, whatever their true label."""
    every = np.ones(inputs.n_rows, dtype=bool)
    found = [name_budget(one.l0, certified_share(every, one.radius, radii)) for one in inputs.certificates]
    return [
        *found,
        _name_series("all", "all rows", certified_share(every, inputs.plain.radius, radii), inputs.plain.l0),
    ]


def _measure_accuracies(inputs: LabelInputs, labels: LabelArray, radii: list[float]) -> list[Series]:
    """Certified accuracy of all rows, with equal weight of the classes, of each class, and of each budget."""
    plain = inputs.plain
    share, balanced = (certified_accuracy(labels, plain, radii, balanced=how) for how in (False, True))
    found = [_name_series("all", "all rows", share, plain.l0), _name_series("balanced", "balanced", balanced, plain.l0)]
    for name in inputs.subject.classes.tolist():
        at = np.flatnonzero(labels == name)
        if at.size:
            share = certified_accuracy(labels[at], plain[at], radii)
            found.append(_name_series("class", str(name), share, plain.l0, f"class={name}"))
    return [*found, *(name_budget(one.l0, certified_accuracy(labels, one, radii)) for one in inputs.certificates)]


def _name_series(role: Role, label: str, shares: FloatArray, l0: int = 0, key: str = "") -> Series:
    return {"key": key or role, "role": role, "label": label, "l0": l0, "values": shares.tolist()}


def name_budget(l0: int, shares: FloatArray) -> Series:
    """The curve of a number of categorical changes."""
    label = f"and {l0} {'category' if l0 == 1 else 'categories'} changed" if l0 else "numbers alone"
    return _name_series("l0", label, shares, l0, f"l0={l0}")


@dataclass(frozen=True, slots=True, eq=False)
class _Baseline:
    """What the model is compared with: which rows it answers rightly, and within which radius no change flips it."""

    key: str
    label: str
    description: str
    correct: BoolArray
    radius: FloatArray

    def draw(self, radii: list[float]) -> Series:
        """Its certified accuracy at each radius."""
        shares = certified_share(self.correct, self.radius, radii)
        return _name_series("baseline", self.label, shares, key=f"baseline={self.key}")


def _compare(inputs: LabelInputs, labels: LabelArray, settings: ReportSettings) -> list[_Baseline]:
    """Baselines: always the most frequent label, and the same family trained (almost) without noise."""
    names, counts = np.unique(labels if settings.y_train is None else np.asarray(settings.y_train), return_counts=True)
    frequent = names[int(counts.argmax())]
    if settings.y_train is not None and settings.class_names is not None:  # these keep their own names to train on
        frequent = {str(label): name for label, name in settings.class_names.items()}.get(str(frequent), frequent)
    whose = "these rows" if settings.y_train is None else "the training rows"
    flat = "" if inputs.threat.norm is None else ", so its curve is flat"
    constant = _Baseline(
        "constant",
        f"always {frequent}",
        f"Answers “{frequent}”, the most frequent label of {whose}, whatever the row holds. "
        f"No change can flip it{flat}: a model is worth its robustness only where its share of all rows is above this "
        f"one, or its balanced share above {percent(1.0 / np.unique(labels).size)}, that of any constant answer.",
        np.asarray(labels == frequent),
        np.full(inputs.n_rows, np.inf),
    )
    is_read = getattr(inputs.subject.estimator, "source_", None) is not None  # by another library: no surrogate of it
    return (
        [constant]
        if settings.y_train is None or is_read
        else [constant, _train_without_noise(inputs, labels, settings)]
    )


def _train_without_noise(inputs: LabelInputs, labels: LabelArray, settings: ReportSettings) -> _Baseline:
    subject = inputs.subject
    if subject.estimator is None:
        raise ValueError("`X_train` needs a classifier that can be trained again: a bare model cannot. Leave it out.")
    surrogate, label, how = _make_surrogate(subject.estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        surrogate.fit(settings.X_train, np.asarray(settings.y_train))
    plain = inputs.plain
    # a surrogate that reads no column with gaps has nothing to lose where a value goes missing
    threat = plain.threat if surrogate.ensemble_.missing_features else replace(plain.threat, missing="fixed")
    certificates = certify(
        surrogate.ensemble_, inputs.matrix, subject.noise, rule=plain.rule, proof=inputs.proof, threat=threat
    )
    return _Baseline(
        "without-noise",
        label,
        f"The same {type(subject.estimator).__name__} with the same parameters, trained on the "
        f"same rows {how}, so that it does not learn to be robust; certified exactly as the model is.",
        np.asarray(subject.classes[certificates.label] == labels),
        certificates.radius,
    )


def _make_surrogate(estimator: CertifiedClassifier) -> tuple[CertifiedClassifier, str, str]:
    """A surrogate that does not learn to be robust, what it is called, and what it is trained with."""
    parameters, own = estimator.get_params(deep=False), estimator.noise_
    if own is not None and parameters.get("scaling") is not None:
        own = own.with_units(None)  # they are left to `scaling`
    if {"radius", "norm"} <= set(parameters):  # it is trained for a radius; a vote needs its noise
        noise = {"noise": own} if parameters["rule"] == "vote" else {}
        return type(estimator)(**{**parameters, "radius": 0.0, **noise}), "not trained for robustness", "for radius 0"
    assert own is not None  # only trainers of a radius know models without noise
    weak = type(own)(own.magnitude * _BASELINE_SHARE, own.units)  # type: ignore[call-arg]
    surrogate = type(estimator)(**{**parameters, "noise": weak})
    return surrogate, "trained without noise", f"with {_BASELINE_SHARE:.0%} of the noise"


def tabulate(accuracy: Accuracy, scale: Scale) -> AccuracyTable:
    """The curves at the major radii, as shares and as text."""
    at = [scale["radii"].index(radius) for radius in scale["major"]]
    _, *changed = [one["key"] for one in accuracy["series"] if one["role"] == "l0"]  # the first is that of all rows
    shown = [one for one in accuracy["series"] if one["role"] != "l0" or one["key"] in changed]
    return {
        "radii": scale["major"],
        "rows": [
            {
                "key": one["key"],
                "label": _name_line(one),
                "values": [one["values"][k] for k in at],
                "text": [percent(one["values"][k]) for k in at],
            }
            for one in shown
        ],
    }


def _name_line(series: Series) -> str:
    prefix = {"class": "class ", "l0": "numbers ", "baseline": "baseline: "}.get(series["role"], "")
    return prefix + str(series["label"])


def draw_curves(summary: Parts, roles: Sequence[str]) -> Markup | None:
    """Certified accuracy over the radius for some families of curves, with the mark that the slider moves."""
    radii = summary["scale"]["radii"]
    chosen = [one for one in summary["accuracy"]["series"] if one["role"] in roles]
    if len(radii) < 2 or not chosen:
        return None
    end = summary["scale"]["end"]
    styles = [style_of(one, [other for other in chosen if other["role"] == one["role"]]) for one in chosen]
    curves = [(style, one["values"]) for style, one in zip(styles, chosen, strict=True)]
    frame, body = draw_shares(summary, radii, end, curves)
    body.append(mark_radius(frame, summary["scale"]["quoted"]))
    k = radii.index(summary["scale"]["quoted"])
    told = ", ".join(f"{one['label']} {percent(one['values'][k])}" for one in chosen)
    title = f"{summary['accuracy']['measure'].capitalize()} over the radius"
    return wrap_svg(frame, "".join(body), title, f"At radius {format_exactly(radii[k])}: {told}", **slide_radius(frame))


def style_of(series: Series, family: Sequence[Series]) -> str:
    """Class of a curve: by its role, and within a family of several by its place."""
    if series["role"] in ("all", "balanced"):
        return _ROLE_CLASSES[series["role"]]
    if series["key"] == "baseline=balanced":
        return "line-base line-balanced"
    place = next(k for k, one in enumerate(family) if one["key"] == series["key"])
    return f"{'line-base' if series['role'] == 'baseline' else 'line-family'} line-{place % 4}"


def draw_budgets(summary: Parts) -> Markup | None:
    """For a model without a radius: certified accuracy by the number of changed categories, as bars."""
    chosen = [one for one in summary["accuracy"]["series"] if one["role"] == "l0"]
    if len(chosen) < 2 or len(summary["scale"]["radii"]) > 1:
        return None
    frame = Frame(WIDTH, HEIGHT, (-0.6, len(chosen) - 0.4), (0.0, 1.0))
    body = [frame.grid(SHARES)]
    for one in chosen:
        x, y = frame.x(one["l0"] - 0.3), frame.y(one["values"][0])
        width = round(frame.x(one["l0"] + 0.3) - x, 1)
        body.append(f'<rect class="bar-right" x="{x}" y="{y}" width="{width}" height="{round(frame.floor - y, 1)}"/>')
        label = percent(one["values"][0])
        body.append(f'<text class="tick mid strong" x="{round(x + width / 2, 1)}" y="{y - 5}">{label}</text>')
    body.append(frame.ticks(((one["l0"], str(one["l0"])) for one in chosen), "categories that may change"))
    told = ", ".join(f"{one['l0']}: {percent(one['values'][0])}" for one in chosen)
    return wrap_svg(frame, "".join(body), "Certified accuracy by changed categories", told)


def blocks(summary: Parts) -> list[ui.Block]:
    """Curves with their slider, and the same in numbers; LaTeX has them in per cent."""
    scale, measure, labels = summary["scale"], summary["accuracy"]["measure"], summary["data"]["has_labels"]
    radii, is_curve = summary["table"]["radii"], len(scale["radii"]) > 1
    kinds = ["quoted" if radius == scale["quoted"] else "" for radius in radii]
    heads = [ui.Cell(format_exactly(radius), kind=kind) for radius, kind in zip(radii, kinds, strict=True)]
    lines: list[ui.Line] = [
        [shorten(row["label"]), *(ui.Cell(text, kind=kind) for text, kind in zip(row["text"], kinds, strict=True))]
        for row in summary["table"]["rows"]
    ]
    caption = f"The same in numbers{', by radius' if is_curve else ''}"
    table = ui.Table([ui.Cell("radius", ui.quiet("radius")), *heads], lines, caption, caption, "accuracy-table")
    bare = [[cell.removesuffix("\N{NO-BREAK SPACE}%") for cell in line] for line in table.texts]
    title = f"{measure} in per cent; needs \\usepackage{{booktabs}}"
    right = "right and " if labels else ""
    change = "every change smaller than the radius" if is_curve else "all that is allowed"
    if summary["threat"]["norm"] == 0:
        change = "every change of so many numbers, to anything"
    told = f"The share of rows whose answer is {right}proven to stay the same under {change}."
    told += "" if labels else " No labels were given, so wrong answers count as well."
    end = f"Radius {format_exactly(scale['quoted'])}, of which the text speaks, lies beyond the end of the charts."
    pictures = [
        (draw_curves(summary, roles), name, _list_legend(summary, roles))
        for roles, name in (
            (("all", "balanced", "baseline"), "All rows"),
            (("class",), "Each class by itself"),
            (("l0",) if _has_budgets(summary) else (), "With categories changed as well"),
        )
    ]
    pictures.append((draw_budgets(summary), "By how many categories may change", []))
    return [
        ui.on_page(
            ui.Heading(f"{measure.capitalize()}{' over the radius' if is_curve else ''}", "accuracy"),
            ui.Paragraph(told),
            *([ui.Raw(render("slider", summary, quoted_at=scale["radii"].index(scale["quoted"])))] if is_curve else []),
            ui.Group("charts", [ui.Figure(*picture) for picture in pictures]),
            ui.Paragraph(end if scale["quoted"] > scale["end"] else "", "fine"),
        ),
        ui.in_markdown(ui.Heading(measure.capitalize())),
        table,
        ui.on_page(*list_baselines(summary)),
        ui.in_latex(ui.Table([f"radius ({summary['threat']['norm_text']})", *heads], bare, latex_title=title)),
    ]


def _has_budgets(summary: Parts) -> bool:
    return sum(one["role"] == "l0" for one in summary["accuracy"]["series"]) > 1


def _list_legend(summary: Parts, roles: Sequence[str]) -> list[tuple[str, str]]:
    chosen = [one for one in summary["accuracy"]["series"] if one["role"] in roles]
    families = {role: [one for one in chosen if one["role"] == role] for role in roles}
    return [(style_of(one, families[one["role"]]), shorten(one["label"], 40)) for one in chosen]


def list_baselines(summary: Parts) -> list[ui.Block]:
    """What the model is compared with, and how shares are rounded, folded."""
    told = [
        f"{one['label']}: {percent(one['accuracy'])} right. {one['description']}"
        for one in summary["accuracy"]["baselines"]
    ]
    small = (
        "Shares are cut after one decimal, never rounded up: a share and what is computed from it elsewhere may differ "
        "by 0.1. Between the points that were computed curves are drawn below the truth, never above."
    )
    return [ui.Details("", [ui.Bullets([*told, small], "fine")], summary="The baselines, and how shares are rounded")]


SECTION = ui.Section("accuracy", lambda s: s["accuracy"]["measure"].capitalize(), blocks)
