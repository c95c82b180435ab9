"""The guarantee in plain words, with this model's numbers. Text only: no markup."""

from __future__ import annotations

import math
from typing import NamedTuple

from derand._core.text import format_count, format_exactly, format_readable, format_short_down
from derand.explaining import multiply_down
from derand.metrics import RadiusFigures, describe_costs
from derand.report._answers import name_constant
from derand.report._inputs import Inputs
from derand.report._text import percent, plural, shorten
from derand.report._threat import describe_measure, name_norm
from derand.report._types import (
    Accuracy,
    Answers,
    Guarantee,
    HeadlineNumber,
    Radii,
    RuleFacts,
    Scale,
    ThreatFacts,
    VerdictCount,
    Verdicts,
)

_RIGHT, _CERTIFIED, _CHANGED = "Right answers", "Certified accuracy", "With 1 category changed"
_SHARES = (_CERTIFIED, _CHANGED)
"""Headlines that a constant answer is compared with."""


class Words(NamedTuple):
    """What was said already: of the rule, of the threat, of limits alone, and of the answers."""

    rule: RuleFacts
    threat: ThreatFacts
    verdicts: Verdicts | None
    answers: Answers | None


def _give_example(inputs: Inputs, scale: Scale, feature: int) -> str:
    """The quoted radius in the unit of one column; nothing where that is the radius itself."""
    name = inputs.subject.names[feature]
    move = format_short_down(multiply_down(scale["quoted"], float(inputs.units[feature])))
    size = format_exactly(scale["quoted"])
    if move == size:
        return ""
    days = " days" if feature in inputs.subject.dates else ""
    return f"For instance, a move of “{shorten(name)}” alone by less than {move}{days} is smaller than {size}."


def write_guarantee(
    inputs: Inputs, scale: Scale, radii: Radii, accuracy: Accuracy, foremost: int | None, words: Words
) -> Guarantee:
    """The paragraph, how size is measured (the feature `foremost` is the example), the limits, the headline numbers."""
    at = scale["radii"].index(scale["quoted"])
    curves = {one["key"]: one["values"] for one in accuracy["series"]}
    if words.verdicts is None:
        sentences = _say_radii(inputs, scale, curves, at)
        numbers = _list_numbers(inputs, scale, radii, curves, at)
    else:
        sentences = _say_verdicts(inputs, words.verdicts, curves["all"][at])
        numbers = _count_verdicts(words.verdicts["counts"][0])
    if words.answers is not None:
        numbers = [*_list_answers(words.answers), *(_compare(one, words.answers) for one in numbers)]
    sentences.append(_say_proven(inputs))
    measure = describe_measure(inputs)
    if measure and foremost is not None and scale["quoted"] > 0 and inputs.threat.norm != 0:
        measure = f"{measure} {_give_example(inputs, scale, foremost)}".rstrip()
    measure = " ".join(filter(None, [measure, _say_scale(scale)]))
    return {
        "paragraph": " ".join(filter(None, sentences)),
        "measure": measure,
        "limits": _list_limits(inputs, scale),
        "numbers": numbers,
    }


def _say_scale(scale: Scale) -> str:
    """Where the radius of the text comes from."""
    if scale["quoted"] == 0:
        return ""
    size = format_exactly(scale["quoted"])
    if scale["stated"]:
        told = f"The radius {size} was stated for this report."
    else:
        told = f"The radius {size} is that of every report for which none is stated, so that reports can be compared."
    if scale["trained"] in (None, scale["quoted"]):
        return told
    return f"{told} The model was trained for {format_exactly(scale['trained'] or 0.0)}."


def _say_radii(inputs: Inputs, scale: Scale, curves: dict[str, list[float]], at: int) -> list[str]:
    sentences = [_say_share(inputs, scale, curves["all"][at])]
    if len(inputs.certificates) > 1:
        sentences.append(_say_categories(curves, at))
    return sentences


