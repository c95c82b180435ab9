"""The guarantee in plain words, with this model's numbers. Text only: no markup."""

from __future__ import annotations

import math

from derand.report._features import multiply_down
from derand.report._inputs import Inputs
from derand.report._text import percent, plural, shorten
from derand.report._types import Accuracy, Guarantee, HeadlineNumber, Radii, Scale
from derand.text import format_count, format_exactly, format_short_down

_SCALING_UNITS = {
    "standard": "standard deviation in the training data",
    "range": "range in the training data",
}


def describe_unit(inputs: Inputs) -> dict[str, str]:
    """By what the change of a column is divided (nothing, where it counts as it is), and a short name for it."""
    estimator = inputs.subject.estimator
    scaling = None if estimator is None else getattr(estimator, "scaling", None)
    if scaling in _SCALING_UNITS:
        return {"divide": f"its {_SCALING_UNITS[scaling]}", "short": scaling}
    if inputs.subject.noise.units is not None:
        return {"divide": "the unit given for it", "short": "given"}
    return {"divide": "", "short": "own"}


def describe_measure(inputs: Inputs) -> str:
    """How the size of a change is measured; nothing for a model that reads no numbers."""
    subject = inputs.subject
    if not subject.model.numerical_features:
        return ""
    unit = describe_unit(inputs)["divide"]
    each = f"the change of each column is divided by {unit}" if unit else "each column's change is taken as it is"
    combine = (
        "the squares are added up and the root is taken" if subject.noise.norm == 2 else "all are added up without sign"
    )
    return f"The size of a change is one number: {each}, {combine}."


def _give_example(inputs: Inputs, scale: Scale, feature: int) -> str:
    """The quoted radius in the unit of one column."""
    name = inputs.subject.names[feature]
    move = format_short_down(multiply_down(scale["quoted"], float(inputs.subject.units[feature])))
    size = format_exactly(scale["quoted"])
    return f"For instance, a move of “{shorten(name)}” alone by less than {move} is smaller than {size}."


def write_guarantee(inputs: Inputs, scale: Scale, radii: Radii, accuracy: Accuracy, foremost: int | None) -> Guarantee:
    """The paragraph, how size is measured (the feature `foremost` is the example), the limits, the headline numbers."""
    at = scale["radii"].index(scale["quoted"])
    curves = {one["key"]: one["values"] for one in accuracy["series"]}
    sentences = [_say_share(inputs, scale, curves["all"][at])]
    if inputs.subject.model.numerical_features and scale["quoted"] > 0:
        sentences.append(_say_median(radii))
    if len(inputs.certificates) > 1:
        sentences.append(_say_categories(inputs, curves, at))
    sentences.append(_say_proof(inputs))
    measure = describe_measure(inputs)
    if measure and foremost is not None and scale["quoted"] > 0:
        measure += " " + _give_example(inputs, scale, foremost)
    return {
        "paragraph": " ".join(sentences),
        "measure": measure,
        "limits": _list_limits(inputs, scale),
        "numbers": _list_numbers(inputs, scale, radii, curves, at),
    }


def _rows_of(share: float, inputs: Inputs) -> str:
    rows = round(share * inputs.n_rows)
    return f"{format_count(rows)} of {plural(inputs.n_rows, 'row')} ({percent(share)})"


def _say_share(inputs: Inputs, scale: Scale, share: float) -> str:
    start, answer = f"For {_rows_of(share, inputs)}", "the model's answer"
    if inputs.labels is not None:
        start, answer = f"{start} the model's answer is right, and", "it"
    if not inputs.subject.model.numerical_features:
        return f"{start} no change of the row's numbers can alter {answer}: the model reads none."
    if scale["quoted"] == 0:
        return f"{start} no change of the row's numbers that is small enough can alter {answer}."
    size = format_exactly(scale["quoted"])
    return (
        f"{start} no change of the row's numbers that is smaller than {size} can alter {answer}, "
        "whoever makes the change and however it was found."
    )


def _say_categories(inputs: Inputs, curves: dict[str, list[float]], at: int) -> str:
    first, *others = [(one.l0, percent(curves[f"l0={one.l0}"][at])) for one in inputs.certificates[1:]]
    more = "".join(f"; with any {l0}, {share}" for l0, share in others)
    return f"If any one of its categories may become anything at the same time, {first[1]} of the rows remain{more}."


def _say_median(radii: Radii) -> str:
    median = float(radii["median"])
    if not math.isfinite(median):
        return "At least half of all rows withstand every change of their numbers."
    if median == 0:
        return "For more than half of the rows nothing is certified."
    return f"At least half of all rows withstand changes up to size {format_short_down(median)}."


def _say_proof(inputs: Inputs) -> str:
    law = "each member's law under noise" if inputs.subject.additive is None else "the law of the score under noise"
    exact = f"{law} is computed exactly, and rounding errs on the safe side"
    return f"This is proven and not tested: nothing is sampled, {exact}."


def _list_limits(inputs: Inputs, scale: Scale) -> list[str]:
    limits = [
        "It says that an answer stays the same, not that it is right.",
        "It covers the rows of this report. Other rows need certificates of their own.",
    ]
    if inputs.subject.model.numerical_features and scale["quoted"] > 0:
        limits.append(
            "Beyond its radius a row may flip or not: the certificate is a lower bound. Exactly at the radius it may "
            "flip, too."
        )
    if inputs.subject.model.categorical_features:
        limits.append(
            f"Categories: results are given for 0 to {len(inputs.certificates) - 1} changed ones at a time, and "
            "changes to new values count as changes."
        )
    limits.append(
        "It is about the smoothed model, the one whose answers derand gives: the majority over all noisy copies of "
        "a row."
    )
    return limits


def _list_numbers(
    inputs: Inputs, scale: Scale, radii: Radii, curves: dict[str, list[float]], at: int
) -> list[HeadlineNumber]:
    size = format_exactly(scale["quoted"])
    numbers: list[HeadlineNumber] = []
    if inputs.labels is not None:
        numbers.append({"name": "Right answers", "value": percent(radii["accuracy"]), "note": "without any change"})
        note = f"right and proven against changes smaller than {size}" if scale["quoted"] else "right and proven"
        numbers.append({"name": "Certified accuracy", "value": percent(curves["all"][at]), "note": note})
    else:
        note = f"proven against changes smaller than {size}" if scale["quoted"] else "whatever their numbers become"
        numbers.append({"name": "Certified rows", "value": percent(curves["all"][at]), "note": note})
    if len(inputs.certificates) > 1:
        numbers.append(
            {
                "name": "With 1 category changed",
                "value": percent(curves["l0=1"][at]),
                "note": f"to anything, numbers by less than {size}" if scale["quoted"] else "to anything",
            }
        )
    if inputs.subject.model.numerical_features:
        note = "half of the rows have this or more"
        numbers.append({"name": "Median radius", "value": format_short_down(float(radii["median"])), "note": note})
    if inputs.labels is not None and inputs.subject.model.numerical_features and len(inputs.certificates) == 1:
        mean = format_short_down(float(radii["average_certified_radius"]))
        numbers.append({"name": "Average radius", "value": mean, "note": "wrong answers count 0"})
    return numbers
