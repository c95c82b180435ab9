"""A regressor, rows and their intervals -> one plain dict. Numbers, text and lists alone: it is JSON as it stands.

Owns what a report on intervals says. Must not know HTML, Markdown or LaTeX.
"""

from __future__ import annotations

import math
import time
from typing import cast

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import as_plain_json, format_count, format_exactly, format_short, format_short_up
from derand.certificates import Intervals
from derand.report._inputs import Subject, name_estimator
from derand.report._interval_errors import find_number_banner, measure_errors
from derand.report._interval_inputs import NumberInputs, NumberOptions
from derand.report._interval_tolerance import measure_tolerance
from derand.report._interval_types import (
    Errors,
    IntervalRow,
    IntervalRows,
    IntervalSummary,
    ListedNumbers,
    NumberRule,
    RegressorFacts,
    Spread,
    WidthCurve,
)
from derand.report._summarize import NO_WHAT_IF, describe_computation, hash_rows, list_noise
from derand.report._text import plural
from derand.report._threat import describe_measure, describe_threat
from derand.report._threat_table import tabulate_threat
from derand.report._types import Guarantee, HeadlineNumber, Size
from derand.report._what_if import fill_what_if
from derand.report._what_if_types import WhatIf

SCHEMA = "derand-intervals/1"
_CURVE_ROWS = 200  # every radius is a search of its own, by far the most of what a report costs
_CURVE_POINTS = 8
_WIDEST = 10
_MOST_COLUMNS = 5


def summarize_intervals(inputs: NumberInputs, options: NumberOptions) -> IntervalSummary:
    """All that a report on intervals says."""
    start = time.perf_counter()
    found, random = inputs.intervals, np.random.default_rng(options.seed)
    moves = _spread(np.maximum(found.value - found.low, found.high - found.value))
    errors, rows = measure_errors(inputs), _list_rows(inputs, options, random)
    curve = _trace_widths(inputs, random)
    tolerance = measure_tolerance(inputs, options.tolerance, moves, errors, rows)
    what_if, what_if_note = _find_what_if(inputs, rows["listed"]["row"]) if options.what_if else (None, NO_WHAT_IF)
    summary: IntervalSummary = {
        "schema": SCHEMA,
        "title": options.title or "Interval report",
        "model": _describe_model(inputs.subject),
        "data": {
            "n_rows": inputs.n_rows,
            "n_features": int(inputs.matrix.shape[1]),
            "has_targets": inputs.targets is not None,
            "sha256": hash_rows(inputs.matrix, inputs.targets),
        },
        "noise": list_noise(inputs),
        "rule": _describe_rule(found),
        "threat": describe_threat(inputs),
        "threat_table": tabulate_threat(inputs, found.radius),
        "notes": list(options.notes),
        "radius": found.radius,
        "guarantee": _write_guarantee(inputs, moves, errors),
        "moves": moves,
        "widths": _spread(found.width),
        "errors": errors,
        "banner": find_number_banner(errors, inputs.n_rows),
        "curve": curve,
        "tolerance": tolerance,
        "rows": rows,
        "what_if": what_if,
        "left_out": [
            *_list_left_out(inputs, rows, curve),
            *([] if what_if_note is None else [what_if_note]),
            *options.left_out,
        ],
        "checksums": [],
        "computed": describe_computation(inputs.certify_seconds, start, options.configuration),
    }
    return cast(IntervalSummary, as_plain_json(summary))


def _find_what_if(inputs: NumberInputs, listed: list[int]) -> tuple[WhatIf | None, str | None]:
    """What the page needs to move the listed rows."""
    levels = float(inputs.subject.model.members[0].levels)
    return fill_what_if(inputs, listed, points=levels, odds=None)


def _take_share(values: FloatArray, share: float) -> float:
    """The least of the values that so many rows do not exceed."""
    return float(np.sort(values)[math.ceil(share * values.size) - 1])


