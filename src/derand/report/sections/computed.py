"""How a report was computed: the model, the rows, the noise, the rule and its proofs, checksums, versions and times."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, TypedDict

import numpy as np

import derand
from derand._core.arrays import FloatArray
from derand._core.text import format_short, format_threshold, join_words, plural, shorten
from derand.report import _blocks as ui
from derand.report._facts import (
    DataFacts,
    ModelFacts,
    NoiseFacts,
    ProofCount,
    RegressionData,
    RegressionRule,
    RegressorFacts,
    RuleFacts,
)
from derand.report._inputs import Inputs, IntervalInputs, LabelArray, LabelInputs, Subject, name_estimator
from derand.report._markup import render
from derand.report._settings import ReportSettings
from derand.report.sections.threat import describe_measure, describe_unit
from derand.storage import FileMark, hash_model


class Checksum(TypedDict):
    """What a report was made from, by which anyone can tell whether it is the same."""

    what: str
    file: str | None
    """The name of the file; None where there was none."""
    sha256: str
    of: str
    """Of which bytes."""


class Computed(TypedDict):
    """When, with what and how fast; without seconds where SOURCE_DATE_EPOCH fixes the time."""

    when: str
    configuration: str | None
    """The file that says how the report was made, with its checksum; None where there is none."""
    versions: dict[str, str]
    certify_seconds: float | None
    report_seconds: float | None


_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
_PROOFS = ("paper", "dual", "exact", "none")
_LISTED_NAMES = 12
Marks = Mapping[str, FileMark]
"""The files that a report was made from, by what they hold: "model", "data", "training data", "other model"."""


def describe_model(subject: Subject) -> RegressorFacts:
    """What was certified, whatever it answers."""
    model, estimator = subject.model, subject.estimator
    parameters = {} if estimator is None else estimator.get_params(deep=False)
    read = {feature for term in model.member_terms for feature in term.features}
    return {
        "estimator": None if estimator is None else name_estimator(estimator),
        "parameters": {name: str(value) for name, value in parameters.items()},
        "n_terms": len(model.member_terms),
        "n_numerical": len(model.numerical_features),
        "n_categorical": len(model.categorical_features),
        "feature_names": list(subject.names),
        "not_read": [name for feature, name in enumerate(subject.names) if feature not in read],
    }


def describe_classifier(subject: Subject) -> ModelFacts:
    """What was certified, with its classes and its score."""
    model, is_vote = subject.additive, subject.model.weights is not None
    return {
        **describe_model(subject),
        "kind": "weighted vote of ensembles" if is_vote else "additive ensemble",
        "n_members": len(subject.model.members) if is_vote else None,
        "threshold": None if model is None else model.threshold,
        "levels": None if model is None else model.levels,
        "decision_threshold": getattr(subject.estimator, "decision_threshold_", None),
        "score_unit": "points" if subject.points == 1 else "log-odds",
        "classes": [str(name) for name in subject.classes.tolist()],
    }


def describe_labels(inputs: LabelInputs) -> DataFacts:
    """On which rows, and how many have which label."""
    labels, classes = inputs.truth, inputs.subject.classes
    return {
        "n_rows": inputs.n_rows,
        "n_features": int(inputs.matrix.shape[1]),
        "has_labels": labels is not None,
        "class_counts": []
        if labels is None
        else [{"name": str(name), "n_rows": int((labels == name).sum())} for name in classes],
        "sha256": hash_rows(inputs.matrix, labels),
    }


def describe_targets(inputs: IntervalInputs) -> RegressionData:
    """On which rows."""
    return {
        "n_rows": inputs.n_rows,
        "n_features": int(inputs.matrix.shape[1]),
        "has_targets": inputs.truth is not None,
        "sha256": hash_rows(inputs.matrix, inputs.truth),
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


def describe_noise(inputs: Inputs) -> NoiseFacts:
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


def compute(inputs: Inputs, start: float, configuration: str | None) -> Computed:
    """When, with what and how fast; `start` is when the report began."""
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
        "certify_seconds": inputs.certify_seconds if fixed is None else None,
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


def describe_regression_rule(inputs: IntervalInputs) -> RegressionRule:
    """How the answer of a regressor is found."""
    if inputs.subject.noise is None:
        return {"name": inputs.rule, "sentence": "The answer is that of the model as deployed, without noise."}
    if inputs.rule == "mean":
        return {"name": "mean", "sentence": "The answer is the mean of what all noisy copies of a row get."}
    return {"name": inputs.rule, "sentence": "The answer is the median of what all noisy copies of a row get."}


def describe_rule(inputs: LabelInputs) -> RuleFacts:
    """The rule, and how many radii each proof gave."""
    answer = _describe_answer(inputs)
    counts = _count_proofs(inputs)
    return {
        "name": inputs.plain.rule,
        "answer": answer,
        "sentence": f"The model's answer is {answer}.{_describe_threshold(inputs)}",
        "proof": inputs.proof,
        "proofs": counts,
        "proof_sentence": " ".join(
            [_describe_proofs(inputs, {one["proof"]: one["n_rows"] for one in counts}), _describe_exact(inputs)]
        ),
    }


def _describe_answer(inputs: LabelInputs) -> str:
    subject, rule = inputs.subject, inputs.plain.rule
    if subject.classes.size > 2:
        return _describe_largest(inputs)
    low, high = (f"“{shorten(str(name), 40)}”" for name in subject.classes.tolist())
    if subject.noise is None:
        start = "that of the model as deployed, without noise"
        return start if subject.additive is None else f"{start}: {high} where the score is above the threshold"
    if subject.additive is None:
        each = (
            "the label that most noisy copies of the row get"
            if rule == "vote"
            else f"{high} where its own expected score is above its threshold"
        )
        return f"a weighted vote of {plural(len(subject.model.members), 'ensemble')}, each of which says {each}"
    if rule == "vote":
        return "the label that most noisy copies of the row get"
    return f"{high} where the expected score under noise is above the threshold, and {low} elsewhere"


def _describe_threshold(inputs: LabelInputs) -> str:
    """From which probability on the score decides for the second class, where that is not one half."""
    threshold = getattr(inputs.subject.estimator, "decision_threshold_", None)
    if threshold is None or threshold == 0.5:
        return ""
    high = f"“{shorten(str(inputs.subject.classes[1]), 40)}”"
    start = f" Each noisy copy counts for {high}" if inputs.plain.rule == "vote" else f" It says {high}"
    return f"{start} from a probability of {format_threshold(threshold)} on."


def _describe_largest(inputs: LabelInputs) -> str:
    """The answer of several classes."""
    if inputs.subject.noise is None:
        return "the class of the largest score, by the model as deployed, without noise"
    if inputs.plain.rule == "vote":
        return "the class that beats each of the others on most noisy copies of the row"
    return "the class of the largest expected score under noise"


def _count_proofs(inputs: LabelInputs) -> list[ProofCount]:
    found = inputs.plain.proof
    return [{"proof": name, "n_rows": int((found == name).sum())} for name in _PROOFS if (found == name).any()]


def _describe_proofs(inputs: LabelInputs, counts: dict[str, int]) -> str:
    """Which proof gave how many radii, or verdicts where limits alone say what may change."""
    what = "radius" if inputs.threat.norm is not None else "proof that a row holds"
    nothing = counts.get("none", 0)
    if nothing == inputs.n_rows:
        return f"Nothing is proven for any of {plural(nothing, 'row')}."
    rest = f"; for {plural(nothing, 'row')} nothing is proven" if nothing else ""
    if inputs.plain.rule == "mean":
        kind = "score" if inputs.subject.noise is None else "expected score"
        exact, bound = counts.get("exact", 0), counts.get("dual", 0)
        ways = [f"without any gap for {plural(exact, 'row')}"] if exact else []
        ways += [f"as a lower bound for {plural(bound, 'row')}"] if bound else []
        return f"Each {what} follows from the worst case of the {kind}, {join_words(ways)}{rest}."
    paper, second, constant = (plural(counts.get(name, 0), "row") for name in ("paper", "dual", "exact"))
    other = "the other label" if inputs.subject.classes.size == 2 else "the nearest rival"
    always = f", and {constant} no change can flip" if counts.get("exact") else ""
    if inputs.proof == "paper":
        return (
            f"Each {what} follows from the probability of {other} alone, the proof of the paper: it gave one "
            f"for {paper}{always}{rest}."
        )
    larger = "the larger one of" if what == "radius" else "one of"
    return (
        f"Each {what} is {larger} two proofs: the probability of {other} gave it for {paper}, the worst case "
        f"of the expected score for {second}{always}{rest}."
    )


def _describe_exact(inputs: LabelInputs) -> str:
    """Why a radius is a proof."""
    law = "the distribution of the score under noise"
    if inputs.subject.model.weights is not None:
        law = "each member's distribution under noise"
    elif inputs.subject.classes.size > 2:
        law = "the distribution of the difference to every other class under noise"
    if inputs.plain.rule == "mean" or inputs.subject.model.is_linear:
        return "Nothing is sampled: the bound covers every change that is allowed, and rounding errs on the safe side."
    return f"Nothing is sampled: {law} is computed exactly, and rounding errs on the safe side."


def list_checksums(inputs: Inputs, settings: ReportSettings, other: object = None) -> list[Checksum]:
    """Checksums of the models, of files, and of the rows as the model reads them, with what is true of them.

    `other` is what the model was compared with. Models are hashed as they would be saved where they came from no file;
    one that cannot be saved has no checksum.
    """
    marks, subject = settings.marks or {}, inputs.subject
    found = [
        _mark_model("model", marks, subject.model if subject.estimator is None else subject.estimator),
        None if other is None else _mark_model("other model", marks, other),
        *(_mark(what, mark) for what, mark in marks.items() if what not in ("model", "other model")),
    ]
    rows: Checksum = {
        "what": "rows",
        "file": None,
        "sha256": hash_rows(inputs.matrix, inputs.truth),
        "of": "the rows and labels as they were read",
    }
    return [*(one for one in found if one is not None), rows]


def _mark(what: str, mark: FileMark) -> Checksum:
    return {"what": what, "file": mark.file, "sha256": mark.sha256, "of": "the bytes of the file"}


def _mark_model(what: str, marks: Marks, model: object) -> Checksum | None:
    if what in marks:
        return _mark(what, marks[what])
    try:
        return {
            "what": what,
            "file": None,
            "sha256": hash_model(getattr(model, "_named_from", model)),
            "of": "the file that `save` would write",
        }
    except (TypeError, ValueError):
        return None


def list_facts(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How it was computed, as pairs of a name and a text."""
    model, data, computed = summary["model"], summary["data"], summary["computed"]
    kind = model["estimator"]
    if "kind" in model:
        kind = model["kind"] if kind is None else f"{kind} ({model['kind']})"
    counted = [
        plural(model["n_terms"], "term"),
        plural(model["n_numerical"], "numerical feature"),
        plural(model["n_categorical"], "categorical feature"),
    ]
    facts = [
        ("Model", f"{kind}, {', '.join(counted)}"),
        ("Parameters", ", ".join(f"{name}={value}" for name, value in model["parameters"].items())),
        ("Columns that the model does not read", _list_not_read(model["not_read"])),
        ("Noise", _describe_noise(summary["noise"])),
        ("Rule", summary["rule"]["sentence"]),
        ("Proof", summary["rule"].get("proof_sentence", "")),
        ("Threat", " ".join(summary["threat"]["sentences"])),
        ("Measure", summary["noise"]["measure"]),
        ("Rows", f"{plural(data['n_rows'], 'row')}, {plural(data['n_features'], 'column')}"),
        *_list_sums(summary["checksums"]),
        ("Configuration", computed["configuration"] or ""),
        ("Versions", ", ".join(f"{name} {version}" for name, version in computed["versions"].items())),
        ("Time", _describe_time(computed)),
    ]
    return [(name, value) for name, value in facts if value]


