"""Inputs -> one plain dict that every output renders. Numbers, text and lists alone: it is JSON as it stands.

Owns the keys of a report, and what is left out of it. Must not know HTML, Markdown or LaTeX.
"""

from __future__ import annotations

import time
from typing import TypedDict, cast

import numpy as np

from derand._core.text import as_plain_json, format_count, plural
from derand.report._facts import (
    Banner,
    DataFacts,
    ModelFacts,
    NoiseFacts,
    RegressionData,
    RegressionRule,
    RegressorFacts,
    RuleFacts,
    Scale,
    ThreatFacts,
)
from derand.report._inputs import IntervalInputs, LabelInputs
from derand.report._settings import ReportSettings
from derand.report.sections import (
    accuracy,
    classes,
    compare,
    computed,
    guarantee,
    intervals,
    limits,
    predictions,
    promises,
    radii,
    rows,
    shapes,
    subgroups,
    threat,
    units,
    weakest,
    what_if,
)


class ReportSummary(TypedDict):
    """All that a report says."""

    schema: str
    title: str
    banner: Banner | None
    notes: list[str]
    """What else a reader must know of the model, such as columns that may tell the target."""
    model: ModelFacts
    data: DataFacts
    noise: NoiseFacts
    rule: RuleFacts
    threat: ThreatFacts
    threat_table: threat.ThreatTable
    guarantee: guarantee.Guarantee
    answers: predictions.Answers | None
    scale: Scale
    radii: radii.Radii
    accuracy: accuracy.Accuracy
    table: accuracy.AccuracyTable
    comparison: compare.Comparison | None
    verdicts: limits.Verdicts | None
    confusion: classes.Confusion | None
    rivals: classes.Rivals | None
    histogram: radii.Histogram
    moves: list[units.Move]
    shapes: list[shapes.Shape]
    rows: rows.Rows
    what_if: what_if.WhatIf | None
    subgroups: list[subgroups.Subgroups]
    group_comparison: subgroups.GroupComparison | None
    promises: promises.ProvenPromises | None
    left_out: list[str]
    checksums: list[computed.Checksum]
    computed: computed.Computed


class IntervalSummary(TypedDict):
    """All that a report on intervals says."""

    schema: str
    title: str
    model: RegressorFacts
    data: RegressionData
    noise: NoiseFacts
    rule: RegressionRule
    threat: ThreatFacts
    threat_table: threat.ThreatTable
    notes: list[str]
    """What else a reader must know of the model."""
    radius: float | None
    """None where limits alone say what may change."""
    guarantee: guarantee.Guarantee
    moves: intervals.Spread
    """By how much answers can move."""
    widths: intervals.Spread
    errors: predictions.Errors | None
    banner: Banner | None
    curve: intervals.WidthCurve | None
    tolerance: intervals.ToleranceFacts | None
    """None where there is no radius, or no number may change."""
    rows: intervals.IntervalRows
    shapes: list[shapes.Shape]
    subgroups: list[subgroups.Subgroups]
    group_comparison: subgroups.GroupComparison | None
    what_if: what_if.WhatIf | None
    left_out: list[str]
    checksums: list[computed.Checksum]
    computed: computed.Computed


