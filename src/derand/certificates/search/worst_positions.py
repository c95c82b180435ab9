"""The worst values of a row within a box, term by term, and its worst categories and missing values.

Owns the worst position of each term within what a threat allows. Nothing is verified here. Must not know rules or
labels.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.search.grids import expect_grid, move_grid
from derand.model import AdditiveEnsemble, Axis, Term
from derand.noise import Noise
from derand.perturbation import Perturbation

_PLACES = 65
_REACH = 8.0  # noise scales beyond the outermost edges, where nothing changes any more
_CHUNK = 2**20
_STEPS = 4096  # tried on either side


def move_to_worst(
    member: AdditiveEnsemble,
    rows: FloatArray,
    noise: Noise | None,
    perturbation: Perturbation,
    signs: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Rows with every number at the worst place between its ends, and with their worst categories; signs as below."""
    moved = np.array(rows, dtype=np.float64)
    steps = perturbation.steps
    for term in member.terms:
        if len(term.axes) > 1:
            move_grid(moved, term, noise, steps, low, high, signs)
        for axis in term.axes if len(term.axes) == 1 else ():
            at, there = axis.feature, ~np.isnan(rows[:, axis.feature])
            column = rows[there, at], low[there, at], high[there, at], signs[there]
            scores = term.cell_scores[: axis.edges.size + 1]  # without a cell of missing values
            if steps[at]:
                moved[there, at] = _search_worst_step(noise, axis, scores, float(steps[at]), *column)
            elif noise is None:
                moved[there, at] = _select_worst_cell(axis, scores, *column)
            else:
                moved[there, at] = _search_worst_position(noise, axis, scores, *column)
    tables = [term for term in member.terms if not term.axes and term.features[0] not in perturbation.frozen]
    change_categories(moved, rows, tables, perturbation, signs)
    return moved


def _select_worst_cell(
    axis: Axis, scores: IntArray, own: FloatArray, low: FloatArray, high: FloatArray, signs: FloatArray
) -> FloatArray:
    """The nearest value of the worst cell that each row can reach."""
    first, home, last = (np.searchsorted(axis.edges, value, side="right") for value in (low, own, high))
    cells = np.arange(scores.size)
    reachable = (cells >= first[:, None]) & (cells <= last[:, None])
    value = np.where(reachable, signs[:, None] * scores, np.inf)
    best = np.where(value.min(axis=1) < value[np.arange(own.size), home], value.argmin(axis=1), home)
    edges = np.concatenate([axis.edges, [np.inf]])
    left_end = edges[np.maximum(best - 1, 0)]
    below = np.nextafter(edges[best], -np.inf)
    return np.where(best == home, own, np.where(best > home, left_end, np.maximum(below, low)))


