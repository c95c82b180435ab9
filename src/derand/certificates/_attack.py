"""The search for a change that does flip a label: an upper bound of the true radius, beside the certified lower one.

Starts from the worst changes that the separable worst case knows, term by term for many prices (docs/theory.md, section
8); then tries the direction in which the score falls fastest, followed as it bends; single features; and the ways to
the nearest rows that have another label. It proves nothing where it finds nothing. Must not know how a rule proves what
it says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import BoolArray, FloatArray, IntArray, freeze
from derand.certificates._labels import find_labels
from derand.certificates._results import Certificates
from derand.certificates._worst import find_reach
from derand.kernels.steps import Reach
from derand.model import AdditiveEnsemble, Axis, Model, as_model
from derand.noise import Noise, as_noise_or_none

_STEPS = 24
_REFINEMENTS = 12
_SINGLE_FEATURES = 4
_NEAREST_ROWS = 8
_CANDIDATE_ROWS = 20_000
_PRICES = 64
_AROUND_ROW, _AROUND_EDGES = (
    np.concatenate([-offsets[::-1], [0.0], offsets])
    for offsets in (np.geomspace(1 / 64, 8, 48), np.geomspace(1 / 8, 6, 12))
)
"""Places, in magnitudes of the noise, at which the worst of a term is looked for."""
_REACH = 12.0
"""How far the search goes, in magnitudes of the noise beyond the certified radius."""


@dataclass(frozen=True, slots=True, eq=False)
class Flip:
    """A witness: a changed row that gets another label.

    Attributes
    ----------
    distance : float
        Size of the change in the threat's norm and units, rounded up: an upper bound of the true radius. For norm 0 the
        number of changed columns.
    row : array of shape (n_features,)
        The changed row, read-only; only numerical features differ, and what is missing stays so.
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
    noise: Noise | None
    rule: str
    norm: float
    start: FloatArray
    features: IntArray
    """Numerical features that the model reads and that are not missing in the row."""
    units: FloatArray
    """Of those features."""
    reach: float
    """How far the search goes, in units."""
    home: int
    """The label of the row, 0 or 1."""
    reachable: Reach | None
    """What numbers may become; None for anything."""

    def keep_within(self, points: FloatArray) -> FloatArray:
        """The nearest points that the threat allows."""
        if self.reachable is None:
            return points
        low, high, steps = self.reachable.low[0], self.reachable.high[0], self.reachable.steps
        moving = steps > 0
        rounded = points.copy()
        whole = np.rint((points - self.start)[:, moving] / steps[moving])
        rounded[:, moving] = self.start[moving] + whole * steps[moving]
        outside = (rounded < low) | (rounded > high)
        kept = np.where(outside & moving, self.start, np.clip(rounded, low, high))
        return np.where(np.isnan(points), points, kept)

    def flips(self, points: FloatArray) -> BoolArray:
        """Whether each point, of shape (n_points, n_features), has another label than the row."""
        return np.asarray(find_labels(self.model, points, self.noise, rule=self.rule, n_jobs=1) != self.home)

    def measure(self, direction: FloatArray) -> float:
        """Length of a direction in units."""
        return float(np.linalg.norm(direction, ord=self.norm))

    def move(self, direction: FloatArray, share: float = 1.0) -> FloatArray:
        """The row, moved along a direction in units by a share of the reach."""
        moved = self.start.copy()
        moved[self.features] += direction / self.measure(direction) * share * self.reach * self.units
        return moved