def _list_sums(checksums: list[Checksum]) -> list[tuple[str, str]]:
    """What a report was made from, as pairs of a name and a text."""
    return [
        (
            f"Checksum of the {one['what']}",
            f"sha256 {one['sha256']}, of {one['of'] if one['file'] is None else one['file']}",
        )
        for one in checksums
    ]


def _describe_noise(noise: NoiseFacts) -> str:
    if noise["magnitude"] is None:
        return "none: the model as deployed"
    magnitude = f"{noise['parameter'].replace('_', ' ')} {format_short(noise['magnitude'])}"
    return f"{noise['name']}, {magnitude}; certifies l{noise['norm']} balls"


def _describe_time(computed: Computed) -> str:
    certifying, reporting = computed["certify_seconds"], computed["report_seconds"]
    if certifying is None or reporting is None:
        return computed["when"]
    return f"{computed['when']}; certificates {format_short(certifying, 2)} s, report {format_short(reporting, 2)} s"


def _list_not_read(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
    return (
        ", ".join(f"“{shorten(name, 30)}”" for name in names[:_LISTED_NAMES]) + f"{more}: they may change to anything"
    )


def blocks(summary: Mapping[str, Any]) -> list[ui.Block]:
    """The facts; the page says what words mean in a report on a classifier, Markdown what is left out."""
    left_out = [ui.Heading("Left out"), ui.Bullets(summary["left_out"])] if summary["left_out"] else []
    return [
        ui.Heading("How it was computed", "computed"),
        ui.FactList(list_facts(summary), "facts wide"),
        *([] if "radius" in summary else [ui.Raw(render("words", summary))]),
        ui.in_markdown(*left_out),
    ]


SECTION = ui.Section(
    "computed", lambda s: "How computed", blocks, "model, noise, rule, proofs, checksums, versions, and what words mean"
)