def _spread(values: FloatArray) -> Spread:
    half, nine, largest = (_take_share(values, share) for share in (0.5, 0.9, 1.0))
    return {"half_of_rows": half, "nine_in_ten": nine, "largest": largest}


def _list_rows(inputs: NumberInputs, options: NumberOptions, random: np.random.Generator) -> IntervalRows:
    listed = _draw_some(inputs.n_rows, options.max_rows, random)
    detailed = _draw_some(listed.size, options.n_detailed, random)
    widest = np.argsort(-inputs.intervals.width, kind="stable")[:_WIDEST]
    return {
        "listed": _list_columns(inputs, listed, detailed),
        "table": [_describe_row(inputs, at) for at in listed[detailed].tolist()],
        "widest": [_describe_row(inputs, at) for at in widest.tolist()],
        "sampled": listed.size < inputs.n_rows,
        "n_rows": inputs.n_rows,
        "seed": options.seed,
    }


def _draw_some(n_rows: int, limit: int, random: np.random.Generator) -> IntArray:
    """Places of all rows, or of a random sample, in their order."""
    everything = np.arange(n_rows)
    return everything if n_rows <= limit else np.sort(random.choice(everything, limit, replace=False))


def _list_columns(inputs: NumberInputs, listed: IntArray, detailed: IntArray) -> ListedNumbers:
    """What the page says of each row that it lists; radii for a tolerance come later."""
    found, targets = inputs.intervals, inputs.targets
    return {
        "row": (listed + 1).tolist(),
        "name": None if inputs.row_names is None else [inputs.row_names[at] for at in listed.tolist()],
        "value": found.value[listed].tolist(),
        "low": found.low[listed].tolist(),
        "high": found.high[listed].tolist(),
        "truth": None if targets is None else targets[listed].tolist(),
        "tolerance": None,
        "detailed": detailed.tolist(),
    }


def _describe_row(inputs: NumberInputs, at: int) -> IntervalRow:
    found = inputs.intervals
    low, high = float(found.low[at]), float(found.high[at])
    truth = None if inputs.targets is None else float(inputs.targets[at])
    return {
        "row": at + 1,
        "name": inputs.name_row(at),
        "value": float(found.value[at]),
        "low": low,
        "high": high,
        "width": high - low,
        "truth": truth,
        "inside": None if truth is None else low <= truth <= high,
        "radius": None,
    }


def _trace_widths(inputs: NumberInputs, random: np.random.Generator) -> WidthCurve | None:
    """Width over the radius, to twice that of the report; None where there is no ball, or none of a size."""
    radius, norm = inputs.intervals.radius, inputs.threat.norm
    if radius is None or not radius > 0 or not math.isfinite(radius) or not inputs.moving:
        return None
    radii = [float(f"{2 * radius * step / _CURVE_POINTS:.12g}") for step in range(_CURVE_POINTS + 1)]
    if norm == 0:
        radii = [float(count) for count in range(min(len(inputs.moving), max(_MOST_COLUMNS, int(radius))) + 1)]
    some = _draw_some(inputs.n_rows, _CURVE_ROWS, random)
    spreads = [_spread(inputs.certify_part(inputs.matrix[some], size).width) for size in radii]
    return {
        "radii": radii,
        "half_of_rows": [one["half_of_rows"] for one in spreads],
        "nine_in_ten": [one["nine_in_ten"] for one in spreads],
        "n_rows": int(some.size),
    }


def _describe_model(subject: Subject) -> RegressorFacts:
    model, estimator = subject.model, subject.estimator
    assert estimator is not None
    read = {feature for term in model.member_terms for feature in term.features}
    return {
        "estimator": name_estimator(estimator),
        "parameters": {name: str(value) for name, value in estimator.get_params(deep=False).items()},
        "n_terms": len(model.member_terms),
        "n_numerical": len(model.numerical_features),
        "n_categorical": len(model.categorical_features),
        "feature_names": list(subject.names),
        "not_read": [name for feature, name in enumerate(subject.names) if feature not in read],
    }


