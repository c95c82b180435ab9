"""The worst values of a row within a box, term by term, and its worst categories and missing values.

Owns the worst position of each term within what a threat allows. Nothing is verified here. Must not know rules or
labels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.search.grids import expect_grid, move_grid
from derand.model import AdditiveEnsemble, Axis, Term
from derand.noise import Noise
from derand.perturbation import Perturbation

_POSITIONS = 65
_REACH = 8.0  # noise scales beyond the outermost edges, where nothing changes any more
_CHUNK = 2**20
_STEPS = 4096  # tried on either side


def move_to_worst(
    member: AdditiveEnsemble, rows: FloatArray, noise: Noise | None, perturbation: Perturbation, signs: FloatArray
) -> FloatArray:
    """Rows with every number at its worst position in the box, and with their worst categories.

    Signs are 1 where a term is worst at its lowest score, and -1 where at its highest.
    """
    moved, steps, (low, high) = np.array(rows, dtype=np.float64), perturbation.steps, perturbation.box(rows)
    for term in member.terms:
        if len(term.axes) > 1:
            move_grid(moved, term, noise, steps, low, high, signs)
        for axis in term.axes if len(term.axes) == 1 else ():
            at, there = axis.feature, ~np.isnan(rows[:, axis.feature])
            column = rows[there, at], low[there, at], high[there, at], signs[there]
            scores = term.cell_scores[: axis.edges.size + 1]  # without a cell of missing values
            curve = _Curve(noise, axis, scores)
            if steps[at]:
                moved[there, at] = curve.search_step(float(steps[at]), *column)
            else:
                moved[there, at] = curve.search_position(*column)
    change_categories(moved, rows, member.terms, perturbation, signs)
    return moved


class _Curve(NamedTuple):
    """A term of one column, without its cell of missing values."""

    noise: Noise | None
    axis: Axis
    scores: IntArray

    @property
    def scale(self) -> float:
        """Of the noise in this column; 0 without any."""
        return 0.0 if self.noise is None else float(self.noise.scales(np.array([self.axis.feature]))[0])

    @np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
    def expect(self, positions: FloatArray) -> FloatArray:
        """The score at some positions, or what is expected under noise, to nearest."""
        if self.noise is None:
            return self.scores[np.searchsorted(self.axis.edges, positions, side="right")].astype(np.float64)
        away = np.clip((positions[..., None] - self.axis.edges) / self.scale, -1e3, 1e3)
        return np.asarray(self.scores[0] + self.noise.cdf(away) @ np.diff(self.scores))

    def search_position(self, own: FloatArray, low: FloatArray, high: FloatArray, signs: FloatArray) -> FloatArray:
        """The worst position of each row: under noise the best of many, else the nearest of the worst cell."""
        if self.noise is None:
            return self._select_cell(own, low, high, signs)
        edges = self.axis.edges
        if not edges.size:
            return own
        start = np.minimum(np.maximum(low, edges[0] - _REACH * self.scale), own)
        stop = np.maximum(np.minimum(high, edges[-1] + _REACH * self.scale), own)
        shares = np.linspace(0.0, 1.0, _POSITIONS)
        found = np.empty(own.size)
        size = max(1, _CHUNK // (_POSITIONS * edges.size))
        for begin in range(0, own.size, size):
            part = slice(begin, begin + size)
            positions = start[part, None] * (1 - shares) + stop[part, None] * shares
            positions = np.clip(np.concatenate([own[part, None], positions], axis=1), low[part, None], high[part, None])
            levels = signs[part, None] * self.expect(positions)
            found[part] = positions[np.arange(positions.shape[0]), levels.argmin(axis=1)]
        return found

    def _select_cell(self, own: FloatArray, low: FloatArray, high: FloatArray, signs: FloatArray) -> FloatArray:
        """The nearest value of the worst cell that each row can reach."""
        first, home, last = (np.searchsorted(self.axis.edges, value, side="right") for value in (low, own, high))
        cells = np.arange(self.scores.size)
        reachable = (cells >= first[:, None]) & (cells <= last[:, None])
        value = np.where(reachable, signs[:, None] * self.scores, np.inf)
        best = np.where(value.min(axis=1) < value[np.arange(own.size), home], value.argmin(axis=1), home)
        edges = np.concatenate([self.axis.edges, [np.inf]])
        left_end = edges[np.maximum(best - 1, 0)]
        below = np.nextafter(edges[best], -np.inf)
        return np.where(best == home, own, np.where(best > home, left_end, np.maximum(below, low)))

    def search_step(
        self, step: float, own: FloatArray, low: FloatArray, high: FloatArray, signs: FloatArray
    ) -> FloatArray:
        """The worst of the nearest whole steps, row by row."""
        edges, reach = self.axis.edges, _REACH * self.scale
        if not edges.size:
            return own
        found = own.copy()
        for row, (x, least, most) in enumerate(zip(own, low, high, strict=True)):
            start, stop = max(least, min(edges[0] - reach - step, x)), min(most, max(edges[-1] + reach + step, x))
            first, last = np.clip([np.floor((start - x) / step) - 1, np.ceil((stop - x) / step) + 1], -_STEPS, _STEPS)
            positions = x + np.arange(first, last + 1) * step
            positions = np.concatenate([[x], positions[(positions >= least) & (positions <= most)]])
            value = signs[row] * self.expect(positions)
            found[row] = positions[value.argmin()]
        return found

    def search_anywhere(self, signs: FloatArray) -> FloatArray:
        """The worst of all numbers, for rows of both labels."""
        if not self.axis.edges.size:
            return np.zeros(signs.size)
        far = np.full(signs.size, np.inf)
        return self.search_position(np.full(signs.size, self.axis.edges[0]), -far, far, signs)


def expect_term(term: Term, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Score of a term of one output in each row, or what is expected under noise, (n_rows,), to nearest."""
    if not term.axes or term.slope is not None or term.is_tree:
        return np.asarray(term.score_rows(rows), dtype=np.float64).reshape(len(rows))
    if len(term.axes) > 1:
        return expect_grid(term, rows[:, list(term.features)], noise)
    (axis,) = term.axes
    column = rows[:, axis.feature]
    is_missing = np.isnan(column)
    scores = term.cell_scores[: axis.edges.size + 1]
    there = _Curve(noise, axis, scores).expect(np.where(is_missing, 0.0, column)) if scores.size else column * 0.0
    return np.where(is_missing, float(term.missing_score or 0), there)


