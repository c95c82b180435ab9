"""Inputs -> one plain dict that every output renders. Numbers, text and lists alone: it is JSON as it stands.

Must not know HTML, Markdown or LaTeX. README.md lists the keys.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import cast

import numpy as np

import derand
from derand._core.arrays import FloatArray
from derand._core.text import as_plain_json
from derand.report._accuracy import choose_scale, summarize_accuracy, summarize_histogram, summarize_radii, tabulate
from derand.report._answers import find_banner, measure_inputs, summarize_answers
from derand.report._audit_types import Checksum
from derand.report._checksums import Marks, list_checksums
from derand.report._compare import summarize_comparison
from derand.report._confusion import summarize_confusion
from derand.report._features import summarize_moves, summarize_shapes
from derand.report._groups import summarize_groups
from derand.report._guarantee import Words, write_guarantee
from derand.report._inputs import Groups, Inputs, LabelArray, ThreatInputs, Training, name_estimator
from derand.report._other import OtherModel
from derand.report._rivals import summarize_rivals
from derand.report._rows import summarize_rows
from derand.report._rule import describe_rule
from derand.report._text import plural
from derand.report._threat import describe_measure, describe_threat, describe_unit
from derand.report._threat_table import tabulate_threat
from derand.report._types import Computed, DataFacts, ModelFacts, NoiseFacts, ReportSummary, Rows, Scale, Shape
from derand.report._verdicts import summarize_verdicts
from derand.report._what_if import summarize_what_if

SCHEMA = "derand-report/1"
NO_WHAT_IF = "“What if”, and with it the model's tables, was left out on request."
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, checked; `CertificateReport` says what each one means."""

    title: str | None
    training: Training | None
    groups: Groups | None
    radius: float | None
    max_rows: int
    n_detailed: int
    n_explained: int
    n_shapes: int
    seed: int
    configuration: str | None
    compare: OtherModel | None = None
    marks: Marks = field(default_factory=dict)
    what_if: bool = True
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def summarize(inputs: Inputs, options: Options) -> ReportSummary:
    """All that a report says."""
    start = time.perf_counter()
    scale = choose_scale(inputs, options.radius, _find_trained_radius(inputs))
    radii = summarize_radii(inputs)
    accuracy = summarize_accuracy(inputs, scale, options.training)
    shapes = summarize_shapes(inputs, options.n_shapes)
    rows = summarize_rows(inputs, scale, options.max_rows, options.n_detailed, options.n_explained, options.seed)
    what_if, what_if_note = summarize_what_if(inputs, rows["listed"]["row"]) if options.what_if else (None, NO_WHAT_IF)
    subgroups, comparison = summarize_groups(inputs, options.groups, scale["quoted"])
    measured = measure_inputs(inputs)
    answers = summarize_answers(measured)
    words = Words(describe_rule(inputs), describe_threat(inputs), summarize_verdicts(inputs), answers)
    summary: ReportSummary = {
        "schema": SCHEMA,
        "title": options.title or "Certificate report",
        "banner": find_banner(inputs, measured),
        "notes": list(options.notes),
        "model": _describe_model(inputs),
        "data": _describe_data(inputs),
        "noise": list_noise(inputs),
        "rule": words.rule,
        "threat": words.threat,
        "threat_table": tabulate_threat(inputs, _read_radius(inputs, scale), _count_budgets(inputs)),
        "guarantee": write_guarantee(inputs, scale, radii, accuracy, _find_foremost(inputs, shapes), words),
        "answers": answers,
        "scale": scale,
        "radii": radii,
        "accuracy": accuracy,
        "table": tabulate(accuracy, scale),
        "comparison": summarize_comparison(inputs, options.compare, scale),
        "verdicts": words.verdicts,
        "confusion": summarize_confusion(inputs, scale["quoted"]),
        "rivals": summarize_rivals(inputs, scale["quoted"]),
        "histogram": summarize_histogram(inputs, scale),
        "moves": summarize_moves(inputs, radii),
        "shapes": shapes,
        "rows": rows,
        "what_if": what_if,
        "subgroups": subgroups,
        "group_comparison": comparison,
        "left_out": [
            *_list_left_out(inputs, shapes, rows, options.groups),
            *([] if what_if_note is None else [what_if_note]),
            *options.left_out,
        ],
        "checksums": _list_checksums(inputs, options),
        "computed": describe_computation(inputs.certify_seconds, start, options.configuration),
    }
    return cast(ReportSummary, as_plain_json(summary))


