"""Whether predictions are any good, whatever is proven of them: labels or numbers, beside a constant answer.

Owns the banner at the top of a report. Every number about labels comes from `derand.metrics`.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.text import (
    format_count,
    format_down,
    format_interval,
    format_percent_interval,
    format_readable,
    format_short,
    plural,
    shorten,
)
from derand.metrics import (
    AnswerMetrics,
    AnswerSummary,
    AnswerTally,
    CostSummary,
    Remark,
    describe_costs,
    judge_answers,
    judge_labels,
)
from derand.report import _blocks as ui
from derand.report._charts import HEIGHT, WIDTH, Frame, wrap_svg
from derand.report._facts import Banner, Facts, RegressionFacts
from derand.report._inputs import IntervalInputs, LabelInputs
from derand.report._markup import percent


class FigureLine(TypedDict):
    """A figure of the answers as text, its 95 % interval, and what a constant answer gets."""

    name: str
    value: str
    interval: str
    constant: str


class CalibrationLine(TypedDict):
    """Rows of like probabilities, as text."""

    rows: str
    predicted: str
    observed: str
    interval: str


class Answers(TypedDict):
    """How good the answers are, whatever is proven of them."""

    figures: AnswerSummary
    sentence: str
    """What the best constant answer gets."""
    lines: list[FigureLine]
    calibration: list[CalibrationLine]


class Errors(TypedDict):
    """How far answers are from the truth, without any change."""

    rmse: float
    mean_absolute: float
    inside: int
    """How many true numbers lie in the interval of their row."""
    constant: float
    """The mean of the truth: the constant answer that the model is compared with."""
    constant_rmse: float
    constant_absolute: float
    explained: float | None
    """The share of the variance of the truth that answers explain; null where the truth has none."""


class Parts(Facts):
    """What is read of a report on a classifier."""

    answers: Answers | None
    confusion: object


class ErrorParts(RegressionFacts):
    """What is read of a report on a regressor."""

    errors: Errors | None


_SPACE = "\N{NO-BREAK SPACE}"
_DECIMALS = 3
_FEWEST = 20
"""Rows below which no verdict is spoken: their own mean fits few rows too well."""


def measure(inputs: LabelInputs) -> AnswerMetrics | None:
    """How good the answers are; None without labels."""
    if inputs.truth is None or inputs.grades is None:
        return None
    tally = AnswerTally(inputs.subject.classes)
    tally.add(inputs.truth, inputs.plain.label, inputs.grades)
    return tally.measure()


def compute(found: AnswerMetrics | None) -> Answers | None:
    """The figures, and the same as text; None without labels."""
    if found is None:
        return None
    figures = found.to_dict()
    return {
        "figures": figures,
        "sentence": _describe_constant(figures),
        "lines": _list_lines(figures),
        "calibration": _list_bins(figures),
    }


def judge_predictions(inputs: LabelInputs, found: AnswerMetrics | None) -> Banner | None:
    """What a reader must know before anything else; None where there is nothing of that kind."""
    remark: Remark | None = judge_labels(inputs.plain.label) if found is None else judge_answers(found)
    return None if remark is None else {"level": remark.level, "title": remark.title, "text": remark.text}


def name_constant(figures: AnswerSummary) -> str:
    """The constant answer and what it gets, in short: it stands beside every figure that it could be compared with."""
    return f"always “{shorten(figures['majority_label'], 24)}”: {percent(figures['majority_share'])}"


def _describe_constant(figures: AnswerSummary) -> str:
    """What the best constant answer gets, in a sentence."""
    label, share = shorten(figures["majority_label"], 40), percent(figures["majority_share"])
    return f"Always answering “{label}” would be right on {share} of these rows, and no change could alter that."


def _list_lines(figures: AnswerSummary) -> list[FigureLine]:
    """Each figure with its interval, and that of a constant answer."""
    shares = {
        "Accuracy": (figures["accuracy"], figures["majority_share"]),
        "Balanced accuracy": (figures["balanced_accuracy"], figures["constant_balanced_accuracy"]),
    }
    lines = [
        _split(name, format_percent_interval(**estimate, space=_SPACE), percent(constant))
        for name, (estimate, constant) in shares.items()
    ]
    if figures["auc"] is not None:
        lines.append(_split("AUC", format_interval(**figures["auc"], decimals=_DECIMALS), format_down(0.5, _DECIMALS)))
    if figures["log_loss"] is not None:
        text = format_interval(**figures["log_loss"], decimals=_DECIMALS, up=True)
        lines.append(_split("Log-loss", text, format_down(figures["constant_log_loss"], _DECIMALS)))
    if figures["cost"] is not None:
        lines.append(_describe_cost(figures["cost"]))
    return lines


def _describe_cost(cost: CostSummary) -> FigureLine:
    """What the answers cost, beside the cheapest constant answer; it has no interval."""
    total, mean = format_readable(cost["total"]), format_readable(cost["mean"])
    constant, label = format_readable(cost["constant_total"]), shorten(cost["constant_label"], 24)
    return {
        "name": f"Cost: {describe_costs(cost)}",
        "value": f"{total}, {mean} a row",
        "interval": "",
        "constant": f"{constant}, {format_readable(cost['constant_mean'])} a row (always “{label}”)",
    }


def _split(name: str, text: str, constant: str) -> FigureLine:
    """A figure and its interval as two texts."""
    value, interval = text.removesuffix(")").split(" (")
    return {"name": name, "value": value, "interval": interval, "constant": constant}


def _list_bins(figures: AnswerSummary) -> list[CalibrationLine]:
    """What was predicted and what was observed, from the lowest probabilities to the highest."""
    lines: list[CalibrationLine] = []
    for one in figures["calibration"] or ():
        line = _split("", format_percent_interval(**one["observed"], space=_SPACE), "")
        lines.append(
            {
                "rows": format_count(one["rows"]),
                "predicted": percent(one["mean_predicted"]),
                "observed": line["value"],
                "interval": line["interval"],
            }
        )
    return lines


def draw_calibration(summary: Parts) -> Markup | None:
    """Predicted probabilities beside what was observed, with intervals; on the diagonal they agree."""
    bins = [] if summary["answers"] is None else summary["answers"]["figures"]["calibration"] or []
    if not bins:
        return None
    ends = [one["mean_predicted"] for one in bins]
    ends += [one["observed"][end] for one in bins for end in ("low", "high")]
    step = next(step for step in (0.02, 0.05, 0.1, 0.25) if max(ends) - min(ends) <= 4 * step or step == 0.25)
    places = range(math.floor(min(ends) / step + 1e-9), math.ceil(max(ends) / step - 1e-9) + 1)
    ticks = [(place * step, f"{place * step:.3g}") for place in places]
    low, high = ticks[0][0], max(ticks[-1][0], ticks[0][0] + step)
    frame = Frame(WIDTH, HEIGHT, (low, high), (low, high))
    body = [frame.grid(ticks), frame.ticks(ticks, "predicted probability")]
    body.append(f'<path class="line-base line-0" d="M{frame.x(low)},{frame.y(low)}L{frame.x(high)},{frame.y(high)}"/>')
    for one in bins:
        x, observed = frame.x(one["mean_predicted"]), one["observed"]
        bottom, top = frame.y(observed["low"]), frame.y(observed["high"])
        body.append(f'<line class="whisker" x1="{x}" x2="{x}" y1="{bottom}" y2="{top}"/>')
        body.append(f'<circle class="dot" cx="{x}" cy="{frame.y(observed["value"])}" r="3.5"/>')
    told = "; ".join(f"{percent(one['mean_predicted'])} and {percent(one['observed']['value'])}" for one in bins)
    return wrap_svg(frame, "".join(body), "Predicted and observed shares", told)


def compute_errors(inputs: IntervalInputs) -> Errors | None:
    """How far answers are from the truth, and how far the mean of the truth is; None without it."""
    found, targets = inputs.intervals, inputs.truth
    if targets is None:
        return None
    missed, spread = found.value - targets, targets - targets.mean()
    squares = float(np.mean(spread**2))
    return {
        "rmse": float(np.sqrt(np.mean(missed**2))),
        "mean_absolute": float(np.abs(missed).mean()),
        "inside": int(((found.low <= targets) & (targets <= found.high)).sum()),
        "constant": float(targets.mean()),
        "constant_rmse": float(np.sqrt(squares)),
        "constant_absolute": float(np.abs(spread).mean()),
        "explained": 1.0 - float(np.mean(missed**2)) / squares if squares > 0 else None,
    }


def judge_errors(errors: Errors | None, n_rows: int) -> Banner | None:
    """What a reader must know before anything else: that the answers are no better than a constant."""
    if errors is None or errors["explained"] is None or errors["explained"] > 0 or n_rows < _FEWEST:
        return None
    own, constant = (format_short(errors[key]) for key in ("rmse", "constant_rmse"))
    return {
        "level": "warning",
        "title": "The answers are no better than a constant",
        "text": (
            f"Always answering {format_short(errors['constant'])}, the mean of the truth of these rows, has an error "
            f"of {constant} (root of the mean square), and no change could move it. This model has {own}. Its "
            "intervals say where such answers stay, and nothing of their worth."
        ),
    }


def list_errors(errors: Errors) -> list[list[str]]:
    """Lines of the table: what, this model's, that of the constant answer."""
    lines = [
        ["Root of the mean square error", format_short(errors["rmse"]), format_short(errors["constant_rmse"])],
        ["Mean absolute error", format_short(errors["mean_absolute"]), format_short(errors["constant_absolute"])],
    ]
    explained = errors["explained"]
    if explained is not None:
        text = percent(explained, "down" if explained >= 0 else "up")
        lines.append(["Share of the variance that is explained", text, percent(0.0)])
    return lines


