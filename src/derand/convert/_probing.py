"""Rows that tell two readings of a model apart: on every edge, and one step of doubles and of singles beside it.

Owns the comparison of raw scores that every import makes. Must not know any library.
"""

from __future__ import annotations

import warnings

import numpy as np

from derand._core.arrays import FloatArray
from derand.convert._forests import LOWEST
from derand.convert._reading import Reading
from derand.model import AdditiveEnsemble

_FAR = 1e300
"""Beyond it no numbers are drawn."""


def probe_rows(reading: Reading, model: AdditiveEnsemble, n_rows: int, seed: int = 0) -> FloatArray:
    """Random rows of values on edges, one step beside them, and between; missing and unseen ones where these are taken.

    `model`: what was built from it. Returns shape (n_rows, n_features): encoded rows. Where `n_rows` is large enough,
    every edge is met, with the steps beside it.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, model.n_features))
    refuses = set(model.refuses_missing)
    for column, values in reading.encoding.categories.items():
        rows[:, column] = rng.integers(-1, len(values), size=n_rows)
        rows[rng.random(n_rows) < 0.05, column] = np.nan
    for term in model.terms:
        for axis in term.axes:
            if term.slope is not None:
                rows[:, axis.feature] *= 10.0 ** rng.uniform(-3.0, 6.0, size=n_rows)
            edges = axis.edges[axis.edges > LOWEST]  # which no number is below
            if edges.size:
                rows[:, axis.feature] = _probe_axis(edges, n_rows, rng)
            if axis.feature in term.missing_features and axis.feature not in refuses:
                rows[rng.random(n_rows) < 0.05, axis.feature] = np.nan
    return rows


def _probe_axis(edges: FloatArray, n_rows: int, rng: np.random.Generator) -> FloatArray:
    """Values on and around edges, in random order, and some between and beyond them."""
    with np.errstate(over="ignore"):  # infinite ones are left out below
        single = edges.astype(np.float32)
        beside = [np.nextafter(single, np.float32(end)).astype(np.float64) for end in (-np.inf, np.inf)]
        near = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), single.astype(np.float64), *beside]
    places = np.concatenate([one[np.isfinite(one)] for one in near])
    low, high = np.clip(edges[[0, -1]], -_FAR, _FAR).tolist()
    width = max(high - low, abs(low), 1e-3)
    free = rng.uniform(low - 0.2 * width, high + 0.2 * width, size=max(n_rows // 4, 1))
    taken = rng.permutation(np.resize(rng.permutation(places), n_rows - free.size if n_rows > free.size else 0))
    return np.asarray(rng.permutation(np.concatenate([taken, free])[:n_rows]))


def compare_scores(reading: Reading, model: AdditiveEnsemble, rows: FloatArray) -> float:
    """The largest difference between the raw scores of the library and those of the model that stands for it.

    `reading`: with `raw_scores`; `rows` (n_rows, n_features): encoded.
    """
    return float(_measure_differences(reading, model, rows).max(initial=0.0))


def is_explained(reading: Reading, model: AdditiveEnsemble, rows: FloatArray) -> bool:
    """Whether no row differs by more than `model.bound_errors`, or the model does not stand for the library's."""
    allowed = model.bound_errors(rows) / model.levels
    return bool((_measure_differences(reading, model, rows) <= allowed).all())


def _measure_differences(reading: Reading, model: AdditiveEnsemble, rows: FloatArray) -> FloatArray:
    if reading.raw_scores is None:
        raise ValueError(f"{reading.source} has no raw scores to compare with.")
    with warnings.catch_warnings():  # the rows are right, by order
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        theirs = np.asarray(reading.raw_scores(rows), dtype=np.float64)
    if model.offsets:
        shift = np.array(model.offsets)
    else:
        shift = np.array(model.offset if model.threshold is None else -model.threshold)
    ours = (model.score(rows) + shift) / model.levels
    return np.asarray(np.abs(theirs.reshape(ours.shape) - ours))
