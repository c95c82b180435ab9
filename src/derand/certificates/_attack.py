"""Attacking rows: the border of the search for changes that do flip an answer, an upper bound beside the certified one.

Owns `attack`: the checks, the changes that have no size (categories, numbers that go missing or appear), which are made
first, and the choice of the best. Must not know how a rule proves what it says, nor any certificate: what is found
stands against them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import FloatArray, IntArray
from derand.certificates._attack_ground import Ground
from derand.certificates._attack_lines import attack_lines
from derand.certificates._attack_search import Search, confirm
from derand.certificates._attack_starts import are_same, lay_ground, list_starts
from derand.certificates._duels import find_duel
from derand.certificates._flips import Attacks
from derand.certificates._labels import find_labels
from derand.certificates._run import check_request, check_threat, name_codes, read_rows
from derand.certificates._witness import find_witnesses
from derand.kernels.norms import measure_norms
from derand.model import Model, as_model, coarsen
from derand.noise import Noise, as_noise_or_none
from derand.threads import count_threads, run_blocks
from derand.threat import Threat

_BLOCK_NUMBERS = 2**22
_BLOCK_ROWS = 128
_LEVELS = 2**11
"""Of the grid on which votes are searched: labels by finer laws take milliseconds each."""
_PLACES = 150
_NEAREST_ROWS = 2
_NEAREST_ROWS_OF_VOTES = 8
_CANDIDATES = 2**20
"""Numbers of the rows that are looked at as ends to walk to."""


class _Request(NamedTuple):
    """What is asked of all rows."""

    model: Model
    noise: Noise | None
    rule: str
    threat: Threat
    seed: int
    others: FloatArray
    other_labels: IntArray
    twin: Model
    """The model, or what is searched in its place."""


def attack(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    *,
    rule: str = "vote",
    threat: Threat | None = None,
    random_state: int = 0,
    others: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Attacks:
    """The smallest change of each row that was found to flip its answer.

    Follows the worst case of the sum term by term, by scores and by what the exact failing mass makes of them; single
    columns; ways to rows of another label. Categories, and numbers that may go missing or appear, are changed to their
    worst first. Every flip is one by the function that `predict` calls. Where nothing is found nothing is proven.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        As for `certify`.
    noise : Noise, str or None
        As for `certify`.
    rule : {"vote", "mean"}
    threat : Threat or None
        Within which changes stay, and in whose norm and units they count. None is the norm of the noise, 2 without any.
    random_state : int
        Seed of restarts. The result is the same for the same seed, whatever the number of threads.
    others : array-like of shape (n, n_features) or None
        Rows to walk towards, where their label differs. None is `X`.
    n_jobs : int or None
        Threads; None or -1 uses all cores.

    Returns
    -------
    Attacks

    Examples
    --------
    >>> from derand import AdditiveEnsemble, attack, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> X = [[0.0], [2.0]]
    >>> attacks = attack(model, X, "gaussian:0.25")
    >>> attacks.distance.round(2).tolist(), attacks.flipped.tolist()
    ([0.5, 1.5], [1, 0])

    The changed rows are there to be checked, and no flip lies inside what is certified:

    >>> certify(model, attacks.rows, "gaussian:0.25").label.tolist()
    [1, 0]
    >>> attacks.require_outside(certify(model, X, "gaussian:0.25"))
    """
    noise = as_noise_or_none(noise, (threat or Threat()).norm)
    _, (asked,) = check_request(rule, "best", noise, [threat or Threat()])
    rows = np.array(read_rows(as_model(model), X, noise), dtype=np.float64)
    check_threat(asked, model, rows)
    seed, ends = read_seed(random_state), _read_others(model, others, noise)
    found = _attack_rows(model, rows, noise, rule, name_codes(asked, model), seed, ends, n_jobs)
    return replace(found, threat=asked)


def read_seed(random_state: int) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"`random_state` must be a whole number, 0 or larger, got {random_state!r}.")
    return int(random_state)


def _read_others(model: Model, others: ArrayLike | None, noise: Noise | None) -> FloatArray | None:
    if others is None:
        return None
    if np.ndim(others) != 2 or np.shape(others)[1] != model.n_features:
        raise ValueError(
            f"`others` must have shape (n, {model.n_features}), one column per feature of the model, "
            f"got {np.shape(others)}."
        )
    return np.asarray(read_rows(model, others, noise), dtype=np.float64)


def _attack_rows(
    model: Model,
    rows: FloatArray,
    noise: Noise | None,
    rule: str,
    threat: Threat,
    seed: int,
    others: FloatArray | None,
    n_jobs: int | None,
) -> Attacks:
    labels = find_labels(model, rows, noise, rule=rule, n_jobs=n_jobs)
    if model.is_linear:
        (ensemble,) = model.members
        return _name_attacks(model, rows, labels, *attack_lines(ensemble, rows, labels, threat), threat, rule, noise)
    if model.n_classes > 2:
        return _attack_duels(model, rows, labels, noise, rule, threat, seed, others, n_jobs)
    if others is None:
        ends, end_labels = rows, labels
    else:
        ends, end_labels = others, find_labels(model, others, noise, rule=rule, n_jobs=n_jobs)
    few = np.unique(np.linspace(0, len(ends) - 1, max(_CANDIDATES // rows.shape[1], 8)).astype(np.int64))
    few = few[(few >= 0) & (few < len(ends))]
    twin = coarsen(model, _LEVELS) if rule == "vote" else model
    request = _Request(model, noise, rule, threat, seed, ends[few], end_labels[few], twin)
    changed, distance = rows.copy(), np.full(len(rows), np.inf)

    def attack_block(block: slice) -> None:
        at = np.arange(block.start, block.stop)
        changed[block], distance[block] = _attack_block(request, rows[block], labels[block], at)

    size = int(np.clip(_BLOCK_NUMBERS // (_PLACES * max(model.n_cells, 1)), 1, _BLOCK_ROWS))
    run_blocks(attack_block, len(rows), size, count_threads(n_jobs))
    flipped = np.where(np.isfinite(distance), 1 - labels, labels)
    return _name_attacks(model, rows, labels, changed, distance, flipped, threat, rule, noise)


def _name_attacks(
    model: Model,
    rows: FloatArray,
    labels: IntArray,
    changed: FloatArray,
    distance: FloatArray,
    flipped: IntArray,
    threat: Threat,
    rule: str,
    noise: Noise | None,
) -> Attacks:
    n_categories, classes = _count_changed(model, changed, rows), np.arange(model.n_classes)
    found = np.isfinite(distance)
    return Attacks(
        found, distance, changed, labels, flipped, n_categories, threat, classes=classes, rule=rule, noise=noise
    )


def _attack_duels(
    model: Model,
    rows: FloatArray,
    labels: IntArray,
    noise: Noise | None,
    rule: str,
    threat: Threat,
    seed: int,
    others: FloatArray | None,
    n_jobs: int | None,
) -> Attacks:
    """Of several classes: the nearest flip of a duel with any rival that flips the label as well."""
    (ensemble,) = model.members
    changed, distance, flipped = rows.copy(), np.full(len(rows), np.inf), labels.copy()
    for low, high in ensemble.pairs:
        at = np.flatnonzero((labels == low) | (labels == high))
        if not at.size:
            continue
        ends = rows if others is None else others
        found = _attack_rows(find_duel(ensemble, low, high), rows[at], noise, rule, threat, seed, ends, n_jobs)
        nearer = np.flatnonzero(found.found & (found.distance < distance[at]))
        if nearer.size:
            after = find_labels(model, found.rows[nearer], noise, rule=rule, n_jobs=n_jobs)
            flips = after != labels[at[nearer]]
            nearer = nearer[flips]
            changed[at[nearer]], distance[at[nearer]] = found.rows[nearer], found.distance[nearer]
            flipped[at[nearer]] = after[flips]
    return _name_attacks(model, rows, labels, changed, distance, flipped, threat, rule, noise)


def _count_changed(model: Model, changed: FloatArray, rows: FloatArray) -> IntArray:
    """How many categories of each row are others."""
    codes = list(model.categorical_features)
    return np.asarray((~are_same(changed[:, codes], rows[:, codes])).sum(axis=1))


def _attack_block(
    request: _Request, rows: FloatArray, labels: IntArray, numbers: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The best changed rows of a block, and their distances; `numbers` are those of the rows, for their seeds."""
    changed, distance = rows.copy(), np.full(len(rows), np.inf)
    if request.threat.norm is None:
        found, witnesses = find_witnesses(request.model, rows, request.noise, request.rule, request.threat, labels)
        changed[found], distance[found] = witnesses[found], 0.0
    others = _choose_others(request, rows, labels)
    for starts in list_starts(request.model, request.noise, request.threat, rows, labels):
        at = np.flatnonzero(distance > 0)
        if not at.size:
            break
        ground = lay_ground(
            request.model, request.noise, request.rule, request.threat, rows[at], starts[at], labels[at]
        )
        points, distances = _search(request, ground, others[at], numbers[at])
        nearer = distances < distance[at]
        changed[at[nearer]], distance[at[nearer]] = points[nearer], distances[nearer]
    _put_back(request, rows, labels, changed, distance)
    return changed, distance