def summarize_classification(
    inputs: LabelInputs, settings: ReportSettings, other: compare.OtherModel | None
) -> ReportSummary:
    """All that a report on a classifier says; `other` is the model it is compared with."""
    start = time.perf_counter()
    scale = accuracy.choose_scale(inputs, settings.radius)
    typical = radii.compute(inputs)
    curves = accuracy.compute(inputs, scale, settings)
    drawn = shapes.compute(inputs, settings.n_shapes)
    listed = rows.compute(inputs, scale, settings)
    listed["explained"] = weakest.compute(inputs, listed, settings.n_explained)
    moved, moved_note = what_if.compute(inputs, listed["listed"]["row"], settings)
    groups, comparison = subgroups.compute(inputs, settings.subgroups, scale["quoted"])
    measured = predictions.measure(inputs)
    words = guarantee.Words(
        computed.describe_rule(inputs),
        threat.describe_threat(inputs),
        limits.compute(inputs),
        predictions.compute(measured),
    )
    summary: ReportSummary = {
        "schema": "derand-report/1",
        "title": settings.title or "Certificate report",
        "banner": predictions.judge_predictions(inputs, measured),
        "notes": list(settings.notes),
        "model": computed.describe_classifier(inputs.subject),
        "data": computed.describe_labels(inputs),
        "noise": computed.describe_noise(inputs),
        "rule": words.rule,
        "threat": words.threat,
        "threat_table": threat.compute(
            inputs,
            None if inputs.threat.norm is None else scale["quoted"],
            inputs.budgets[-1] if len(inputs.budgets) > 1 else 0,
        ),
        "guarantee": guarantee.compute(inputs, scale, typical, curves, drawn, words),
        "answers": words.answers,
        "scale": scale,
        "radii": typical,
        "accuracy": curves,
        "table": accuracy.tabulate(curves, scale),
        "comparison": compare.compute(inputs, other, scale),
        "verdicts": words.verdicts,
        "confusion": classes.summarize_confusion(inputs, scale["quoted"]),
        "rivals": classes.summarize_rivals(inputs, scale["quoted"]),
        "histogram": radii.count_radii(inputs, scale),
        "moves": units.compute(inputs, typical),
        "shapes": drawn,
        "rows": listed,
        "what_if": moved,
        "subgroups": groups,
        "group_comparison": comparison,
        "promises": promises.compute(inputs, settings),
        "left_out": [*_list_left_out(inputs, drawn, listed, settings), *moved_note, *settings.left_out],
        "checksums": computed.list_checksums(inputs, settings, None if other is None else other.classifier),
        "computed": computed.compute(inputs, start, settings.configuration),
    }
    return cast(ReportSummary, as_plain_json(summary))


def summarize_regression(inputs: IntervalInputs, settings: ReportSettings) -> IntervalSummary:
    """All that a report on a regressor says."""
    start = time.perf_counter()
    found, random = inputs.intervals, np.random.default_rng(settings.seed)
    moves, drawn = intervals.measure_spread(inputs.moves), shapes.compute(inputs, settings.n_shapes)
    groups, comparison = subgroups.compute(inputs, settings.subgroups, 0.0)
    missed, listed = predictions.compute_errors(inputs), intervals.list_rows(inputs, settings, random)
    curve = intervals.trace_widths(inputs, random)
    tolerated = intervals.measure_tolerance(inputs, settings.tolerance, moves, missed, listed)
    moved, moved_note = what_if.compute(inputs, listed["listed"]["row"], settings)
    summary: IntervalSummary = {
        "schema": "derand-intervals/1",
        "title": settings.title or "Interval report",
        "model": computed.describe_model(inputs.subject),
        "data": computed.describe_targets(inputs),
        "noise": computed.describe_noise(inputs),
        "rule": computed.describe_regression_rule(inputs),
        "threat": threat.describe_threat(inputs),
        "threat_table": threat.compute(inputs, found.radius),
        "notes": list(settings.notes),
        "radius": found.radius,
        "guarantee": guarantee.compute_for_regression(inputs, moves, missed),
        "moves": moves,
        "widths": intervals.measure_spread(found.width),
        "errors": missed,
        "banner": predictions.judge_errors(missed, inputs.n_rows),
        "curve": curve,
        "tolerance": tolerated,
        "rows": listed,
        "shapes": drawn,
        "subgroups": groups,
        "group_comparison": comparison,
        "what_if": moved,
        "left_out": [
            *shapes.list_left_out(inputs, drawn),
            *_list_left_out_of_regression(inputs, listed, curve),
            *moved_note,
            *settings.left_out,
        ],
        "checksums": computed.list_checksums(inputs, settings),
        "computed": computed.compute(inputs, start, settings.configuration),
    }
    return cast(IntervalSummary, as_plain_json(summary))


