"""Training on a file.

Owns the way from a table in a file to a saved classifier, and what is told of every column. Must not know the command
line, nor how a table is read.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from derand.certificates import Certificates
from derand.estimators import CertifiedClassifier
from derand.files import PathLike, require_writable
from derand.frames import ColumnCheck, Labels, TableEncoding
from derand.jobs._classifiers import OWN, Classifier, choose_model, make_estimator
from derand.jobs._training_table import read_training_data
from derand.metrics import certified_accuracy
from derand.noise import Noise, as_noise_or_none
from derand.storage import save
from derand.threat import Threat
from derand.threat_text import read_threat

_SHOWN_EDGES = 8


class ColumnSummary(TypedDict):
    """What became of a column of a training table."""

    name: str
    use: str
    """"numerical", "categorical" or "ignored"."""
    detail: str


class TrainingSummary(TypedDict):
    """What `train_file` did with every column, and how the model does on the training rows."""

    model: str
    """Where it was saved."""
    trainer: str
    rows: int
    target: str
    classes: dict[str, int]
    noise: str
    norm: float | None
    """What it is certified in unless told otherwise; None where limits alone say what may change."""
    radius: float | None
    """What it was trained for; None for trainers without a radius."""
    regularization: float | None
    """As given or as chosen; None for trainers without one."""
    scaling: str | None
    rule: str
    columns: list[ColumnSummary]
    training_accuracy: float
    training_certified_accuracy: float
    """Right, and certified for some radius above 0."""
    training_certified_at_radius: float | None
    """Right, and certified at the training radius; None where there is none."""
    warnings: list[str]
    seconds: float


def train_file(
    data: PathLike,
    target: str,
    output: PathLike,
    *,
    model: str | None = None,
    noise: Noise | str | None = None,
    scaling: str | None = OWN,
    class_weight: str | None = None,
    rule: str | None = None,
    radius: float | None = None,
    norm: float | None = None,
    l0: int | None = None,
    frozen: Sequence[str] = (),
    monotone: Mapping[str, str] | None = None,
    threat: Threat | PathLike | None = None,
    regularization: float | None = None,
    categorical: Collection[str] = (),
    ignored: Collection[str] = (),
) -> TrainingSummary:
    """Train a classifier on a CSV or Parquet file and save it.

    Number columns become numerical features, text columns categorical ones. Columns that are empty, constant, dates, or
    text of which nearly every cell is another are left out: see `derand.frames.check_columns`.

    Parameters
    ----------
    data : path-like
    target : str
        Name of the column with the labels, of two kinds or more.
    output : path-like
        Where the model is saved.
    model : str or None
        A trainer of `derand.estimators.TRAINERS`: "additive" (None), "stumps", "tree-boost" or "ada-boost".
    noise, class_weight, rule, radius, norm, l0, frozen, monotone, regularization
        As for the classifiers; what is not given is the trainer's own, what it does not have is refused.
    scaling : str or None
        "auto" is the trainer's own, and "standard" for those that have none.
    threat : Threat, path-like or None
        What may change, instead of `norm`, `l0` and `frozen`, with columns by their names in the file; or a TOML file
        that says it.
    categorical : collection of str
        Columns to be taken as categorical though they hold numbers.
    ignored : collection of str
        Columns to be left out.

    Returns
    -------
    TrainingSummary
        A dict: what was done with every column, and how the model does on the training rows.
    """
    start = time.perf_counter()
    name = choose_model() if model is None else model
    options: dict[str, Any] = {
        "noise": noise,
        "class_weight": class_weight,
        "rule": rule,
        "radius": radius,
        "norm": norm,
        "l0": l0,
        "frozen": tuple(frozen) or None,
        "monotone": monotone or None,
        "threat": threat,
        "regularization": regularization,
    }
    classifier = make_estimator(name, options, scaling)
    if noise != "auto":
        as_noise_or_none(noise)  # refused before any file is looked at
    path = None if isinstance(threat, Threat) else threat
    require_writable(output, data, *([] if path is None else [path]))
    read = read_training_data(data, target, categorical=categorical, ignored=ignored)
    if path is not None:
        classifier.set_params(threat=_read_threat(path, read.rows.column_names))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(read.rows, read.labels)
        certificates = classifier.certify(read.rows)
    save(classifier, output)
    return {
        "model": os.fspath(output),
        "trainer": name,
        "rows": len(read.labels),
        "target": target,
        "classes": {str(name): int((read.labels == name).sum()) for name in classifier.classes_.tolist()},
        "noise": "none" if classifier.noise_ is None else str(classifier.noise_),
        "norm": certificates.norm,
        **_summarize_radius(classifier, certificates, read.labels),
        "scaling": classifier.scaling,
        "rule": classifier.rule,
        "columns": summarize_columns(read.checks, classifier),
        "training_accuracy": float((certificates.label == read.labels).mean()),
        "training_certified_accuracy": float(certified_accuracy(read.labels, certificates, [0.0])[0]),
        "warnings": [str(warning.message) for warning in caught],
        "seconds": time.perf_counter() - start,
    }


class _RadiusSummary(TypedDict):
    radius: float | None
    regularization: float | None
    training_certified_at_radius: float | None


def _summarize_radius(classifier: CertifiedClassifier, certificates: Certificates, labels: Labels) -> _RadiusSummary:
    """What a classifier was trained for, and what came of it on its own rows."""
    radius = classifier.get_params(deep=False).get("radius")
    held = None if radius is None else float(certified_accuracy(labels, certificates, [radius])[0])
    return {
        "radius": None if radius is None else float(radius),
        "regularization": getattr(classifier, "regularization_", None),
        "training_certified_at_radius": held,
    }


def _read_threat(path: PathLike, names: Sequence[str]) -> Threat:
    """The threat of a file, to be trained against: its units must not depend on those that training finds."""
    threat, other = (read_threat(path, names, [unit] * len(names)) for unit in (1.0, 2.0))
    if threat != other:
        raise ValueError(f"{path}: `units` must name every column to train against it, or none: name the others, too.")
    return threat


def summarize_columns(checks: Iterable[ColumnCheck], classifier: Classifier) -> list[ColumnSummary]:
    """What became of every column: left out by the check or by training, or how the model reads it."""
    left_out: Mapping[str | int, str] = getattr(classifier, "ignored_features_", {})
    features = {classifier.encoding_.name(feature): feature for feature in range(classifier.encoding_.n_features)}
    edges: dict[int, set[float]] = {feature: set() for feature in features.values()}
    for term in classifier.ensemble_.member_terms:
        for axis in term.axes:
            edges[axis.feature].update(axis.edges.tolist())
    summaries: list[ColumnSummary] = []
    for check in checks:
        reason = check.reason or left_out.get(check.name)
        use, detail = "ignored", reason or ""
        if not reason:
            feature = features[check.name]
            use, detail = _describe_feature(classifier.encoding_, feature, sorted(edges[feature]))
        summaries.append({"name": str(check.name), "use": use, "detail": detail})
    return summaries


def _describe_feature(encoding: TableEncoding, feature: int, edges: Sequence[float]) -> tuple[str, str]:
    """How the model reads a feature: as what, and in which cells."""
    if feature in encoding.categories:
        return "categorical", f"{len(encoding.categories[feature])} categories"
    if not edges:
        return "ignored", "the model does not split it"
    more = f" and {len(edges) - _SHOWN_EDGES} more" if len(edges) > _SHOWN_EDGES else ""
    return "numerical", "split at " + ", ".join(f"{edge:.6g}" for edge in edges[:_SHOWN_EDGES]) + more