def blocks(summary: Parts) -> list[ui.Block]:
    """Figures, rows by true class and answer, calibration."""
    answers = summary["answers"]
    if answers is None:
        return []
    figures = answers["figures"]
    told = (
        "How good its answers are on these rows, whatever is proven of them, beside the best constant answer, "
        f"“{shorten(figures['majority_label'], 40)}” for every row. {answers['sentence']} A certificate is worth as "
        "much as the answer that it is about."
    )
    lines: list[ui.Line] = [
        [line["name"], ui.Cell(line["value"], kind="quoted"), line["constant"], line["interval"]]
        for line in answers["lines"]
    ]
    measured = ui.Table(
        [
            ui.Cell("measure", ui.quiet(plural(figures["rows"], "row"))),
            "this model",
            ui.Cell("constant answer", "Constant"),
            "95 % interval",
        ],
        lines,
        "Figures of the answers",
        test="answers",
        latex_title="figures of the answers",
    )
    matrix = [] if len(figures["classes"]) > 2 else [_tabulate_confusion(figures)]
    calibration: list[ui.Block] = []
    if answers["calibration"]:
        label = "The calibration curve in numbers"
        head = ["predicted, on average", "rows", "observed", "95 % interval"]
        bins = [[one["predicted"], one["rows"], one["observed"], one["interval"]] for one in answers["calibration"]]
        calibration.append(ui.Details("", [ui.Table(head, bins, label, test="calibration")], summary=label))
    name = shorten(figures["classes"][1], 24)
    curve = ui.Figure(
        draw_calibration(summary),
        f"Calibration: of rows with like probabilities of “{name}”, the share that has it",
        [("line-base line-0", "as predicted"), ("bar-right", "observed, with 95 % interval")],
    )
    return [
        ui.Heading("Is the model any good?", "answers"),
        ui.on_page(ui.Paragraph(told)),
        measured,
        ui.on_page(ui.Group("charts", [*(ui.Figure(one.html(), one.label) for one in matrix), curve])),
        ui.in_markdown(*matrix),
        ui.in_latex(*matrix),
        *calibration,
        ui.on_page(ui.Paragraph(_explain_intervals(figures), "fine")),
        ui.in_markdown(ui.Paragraph(" ".join(figures["left_out"]))),
    ]


