"""The guarantee in plain words, with this model's numbers. Text only: no markup."""

from __future__ import annotations

import math
from typing import NamedTuple, TypedDict

import numpy as np

from derand._core.text import (
    format_count,
    format_exactly,
    format_readable,
    format_short,
    format_short_down,
    format_short_up,
    plural,
    shorten,
)
from derand.explain import multiply_down
from derand.metrics import describe_costs
from derand.report._facts import RuleFacts, Scale, ThreatFacts
from derand.report._inputs import IntervalInputs, LabelInputs
from derand.report._markup import percent
from derand.report.sections.accuracy import Accuracy
from derand.report.sections.intervals import Spread
from derand.report.sections.limits import Verdicts
from derand.report.sections.predictions import Answers, Errors, name_constant
from derand.report.sections.radii import Radii
from derand.report.sections.shapes import Shape
from derand.report.sections.threat import (
    describe_also,
    describe_covered,
    describe_measure,
    describe_size,
    describe_threat,
)


class HeadlineNumber(TypedDict):
    """A number at the top of the page."""

    name: str
    value: str
    note: str


class AnswerBar(TypedDict):
    """What is known of the rows with an answer, the first one of all rows."""

    name: str
    n_rows: int
    holds: int
    flips: int
    undecided: int


class Guarantee(TypedDict):
    """What is proven, in words."""

    question: str
    statements: list[str]
    """The answer, and what else is proven."""
    paragraph: str
    """The statements in one."""
    bars: list[AnswerBar]
    measure: str
    limits: list[str]
    numbers: list[HeadlineNumber]


_RIGHT, _CERTIFIED, _CHANGED = "Right answers", "Certified accuracy", "With 1 category changed"
_SHARES = (_CERTIFIED, _CHANGED)
"""Headlines that a constant answer is compared with."""


class Words(NamedTuple):
    """What was said already: of the rule, of the threat, of limits alone, and of the answers."""

    rule: RuleFacts
    threat: ThreatFacts
    verdicts: Verdicts | None
    answers: Answers | None


def _give_example(inputs: LabelInputs, scale: Scale, feature: int) -> str:
    """The quoted radius in the unit of one column; nothing where that is the radius itself."""
    name = inputs.subject.names[feature]
    move = format_short_down(multiply_down(scale["quoted"], float(inputs.units[feature])))
    size = format_exactly(scale["quoted"])
    if move == size:
        return ""
    days = " days" if feature in inputs.subject.dates else ""
    return f"For instance, a move of “{shorten(name)}” alone by less than {move}{days} is smaller than {size}."


def compute(
    inputs: LabelInputs, scale: Scale, radii: Radii, accuracy: Accuracy, shapes: list[Shape], words: Words
) -> Guarantee:
    """Question and answer, how size is measured (the most important feature is the example), limits, headlines."""
    at = scale["radii"].index(scale["quoted"])
    curves, bars = {one["key"]: one["values"] for one in accuracy["series"]}, _count_bars(inputs, scale["quoted"])
    share = curves["all"][at]
    if words.verdicts is None:
        sentences = [_describe_share(inputs, scale, share)]
        if len(inputs.certificates) > 1:
            left = percent(curves["l0=1"][at])
            also = f"If any one of its categories may become anything at the same time, {left} of the rows remain."
            sentences.append(also)
        sentences.append("This is proven and not tested.")
        numbers = [*_count_known(bars[0], ""), *_list_numbers(inputs, scale, radii, curves, at)]
    else:
        sentences = [words.verdicts["sentence"]]
        if inputs.truth is not None:
            sentences.append(f"For {_count_share(share, inputs)} the answer is right and proven to hold.")
        sentences.append("What holds is proven and not tested; what flips was tried on the model.")
        numbers = _count_known(bars[0], ", within the limits")
    if words.answers is not None:
        constant = name_constant(words.answers["figures"])
        for one in numbers:
            one["note"] += f"; {constant}" if one["name"] in _SHARES else ""
        numbers = [*numbers, *_list_answers(words.answers)]
    measure, foremost = describe_measure(inputs), _choose_example(inputs, shapes)
    if measure and foremost is not None and scale["quoted"] > 0 and inputs.threat.norm != 0:
        measure = f"{measure} {_give_example(inputs, scale, foremost)}".rstrip()
    measure = " ".join(filter(None, [measure, _describe_scale(scale)]))
    return {
        "question": f"Can a {_name_change(inputs, scale)} flip any of these {plural(inputs.n_rows, 'decision')}?",
        "statements": [*sentences, *([measure] if measure else [])],
        "paragraph": " ".join(sentences),
        "bars": bars,
        "measure": measure,
        "limits": _list_limits(inputs, scale),
        "numbers": numbers,
    }