def _list_left_out(
    inputs: LabelInputs, drawn: list[shapes.Shape], listed: rows.Rows, settings: ReportSettings
) -> list[str]:
    """What a reader might miss, and why it is not there."""
    labels, model = inputs.truth, inputs.subject.additive
    notes = []
    if labels is None:
        notes.append(
            "No labels were given: accuracy, curves per class and baselines are left out, and shares count certified "
            "rows, right or wrong."
        )
    elif len(np.unique(labels)) == 1:
        notes.append(
            f"All rows have the label “{labels[0]}”: balanced accuracy equals plain accuracy, and there is no second "
            "class to compare with."
        )
    if not inputs.subject.model.numerical_features:
        notes.append(
            "The model reads no numbers: there is no radius, no distribution of the score and no table of moves."
        )
    elif inputs.threat.norm is None:
        notes.append("Limits alone say what may change: there are no radii, no curves over them and no table of moves.")
    if inputs.subject.noise is None:
        notes.append("Without noise a score is one number: there are no distributions and no failure masses.")
    elif inputs.rule == "mean" and model is not None:
        notes.append(
            "By the rule “mean” the expected score decides: there are no failure masses and no certified percentiles, "
            "and rows are shown with their expected score and its margin."
        )
    notes += shapes.list_left_out(inputs, drawn)
    if listed["sampled"]:
        notes.append(
            f"The row table shows {plural(len(listed['listed']['row']), 'row')} of {inputs.n_rows:,}: the "
            f"{listed['n_weakest']:,} weakest and a random sample of the others (seed {listed['seed']}). Every other "
            "number of the report is about all rows."
        )
    if len(listed["table"]) < len(listed["listed"]["row"]):
        notes.append(
            f"What pushes a row, its failure mass or score, and the law of its score are shown for "
            f"{plural(len(listed['table']), 'row')} of the table: the {listed['n_weakest_detailed']:,} weakest and a "
            f"random sample of the others (seed {listed['seed']})."
        )
    n_laws = sum(row["law"] is not None for row in listed["table"])
    if 0 < n_laws < len(listed["table"]):
        notes.append(f"The model's grid is very fine, so the distributions of {plural(n_laws, 'row')} are shown.")
    if settings.subgroups is None:
        notes.append("No column was chosen for subgroups.")
    return notes


def _list_left_out_of_regression(
    inputs: IntervalInputs, listed: intervals.IntervalRows, curve: intervals.WidthCurve | None
) -> list[str]:
    """What a reader might miss, and why it is not there."""
    notes = []
    if inputs.truth is None:
        notes.append("No true numbers were given: errors are left out, and the picture has rows in order of answers.")
    if curve is None and inputs.threat.norm is None:
        notes.append("Limits alone say what may change: there is no curve over the radius.")
    elif curve is None:
        notes.append("No number may change, or the radius is 0: there is no curve over the radius.")
    elif curve["n_rows"] < inputs.n_rows:
        notes.append(
            f"The curve over the radius is that of {plural(curve['n_rows'], 'row')}, drawn at random (seed "
            f"{listed['seed']})."
        )
    n_listed, n_shown = len(listed["listed"]["row"]), len(listed["table"])
    drawn = f"drawn at random (seed {listed['seed']})"
    if listed["sampled"]:
        notes.append(
            f"The table shows {plural(n_listed, 'row')} of {format_count(inputs.n_rows)}, {drawn}; the widest are "
            "listed by themselves."
        )
    if n_shown < n_listed:
        what = "The picture shows" if inputs.threat.norm is None else "The picture, and radii for a tolerance, are of"
        notes.append(f"{what} {plural(n_shown, 'row')}, {drawn}: the page stays small.")
    return notes