def _list_checksums(inputs: Inputs, options: Options) -> list[Checksum]:
    subject, other = inputs.subject, options.compare
    return list_checksums(
        options.marks,
        hash_rows(inputs.matrix, inputs.labels),
        subject.model if subject.estimator is None else subject.estimator,
        None if other is None else other.classifier,
    )


def _read_radius(inputs: Inputs, scale: Scale) -> float | None:
    """The radius of the text; None where limits alone say what may change."""
    return None if inputs.threat.norm is None else scale["quoted"]


def _count_budgets(inputs: Inputs) -> int:
    """Up to how many categories may change in other certificates than the plain ones."""
    return inputs.certificates[-1].l0 if len(inputs.certificates) > 1 else 0


def _find_trained_radius(inputs: Inputs) -> float | None:
    """The radius that the model was trained for, where it is certified in the same balls."""
    estimator, threat = inputs.subject.estimator, inputs.threat
    parameters = {} if estimator is None else estimator.get_params(deep=False)
    if estimator is None or not {"radius", "norm"} <= set(parameters) or not parameters["radius"]:
        return None
    own = estimator.default_threat
    same = threat.norm == own.norm is not None and threat.units == (own.units or estimator.units)
    return float(parameters["radius"]) if same else None


def _find_foremost(inputs: Inputs, shapes: list[Shape]) -> int | None:
    """The most important numerical feature that may change, as far as that is known."""
    ranked = [shape["feature"] for shape in shapes if shape["kind"] == "numerical"]
    return next((feature for feature in [*ranked, *inputs.moving] if feature in inputs.moving), None)


def _describe_model(inputs: Inputs) -> ModelFacts:
    subject, model, estimator = inputs.subject, inputs.subject.model, inputs.subject.estimator
    parameters = {} if estimator is None else estimator.get_params(deep=False)
    is_vote = model.weights is not None
    read = {feature for term in model.member_terms for feature in term.features}
    return {
        "kind": "weighted vote of ensembles" if is_vote else "additive ensemble",
        "estimator": None if estimator is None else name_estimator(estimator),
        "parameters": {name: str(value) for name, value in parameters.items()},
        "n_terms": len(model.member_terms),
        "n_members": len(model.members) if is_vote else None,
        "threshold": None if subject.additive is None else subject.additive.threshold,
        "levels": None if subject.additive is None else subject.additive.levels,
        "decision_threshold": getattr(estimator, "decision_threshold_", None),
        "score_unit": "points" if subject.points == 1 else "log-odds",
        "classes": [str(name) for name in subject.classes.tolist()],
        "feature_names": list(subject.names),
        "n_numerical": len(model.numerical_features),
        "n_categorical": len(model.categorical_features),
        "not_read": [name for feature, name in enumerate(subject.names) if feature not in read],
    }


def _describe_data(inputs: Inputs) -> DataFacts:
    labels = inputs.labels
    classes = [] if labels is None else [(str(name), int((labels == name).sum())) for name in inputs.subject.classes]
    return {
        "n_rows": inputs.n_rows,
        "n_features": int(inputs.matrix.shape[1]),
        "has_labels": labels is not None,
        "class_counts": [{"name": name, "n_rows": rows} for name, rows in classes],
        "sha256": hash_rows(inputs.matrix, inputs.labels),
    }


def hash_rows(matrix: FloatArray, labels: LabelArray | None) -> str:
    """Checksum of the rows as the model reads them, and of the labels."""
    digest = hashlib.sha256(str(matrix.shape).encode())
    for start in range(0, len(matrix), 4096):
        # one NaN for all, so that the checksum does not depend on how a gap came to be
        block = np.where(np.isnan(matrix[start : start + 4096]), np.nan, matrix[start : start + 4096])
        digest.update(np.ascontiguousarray(block, dtype="<f8").tobytes())
    if labels is not None:
        digest.update("\n".join(map(str, labels.tolist())).encode())
    return digest.hexdigest()