def _name_change(inputs: LabelInputs, scale: Scale) -> str:
    """The changes that the question asks about."""
    if inputs.threat.norm is not None and not scale["quoted"]:
        return "change that is allowed"
    return describe_covered(None if inputs.threat.norm is None else scale["quoted"], inputs.threat.norm).rstrip(",")


def _count_bars(inputs: LabelInputs, radius: float) -> list[AnswerBar]:
    """How many rows are proven to hold, flip, or neither: of all, and of each answer, the most frequent first."""
    plain = inputs.plain
    if plain.verdict is not None:
        holds, flips = plain.verdict == "holds", plain.verdict == "flips"
    else:
        holds = (plain.radius >= radius) & (plain.radius > 0)
        flips = np.zeros_like(holds) if plain.attacked is None else ~holds & (plain.attacked < radius)
    every = [("all rows", np.ones(inputs.n_rows, dtype=bool))]
    every += sorted(
        ((str(name), np.asarray(plain.label == name)) for name in inputs.subject.classes.tolist()),
        key=lambda one: -int(one[1].sum()),
    )
    return [
        {
            "name": name,
            "n_rows": int(at.sum()),
            "holds": int((holds & at).sum()),
            "flips": int((flips & at).sum()),
            "undecided": int((at & ~holds & ~flips).sum()),
        }
        for name, at in every
        if at.any()
    ]


def _choose_example(inputs: LabelInputs, shapes: list[Shape]) -> int | None:
    """The most important numerical feature that may change, as far as that is known."""
    ranked = [shape["feature"] for shape in shapes if shape["kind"] == "numerical"]
    return next((feature for feature in [*ranked, *inputs.moving] if feature in inputs.moving), None)


def _describe_scale(scale: Scale) -> str:
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


def _count_share(share: float, inputs: LabelInputs) -> str:
    rows = round(share * inputs.n_rows)
    return f"{format_count(rows)} of {plural(inputs.n_rows, 'row')} ({percent(share)})"


def _describe_share(inputs: LabelInputs, scale: Scale, share: float) -> str:
    start, answer = f"For {_count_share(share, inputs)}", "the model's answer"
    if inputs.truth is not None:
        start, answer = f"{start} the model's answer is right, and", "it"
    also = describe_also(inputs)
    if not inputs.subject.model.numerical_features:
        return f"{start} no change of the row's numbers{also} can alter {answer}: the model reads none."
    if scale["quoted"] == 0:
        return f"{start} no change of the row's numbers that is small enough{also} can alter {answer}."
    size = describe_size(inputs, scale["quoted"])
    return f"{start} no change {size}{also} can alter {answer}."


def _list_limits(inputs: LabelInputs, scale: Scale) -> list[str]:
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
    limits.append(_describe_whose(inputs))
    return limits


