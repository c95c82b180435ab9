"""The search for a change that does flip a label: an upper bound of the true radius, beside the certified lower one.

Tries the direction in which the score falls fastest, followed as it bends; single features; and the ways to the nearest
rows that have another label. It proves nothing where it finds nothing. Must not know how a rule proves what it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import BoolArray, FloatArray, IntArray, freeze
from derand.certificates._results import Certificates
from derand.certificates._run import certify
from derand.model import Axis, Model, as_model
from derand.noise import Noise, as_noise

_STEPS = 24
_REFINEMENTS = 12
_SINGLE_FEATURES = 4
_NEAREST_ROWS = 8
_CANDIDATE_ROWS = 20_000
_REACH = 12.0
"""How far the search goes, in magnitudes of the noise beyond the certified radius."""


@dataclass(frozen=True, slots=True, eq=False)
class Flip:
    """A witness: a changed row that gets another label.

    Attributes
    ----------
    distance : float
        Size of the change in the noise's norm and units, rounded up: an upper bound of the true radius.
    row : array of shape (n_features,)
        The changed row, read-only; only numerical features differ.
    label : object
        What it gets, one of the certificates' classes.
    """

    distance: float
    row: FloatArray
    label: Any


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What the search from one row needs."""

    model: Model
    noise: Noise
    start: FloatArray
    features: IntArray
    """Numerical features that the model reads."""
    units: FloatArray
    """Of those features."""
    reach: float
    """How far the search goes, in units."""
    home: int
    """The label of the row, 0 or 1."""

    def flips(self, points: FloatArray) -> BoolArray:
        """Whether each point, of shape (n_points, n_features), has another label than the row."""
        return np.asarray(_find_labels(self.model, points, self.noise) != self.home)

    def measure(self, direction: FloatArray) -> float:
        """Length of a direction in units."""
        return float(np.linalg.norm(direction, ord=self.noise.norm))

    def move(self, direction: FloatArray, share: float = 1.0) -> FloatArray:
        """The row, moved along a direction in units by a share of the reach."""
        moved = self.start.copy()
        moved[self.features] += direction / self.measure(direction) * share * self.reach * self.units
        return moved


def find_flip(model: Model, X: ArrayLike, noise: Noise | str, certificates: Certificates, *, row: int) -> Flip | None:
    """The nearest change of a row's numbers that was found to flip its label.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        The rows that were certified: the search also walks towards those of another label.
    noise : Noise or str
    certificates : Certificates
        Those of `X` under the noise, without categorical changes.
    row : int
        From which row to search.

    Returns
    -------
    Flip or None
        None where no flip was found, which proves nothing unless the certified radius is infinite.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, certify
    >>> from derand.certificates import find_flip
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> X = [[0.0], [2.0]]
    >>> certificates = certify(model, X, "gaussian:0.25")
    >>> flip = find_flip(model, X, "gaussian:0.25", certificates, row=0)
    >>> round(flip.distance, 2), flip.label.item(), bool(flip.distance >= certificates.radius[0])
    (0.5, 1, True)
    """
    noise, rows = as_noise(noise), np.asarray(X, dtype=np.float64)
    if rows.shape != (len(certificates), as_model(model).n_features):
        raise ValueError(
            f"`X` must hold the {len(certificates)} rows that `certificates` are about, {model.n_features} columns "
            f"each, got shape {rows.shape}."
        )
    features = np.array(model.numerical_features, dtype=np.int64)
    radius = float(certificates.radius[row])
    if not features.size or np.isinf(radius):
        return None
    start = rows[row]
    units = noise.units_of(np.arange(start.size))
    home = int(_find_labels(model, start[None], noise)[0])
    search = _Search(model, noise, start, features, units[features], radius + _REACH * noise.magnitude, home)
    others = np.flatnonzero(certificates.label != certificates.label[row])
    ends = [*_list_near_rows(search, rows, others), *_list_ends(search)]
    flipped = _find_first_flips(search, np.reshape(ends, (-1, start.size)))
    if not flipped.size:
        return None
    distances = [measure_change(point - start, features, noise) for point in flipped]
    nearest = int(np.argmin(distances))
    return Flip(distances[nearest], freeze(flipped[nearest].copy()), certificates.classes[1 - home])


