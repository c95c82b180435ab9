"""Predictions compared with a constant answer: when they do not beat it, and what is said then.

Must not know models, nor where it is said.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from derand._core.arrays import Labels
from derand._core.text import format_count, format_percent, format_readable, quote_short
from derand.metrics._answers import AnswerMetrics, CostSummary

FEW_ROWS = 20
"""Of fewer labelled rows nothing is said: a few rows may well be alike."""
FEW_UNLABELLED = 50
"""The same where true labels are not known, and all rows may be of one class indeed."""

_LITTLE = 0.05
"""A balanced accuracy that may be so near to that of a constant answer hardly tells classes apart."""


class Remark(NamedTuple):
    """What to say, and how loudly: a warning where answers are worth no more than a constant, else a note."""

    level: Literal["warning", "note"]
    title: str
    text: str


def judge_answers(found: AnswerMetrics) -> Remark | None:
    """What to say of answers beside the true labels; None where they clearly beat a constant answer, or rows are few.

    Where mistakes have costs, these decide: answers must be cheaper than the cheapest constant one. Rows of one true
    class are left alone: they cannot show whether classes are told apart.

    Examples
    --------
    >>> from derand.metrics import measure_answers
    >>> print(judge_answers(measure_answers(["no"] * 29 + ["yes"], ["no"] * 30)).text)
    This model gives every row the answer 'no'; 96.6 % is what the constant answer 'no' gets, too. Its certificates \
say only that it goes on giving that answer: they say nothing about how well it tells rows apart.
    """
    if found.n_rows < FEW_ROWS or found.constant_balanced_accuracy == 1:
        return None
    if found.cost is not None:
        return _judge_cost(found, found.cost)
    if found.beats_constant:
        return _judge_gain(found)
    constant = f"the constant answer {_quote(found.majority_label)}"
    share, accuracy = format_percent(found.majority_share), format_percent(found.accuracy.value)
    only = found.only_answer
    if only is not None:
        title = "This model is worth no more than a constant answer"
        right = f"{share} is what {constant} gets, too"
        if found.accuracy.value < found.majority_share:
            right = f"{accuracy} of them are right, and {constant} would be right on {share}"
        return Remark("warning", title, f"This model gives every row the answer {_quote(only)}; {right}. {_EMPTY}")
    title = "This model is right no more often than a constant answer"
    start = f"The accuracy of this model, {accuracy}, is not above the {share} that {constant} gets."
    balanced, guess = found.balanced_accuracy, format_percent(found.constant_balanced_accuracy)
    if balanced.low > found.constant_balanced_accuracy:
        return Remark(
            "note",
            title,
            f"{start} Its balanced accuracy, {format_percent(balanced.value)}, is above the {guess} of any constant "
            "answer: it does tell the classes apart, and gives right answers of the larger class away for that, as "
            "class weights and moved thresholds do. Judge it by balanced accuracy and by both kinds of errors.",
        )
    return Remark(
        "warning",
        title,
        f"{start} Nor is its balanced accuracy, {format_percent(balanced.value)} ({format_percent(balanced.low)} to "
        f"{format_percent(balanced.high)}), clearly above the {guess} of any constant answer. Its certificates say "
        "that answers stay as they are, not that they are worth anything.",
    )


def _judge_cost(found: AnswerMetrics, cost: CostSummary) -> Remark | None:
    """What to say of answers whose mistakes have costs; None where they are cheaper than every constant answer."""
    if cost["total"] < cost["constant_total"]:
        return None
    total, constant = (format_readable(cost[key]) for key in ("total", "constant_total"))
    text = (
        f"The answers of this model cost {total} on these rows, not less than the {constant} of the constant answer "
        f"{_quote(found.cheapest_label)} ({describe_costs(cost)})."
    )
    if found.only_answer is not None:
        text = f"This model gives every row the answer {_quote(found.only_answer)}. {text}"
    worth = "Its certificates say that answers stay as they are, not that they are worth anything."
    return Remark("warning", "This model costs no less than a constant answer", f"{text} {worth}")


def describe_costs(cost: CostSummary) -> str:
    """What each mistake costs."""
    alarm, miss = (format_readable(cost[key]) for key in ("false_positive", "false_negative"))
    return f"a false positive costs {alarm}, a false negative {miss}"


def _judge_gain(found: AnswerMetrics) -> Remark | None:
    """What to say of answers that beat the constant one by so little that it may be chance, and hardly tell classes."""
    accuracy, balanced = found.accuracy, found.balanced_accuracy
    if accuracy.low > found.majority_share or balanced.low >= found.constant_balanced_accuracy + _LITTLE:
        return None
    totals, right = found.confusion.sum(axis=1), found.confusion.diagonal()
    recall = np.where(totals > 0, right / np.maximum(totals, 1), np.inf)
    missed = int(recall.argmin())
    return Remark(
        "note",
        "This model is not clearly better than a constant answer",
        f"The accuracy of this model, {format_percent(accuracy.value)} ({format_percent(accuracy.low)} to "
        f"{format_percent(accuracy.high)}), is not clearly above the {format_percent(found.majority_share)} that the "
        f"constant answer {_quote(found.majority_label)} gets: it finds {format_count(int(right[missed]))} of "
        f"{format_count(int(totals[missed]))} rows of {_quote(found.classes[missed])}. Try class weights, another "
        "decision threshold (`cost`), a smaller radius or less noise.",
    )


def judge_labels(label: Labels) -> Remark | None:
    """What to say where many rows, whose true labels are not known, all get one answer; else None.

    `label` (n_rows,): answers.
    """
    if label.size < FEW_UNLABELLED or bool(np.any(label != label[0])):
        return None
    return remark_one_answer(label[0], label.size)


def remark_one_answer(label: object, n_rows: int) -> Remark:
    """What to say where all of so many rows get one answer, and their true labels are not known."""
    return Remark(
        "warning",
        "Every row gets the same answer",
        f"All {format_count(n_rows)} rows get the answer {_quote(label)}. Unless all of them are of that class, the "
        "model does no better on them than a constant answer, and certificates say only that it goes on giving it: "
        "compare the answers with known labels.",
    )


_EMPTY = (
    "Its certificates say only that it goes on giving that answer: they say nothing about how well it tells rows apart."
)


def _quote(label: object) -> str:
    """A label as people write it, numpy's as Python's."""
    return quote_short(label.item() if isinstance(label, np.generic) else label)