def _search_worst_position(
    noise: Noise,
    axis: Axis,
    scores: IntArray,
    own: FloatArray,
    low: FloatArray,
    high: FloatArray,
    signs: FloatArray,
) -> FloatArray:
    """The best of many places at which a term's expected score is worst."""
    if not axis.edges.size:
        return own
    scale = float(noise.scales(np.array([axis.feature]))[0])
    start = np.minimum(np.maximum(low, axis.edges[0] - _REACH * scale), own)
    stop = np.maximum(np.minimum(high, axis.edges[-1] + _REACH * scale), own)
    shares = np.linspace(0.0, 1.0, _PLACES)
    found = np.empty(own.size)
    size = max(1, _CHUNK // (_PLACES * axis.edges.size))
    for begin in range(0, own.size, size):
        part = slice(begin, begin + size)
        positions = start[part, None] * (1 - shares) + stop[part, None] * shares
        positions = np.clip(np.concatenate([own[part, None], positions], axis=1), low[part, None], high[part, None])
        levels = signs[part, None] * _expect_scores(noise, axis, scores, positions)
        found[part] = positions[np.arange(positions.shape[0]), levels.argmin(axis=1)]
    return found


def _search_worst_step(
    noise: Noise | None,
    axis: Axis,
    scores: IntArray,
    step: float,
    own: FloatArray,
    low: FloatArray,
    high: FloatArray,
    signs: FloatArray,
) -> FloatArray:
    """The worst of the nearest whole steps, row by row."""
    if not axis.edges.size:
        return own
    box = 0.0 if noise is None else _REACH * float(noise.scales(np.array([axis.feature]))[0])
    found = own.copy()
    for row, (x, least, most) in enumerate(zip(own, low, high, strict=True)):
        start, stop = max(least, min(axis.edges[0] - box - step, x)), min(most, max(axis.edges[-1] + box + step, x))
        first, last = np.clip([np.floor((start - x) / step) - 1, np.ceil((stop - x) / step) + 1], -_STEPS, _STEPS)
        positions = x + np.arange(first, last + 1) * step
        positions = np.concatenate([[x], positions[(positions >= least) & (positions <= most)]])
        value = signs[row] * _expect_scores(noise, axis, scores, positions)
        found[row] = positions[value.argmin()]
    return found


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def _expect_scores(noise: Noise | None, axis: Axis, scores: IntArray, positions: FloatArray) -> FloatArray:
    """The score of a term at some places, or what is expected under noise, to nearest."""
    if noise is None:
        return scores[np.searchsorted(axis.edges, positions, side="right")].astype(np.float64)
    scale = float(noise.scales(np.array([axis.feature]))[0])
    away = np.clip((positions[..., None] - axis.edges) / scale, -1e3, 1e3)
    return np.asarray(scores[0] + noise.cdf(away) @ np.diff(scores))


def expect_term(term: Term, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Score of a term of one output in each row, or what is expected under noise, (n_rows,), to nearest."""
    if not term.axes or term.slope is not None:
        return np.asarray(term.score_rows(rows), dtype=np.float64).reshape(len(rows))
    if len(term.axes) > 1:
        return expect_grid(term, rows[:, list(term.features)], noise)
    (axis,) = term.axes
    column = rows[:, axis.feature]
    is_missing = np.isnan(column)
    scores = term.cell_scores[: axis.edges.size + 1]
    there = _expect_scores(noise, axis, scores, np.where(is_missing, 0.0, column)) if scores.size else column * 0.0
    return np.where(is_missing, float(term.missing_score or 0), there)


def change_categories(
    moved: FloatArray, rows: FloatArray, tables: list[Term], perturbation: Perturbation, signs: FloatArray
) -> None:
    """Give each row its worst categories, as many as may change, those that do most first."""
    if not perturbation.l0 or not tables:
        return
    gains, codes = np.zeros((rows.shape[0], len(tables))), np.zeros((rows.shape[0], len(tables)))
    for k, term in enumerate(tables):
        options = _list_codes(term, perturbation)
        if not options.size:
            continue
        values = signs[:, None] * term.evaluate(options)
        codes[:, k] = options[values.argmin(axis=1)]
        gains[:, k] = signs * term.score_rows(rows) - values.min(axis=1)
    order = np.argsort(-gains, axis=1, kind="stable")[:, : perturbation.l0]
    for k, term in enumerate(tables):
        chosen = (order == k).any(axis=1) & (gains[:, k] > 0)
        moved[chosen, term.features[0]] = codes[chosen, k]


def change_missing(
    moved: FloatArray, noise: Noise | None, terms: list[Term], perturbation: Perturbation, signs: FloatArray
) -> None:
    """Let the numbers go missing, or appear at their worst, that do most so, as many as may.

    Each is looked at from the worst place that it was moved to.
    """
    if not perturbation.missing_budget or not terms:
        return
    gains, values = (np.zeros((moved.shape[0], len(terms))) for _ in range(2))
    for k, term in enumerate(terms):
        axis, scores = term.axes[0], term.cell_scores
        column = moved[:, axis.feature]
        is_missing = np.isnan(column)
        worst = _search_worst_anywhere(noise, axis, scores, signs)
        values[:, k] = np.where(is_missing, worst, np.nan)
        home = signs * _expect_scores(noise, axis, scores, np.where(is_missing, worst, column))
        gone = signs * float(term.missing_score or 0)
        gains[:, k] = np.where(is_missing, gone - home, home - gone)
    order = np.argsort(-gains, axis=1, kind="stable")[:, : perturbation.missing_budget]
    for k, term in enumerate(terms):
        chosen = (order == k).any(axis=1) & (gains[:, k] > 0)
        moved[chosen, term.axes[0].feature] = values[chosen, k]


def _search_worst_anywhere(noise: Noise | None, axis: Axis, scores: IntArray, signs: FloatArray) -> FloatArray:
    """The worst of all numbers, for rows of both labels."""
    if not axis.edges.size:
        return np.zeros(signs.size)
    own, far = np.full(signs.size, axis.edges[0]), np.full(signs.size, np.inf)
    if noise is None:
        return _select_worst_cell(axis, scores, own, -far, far, signs)
    return _search_worst_position(noise, axis, scores, own, -far, far, signs)


def _list_codes(term: Term, perturbation: Perturbation) -> FloatArray:
    """To what a category may change."""
    if term.features[0] in perturbation.codes:
        return perturbation.codes[term.features[0]]
    if perturbation.unseen or not term.codes.size:
        return np.concatenate([term.codes, list_outside(term.codes)])
    return term.codes


def list_outside(codes: FloatArray) -> FloatArray:
    """What a category may be that is not in its table: missing, or a code that the table does not have."""
    return np.array([np.nan, min(float(codes.min(initial=0.0)), 0.0) - 1.0])
