"""Attacks on linear models: the worst change is explicit, and lies a hair beyond what is certified.

Owns the least change of each row against each rival, made of moves in the ratio that the norm asks for; whether it
flips is asked of the function that `predict` calls. Must not know any certificate.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from derand._arrays import BoolArray, FloatArray, IntArray
from derand.certificates._attack_ground import measure_changes
from derand.certificates._line_falls import find_least_moves, find_moves
from derand.certificates._lines import Lines, find_lines, label_lines
from derand.certificates._witness import change_categories
from derand.model import AdditiveEnsemble
from derand.threat import Threat

_SHARES = (0.0, 0.5, 1e300)
"""Of a step that a column must move by to move at all: moves are rounded up, which costs most where they are small."""
_HAIRS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-7, 1e-5, 1e-3, 0.1)
"""By how much more than the margin sums are to fall, until one does: rounded numbers may miss the margin itself."""


def attack_lines(
    model: AdditiveEnsemble, rows: FloatArray, labels: IntArray, threat: Threat
) -> tuple[FloatArray, FloatArray, IntArray]:
    """The nearest change of each row that flips its label.

    Parameters
    ----------
    model : AdditiveEnsemble
        Linear.
    rows : array of shape (n_rows, n_features)
    labels : array of shape (n_rows,)
    threat : Threat
        Resolved.

    Returns
    -------
    changed : array of shape (n_rows, n_features)
    distance : array of shape (n_rows,)
        Infinite where nothing was found.
    flipped : array of shape (n_rows,)
        The labels of the changed rows.
    """
    changed, distance, flipped = rows.copy(), np.full(len(rows), np.inf), labels.copy()
    for low, high in model.pairs:
        lines = find_lines(model, low, high)
        for share, (side, label) in product(_SHARES if threat.steps and threat.norm else (0.0,), ((0, low), (1, high))):
            at = np.flatnonzero(labels == label)
            starts = change_worst(lines, rows[at], threat, side)
            for hair in _HAIRS:
                if not at.size:
                    break
                points = move_least(lines, rows[at], starts, threat, side, hair, share)
                sizes = measure_numbers(model, points, rows[at], threat)
                after = label_lines(model, points)
                flips = after != label
                nearer = flips & (sizes < distance[at])
                changed[at[nearer]], distance[at[nearer]] = points[nearer], sizes[nearer]
                flipped[at[nearer]] = after[nearer]
                at, starts = at[~flips], starts[~flips]
    _put_back(model, rows, changed, distance, labels, flipped)
    return changed, distance, flipped


def change_worst(lines: Lines, rows: FloatArray, threat: Threat, side: int) -> FloatArray:
    """Rows with their worst categories, as many as may change."""
    starts = rows.copy()
    tables = [one for one in lines.tables.fixed if one.features[0] not in threat.frozen]
    change_categories(starts, rows, tables, threat, np.full(len(rows), 1.0 if side else -1.0))
    return starts


def measure_numbers(model: AdditiveEnsemble, points: FloatArray, rows: FloatArray, threat: Threat) -> FloatArray:
    """Size of the changes of numbers, rounded up."""
    columns = list(model.numerical_features)
    units = threat.units_of(rows.shape[1])[columns]
    own = rows[:, columns]
    changes = np.where(np.isnan(own), 0.0, points[:, columns] - own)  # what is missing stays so
    return measure_changes(changes, units, threat.ball_norm)


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def move_least(
    lines: Lines, rows: FloatArray, starts: FloatArray, threat: Threat, side: int, hair: float, share: float = 0.0
) -> FloatArray:
    """Rows moved just so far that the sum is at its threshold, and a hair beyond.

    Columns that change by steps, and would move by less than a share of one, stay, and the others make up for them.
    """
    with np.errstate(all="ignore"):
        score = lines.model.score(starts)
        margins = (score - lines.threshold) if side else (lines.threshold - score)
        own = rows[:, lines.features]
        products = np.abs(np.where(np.isnan(own), lines.missing, own * lines.slopes)).sum(axis=1)
        margins = np.maximum(margins + hair * (products + np.abs(margins)), 0.0)
    caps = _find_exact_caps(lines, threat, rows, side)
    units = threat.units_of(rows.shape[1])[lines.features] if threat.norm else np.ones(lines.features.size)
    prices = np.abs(lines.slopes) * units
    moves = find_least_moves(margins, prices, caps / units, threat.ball_norm)
    if share:
        least = share * threat.steps_of(rows.shape[1])[lines.features]
        caps = np.where(moves * units < least, 0.0, caps)
        moves = find_least_moves(margins, prices, caps / units, threat.ball_norm)
    return place_moves(lines, rows, starts, threat, side, moves * units)


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def move_most(
    lines: Lines, rows: FloatArray, starts: FloatArray, threat: Threat, side: int, radius: float
) -> FloatArray:
    """Rows moved within a radius so that the sum falls most."""
    units = threat.units_of(rows.shape[1])[lines.features] if threat.norm else np.ones(lines.features.size)
    caps = _find_exact_caps(lines, threat, rows, side) / units
    moves = find_moves(radius, np.abs(lines.slopes) * units, caps, threat.ball_norm)
    return place_moves(lines, rows, starts, threat, side, moves * units)


def _find_exact_caps(lines: Lines, threat: Threat, rows: FloatArray, side: int) -> FloatArray:
    low, high = threat.find_box(rows, lines.model.numerical_features)
    own = rows[:, lines.features]
    with np.errstate(all="ignore"):
        falls = (lines.slopes > 0) == bool(side)
        caps = np.where(falls, own - low[:, lines.features], high[:, lines.features] - own)
        return np.where(np.isnan(own), 0.0, caps)


def place_moves(
    lines: Lines, rows: FloatArray, starts: FloatArray, threat: Threat, side: int, moves: FloatArray
) -> FloatArray:
    """The rows after moves of their numbers, as the threat allows them: within limits, by whole steps."""
    low, high = threat.find_box(rows, lines.model.numerical_features)
    signs = np.where((lines.slopes > 0) == bool(side), -1.0, 1.0)
    steps = threat.steps_of(rows.shape[1])
    points = starts.copy()
    for k, column in enumerate(lines.features.tolist()):
        own, least, most = rows[:, column], low[:, column], high[:, column]
        wanted = np.where(np.isfinite(moves[:, k]), moves[:, k], 0.0) * signs[k]
        points[:, column] = np.where(wanted == 0, own, np.clip(own + wanted, least, most))
        if steps[column]:
            count = np.sign(wanted) * np.ceil(np.abs(wanted) / steps[column])
            points[:, column] = own
            for fewer in (np.sign(wanted), 0.0):
                stepped = own + (count - fewer) * steps[column]
                inside = (stepped >= least) & (stepped <= most)
                points[:, column] = np.where(inside, stepped, points[:, column])
    return points


def _put_back(
    model: AdditiveEnsemble,
    rows: FloatArray,
    changed: FloatArray,
    distance: FloatArray,
    labels: IntArray,
    flipped: IntArray,
) -> None:
    """Put categories back where the flip stays without their change."""
    for column in model.categorical_features:
        own, other = rows[:, column], changed[:, column]
        differs = ~((own == other) | (np.isnan(own) & np.isnan(other)))
        at = np.flatnonzero(np.isfinite(distance) & differs)
        if at.size:
            points = changed[at]
            points[:, column] = rows[at, column]
            after = label_lines(model, points)
            stays = after != labels[at]
            changed[at[stays], column], flipped[at[stays]] = rows[at[stays], column], after[stays]


def find_line_witnesses(
    model: AdditiveEnsemble, rows: FloatArray, labels: IntArray, threat: Threat
) -> tuple[BoolArray, FloatArray]:
    """Which rows have a change within the limits that flips their label, and the changed rows; a ball is not looked
    at."""
    changed, distance, _ = attack_lines(model, rows, labels, threat)
    return np.isfinite(distance), changed