def measure_change(change: FloatArray, features: IntArray, noise: Noise) -> float:
    """Size of a row's change on some features in the noise's norm and units, rounded up by a hair."""
    units = noise.units_of(features)
    return float(np.linalg.norm(change[features] / units, ord=noise.norm) * (1 + 1e-12))


def _find_labels(model: Model, points: FloatArray, noise: Noise) -> IntArray:
    return np.asarray(certify(model, points, noise, n_jobs=1).label)


def _list_near_rows(search: _Search, rows: FloatArray, others: IntArray) -> list[FloatArray]:
    """The nearest rows among those of another label, with the categories of this one."""
    others = others[:: max(1, others.size // _CANDIDATE_ROWS)]
    if not others.size:
        return []
    scaled = (rows[np.ix_(others, search.features)] - search.start[search.features]) / search.units
    nearest = np.argsort(np.linalg.norm(scaled, ord=search.noise.norm, axis=1), kind="stable")[:_NEAREST_ROWS]
    ends = []
    for other in others[nearest].tolist():
        end = search.start.copy()
        end[search.features] = rows[other, search.features]
        ends.append(end)
    return ends


def _list_ends(search: _Search) -> list[FloatArray]:
    """Points to walk to in straight lines, as far as the search goes."""
    directions = _list_axes(search) if search.model.weights is not None else _list_steepest(search)
    return [search.move(direction) for direction in directions if search.measure(direction) > 0]


def _list_axes(search: _Search) -> list[FloatArray]:
    """Single features, up and down: a vote has no score whose slope could lead the way."""
    every = np.eye(search.features.size)
    return list(np.concatenate([every, -every])[: 8 * _SINGLE_FEATURES])


def _list_steepest(search: _Search) -> list[FloatArray]:
    """Directions in units: single features, and the steepest one at the row and at points further along it."""
    (model,) = search.model.members
    shapes = {axis.feature: (axis, term.cell_scores) for term in model.terms for axis in term.axes}
    sign = -1.0 if search.home else 1.0
    here = search.start
    directions: list[FloatArray] = []
    for share in (0.1, 0.2, 0.4, 0.8):
        slope = sign * np.array(
            [_find_slope(search.noise, *shapes[at], float(here[at])) for at in search.features.tolist()]
        )
        directions.append(slope)
        if len(directions) == 1:
            for at in np.argsort(-np.abs(slope), kind="stable")[:_SINGLE_FEATURES].tolist():
                directions.append(np.sign(slope[at]) * np.eye(search.features.size)[at])
        if search.measure(slope) == 0:
            break
        here = search.move(slope, share)
    return directions


def _find_slope(noise: Noise, axis: Axis, scores: IntArray, x: float) -> float:
    """Rise of a term's mean score over one magnitude of the noise."""
    half = 0.5 * float(noise.scales(np.array([axis.feature]))[0])
    cells = noise.cell_probabilities([x - half, x + half], axis.edges, axis.feature)
    low, high = cells @ scores
    return float(high - low)


def _find_first_flips(search: _Search, ends: FloatArray) -> FloatArray:
    """The first points seen to flip on the ways to each end, brought nearer by halving, if there are any."""
    start, ways = search.start, ends - search.start
    if not len(ways):
        return ways
    shares = np.linspace(0.0, 1.0, _STEPS + 1)[1:]
    points = start + shares[:, None, None] * ways
    flipped = search.flips(points.reshape(-1, start.size)).reshape(_STEPS, len(ends))
    ways, flipped = ways[flipped.any(axis=0)], flipped[:, flipped.any(axis=0)]
    if not len(ways):
        return np.asarray(ways)
    far = shares[flipped.argmax(axis=0)]
    near = far - 1.0 / _STEPS
    for _ in range(_REFINEMENTS):
        middle = 0.5 * (near + far)
        flips = search.flips(start + middle[:, None] * ways)
        near, far = np.where(flips, near, middle), np.where(flips, middle, far)
    return np.asarray(start + far[:, None] * ways)