def list_noise(inputs: ThreatInputs) -> NoiseFacts:
    noise = inputs.subject.noise
    return {
        "name": "none" if noise is None else noise.name,
        "text": "none" if noise is None else str(noise),
        "parameter": "" if noise is None else noise.parameter,
        "magnitude": None if noise is None else noise.magnitude,
        "norm": None if noise is None else noise.norm,
        "unit": describe_unit(inputs)["short"],
        "measure": describe_measure(inputs),
    }


def _list_shapeless(inputs: Inputs, shapes: list[Shape]) -> list[str]:
    """Functions that are not drawn, and why."""
    model = inputs.subject.additive
    if model is None and inputs.subject.model.weights is None:
        return [
            "The model tells several classes apart, each by a score of its own: there is no single score, so there are "
            "no shapes and no laws. A failure mass is that of the rival that is nearest."
        ]
    if model is None:
        return [
            "The model is a weighted vote: it has no single score, so there are no shapes, no failure masses and no "
            "laws."
        ]
    joined = [
        ", ".join(f"“{inputs.subject.names[at]}”" for at in one.features)
        for one in model.terms
        if len(one.features) > 1
    ]
    if joined:
        more = " and others" if len(joined) > 5 else ""
        return [
            "Functions of several columns together are not drawn, and their pushes are not listed: "
            f"{'; '.join(joined[:5])}{more}."
        ]
    if model.is_linear:
        return [
            "The model is linear: its shapes are lines, pushes are told from the mean of these rows, no laws are shown."
        ]
    if len(model.terms) > len(shapes):
        return [f"Shapes are shown for the {len(shapes)} most important of {len(model.terms)} columns."]
    return []


def _list_left_out(inputs: Inputs, shapes: list[Shape], rows: Rows, groups: Groups | None) -> list[str]:
    """What a reader might miss, and why it is not there."""
    labels, model = inputs.labels, inputs.subject.additive
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
        notes.append("The model reads no numbers: there is no radius, no law of the score and no table of moves.")
    elif inputs.threat.norm is None:
        notes.append("Limits alone say what may change: there are no radii, no curves over them and no table of moves.")
    if inputs.subject.noise is None:
        notes.append("Without noise a score is one number: there are no laws and no failure masses.")
    elif inputs.plain.rule == "mean" and model is not None:
        notes.append(
            "By the rule “mean” the expected score decides: there are no failure masses and no certified percentiles, "
            "and rows are shown with their expected score and its margin."
        )
    notes += _list_shapeless(inputs, shapes)
    if rows["sampled"]:
        notes.append(
            f"The row table shows {plural(len(rows['listed']['row']), 'row')} of {inputs.n_rows:,}: the "
            f"{rows['n_weakest']:,} weakest and a random sample of the others (seed {rows['seed']}). Every other "
            "number of the report is about all rows."
        )
    if len(rows["table"]) < len(rows["listed"]["row"]):
        notes.append(
            f"What pushes a row, its failure mass or score, and the law of its score are shown for "
            f"{plural(len(rows['table']), 'row')} of the table: the {rows['n_weakest_detailed']:,} weakest and a "
            f"random sample of the others (seed {rows['seed']})."
        )
    n_laws = sum(row["law"] is not None for row in rows["table"])
    if 0 < n_laws < len(rows["table"]):
        notes.append(f"The model's grid is very fine, so the laws of {plural(n_laws, 'row')} are shown.")
    if groups is None:
        notes.append("No column was chosen for subgroups.")
    return notes


def describe_computation(certify_seconds: float, start: float, configuration: str | None) -> Computed:
    versions = {"derand": derand.__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    fixed = _read_fixed_time()
    return {
        "when": (fixed or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        "configuration": configuration,
        "versions": versions,
        "certify_seconds": certify_seconds if fixed is None else None,
        "report_seconds": time.perf_counter() - start if fixed is None else None,
    }


def _read_fixed_time() -> datetime | None:
    """The time that SOURCE_DATE_EPOCH says, with which two reports on the same rows are the same bytes."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be a whole number of seconds since 1970, got {text!r}: correct or unset it."
        ) from None