def _describe_whose(inputs: LabelInputs) -> str:
    """Which model it is about."""
    estimator = inputs.subject.estimator
    if inputs.subject.noise is None and estimator is not None and estimator.noise_ is None:
        return "It is about the model itself, the one whose answers derand gives: nothing is smoothed."
    if inputs.subject.noise is None:
        return "It is about the model as deployed, without noise: the smoothed model may answer otherwise."
    how = "the majority over" if inputs.rule == "vote" else "by the expected score of"
    return f"It is about the smoothed model, the one whose answers derand gives: {how} all noisy copies of a row."


def _list_numbers(
    inputs: LabelInputs, scale: Scale, radii: Radii, curves: dict[str, list[float]], at: int
) -> list[HeadlineNumber]:
    size = format_exactly(scale["quoted"])
    changes = f"changes smaller than {size}"
    if inputs.threat.norm == 0:
        changes = "changes of any one number" if scale["quoted"] == 1 else f"changes of any {size} numbers"
    numbers: list[HeadlineNumber] = []
    if inputs.truth is not None:
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
        whose = "the rows" if inputs.truth is None else "all rows, right or wrong,"
        note = f"half of {whose} have this or more"
        if math.isinf(float(radii["median"])):
            note = f"no change of numbers can flip half of {whose} or more"
        numbers.append({"name": "Median radius", "value": format_short_down(float(radii["median"])), "note": note})
    return numbers


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


def _count_known(bar: AnswerBar, where: str) -> list[HeadlineNumber]:
    """What is known of all rows; within a radius flips are told where some were found."""
    total = f"of {plural(bar['n_rows'], 'decision')}{where}"
    found: list[HeadlineNumber] = [{"name": "Proven to hold", "value": format_count(bar["holds"]), "note": total}]
    if where or bar["flips"]:
        found.append({"name": "Can be flipped", "value": format_count(bar["flips"]), "note": total})
    return [
        *found,
        {"name": "Undecided", "value": format_count(bar["undecided"]), "note": "neither proven nor found to flip"},
    ]


def compute_for_regression(inputs: IntervalInputs, moves: Spread, errors: Errors | None) -> Guarantee:
    threat = describe_threat(inputs)
    change = describe_covered(inputs.intervals.radius, inputs.threat.norm)
    half, nine, most = (format_short_up(float(moves[key])) for key in ("half_of_rows", "nine_in_ten", "largest"))
    others = ""
    if threat["l0"] or threat["missing"]:
        others = "That holds also where categories change or numbers go missing at the same time, as said below."
    missed = ""
    if errors is not None:
        missed = f"Without any change, answers miss the truth by {format_short(errors['mean_absolute'], 3)} on average."
    numbers: list[HeadlineNumber] = [
        {"name": "Half of the rows move by", "value": half, "note": f"at most, under any {change}".rstrip(",")},
        {"name": "Nine rows in ten move by", "value": nine, "note": "at most"},
        {"name": "No row moves by more than", "value": most, "note": f"of {plural(inputs.n_rows, 'row')}"},
    ]
    if errors is not None:
        note = "root of the mean square, without any change"
        numbers.append({"name": "Error", "value": format_short(errors["rmse"]), "note": note})
    first = (
        f"For half of the rows no {change} moves the answer by more than {half}, for nine rows in ten by no more "
        f"than {nine}, and for none of these {plural(inputs.n_rows, 'row')} by more than {most}."
    )
    measure, sentences = describe_measure(inputs), [text for text in (first, others, missed) if text]
    return {
        "question": f"How far can a {change.rstrip(',')} move the answers to these {plural(inputs.n_rows, 'row')}?",
        "statements": [*sentences, *([measure] if measure else []), "This is proven and not tested."],
        "paragraph": " ".join(sentences),
        "bars": [],
        "measure": measure,
        "limits": [
            "An interval says where the answer of the model stays, not where the truth lies.",
            "Changes that are larger, or of another kind than those that are named, are not covered.",
            "The proofs are about these rows. They say nothing about other rows, however similar.",
        ],
        "numbers": numbers,
    }