def change_categories(
    moved: FloatArray, rows: FloatArray, terms: Sequence[Term], perturbation: Perturbation, signs: FloatArray
) -> None:
    """Give each row its worst categories, as many as may change, those that do most first."""
    tables = [term for term in terms if not term.axes and term.features[0] not in perturbation.frozen]
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
    moved: FloatArray,
    noise: Noise | None,
    every: Sequence[Term],
    may_miss: Collection[int],
    perturbation: Perturbation,
    signs: FloatArray,
) -> None:
    """Apply the most damaging missingness changes within the budget, in columns that may go missing or appear.

    Each number is looked at from the worst position that it was moved to.
    """
    terms = [term for term in every if len(term.axes) == 1 and term.axes[0].feature in may_miss]
    if not perturbation.missing_budget or not terms:
        return
    gains, values = (np.zeros((moved.shape[0], len(terms))) for _ in range(2))
    for k, term in enumerate(terms):
        curve, column = _Curve(noise, term.axes[0], term.cell_scores), moved[:, term.axes[0].feature]
        is_missing, worst = np.isnan(column), curve.search_anywhere(signs)
        values[:, k] = np.where(is_missing, worst, np.nan)
        home = signs * curve.expect(np.where(is_missing, worst, column))
        gone = signs * float(term.missing_score or 0)
        gains[:, k] = np.where(is_missing, gone - home, home - gone)
    order = np.argsort(-gains, axis=1, kind="stable")[:, : perturbation.missing_budget]
    for k, term in enumerate(terms):
        chosen = (order == k).any(axis=1) & (gains[:, k] > 0)
        moved[chosen, term.axes[0].feature] = values[chosen, k]


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
