"""Whether the model is any good, whatever is proven of it: its figures beside those of a constant answer, in words.

Owns the banner at the top of a report. Every number comes from `derand.metrics`; must not know how it is shown.
"""

from __future__ import annotations

from derand._core.text import format_count, format_down, format_interval, format_percent_interval, format_readable
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
from derand.report._inputs import Inputs
from derand.report._text import percent, shorten
from derand.report._types import Answers, Banner, CalibrationLine, FigureLine

_SPACE = "\N{NO-BREAK SPACE}"
_DECIMALS = 3


def measure_inputs(inputs: Inputs) -> AnswerMetrics | None:
    """How good the answers are; None without labels."""
    if inputs.labels is None or inputs.grades is None:
        return None
    tally = AnswerTally(inputs.subject.classes)
    tally.add(inputs.labels, inputs.plain.label, inputs.grades)
    return tally.measure()


def summarize_answers(found: AnswerMetrics | None) -> Answers | None:
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


def find_banner(inputs: Inputs, found: AnswerMetrics | None) -> Banner | None:
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
