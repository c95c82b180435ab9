"""Training on a file.

Owns the way from a table in a file to a saved classifier or regressor, and what is told of every column. Must not know
the command line, nor how a table is read.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from derand._core.files import PathLike, require_writable
from derand._core.origin import Fitted
from derand._core.text import format_percent
from derand.app import Spell, Summary, quote_parameter
from derand.app.jobs._classifiers import choose_model, find_trainer, make_estimator
from derand.app.jobs._shapes import describe_shape
from derand.app.jobs._tasks import require_parameters, require_task, require_trainer
from derand.app.jobs._training_table import TrainingData, read_training_data
from derand.app.settings import CLASSES, TrainSettings, fill_settings
from derand.fitted import certify_encoded, encode_rows
from derand.metrics import certified_accuracy
from derand.noise import resolve_noise
from derand.storage import save
from derand.tables import ColumnCheck, ColumnUse, ColumnWarning, TableEncoding, format_data_checks, format_days
from derand.threat import Threat
from derand.threat_text import read_threat

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier, CertifiedEstimator, CertifiedRegressor

_SHOWN_EDGES = 8
_MANY_CATEGORIES = 20
_LITTLE_USE = 0.2
"""The share of the average importance of a column below which many categories are said to hardly count."""


def train_file(
    data: PathLike,
    target: str,
    output: PathLike,
    settings: TrainSettings | None = None,
    *,
    spell: Spell = quote_parameter,
    **options: object,
) -> Summary:
    """Train a classifier or a regressor on a CSV or Parquet file and save it.

    Number columns become numerical features, text columns categorical ones. Columns that are empty, constant, dates, or
    text of which nearly every cell is another are left out: see `derand.tables.check_columns`.

    Parameters
    ----------
    data : path-like
    target : str
        Name of the column with the labels, or with the numbers to be predicted.
    output : path-like
        Where the model is saved.
    settings : TrainSettings or None
        What is asked for; None is the trainer's own.
    spell : callable
        How errors name a parameter that does not fit.
    **options
        Fields of TrainSettings, which replace those of `settings`.

    Returns
    -------
    dict
        What was done with every column, and how the model does on the training rows.
        `norm`: what it is certified in unless told otherwise; None where limits alone say what may change.
        `training_certified_accuracy`: right, and certified for some radius above 0.
        `training_certified_at_radius`: right, and certified at the training radius; None where there is none.
        `decision_threshold`: the probability from which on the answer is the second class; None where scores
        are no probabilities.
        `training_rmse`: root of the mean square of what is missed, in units of the target.
        `training_mean_width`: of the intervals at the training radius, or within the limits; None where there
        is none.
        `model`: where it was saved.
        `task`: "classes" or "number".
        `task_reason`: "as asked", or what was found in the target.
        `other_task`: what to ask for where the guess is wrong; None where there is nothing else.
        `radius`: what it was trained for; None for trainers without a radius.
        `regularization`: as given or as chosen; None for trainers without one.
    """
    start, asked = time.perf_counter(), fill_settings(TrainSettings, settings, options)
    name, parameters, threat = asked.model or choose_model(), asked.list_parameters(), asked.threat
    require_task(asked.task, spell)
    find_trainer(name, None)  # refused before any file is looked at, as far as the task need not be known
    require_parameters(name, {spell(key): key for key in parameters}, asked.task)
    resolve_noise(asked.noise)
    path = None if isinstance(threat, Threat) else threat
    require_writable(output, data, *([] if path is None else [path]))
    read = read_training_data(data, target, asked)
    require_trainer(name, read.task, target, len(set(read.labels.tolist())), spell)
    estimator = make_estimator(name, parameters, asked.scaling, task=read.task.name, spell=spell)
    if path is not None:
        estimator.set_params(threat=read_fixed_threat(path, read.rows.column_names))
    from derand.estimators import fit_checked  # slow to import, and what was given may make no sense

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_checked(estimator, read.rows, read.labels)
        estimator.encoding_ = estimator.encoding_.with_dates(asked.dates)
        measure = _measure_labels if read.task.name == CLASSES else _measure_numbers
        measured = measure(estimator, read)
    save(estimator, output)
    return {
        "model": os.fspath(output),
        "trainer": name,
        "rows": len(read.labels),
        "target": target,
        "task": read.task.name,
        "task_reason": read.task.reason,
        "other_task": read.task.other,
        **measured,
        "noise": "none" if estimator.noise_ is None else str(estimator.noise_),
        "radius": _find_radius(estimator),
        "regularization": getattr(estimator, "regularization_", None),
        "scaling": estimator.scaling,
        "rule": estimator.rule,
        "columns": summarize_columns(read.checks, estimator),
        "warnings": [*list_doubts(read), *_list_warnings(caught)],
        "seconds": time.perf_counter() - start,
    }


def list_doubts(read: TrainingData) -> list[str]:
    """What is doubtful about the target and columns that were used: of others the table of columns tells."""
    doubts = format_data_checks(check for check in read.checks if check.use is not ColumnUse.IGNORED)
    return [one for one in (read.doubt, doubts) if one is not None]


def _list_warnings(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """What training warned of, less of columns: it does not know which of them were asked for."""
    return [str(one.message) for one in caught if not issubclass(one.category, ColumnWarning)]


def _find_radius(estimator: Fitted) -> float | None:
    """What an estimator was trained for; None where its trainer has no radius."""
    radius = estimator.get_params(deep=False).get("radius")
    return None if radius is None else float(radius)


def _measure_labels(classifier: CertifiedClassifier, read: TrainingData) -> Summary:
    """How a classifier does on its own rows."""
    rows, radius = encode_rows(classifier, read.rows), _find_radius(classifier)
    (certificates,) = certify_encoded(classifier, rows, [classifier.default_threat])  # without what `certify` warns of
    held = None if radius is None else float(certified_accuracy(read.labels, certificates, [radius])[0])
    return {
        "classes": {str(name): int((read.labels == name).sum()) for name in classifier.classes_.tolist()},
        "decision_threshold": getattr(classifier, "decision_threshold_", None),
        "norm": certificates.norm,
        "training_accuracy": float((certificates.label == read.labels).mean()),
        "training_certified_accuracy": float(certified_accuracy(read.labels, certificates, [0.0])[0]),
        "training_certified_at_radius": held,
    }


def _measure_numbers(regressor: CertifiedRegressor, read: TrainingData) -> Summary:
    """How a regressor does on its own rows; their intervals where it was trained for a radius, or within limits."""
    threat, radius, width = regressor.default_threat, _find_radius(regressor), None
    asked = None if threat.norm is None else radius or 0.0
    found = regressor.certify_interval(read.rows, asked)
    if asked != 0:
        width = float(found.width.mean())
    return {
        "target_range": (float(read.labels.min()), float(read.labels.max())),
        "norm": found.threat.ball_norm,
        "training_rmse": float(np.sqrt(np.mean((found.value - read.labels) ** 2))),
        "training_mean_width": width,
    }


def read_fixed_threat(path: PathLike, names: Sequence[str]) -> Threat:
    """The threat of a file, to be trained against: its units must not depend on those that training finds."""
    threat, other = (read_threat(path, names, [unit] * len(names)) for unit in (1.0, 2.0))
    if threat != other:
        raise ValueError(f"{path}: `units` must name every column to train against it, or none: name the others, too.")
    return threat


def summarize_columns(checks: Iterable[ColumnCheck], estimator: CertifiedEstimator) -> list[Summary]:
    """What became of every column: left out by the check or by training, or how the model reads it."""
    left_out: Mapping[str | int, str] = getattr(estimator, "ignored_features_", {})
    features = {estimator.encoding_.name(feature): feature for feature in range(estimator.encoding_.n_features)}
    edges: dict[int, set[float]] = {feature: set() for feature in features.values()}
    for term in estimator.ensemble_.member_terms:
        for axis in term.axes:
            edges[axis.feature].update(axis.edges.tolist())
    summaries: list[Summary] = []
    for check in checks:
        reason = check.reason or left_out.get(check.name)
        use, detail = "ignored", reason or ""
        shape, splits = "", list[float]()
        if not reason:
            feature = features[check.name]
            splits = sorted(edges[feature])
            use, detail = _describe_feature(estimator.encoding_, feature, splits)
            detail += _note_little_use(estimator, feature)
            shape = describe_shape(estimator, feature, splits) if splits else ""
        summaries.append({"name": str(check.name), "use": use, "detail": detail, "shape": shape, "splits": splits})
    return summaries


def _note_little_use(estimator: CertifiedEstimator, feature: int) -> str:
    """What to add of a column of many categories that training drew so near to each other that they hardly count."""
    importances, categories = getattr(estimator, "feature_importances_", None), estimator.encoding_.categories
    if importances is None or len(categories.get(feature, ())) < _MANY_CATEGORIES:
        return ""
    share = float(importances[feature])
    if share >= _LITTLE_USE * float(importances.mean()):
        return ""
    return f", which hardly differ to the model ({format_percent(share)} of all importance)"


def _describe_feature(encoding: TableEncoding, feature: int, edges: Sequence[float]) -> tuple[str, str]:
    """How the model reads a feature: as what, and in which cells."""
    if feature in encoding.categories:
        return "categorical", f"{len(encoding.categories[feature])} categories"
    if not edges:
        return "ignored", "the model does not split it"
    more = f" and {len(edges) - _SHOWN_EDGES} more" if len(edges) > _SHOWN_EDGES else ""
    write = format_days if feature in encoding.dates else "{:.6g}".format
    return "numerical", "split at " + ", ".join(write(edge) for edge in edges[:_SHOWN_EDGES]) + more