def _tabulate_confusion(figures: AnswerSummary) -> ui.Table:
    """Rows by true class and answer; of several classes another section has them."""
    classes, label = figures["classes"], "Rows by true class and answer"
    lines: list[ui.Line] = [
        [
            ui.name_cell(name, 30),
            *(ui.Cell(text, kind="quoted" if k == at else "") for k, text in enumerate(ui.count_cells(*counts))),
        ]
        for at, (name, counts) in enumerate(zip(classes, figures["confusion"], strict=True))
    ]
    short = [shorten(name, 16) for name in classes]
    head = [ui.Cell(f"answer {one}", f"Answer {one}", title=name) for one, name in zip(short, classes, strict=True)]
    return ui.Table(["truth", *head], lines, label, test="matrix", latex_title="rows by true class and answer")


def _explain_intervals(figures: AnswerSummary) -> str:
    auc = "; a bootstrap for AUC" if figures["auc"] else ""
    loss = "; a normal one for log-loss, whose constant is the shares of the classes, given to every row"
    return " ".join(
        [
            "Intervals hold with 95 %: Wilson's for shares, joined over the classes by Newcombe's method for balanced "
            f"accuracy{auc}{loss if figures['log_loss'] else ''}.",
            *figures["left_out"],
        ]
    )


def error_blocks(summary: ErrorParts) -> list[ui.Block]:
    """The table of errors."""
    errors = summary["errors"]
    if errors is None:
        return []
    told = (
        "How far they are from the truth on these rows, without any change, beside a constant answer: "
        f"{format_short(errors['constant'])}, the mean of the truth. An interval is worth as much as the answer that "
        "it is about."
    )
    head = ["without any change", "this model", "constant"]
    return [
        ui.Heading("Are the answers any good?", "errors"),
        ui.on_page(ui.Paragraph(told)),
        ui.Table(head, list_errors(errors), "Errors of the answers", test="errors"),
    ]


SECTION = ui.Section(
    "answers", lambda s: "The answers" if s["answers"] else "", blocks, "figures with intervals, calibration"
)
ERRORS = ui.Section(
    "errors", lambda s: "Any good?" if s["errors"] else "", error_blocks, "errors beside those of a constant answer"
)
