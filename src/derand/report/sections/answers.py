"""Whether the model is any good, whatever is proven of it: its figures beside those of a constant answer.

Owns the banner at the top of a report on a classifier. Every number comes from `derand.metrics`.
"""

from __future__ import annotations

import math
from typing import TypedDict

from markupsafe import Markup

from derand._core.text import (
    format_count,
    format_down,
    format_interval,
    format_percent_interval,
    format_readable,
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
from derand.report._charts import HEIGHT, WIDTH, Frame, wrap_svg
from derand.report._facts import Banner, Facts
from derand.report._inputs import LabelInputs
from derand.report._markup import make_pipe_table, make_tabular, mark_text, render
from derand.report._text import percent
from derand.report.sections import Section


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


class Parts(Facts):
    """What this section reads."""

    answers: Answers | None


_SPACE = "\N{NO-BREAK SPACE}"
_DECIMALS = 3
_FIGURES = ["measure", "this model", "constant answer", "95 % interval"]


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
        "sentence": _say_constant(figures),
        "lines": _list_lines(figures),
        "calibration": _list_bins(figures),
    }


def find_banner(inputs: LabelInputs, found: AnswerMetrics | None) -> Banner | None:
    """What a reader must know before anything else; None where there is nothing of that kind."""
    remark: Remark | None = judge_labels(inputs.plain.label) if found is None else judge_answers(found)
    return None if remark is None else {"level": remark.level, "title": remark.title, "text": remark.text}


def name_constant(figures: AnswerSummary) -> str:
    """The constant answer and what it gets, in short: it stands beside every figure that it could be compared with."""
    return f"always “{shorten(figures['majority_label'], 24)}”: {percent(figures['majority_share'])}"


def _say_constant(figures: AnswerSummary) -> str:
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
        lines.append(_tell_cost(figures["cost"]))
    return lines


def _tell_cost(cost: CostSummary) -> FigureLine:
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


def html(summary: Parts) -> Markup:
    """Figures, rows by true class and answer, calibration."""
    return render("answers", summary, curve=draw_calibration(summary))


def markdown(summary: Parts) -> list[str]:
    """How good the answers are, beside a constant one."""
    answers = summary["answers"]
    if answers is None:
        return []
    parts = ["## Is the model any good?", make_pipe_table(_FIGURES, _list_figures(answers))]
    if len(answers["figures"]["classes"]) == 2:
        parts.append(make_pipe_table(*_list_confusion(answers)))
    if answers["calibration"]:
        head = ["predicted, on average", "rows", "observed", "95 % interval"]
        bins = [[one["predicted"], one["rows"], one["observed"], one["interval"]] for one in answers["calibration"]]
        parts.append(make_pipe_table(head, bins))
    return [*parts, mark_text(" ".join(answers["figures"]["left_out"]))]


def latex(summary: Parts) -> list[str]:
    """How good the answers are, as tables below the first."""
    answers = summary["answers"]
    if answers is None:
        return []
    lines = ["% figures of the answers", *make_tabular("lrrr", _FIGURES, _list_figures(answers))]
    if len(answers["figures"]["classes"]) == 2:
        head, rows = _list_confusion(answers)
        lines += ["% rows by true class and answer", *make_tabular("l" + "r" * (len(head) - 1), head, rows)]
    return lines


def _list_figures(answers: Answers) -> list[list[str]]:
    return [[line["name"], line["value"], line["constant"], line["interval"]] for line in answers["lines"]]


def _list_confusion(answers: Answers) -> tuple[list[str], list[list[str]]]:
    """Rows by true class and answer: the head of the table, and its lines."""
    figures = answers["figures"]
    head = ["truth", *(f"answer {shorten(name, 16)}" for name in figures["classes"])]
    counts = zip(figures["classes"], figures["confusion"], strict=True)
    return head, [[name, *map(format_count, numbers)] for name, numbers in counts]


SECTION = Section("answers", lambda s: "The answers" if s["answers"] else "", html, markdown, latex)