def find_flip(
    model: Model, X: ArrayLike, noise: Noise | str | None, certificates: Certificates, *, row: int
) -> Flip | None:
    """The nearest change of a row's numbers that was found to flip its label.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        The rows that were certified: the search also walks towards those of another label.
    noise : Noise, str or None
        That of the certificates.
    certificates : Certificates
        Those of `X`, without categorical changes; the flip is by their rule, its size in the norm and units of their
        threat, and within its limits.
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
    rows = np.asarray(X, dtype=np.float64)
    if rows.shape != (len(certificates), as_model(model).n_features):
        raise ValueError(
            f"`X` must hold the {len(certificates)} rows that `certificates` are about, {model.n_features} columns "
            f"each, got shape {rows.shape}."
        )
    if certificates.norm is None:
        raise ValueError("`certificates` of a Threat without a norm have no distance to search: see their `witness`.")
    if not model.numerical_features or np.isinf(certificates.radius[row]):
        return None
    search = _start_search(model, rows[row], as_noise_or_none(noise), certificates, float(certificates.radius[row]))
    if not search.features.size:
        return None
    others = np.flatnonzero(certificates.label != certificates.label[row])
    found = [_follow_worst(search, member) for member in model.members]
    if search.norm != 0:
        ends = [*_list_near_rows(search, rows, others), *_list_ends(search)]
        found.append(_find_first_flips(search, np.reshape(ends, (-1, search.start.size))))
    flipped = np.concatenate(found)
    if not len(flipped):
        return None
    distances = [
        measure_change((point - search.start)[search.features], search.units, search.norm) for point in flipped
    ]
    nearest = int(np.argmin(distances))
    return Flip(distances[nearest], freeze(flipped[nearest].copy()), certificates.classes[1 - search.home])


def _start_search(
    model: Model, start: FloatArray, noise: Noise | None, certificates: Certificates, radius: float
) -> _Search:
    there = [at for at in model.numerical_features if not np.isnan(start[at])]
    features = np.array(there, dtype=np.int64)
    units = certificates.threat.units_of(start.size)[features]
    home = int(find_labels(model, start[None], noise, rule=certificates.rule)[0])
    reachable = find_reach(certificates.threat, start[None], model.numerical_features)
    scale = 1.0 if noise is None else float((noise.scales(features) / units).max(initial=0.0))
    norm = float(certificates.norm or 0)
    return _Search(
        model, noise, certificates.rule, norm, start, features, units, radius + _REACH * scale, home, reachable
    )


def measure_change(change: FloatArray, units: FloatArray, norm: float) -> float:
    """Size of a change in a norm and units, rounded up by a hair; for norm 0 the number of changed entries."""
    if norm == 0:
        return float(np.count_nonzero(change))
    return float(np.linalg.norm(change / units, ord=norm) * (1 + 1e-12))


def _follow_worst(search: _Search, member: AdditiveEnsemble) -> FloatArray:
    """Points that flip on the way through the worst cases of a member, from small changes to large ones.

    Straight from the row to each of them, and from each to the next one, there also column by column.
    """
    path = search.keep_within(np.concatenate([search.start[None], _move_terms(search, member)]))
    flips = search.flips(path)
    at = np.flatnonzero(flips[1:] & ~flips[:-1]) + 1
    if search.norm == 0 or not at.size:
        return path[at]
    steps = [_list_single_moves(search, path[k - 1], path[k]) for k in at.tolist()]
    near, far = (np.concatenate(points) for points in zip(*steps, strict=True))
    first = path[at[0] : at[0] + _NEAREST_ROWS]
    return np.concatenate([_halve(search, near, far), _find_first_flips(search, first)])


def _list_single_moves(search: _Search, near: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pairs of points, the second of which flips: both ends, and the last move of one column of a way between them."""
    columns = np.flatnonzero(near != far)
    pairs = [(near, far)]
    by_size = columns[np.argsort(np.abs(far - near)[columns], kind="stable")]
    for order in (by_size, by_size[::-1]):
        way = np.tile(near, (order.size + 1, 1))
        for count, column in enumerate(order.tolist()):
            way[count + 1 :, column] = far[column]
        last = int(search.flips(way[1:]).argmax()) + 1
        pairs.append((way[last - 1], way[last]))
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def _halve(search: _Search, near: FloatArray, far: FloatArray) -> FloatArray:
    """Points that flip, between those that do not and those that do, by halving what lies between."""
    for _ in range(_REFINEMENTS):
        middle = search.keep_within(0.5 * (near + far))
        flips = search.flips(middle)[:, None]
        near, far = np.where(flips, near, middle), np.where(flips, middle, far)
    return far


def _move_terms(search: _Search, member: AdditiveEnsemble) -> FloatArray:
    """The points at which a member's expected score is worst, term by term, for ever lower prices per distance.

    For linf, within ever larger distances; for norm 0, with the terms that can fall most moved to their worst, one by
    one.
    """
    moved = np.tile(search.start, (_PRICES, 1))
    there = set(search.features.tolist())
    moving = [term for term in member.terms if term.axes and term.axes[0].feature in there]
    columns = [_find_worst(search, term.axes[0], term.cell_scores) for term in moving]
    if not columns:
        return moved
    if search.norm == 0:
        order = np.argsort([-(falls[0] - falls.min()) for _, _, falls in columns], kind="stable")
        moved = np.tile(search.start, (min(len(columns), 256), 1))
        for count, k in enumerate(order[: len(moved)].tolist()):
            feature, places, falls = columns[k]
            moved[count:, feature] = places[falls.argmin()]
        return moved
    units = dict(zip(search.features.tolist(), search.units.tolist(), strict=True))
    top = max(float(np.ptp(falls)) for _, _, falls in columns) + 1e-300
    shares = np.geomspace(1e-4, 1e1, _PRICES)[:, None]
    for feature, places, falls in columns:
        distances = np.abs(places - search.start[feature]) / units.get(feature, 1.0) / search.reach
        if math.isinf(search.norm):
            value = np.where(distances <= np.minimum(shares, 1.0), falls, np.inf)
        else:
            value = falls + 100 * top * shares[::-1] * np.minimum(distances, 1e6) ** search.norm
        moved[:, feature] = places[value.argmin(axis=1)]
    return moved


