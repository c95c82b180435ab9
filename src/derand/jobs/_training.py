"""Training on a file.

Owns the way from a table in a file to a saved classifier, and what is told of every column. Must not know the command
line, nor how a table is read.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypedDict

from derand.files import PathLike, require_writable
from derand.frames import ColumnCheck, TableEncoding
from derand.jobs._classifiers import Classifier, find_trainer
from derand.jobs._training_table import read_training_data
from derand.metrics import certified_accuracy
from derand.noise import Noise, as_noise
from derand.storage import save

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
    norm: int
    scaling: str | None
    rule: str
    columns: list[ColumnSummary]
    training_accuracy: float
    training_certified_accuracy: float
    """Right, and certified for some radius above 0."""
    warnings: list[str]
    seconds: float


def train_file(
    data: PathLike,
    target: str,
    output: PathLike,
    *,
    model: str = "stumps",
    noise: Noise | str = "gaussian:0.25",
    scaling: str | None = "standard",
    class_weight: str | None = None,
    rule: str = "vote",
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
        Name of the column with the labels, of two kinds.
    output : path-like
        Where the model is saved.
    model : str
        A trainer of `derand.estimators.TRAINERS`: "stumps", "tree-boost" or "ada-boost".
    noise, scaling, class_weight, rule
        As for the classifiers.
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
    trainer = find_trainer(model)
    noise = as_noise(noise)
    require_writable(output, data)
    read = read_training_data(data, target, categorical=categorical, ignored=ignored)
    classifier = trainer(noise=noise, scaling=scaling, class_weight=class_weight, rule=rule)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(read.rows, read.labels)
        certificates = classifier.certify(read.rows)
    save(classifier, output)
    return {
        "model": os.fspath(output),
        "trainer": model,
        "rows": len(read.labels),
        "target": target,
        "classes": {str(name): int((read.labels == name).sum()) for name in classifier.classes_.tolist()},
        "noise": str(noise),
        "norm": noise.norm,
        "scaling": scaling,
        "rule": rule,
        "columns": summarize_columns(read.checks, classifier),
        "training_accuracy": float((certificates.label == read.labels).mean()),
        "training_certified_accuracy": float(certified_accuracy(read.labels, certificates, [0.0])[0]),
        "warnings": [str(warning.message) for warning in caught],
        "seconds": time.perf_counter() - start,
    }


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
