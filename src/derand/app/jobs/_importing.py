"""Importing a model file of another library.

Owns the way from such a file to a saved estimator of ours, and what is told of it. Must not know any library
(`derand.convert`), nor the command line.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derand._core.files import PathLike, require_writable
from derand._core.origin import Fitted
from derand.app import Spell, Summary, quote_parameter
from derand.app.jobs._training_table import as_doubles
from derand.app.settings import ImportSettings, fill_settings
from derand.convert import (
    PICKLES,
    SKOPS,
    Reading,
    adopt_table,
    compare_scores,
    load_pickle,
    load_skops,
    probe_rows,
    read_file,
    read_model,
)
from derand.fitted import encode_rows
from derand.storage import read_kind, save
from derand.tables import MOST_CLASSES, ColumnKind, Labels, MatchedFile, inspect_file, match_file

if TYPE_CHECKING:
    import pyarrow as pa

    from derand.estimators import ImportedClassifier, ImportedRegressor

_PROBES = 2_000


def import_file(
    source: PathLike,
    output: PathLike,
    settings: ImportSettings | None = None,
    *,
    spell: Spell = quote_parameter,
    **options: object,
) -> Summary:
    """Read a model file of another library and save it as a model of ours, which can be certified.

    Parameters
    ----------
    source : path-like
        A native file of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm), a skops file (.skops), or a pickle
        (.pkl, .pickle, .joblib).
    output : path-like
        Where the model is saved.
    settings : ImportSettings or None
        What is asked for.
    spell : callable
        How errors name a parameter that does not fit.
    **options
        Fields of ImportSettings, which replace those of `settings`.

    Returns
    -------
    dict
        `model`: where it was saved.
        `file`: where it came from.
        `source`: what was read, such as "xgboost.XGBClassifier".
        `task`: "classes" or "number".
        `classes`: labels, in the order of the scores; none for a number.
        `columns`: their names; None where nobody knows them.
        `joint_terms`: those of several columns.
        `trees`: how many trees join columns; `cells` are those of all other terms.
        `is_linear`: whether numbers are multiplied by slopes instead of being looked up in cells.
        `score_error`: how far raw scores may lie from the library's, on any row; certificates cover it. Of a
        linear model, what comes beside a share of each row's numbers, which they cover as well; of trees, beside a
        share of the leaves that a row reaches.
        `decision_threshold`: the probability from which on the answer is the second class; None where scores
        are no probabilities.
        `largest_difference`: between raw scores of both on edges, beside them and on the rows; None where the
        library is not there.
        `rows`: of the table; 0 without one.
        `accuracy`: on the rows, where they have a target.
        `majority`: share of the largest class among them.
        `rmse`: root of the mean square error, for numbers.
    """
    start, asked = time.perf_counter(), fill_settings(ImportSettings, settings, options)
    data, target = asked.data, asked.target
    scaling = None if asked.scaling == "none" else asked.scaling
    for name, value in (("scaling", scaling), ("target", target)):
        if value is not None and data is None:
            raise ValueError(f"{spell(name)} is about rows: give {spell('data')}, such as the training rows.")
    require_writable(output, source, *([] if data is None else [data]))
    reading = _name_classes(_read(source, asked, spell), asked.classes, spell)
    found = None
    if data is not None:
        reading = _adopt_kinds(_adopt_names(reading, data), data, target)
        found = match_file(data, reading.encoding, target=target, classes=reading.classes)
    table = None if found is None else found.read_all()
    given: dict[str, object] = {"noise": asked.noise, "rule": asked.rule or "mean"}
    given |= {"scaling": scaling, "decision_threshold": asked.decision_threshold, "cost": asked.cost, "n_jobs": None}
    estimator = _build(reading, found, table, given)
    measured = {} if found is None or table is None else _measure(estimator, found, table)
    save(estimator, output)
    ensemble = estimator.ensemble_
    return {
        "model": os.fspath(output),
        "file": os.fspath(source),
        "source": reading.source,
        "task": "number" if reading.classes is None else "classes",
        "classes": [] if reading.classes is None else reading.classes.tolist(),
        "columns": None if estimator.encoding_.names is None else list(estimator.encoding_.names),
        "n_columns": estimator.encoding_.n_features,
        "terms": len(ensemble.terms),
        "joint_terms": sum(len(term.features) > 1 for term in ensemble.terms),
        "trees": sum(term.n_trees for term in ensemble.terms),
        "is_linear": ensemble.is_linear,
        "cells": sum(term.n_cells for term in ensemble.terms if not term.is_tree),
        "score_error": ensemble.score_error / ensemble.levels,
        "decision_threshold": getattr(estimator, "decision_threshold_", None),
        "largest_difference": _compare(reading, estimator, found, table),
        "noise": "none" if estimator.noise_ is None else str(estimator.noise_),
        "rule": estimator.rule,
        "scaling": scaling,
        "rows": 0 if table is None else table.num_rows,
        **measured,
        "next_command": _suggest(output, data, target),
        "seconds": time.perf_counter() - start,
    }


def _read(path: PathLike, asked: ImportSettings, spell: Spell) -> Reading:
    """What a file holds, by how its name ends; errors say which file it is."""
    suffix = Path(path).suffix.lower()
    if suffix in PICKLES and not asked.trust_pickle:
        raise ValueError(
            f"{os.fspath(path)} is a pickle, which runs whatever code it holds when it is opened. If you trust where "
            f"it comes from, say so by {spell('trust_pickle')}; better, save the model in its library's own format "
            "(.json, .ubj, .txt, .cbm) or by skops."
        )
    if suffix not in PICKLES and suffix != SKOPS:
        return _read_native(path)
    model = load_pickle(path) if suffix in PICKLES else load_skops(path, asked.trusted)
    try:
        return read_model(model)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} cannot be imported: {error}") from None


def _read_native(path: PathLike) -> Reading:
    """What a native file holds; what its library says of a file that it cannot read is one line."""
    if Path(path).is_file() and _is_ours(path):
        raise ValueError(f"{os.fspath(path)} is a model of derand already: it can be certified as it is.")
    try:
        return read_file(Path(path))
    except (TypeError, ValueError) as error:
        named = str(error).startswith(os.fspath(path))
        raise ValueError(str(error) if named else f"{os.fspath(path)} cannot be imported: {error}") from None


def _is_ours(path: PathLike) -> bool:
    try:
        read_kind(path)
    except ValueError:
        return False
    return True


def _name_classes(reading: Reading, labels: Sequence[str], spell: Spell) -> Reading:
    """The same with labels as they were given, where the file has none of its own."""
    if not labels:
        return reading
    if reading.classes is None:
        raise ValueError(f"{spell('classes')} names classes, but {reading.source} predicts a number: leave it out.")
    n_classes = len(reading.classes)
    own = ", ".join(map(str, reading.classes.tolist()[:8]))
    if not np.array_equal(reading.classes, np.arange(n_classes)):
        raise ValueError(f"{spell('classes')} is for files without labels; this one has its own, {own}: leave it out.")
    if len(labels) != n_classes or len(set(labels)) != n_classes:
        raise ValueError(
            f"{spell('classes')} must name {n_classes} different classes, in the order of {own}, got "
            f"{', '.join(labels[:MOST_CLASSES])}."
        )
    return replace(reading, classes=_as_labels(labels))


def _as_labels(labels: Sequence[str]) -> Labels:
    """Whole numbers where all of them are, else text."""
    try:
        numbers = [int(label) for label in labels]
    except ValueError:
        return np.array([label.strip() for label in labels])
    return np.array(numbers)


def _adopt_names(reading: Reading, data: PathLike) -> Reading:
    """The same with the names of a table, where a library wrote their spaces as underscores (LightGBM does)."""
    encoding, file = reading.encoding, inspect_file(data)
    if encoding.names is None or set(encoding.names) <= set(file.names):
        return reading
    known = {"_".join(name.split(" ")): name for name in file.names}
    if len(known) < len(file.names) or not set(encoding.names) <= set(known):
        return reading  # whoever matches them says what is missing
    names = tuple(known[name] for name in encoding.names)
    return replace(reading, encoding=replace(encoding, names=names))


def _adopt_kinds(reading: Reading, data: PathLike, target: str | None) -> Reading:
    """The same with categories of the kinds that a table holds: a library may keep their text alone, or their codes."""
    if not reading.encoding.categories:
        return reading
    found = match_file(data, reading.encoding, target=target, classes=reading.classes)
    kinds = {name: reading.encoding.kind(feature) for feature, name in enumerate(found.names)}
    table = found.file.read(as_text=[name for name, kind in kinds.items() if kind is ColumnKind.TEXT])
    return adopt_table(reading, as_doubles(table.select(list(found.names))))


def _build(
    reading: Reading, found: MatchedFile | None, table: pa.Table | None, given: Mapping[str, Any]
) -> ImportedClassifier | ImportedRegressor:
    from derand.estimators import from_reading

    if found is None or table is None:
        return from_reading(reading, None, **given)
    found.require_finite(table)
    with found.name_gaps(table, first_row=1):
        return from_reading(reading, table.select(list(found.names)), **given)


def _measure(estimator: Fitted, found: MatchedFile, table: pa.Table) -> dict[str, float]:
    """How a model does on the rows, where they have a target."""
    _, labels = found.split(table, first_row=1)
    if labels is None:
        return {}
    answers = estimator.predict(table.select(list(found.names)))
    if found.classes is None:
        return {"rmse": float(np.sqrt(np.mean((answers - labels) ** 2)))}
    counts = np.unique(labels, return_counts=True)[1]
    return {"accuracy": float((answers == labels).mean()), "majority": float(counts.max() / counts.sum())}


def _compare(reading: Reading, estimator: Fitted, found: MatchedFile | None, table: pa.Table | None) -> float | None:
    """The largest difference of raw scores that was seen."""
    if reading.raw_scores is None:
        return None
    ensemble = reading.build()  # as read, wherever the threshold was moved to
    probes = [probe_rows(reading, ensemble, _PROBES)]
    if found is not None and table is not None:
        probes.append(encode_rows(estimator, table.select(list(found.names)).slice(0, _PROBES)))
    return max(compare_scores(reading, ensemble, rows) for rows in probes)


def _suggest(output: PathLike, data: PathLike | None, target: str | None) -> str:
    """A command to go on with: what changes of 5 % of every number can do."""
    words = ["derand", "certify", os.fspath(output), "rows.csv" if data is None else os.fspath(data)]
    words += ["-o", "certified.csv", *([] if target is None else ["--target", target])]
    return shlex.join([*words, "--norm", "none", "--limits", "*=5%"])
