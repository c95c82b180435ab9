"""Certificates of models as deployed, against the library's own predictions.

Points of the sets that are proven to hold, half of them on edges or one double beside, are predicted by the library;
so is every witness.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from derand import Threat, from_model
from derand._core.arrays import FloatArray
from derand.fitted import encode_rows
from derand.perturbation import resolve
from experiments.deployed._models import LEARNERS, load_parts

_ROWS = 500


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one model: points that the library labels otherwise than was proven, and false witnesses."""

    dataset: str
    model: str
    threat: str
    points: int
    flips_inside: int
    witnesses: int
    false_witnesses: int


def check_model(dataset: str, learner: str, limit: str = "5%", l0: int = 0, points: int = 200_000) -> Check:
    """Predict points within the limits of rows that hold, and all witnesses, by the library."""
    data, X, y, tested, _ = load_parts(dataset)
    tested = tested.iloc[:_ROWS]
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LEARNERS[learner][1](data).fit(X, y)
        model = from_model(fitted, X)
        threat = Threat(norm=None, limits={"*": limit}, l0=l0 if data.categorical else 0)
        found = model.certify(tested, threat=threat)
        rows = encode_rows(model, tested)
        held = np.flatnonzero(found.verdict == "holds")
        drawn = rng.choice(held, size=points)
        changed = _draw_points(model, rows[drawn], threat, rng)
        label = np.asarray(fitted.predict(model.decode_rows(changed, like=tested.iloc[drawn]).astype(X.dtypes)))
        inside = int((label != found.label[drawn]).sum())
        flipped = np.flatnonzero(found.verdict == "flips")
        false = 0
        if flipped.size:
            witness = model.decode_rows(found.witness[flipped], like=tested.iloc[flipped]).astype(X.dtypes)
            false = int((np.asarray(fitted.predict(witness)) == found.label[flipped]).sum())
    return Check(dataset, learner, f"{limit}, l0={threat.l0}", points, inside, flipped.size, false)


def _draw_points(model, rows: FloatArray, threat: Threat, rng: np.random.Generator) -> FloatArray:  # type: ignore[no-untyped-def]
    """A point within the limits of each row: half of the numbers between them, half on edges or one double beside."""
    low, high = resolve(threat, model.ensemble_, None).box(rows)
    points = rng.uniform(low, high)
    for axis in (axis for term in model.ensemble_.terms for axis in term.axes):
        column, edges = axis.feature, axis.edges
        if not edges.size:
            continue
        first = np.searchsorted(edges, low[:, column], side="left")
        last = np.searchsorted(edges, high[:, column], side="right")
        at = first + rng.integers(0, np.maximum(last - first, 1))
        value = edges[np.minimum(at, edges.size - 1)]
        beside = [value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)]
        value = np.choose(rng.integers(0, 3, size=len(rows)), beside)
        is_taken = (rng.random(len(rows)) < 0.5) & (value >= low[:, column]) & (value <= high[:, column])
        points[is_taken, column] = value[is_taken]
    points = np.clip(points, low, high)
    points[np.isnan(rows)] = np.nan
    codes = model.ensemble_.categorical_features
    points[:, list(codes)] = rows[:, list(codes)]
    if threat.l0 and codes:
        column = rng.choice(np.array(codes), size=len(rows))
        sizes = np.array([len(model.encoding_.categories.get(one, ())) for one in range(rows.shape[1])])
        points[np.arange(len(rows)), column] = rng.integers(-1, sizes[column])
    return points