def _say_verdicts(inputs: Inputs, verdicts: Verdicts, share: float) -> list[str]:
    """How many answers flip within the limits, and how many are right and hold."""
    sentences = [verdicts["sentence"]]
    if inputs.labels is not None:
        sentences.append(f"For {_rows_of(share, inputs)} the answer is right and proven to hold.")
    return sentences


def _rows_of(share: float, inputs: Inputs) -> str:
    rows = round(share * inputs.n_rows)
    return f"{format_count(rows)} of {plural(inputs.n_rows, 'row')} ({percent(share)})"


def _say_share(inputs: Inputs, scale: Scale, share: float) -> str:
    start, answer = f"For {_rows_of(share, inputs)}", "the model's answer"
    if inputs.labels is not None:
        start, answer = f"{start} the model's answer is right, and", "it"
    also = _say_also(inputs)
    if not inputs.subject.model.numerical_features:
        return f"{start} no change of the row's numbers{also} can alter {answer}: the model reads none."
    if scale["quoted"] == 0:
        return f"{start} no change of the row's numbers that is small enough{also} can alter {answer}."
    return f"{start} no change {_say_size(inputs, scale['quoted'])}{also} can alter {answer}, whoever makes the change."


def _say_size(inputs: Inputs, quoted: float) -> str:
    """Changes of a size, by the threat's norm."""
    size, norm = format_exactly(quoted), inputs.threat.norm
    if norm == 0:
        return f"of any {size if quoted > 1 else 'one'} of the row's numbers"
    if norm == math.inf:
        return f"of the row's numbers, all at once and each by less than {size},"
    named = f" in the {name_norm(inputs)} norm" if inputs.has_threat else ""
    return f"of the row's numbers that is smaller than {size}{named}"


def _say_also(inputs: Inputs) -> str:
    """What the threat allows or forbids besides a size, in short: its own sentences say it in full."""
    threat = inputs.threat
    also = f" and of up to {plural(threat.l0, 'category', 'categories')}" if threat.l0 else ""
    if threat.missing_budget:
        also += f" and of up to {plural(threat.missing_budget, 'number')} that may go missing or appear"
    if threat.limits or threat.domain:
        return f"{also} within what the table below allows"
    return f"{also} that leaves frozen columns alone" if threat.frozen else also


def _say_categories(curves: dict[str, list[float]], at: int) -> str:
    share = percent(curves["l0=1"][at])
    return f"If any one of its categories may become anything at the same time, {share} of the rows remain."


def _say_proven(inputs: Inputs) -> str:
    if inputs.threat.norm is None:
        return "What holds is proven and not tested; what flips was tried on the model."
    return "This is proven and not tested."


def _list_limits(inputs: Inputs, scale: Scale) -> list[str]:
    limits = [
        "It says that an answer stays the same, not that it is right.",
        "It covers the rows of this report. Other rows need certificates of their own.",
    ]
    if inputs.threat.norm is None:
        limits += [
            "Undecided means that neither a proof nor a change that flips the answer was found.",
            "A change that flips an answer keeps to the limits; whether it can happen is for you to judge.",
        ]
    elif inputs.subject.model.numerical_features and scale["quoted"] > 0:
        at_radius = "" if inputs.threat.norm == 0 else " Exactly at the radius it may flip, too."
        limits.append(f"Beyond its radius a row may flip or not: the certificate is a lower bound.{at_radius}")
    if inputs.has_threat:
        limits.append("Changes that the threat does not allow are not covered, such as those of frozen columns.")
    elif inputs.subject.model.categorical_features:
        limits.append(
            f"Categories: results are given for 0 to {len(inputs.certificates) - 1} changed ones at a time, and "
            "changes to new values count as changes."
        )
    if inputs.subject.model.missing_features and not inputs.threat.missing_budget:
        limits.append("Numbers that go missing, or missing ones that appear, are not covered.")
    limits.append(_say_whose(inputs))
    return limits