def _describe_rule(found: Intervals) -> NumberRule:
    if found.noise is None:
        return {"name": found.rule, "sentence": "The answer is that of the model as deployed, without noise."}
    if found.rule == "mean":
        return {"name": "mean", "sentence": "The answer is the mean of what all noisy copies of a row get."}
    return {"name": found.rule, "sentence": "The answer is the median of what all noisy copies of a row get."}


def say_change(radius: float | None, threat_norm: Size | None) -> str:
    """The changes that intervals cover, such as "change smaller than 0.25"."""
    if radius is None:
        return "change within the limits"
    if threat_norm == 0:
        return f"change of up to {plural(int(radius), 'number')}, to anything,"
    return f"change smaller than {format_exactly(radius)}"


def _write_guarantee(inputs: NumberInputs, moves: Spread, errors: Errors | None) -> Guarantee:
    threat = describe_threat(inputs)
    change = say_change(inputs.intervals.radius, threat["norm"])
    half, nine, most = (format_short_up(float(moves[key])) for key in ("half_of_rows", "nine_in_ten", "largest"))
    others = ""
    if threat["l0"] or threat["missing"]:
        others = " That holds also where categories change or numbers go missing at the same time, as said below."
    missed = ""
    if errors is not None:
        missed = (
            f" Without any change, answers miss the truth by {format_short(errors['mean_absolute'], 3)} on average."
        )
    numbers: list[HeadlineNumber] = [
        {"name": "Half of the rows move by", "value": half, "note": f"at most, under any {change}".rstrip(",")},
        {"name": "Nine rows in ten move by", "value": nine, "note": "at most"},
        {"name": "No row moves by more than", "value": most, "note": f"of {plural(inputs.n_rows, 'row')}"},
    ]
    if errors is not None:
        note = "root of the mean square, without any change"
        numbers.append({"name": "Error", "value": format_short(errors["rmse"]), "note": note})
    return {
        "paragraph": (
            f"For half of the rows no {change} moves the answer by more than {half}, for nine rows in ten by no more "
            f"than {nine}, and for none of these {plural(inputs.n_rows, 'row')} by more than {most}.{others}{missed}"
        ),
        "measure": describe_measure(inputs),
        "limits": [
            "An interval says where the answer of the model stays, not where the truth lies.",
            "Changes that are larger, or of another kind than those that are named, are not covered.",
            "What is proven is proven of these rows. Of other rows it says nothing, however alike they are.",
        ],
        "numbers": numbers,
    }


def _list_left_out(inputs: NumberInputs, rows: IntervalRows, curve: WidthCurve | None) -> list[str]:
    """What a reader might miss, and why it is not there."""
    notes = []
    if inputs.targets is None:
        notes.append("No true numbers were given: errors are left out, and the picture has rows in order of answers.")
    if curve is None and inputs.threat.norm is None:
        notes.append("Limits alone say what may change: there is no curve over the radius.")
    elif curve is None:
        notes.append("No number may change, or the radius is 0: there is no curve over the radius.")
    elif curve["n_rows"] < inputs.n_rows:
        notes.append(
            f"The curve over the radius is that of {plural(curve['n_rows'], 'row')}, drawn at random (seed "
            f"{rows['seed']})."
        )
    n_listed, n_shown = len(rows["listed"]["row"]), len(rows["table"])
    drawn = f"drawn at random (seed {rows['seed']})"
    if rows["sampled"]:
        notes.append(
            f"The table shows {plural(n_listed, 'row')} of {format_count(inputs.n_rows)}, {drawn}; the widest are "
            "listed by themselves."
        )
    if n_shown < n_listed:
        what = "The picture shows" if inputs.threat.norm is None else "The picture, and radii for a tolerance, are of"
        notes.append(f"{what} {plural(n_shown, 'row')}, {drawn}: the page stays small.")
    return notes
