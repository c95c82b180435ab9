"""Pipelines of scikit-learn whose steps act on each column by itself, read in the columns that they are given.

Owns how a pipeline's table is encoded and its last step asked. Must not know single steps (`_transformers`) nor how
functions are folded (`_folding`).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.origin import Fitted
from derand.convert._columns import decode_rows
from derand.convert._reading import RawScores, Reading
from derand.convert._registry import read_model
from derand.convert.pipelines._folding import Folded, read_categories
from derand.convert.pipelines._links import Column
from derand.convert.pipelines._smoothing import fold_noise
from derand.convert.pipelines._transformers import Seen, trace
from derand.tables import TableEncoding


def read(model: Fitted) -> Reading:
    """A fitted Pipeline whose last step can be read."""
    (*steps, (last_name, last)) = model.steps
    if last is None or isinstance(last, str):
        raise TypeError(f"The last step of the pipeline, {last_name!r}, must be a model, got {last!r}.")
    try:
        reading = read_model(last)
    except ValueError:
        _read_by_name(model, last)  # the same error, in names of columns
        raise
    real = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
    names, n_features = _read_columns(real[0])
    columns = [Column(at) for at in range(n_features)]
    seen = Seen()
    for name, step in steps:
        columns = trace(step, name, columns, seen)
    if len(columns) != reading.encoding.n_features:
        raise ValueError(
            f"The last step of the pipeline, {last_name!r}, was fitted on {reading.encoding.n_features} columns and is "
            f"given {len(columns)}: fit the pipeline again."
        )
    plain = TableEncoding(n_features, names, {})
    categories = read_categories(reading, columns, seen.categories, plain.name)
    if names is not None:  # of what no step reads nothing is known: any cell is taken
        read_by_some = {column.source for column in columns} | set(seen.categories)
        categories |= {at: () for at in range(n_features) if at not in read_by_some}
    encoding = TableEncoding(n_features, names, categories)
    folded = Folded(reading, columns, encoding, seen.dropped)
    computed = {column.source for column in columns if any(link.computes for link in column.links)}
    lone = folded.intercept.size == 1 and np.ndim(reading.intercept) == 0
    noise, noise_error = None, 0.0
    if reading.noise is not None:
        noise, noise_error = fold_noise(reading, columns, n_features, plain.name)
    source = " > ".join(type(step).__name__ for step in real[:-1])
    return replace(
        reading,
        encoding=encoding,
        shapes=tuple(folded.functions.shapes),
        grids=tuple(folded.functions.grids),
        tables=tuple(folded.functions.tables),
        lines=tuple(folded.lines),
        trees=tuple(folded.functions.trees),
        intercept=float(folded.intercept[0]) if lone else folded.intercept,
        arithmetic_error=reading.arithmetic_error + folded.error + noise_error,
        noise=noise,
        raw_scores=_make_raw_scores(model, reading, encoding, folded.refused),
        refused=tuple(sorted(set(folded.refused))),
        precise=tuple(sorted(computed - set(categories))),
        source=f"{source} > {reading.source}" if source else reading.source,
    )


def _read_by_name(model: Fitted, last: Fitted) -> None:
    """Read the last step, which was refused, once more, with the names that the steps before give to its columns."""
    try:
        named = copy.copy(last)
        named.feature_names_in_ = np.array(model[:-1].get_feature_names_out(), dtype=object)
    except (AttributeError, ValueError, TypeError, KeyError):  # a step that gives none, or a model that takes none
        return
    if not hasattr(last, "feature_names_in_"):
        read_model(named)


def _read_columns(step: Fitted) -> tuple[tuple[str, ...] | None, int]:
    """Names and number of the columns that the first step was fitted on."""
    if not hasattr(step, "n_features_in_"):
        raise ValueError(f"The pipeline must be fitted, got a {type(step).__name__} that is not: call `fit` first.")
    names = getattr(step, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names)), int(step.n_features_in_)


def _make_raw_scores(
    model: Fitted, reading: Reading, encoding: TableEncoding, refused: Sequence[tuple[int, bool]]
) -> RawScores | None:
    """Raw scores of the last step for rows of the user's table; cells that a step refuses are the first category."""
    ask = reading.raw_scores
    if ask is None:
        return None

    def raw_scores(rows: FloatArray) -> FloatArray:
        taken = np.array(rows, dtype=np.float64)
        for column, is_missing in refused:
            cells = taken[:, column]
            cells[np.isnan(cells) if is_missing else cells < 0] = 0.0
        table = decode_rows(encoding, taken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = model[:-1].transform(table) if len(model.steps) > 1 else table
        return ask(reading.encoding.encode(made.toarray() if hasattr(made, "toarray") else made))

    return raw_scores