def _find_worst(search: _Search, axis: Axis, scores: IntArray) -> tuple[int, FloatArray, FloatArray]:
    """A term's column, places to which it may be moved, the row's own first, and the score expected there: the higher,
    the safer."""
    own = float(search.start[axis.feature])
    sign = 1.0 if search.home else -1.0
    if search.noise is None:
        places = np.concatenate([[own], axis.edges, np.nextafter(axis.edges, -np.inf)])
        return axis.feature, places, np.asarray(sign * scores[np.searchsorted(axis.edges, places, side="right")])
    scale = float(search.noise.scales(np.array([axis.feature]))[0])
    edges = axis.edges[:: max(1, axis.edges.size // 64)]
    near = (edges[:, None] + scale * _AROUND_EDGES).ravel() if edges.size else np.empty(0)
    places = np.concatenate([[own], own + scale * _AROUND_ROW, near])
    shares = search.noise.cdf(np.clip((places[:, None] - axis.edges) / scale, -1e3, 1e3))  # to nearest is enough here
    return axis.feature, places, np.asarray(sign * (scores[0] + shares @ np.diff(scores)))


def _list_near_rows(search: _Search, rows: FloatArray, others: IntArray) -> list[FloatArray]:
    """The nearest rows among those of another label, with the categories of this one."""
    others = others[:: max(1, others.size // _CANDIDATE_ROWS)]
    if not others.size:
        return []
    own = search.start[search.features]
    values = rows[np.ix_(others, search.features)]
    values = np.where(np.isnan(values), own, values)  # what is there stays there
    scaled = (values - own) / search.units
    nearest = np.argsort(np.linalg.norm(scaled, ord=search.norm, axis=1), kind="stable")[:_NEAREST_ROWS]
    ends = []
    for place in nearest.tolist():
        end = search.start.copy()
        end[search.features] = values[place]
        ends.append(end)
    return ends


def _list_ends(search: _Search) -> list[FloatArray]:
    """Points to walk to in straight lines, as far as the search goes."""
    if search.model.weights is not None or search.noise is None:
        directions = _list_axes(search)
    else:
        directions = _list_steepest(search, search.noise)
    return [search.move(direction) for direction in directions if search.measure(direction) > 0]


def _list_axes(search: _Search) -> list[FloatArray]:
    """Single features, up and down: a vote has no score whose slope could lead the way."""
    every = np.eye(search.features.size)
    return list(np.concatenate([every, -every])[: 8 * _SINGLE_FEATURES])


def _list_steepest(search: _Search, noise: Noise) -> list[FloatArray]:
    """Directions in units: single features, and the steepest one at the row and at points further along it."""
    (model,) = search.model.members
    shapes = {axis.feature: (axis, term.cell_scores) for term in model.terms for axis in term.axes}
    sign = -1.0 if search.home else 1.0
    here = search.start
    directions: list[FloatArray] = []
    for share in (0.1, 0.2, 0.4, 0.8):
        slope = sign * np.array([_find_slope(noise, *shapes[at], float(here[at])) for at in search.features.tolist()])
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
    away = (x - axis.edges) / float(noise.scales(np.array([axis.feature]))[0])
    rises = noise.cdf(np.clip(away + 0.5, -1e3, 1e3)) - noise.cdf(np.clip(away - 0.5, -1e3, 1e3))
    return float(rises @ np.diff(scores))


def _find_first_flips(search: _Search, ends: FloatArray) -> FloatArray:
    """The first points seen to flip on the ways to each end, brought nearer by halving, if there are any."""
    start, ways = search.start, ends - search.start
    if not len(ways):
        return ways
    shares = np.linspace(0.0, 1.0, _STEPS + 1)[1:]
    points = search.keep_within((start + shares[:, None, None] * ways).reshape(-1, start.size))
    flipped = search.flips(points).reshape(_STEPS, len(ends))
    ways, flipped = ways[flipped.any(axis=0)], flipped[:, flipped.any(axis=0)]
    if not len(ways):
        return np.asarray(ways)
    far = shares[flipped.argmax(axis=0)][:, None]
    near = search.keep_within(start + (far - 1.0 / _STEPS) * ways)
    return _halve(search, near, search.keep_within(start + far * ways))
