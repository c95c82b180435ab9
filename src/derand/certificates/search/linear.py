"""Attacks on linear models: the worst change is explicit, and lies a hair beyond what is certified.

Owns the least change of each row against each rival, made of moves in the ratio that the norm asks for; whether it
flips is asked of the function that `predict` calls. Must not know any certificate.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.linear import LinearSum, build_linear_sum, label_linear
from derand.certificates.bounds.linear_duality import compute_least_moves, compute_moves
from derand.certificates.search.feasible_set import measure_changes
from derand.certificates.search.worst_positions import change_categories
from derand.model import AdditiveEnsemble
from derand.perturbation import Perturbation

_SHARES = (0.0, 0.5, 1e300)
"""Of a step that a column must move by to move at all: moves are rounded up, which costs most where they are small."""
_HAIRS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-7, 1e-5, 1e-3, 0.1)
"""By how much more than the margin sums are to decrease, until one does: rounded numbers may miss the margin itself."""


def attack_linear(
    model: AdditiveEnsemble, rows: FloatArray, labels: IntArray, perturbation: Perturbation
) -> tuple[FloatArray, FloatArray]:
    """The nearest change of each row that flips its label.

    Distances are infinite where nothing was found.
    """
    changed, distance = rows.copy(), np.full(len(rows), np.inf)
    shares = _SHARES if perturbation.steps.any() and perturbation.norm else (0.0,)
    for low, high in model.pairs:
        linear = build_linear_sum(model, low, high)
        for share, (is_high, label) in product(shares, ((0, low), (1, high))):
            at = np.flatnonzero(labels == label)
            starts = change_worst(linear, rows[at], perturbation, is_high)
            for hair in _HAIRS:
                if not at.size:
                    break
                points = move_least(linear, rows[at], starts, perturbation, is_high, hair, share)
                sizes = measure_numbers(model, points, rows[at], perturbation)
                flips = label_linear(model, points) != label
                nearer = flips & (sizes < distance[at])
                changed[at[nearer]], distance[at[nearer]] = points[nearer], sizes[nearer]
                at, starts = at[~flips], starts[~flips]
    return changed, distance


def change_worst(linear: LinearSum, rows: FloatArray, perturbation: Perturbation, is_high: int) -> FloatArray:
    """Rows with their worst categories, as many as may change."""
    starts = rows.copy()
    signs = np.full(len(rows), 1.0 if is_high else -1.0)
    change_categories(starts, rows, linear.tables.fixed, perturbation, signs)
    return starts


def measure_numbers(
    model: AdditiveEnsemble, points: FloatArray, rows: FloatArray, perturbation: Perturbation
) -> FloatArray:
    """Size of the changes of numbers, rounded up."""
    columns = list(model.numerical_features)
    own = rows[:, columns]
    changes = np.where(np.isnan(own), 0.0, points[:, columns] - own)  # what is missing stays so
    return measure_changes(changes, perturbation.units[columns], perturbation.norm)


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def move_least(
    linear: LinearSum,
    rows: FloatArray,
    starts: FloatArray,
    perturbation: Perturbation,
    is_high: int,
    hair: float,
    share: float = 0.0,
) -> FloatArray:
    """Rows moved just so far that the sum is at its threshold, and a hair beyond.

    Columns that change by steps, and would move by less than a share of one, stay, and the others make up for them.
    """
    with np.errstate(all="ignore"):
        score = linear.model.score(starts)
        margins = (score - linear.threshold) if is_high else (linear.threshold - score)
        own = rows[:, linear.features]
        products = np.abs(np.where(np.isnan(own), linear.missing, own * linear.slopes)).sum(axis=1)
        margins = np.maximum(margins + hair * (products + np.abs(margins)), 0.0)
    caps = _compute_exact_caps(linear, perturbation, rows, is_high)
    units = perturbation.units[linear.features] if perturbation.norm else np.ones(linear.features.size)
    multipliers = np.abs(linear.slopes) * units
    moves = compute_least_moves(margins, multipliers, caps / units, perturbation.norm)
    if share:
        least = share * perturbation.steps[linear.features]
        caps = np.where(moves * units < least, 0.0, caps)
        moves = compute_least_moves(margins, multipliers, caps / units, perturbation.norm)
    return place_moves(linear, rows, starts, perturbation, is_high, moves * units)


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def move_most(
    linear: LinearSum, rows: FloatArray, starts: FloatArray, perturbation: Perturbation, is_high: int, radius: float
) -> FloatArray:
    """Rows moved within a radius so that the sum decreases most."""
    units = perturbation.units[linear.features] if perturbation.norm else np.ones(linear.features.size)
    caps = _compute_exact_caps(linear, perturbation, rows, is_high) / units
    moves = compute_moves(radius, np.abs(linear.slopes) * units, caps, perturbation.norm)
    return place_moves(linear, rows, starts, perturbation, is_high, moves * units)


def _compute_exact_caps(linear: LinearSum, perturbation: Perturbation, rows: FloatArray, is_high: int) -> FloatArray:
    low, high = perturbation.box(rows)
    own = rows[:, linear.features]
    with np.errstate(all="ignore"):
        decreases = (linear.slopes > 0) == bool(is_high)
        caps = np.where(decreases, own - low[:, linear.features], high[:, linear.features] - own)
        return np.where(np.isnan(own), 0.0, caps)


def place_moves(
    linear: LinearSum, rows: FloatArray, starts: FloatArray, perturbation: Perturbation, is_high: int, moves: FloatArray
) -> FloatArray:
    """The rows after moves of their numbers, within the box and by whole steps."""
    low, high = perturbation.box(rows)
    signs = np.where((linear.slopes > 0) == bool(is_high), -1.0, 1.0)
    steps = perturbation.steps
    points = starts.copy()
    for k, column in enumerate(linear.features.tolist()):
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