def _say_whose(inputs: Inputs) -> str:
    """Which model it is about."""
    estimator = inputs.subject.estimator
    if inputs.subject.noise is None and estimator is not None and estimator.noise_ is None:
        return "It is about the model itself, the one whose answers derand gives: nothing is smoothed."
    if inputs.subject.noise is None:
        return "It is about the model as deployed, without noise: the smoothed model may answer otherwise."
    how = "the majority over" if inputs.plain.rule == "vote" else "by the expected score of"
    return f"It is about the smoothed model, the one whose answers derand gives: {how} all noisy copies of a row."


def _list_numbers(
    inputs: Inputs, scale: Scale, radii: Radii, curves: dict[str, list[float]], at: int
) -> list[HeadlineNumber]:
    size = format_exactly(scale["quoted"])
    changes = f"changes smaller than {size}"
    if inputs.threat.norm == 0:
        changes = "changes of any one number" if scale["quoted"] == 1 else f"changes of any {size} numbers"
    numbers: list[HeadlineNumber] = []
    if inputs.labels is not None:
        note = f"right and proven against {changes}" if scale["quoted"] else "right and proven"
        numbers.append({"name": _CERTIFIED, "value": percent(curves["all"][at]), "note": note})
    else:
        note = f"proven against {changes}" if scale["quoted"] else "whatever their numbers become"
        numbers.append({"name": "Certified rows", "value": percent(curves["all"][at]), "note": note})
    if len(inputs.certificates) > 1:
        numbers.append(
            {
                "name": _CHANGED,
                "value": percent(curves["l0=1"][at]),
                "note": f"to anything, numbers by less than {size}" if scale["quoted"] else "to anything",
            }
        )
    if inputs.subject.model.numerical_features:
        whose = "the rows" if inputs.labels is None else "all rows, right or wrong,"
        note = f"half of {whose} have this or more"
        if math.isinf(float(radii["median"])):
            note = f"no change of numbers can flip half of {whose} or more"
        numbers.append({"name": "Median radius", "value": format_short_down(float(radii["median"])), "note": note})
    if "certified" in radii and inputs.subject.model.numerical_features and len(inputs.certificates) == 1:
        numbers += _list_average(radii["certified"])
    return numbers


def _list_average(radii: RadiusFigures) -> list[HeadlineNumber]:
    """The average radius of rows that have one; how many have no limit is told beside it."""
    if radii["average_of_others"] is None:
        return []
    note = "wrong answers count 0"
    if radii["unbounded_rows"]:
        note = f"{percent(radii['unbounded_share'])} of the rows have no limit and are left out; {note}"
    return [{"name": "Average radius", "value": format_short_down(radii["average_of_others"]), "note": note}]


def _list_answers(answers: Answers) -> list[HeadlineNumber]:
    """How good the answers are, beside a constant one."""
    accuracy, balanced = answers["lines"][:2]
    note = f"mean over the classes; any constant answer: {balanced['constant']}"
    cost: list[HeadlineNumber] = []
    told = answers["figures"]["cost"]
    if told is not None:
        constant = f"always “{shorten(told['constant_label'], 24)}”: {format_readable(told['constant_total'])}"
        value = format_readable(told["total"])
        cost.append({"name": "Cost of mistakes", "value": value, "note": f"{describe_costs(told)}; {constant}"})
    return [
        *cost,
        {
            "name": _RIGHT,
            "value": accuracy["value"],
            "note": f"without any change; {name_constant(answers['figures'])}",
        },
        {"name": "Balanced accuracy", "value": balanced["value"], "note": note},
    ]


def _compare(number: HeadlineNumber, answers: Answers) -> HeadlineNumber:
    """A share of right answers with what the constant answer gets."""
    if number["name"] not in _SHARES:
        return number
    return {**number, "note": f"{number['note']}; {name_constant(answers['figures'])}"}


def _count_verdicts(count: VerdictCount) -> list[HeadlineNumber]:
    total = f"of {plural(count['n_rows'], 'decision')}"
    return [
        {"name": "Can be flipped", "value": format_count(count["flips"]), "note": f"{total}, within the limits"},
        {"name": "Proven to hold", "value": format_count(count["holds"]), "note": f"{total}, within the limits"},
        {"name": "Undecided", "value": format_count(count["undecided"]), "note": "neither proof nor flip found"},
    ]