def _search(request: _Request, ground: Ground, others: FloatArray, numbers: IntArray) -> tuple[FloatArray, FloatArray]:
    """The nearest flips from a ground, and their distances.

    Where a model is slow to ask, its twin on a coarser grid is searched, and the model settles what was found; rows of
    which it does not confirm anything are searched by the model itself.
    """
    rngs = [np.random.default_rng([request.seed, number]) for number in numbers.tolist()]
    found = Search(ground)
    at = np.arange(len(ground))
    if request.twin is not request.model:
        first = Search(replace(ground, model=request.twin))
        first.run(others, rngs)
        confirm(found, first.points)
        at = np.flatnonzero(np.isinf(found.distances))
    if at.size:
        last = Search(ground.take(at))
        last.run(others[at], [rngs[k] for k in at.tolist()])
        found.points[at], found.distances[at] = last.points, last.distances
    return found.points, found.distances


def _choose_others(request: _Request, rows: FloatArray, labels: IntArray) -> FloatArray:
    """The nearest rows of another label, (n_rows, n_others, n_features); none where a norm has no straight ways."""
    count = _NEAREST_ROWS if request.model.weights is None else _NEAREST_ROWS_OF_VOTES
    columns = np.array(request.model.numerical_features, dtype=np.int64)
    norm = request.threat.ball_norm
    if not norm or not columns.size or not len(request.others):
        return np.empty((len(rows), 0, rows.shape[1]))
    chosen = np.repeat(rows[:, None], count, axis=1)
    units = request.threat.units_of(rows.shape[1])[columns]
    for k, row in enumerate(rows):
        at = np.flatnonzero(request.other_labels != labels[k])
        with np.errstate(over="ignore"):
            away = np.nan_to_num((request.others[np.ix_(at, columns)] - row[columns]) / units)
            nearest = at[np.argsort(measure_norms(away, norm), kind="stable")[:count]]
        chosen[k, : nearest.size] = request.others[nearest]
    return chosen


def _put_back(request: _Request, rows: FloatArray, labels: IntArray, changed: FloatArray, distance: FloatArray) -> None:
    """Put categories back, and numbers that went missing or appeared, where the flip stays without their change."""
    model = request.model
    for column in (*model.categorical_features, *model.missing_features):
        is_gap = np.isnan(rows[:, column]) != np.isnan(changed[:, column])
        is_code = column in model.categorical_features and ~are_same(rows[:, column], changed[:, column])
        at = np.flatnonzero(np.isfinite(distance) & (is_gap | is_code))
        if at.size:
            points = changed[at]
            points[:, column] = rows[at, column]
            flips = find_labels(model, points, request.noise, rule=request.rule, n_jobs=1) != labels[at]
            changed[at[flips], column] = rows[at[flips], column]
