"""What a sum can come to over a domain: bounds of each term, some of its columns free and the others as in a row.

Without noise bounds of step functions, grids and tables are exact. Under noise they are those of the worst case of the
expected score, and of lines those of their ends, both rounded downward. Owns the one place that knows how each kind of
term is bounded over a domain. Must not know what is asked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from derand._core.arrays import EPSILON, TINY, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.packing import pack_terms
from derand.certificates.bounds.worst_case import get_case
from derand.certificates.kinds import kind_of
from derand.certificates.rules.mean import mean_error
from derand.certificates.search.worst_positions import expect_term
from derand.certificates.statements.domain import Domain
from derand.kernels.worst_case.steps import Reach
from derand.model import AdditiveEnsemble, Term
from derand.noise import Noise

_BLOCK_POINTS = 2**20
_MOST_POINTS = 2**11
_LINE_POINTS = 65
_OFFSETS = np.linspace(-4.0, 4.0, 17)
_MOST_PARTS = 10
"""Columns of a term of which all subsets are asked about; of wider ones all or none."""


class TermRange(ABC):
    """A term of one output over a domain.

    Attributes
    ----------
    points, scores : arrays of shape (n_points, n_columns) and (n_points,)
        Values of its columns and their scores: one of each cell where the term is exact, else some, to nearest.
    """

    is_exact = True
    points: FloatArray
    scores: FloatArray

    def __init__(self, term: Term, domain: Domain) -> None:
        self.term, self.domain = term, domain
        self.features = term.features

    @abstractmethod
    def bound(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        """Lower bounds of `sign` times the score, free columns anywhere in the domain or as they are, (n_rows,)."""

    def bound_all(self, sign: int) -> float:
        """The same with all columns free."""
        return float(self.bound(self.domain.choose_row()[None], [True] * len(self.features), sign)[0])

    def list_subsets(self) -> list[tuple[bool, ...]]:
        """Which of its columns can be held together: all ways, or of a wide term all or none."""
        k = len(self.features)
        if k > _MOST_PARTS:
            return [(False,) * k, (True,) * k]
        return [tuple(bool(mask >> at & 1) for at in range(k)) for mask in range(2**k)]


def mesh_points(values: Sequence[FloatArray]) -> FloatArray:
    """All combinations of values of some columns, (n_points, n_columns)."""
    return np.stack([one.ravel() for one in np.meshgrid(*values, indexing="ij")], axis=1)


class CellRange(TermRange):
    """A term of cells without noise: exact."""

    def __init__(self, term: Term, domain: Domain) -> None:
        super().__init__(term, domain)
        self.values = domain.list_values(term)
        self.points = mesh_points(self.values)
        scores = term.evaluate(self.points[:, 0] if len(self.features) == 1 else self.points)
        self.scores = np.asarray(scores, dtype=np.float64).reshape(-1)
        self._least = {1: float(self.scores.min()), -1: float(-self.scores.max())}

    def bound(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        """By the scores of all cells that can be reached."""
        if not any(free):
            return sign * np.asarray(self.term.score_rows(rows), dtype=np.float64)
        if len(self.features) == 1:
            own = sign * np.asarray(self.term.score_rows(rows), dtype=np.float64)
            return np.minimum(own, self._least[sign])
        if all(free) and self.domain.holds(rows, self.term):
            return np.full(len(rows), self._least[sign])
        return self._bound_part(rows, free, sign)

    def _bound_part(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        """Each free column at every value that stands for a cell, or at the row's own."""
        sizes = [values.size + 1 if is_free else 1 for values, is_free in zip(self.values, free, strict=True)]
        indices = np.indices(sizes).reshape(len(sizes), -1)
        least = np.empty(len(rows))
        size = max(1, _BLOCK_POINTS // indices.shape[1])
        for start in range(0, len(rows), size):
            own = rows[start : start + size, list(self.features)]
            points = np.empty((len(own), indices.shape[1], len(sizes)))
            for at, (values, index) in enumerate(zip(self.values, indices, strict=True)):
                points[:, :, at] = own[:, [at]]
                if free[at]:
                    inside = index < values.size
                    points[:, inside, at] = values[index[inside]]
            scores = self.term.evaluate(points.reshape(-1, len(sizes)))
            least[start : start + size] = (sign * np.asarray(scores)).reshape(len(own), -1).min(axis=1)
        return least


class SmoothedRange(TermRange):
    """A term under noise: its expected score."""

    is_exact = False

    def __init__(self, term: Term, domain: Domain, noise: Noise) -> None:
        super().__init__(term, domain)
        self._noise, self._packed = noise, pack_terms([term])
        lowest, highest = term.score_range()
        self._ends = {1: float(lowest), -1: float(-highest)}
        self._slack = 8 * EPSILON * (abs(self._packed.base) + self._packed.step * self._packed.largest)
        self.points = mesh_points(self._list_positions())
        rows = np.tile(domain.choose_row(), (len(self.points), 1))
        rows[:, list(self.features)] = self.points
        self.scores = expect_term(term, rows, noise)
        self._least: dict[int, float] = {}

    def _list_positions(self) -> list[FloatArray]:
        """Positions of each column between which its expected score is nearly a line, those of cells among them."""
        found, most = [], round(_MOST_POINTS ** (1 / len(self.features)))
        for (feature, edges), values in zip(self.term.axes, self.domain.list_values(self.term), strict=True):
            scale = float(self._noise.scales(np.array([feature]))[0])
            near = np.unique((edges[:, None] + scale * _OFFSETS).ravel())
            near = near[np.linspace(0, near.size - 1, min(near.size, most)).astype(np.int64)] if near.size else near
            near = np.clip(near, self.domain.low[feature], self.domain.high[feature])
            near = np.clip(np.rint(near), *self._list_whole_ends(feature)) if self.domain.whole[feature] else near
            found.append(np.unique(np.concatenate([near, values])))
        return found

    def _list_whole_ends(self, feature: int) -> tuple[float, float]:
        return float(np.ceil(self.domain.low[feature])), float(np.floor(self.domain.high[feature]))

    def bound(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        """By the worst case within a box; a missing number has the score of its cell."""
        if len(self.features) == 1 and free[0]:  # the domain, or the row's own
            return np.minimum(self._bound_domain(sign), self.bound(rows, [False], sign))
        return self._bound_boxes(rows, free, sign)

    def _bound_domain(self, sign: int) -> float:
        if sign not in self._least:
            self._least[sign] = float(self._bound_boxes(self.domain.choose_row()[None], [True], sign)[0])
        return self._least[sign]

    def _bound_boxes(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        packed, columns = self._packed, list(self.features)
        is_missing = np.asarray(np.isnan(rows[:, columns]).any(axis=1))
        filled = np.where(np.isnan(rows), 0.0, rows)
        if not packed.n_terms:
            least = np.full(len(rows), sign * float(packed.base))
        else:
            low, high = filled.copy(), filled.copy()
            for feature, is_free in zip(columns, free, strict=True):
                if is_free:
                    low[:, feature] = np.minimum(low[:, feature], self.domain.low[feature])
                    high[:, feature] = np.maximum(high[:, feature], self.domain.high[feature])
            units = np.ones(rows.shape[1])
            case = get_case(packed, self._noise, None, units, int(sign > 0))
            lowest = case.compute_lowest(filled, Reach(low, high, np.zeros(rows.shape[1])))
            reduced = lowest if sign > 0 else lowest - packed.largest
            least = sign * packed.base + packed.step * reduced - self._slack
        if not is_missing.any() and self.domain.missing.isdisjoint(columns):
            return np.asarray(least)
        return self._add_missing(np.asarray(least), is_missing, free, sign)

    def _add_missing(self, least: FloatArray, is_missing: BoolArray, free: Sequence[bool], sign: int) -> FloatArray:
        """The same where a number is or may go missing; of terms of several columns the least of all cells."""
        if len(self.features) > 1:
            may_miss = is_missing | any(free)
            return np.where(may_miss, np.minimum(least, self._ends[sign]), least)
        score = sign * float(self.term.missing_score or 0)
        may_miss = is_missing | (free[0] and self.features[0] in self.domain.missing)
        stays = is_missing & (not free[0])
        return np.where(stays, score, np.where(may_miss, np.minimum(least, score), least))


class LineRange(TermRange):
    """A line: its ends."""

    is_exact = False

    def __init__(self, term: Term, domain: Domain) -> None:
        super().__init__(term, domain)
        (feature,) = self.features
        low, high = float(domain.low[feature]), float(domain.high[feature])
        low, high = (math.ceil(low), math.floor(high)) if domain.whole[feature] and low > -np.inf else (low, high)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"`domain` must give the ends of column {feature}, whose function is a line without an end: name them, "
                "or give a table whose ranges are taken."
            )
        ends = [low, high, *([np.nan] if domain.missing & set(self.features) else [])]
        steps = [] if domain.whole[feature] else list(np.linspace(low, high, _LINE_POINTS)[1:-1])
        self._points, self.points = ends, np.array([*steps, *ends])[:, None]
        self.scores = np.asarray(term.evaluate(self.points[:, 0]), dtype=np.float64)

    def bound(self, rows: FloatArray, free: Sequence[bool], sign: int) -> FloatArray:
        """The least of both ends and of the row's own, by its errors and roundings."""
        own = self._evaluate(rows[:, self.features[0]], sign)
        return np.minimum(own, self._evaluate(np.array(self._points), sign).min()) if free[0] else own

    def _evaluate(self, values: FloatArray, sign: int) -> FloatArray:
        slope = self.term.slope
        assert slope is not None  # a line has one
        products = sign * float(slope.values[0]) * values
        errors = float(slope.errors[0]) * np.abs(values)
        found = products - (errors + EPSILON * np.abs(products)) * (1 + 8 * EPSILON) - TINY
        if slope.missing is None or slope.missing_errors is None:
            return np.asarray(found)
        return np.where(np.isnan(values), sign * float(slope.missing[0]) - float(slope.missing_errors[0]), found)


def _make_range(term: Term, domain: Domain, noise: Noise | None) -> TermRange:
    if term.slope is not None:
        return LineRange(term, domain)
    return CellRange(term, domain) if noise is None or not term.axes else SmoothedRange(term, domain, noise)


class DomainSum:
    """A sum of two classes, or of a number, over a domain.

    Attributes
    ----------
    ranges : list of TermRange
    threshold, widening : int
        Class 1 is above the threshold; of the model that is meant the score may differ by `widening`.
    is_whole : bool
        Whether all sums are whole numbers, so that bounds are exact.
    slack : float
        By how much sums of bounds, and the scores that are computed, may be off; 0 where they are whole.
    """

    def __init__(self, model: AdditiveEnsemble, domain: Domain, noise: Noise | None) -> None:
        noise = kind_of(model).effective_noise(noise)
        self.model, self.domain, self.noise = model, domain, noise
        self.ranges = [_make_range(term, domain, noise) for term in model.terms]
        self.threshold = -(model.offset or 0) if model.threshold is None else model.threshold
        self.widening = math.ceil(model.score_error)
        self.is_whole = all(one.is_exact for one in self.ranges)
        self.least = {sign: [one.bound_all(sign) for one in self.ranges] for sign in (1, -1)}
        self.slack = 0.0 if self.is_whole else self._compute_slack()

    def _compute_slack(self) -> float:
        size = sum(max(abs(low), abs(high)) for low, high in zip(self.least[1], self.least[-1], strict=True))
        slack = EPSILON * (4 * len(self.ranges) + 16) * (size + abs(self.threshold) + self.widening)
        if self.noise is None:
            return slack
        packed = pack_terms(self.model.terms)
        return slack + 2 * packed.step * mean_error(packed)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest score of all rows: bounds, exact where sums are whole."""
        return sum(self.least[1]) - self.slack, -sum(self.least[-1]) + self.slack

    def subtract_need(self, totals: FloatArray, sign: int) -> FloatArray:
        """How far lower bounds of `sign` times the score lie above what the class of that sign needs."""
        return totals - (sign * self.threshold + self.widening + self.slack)

    def is_forced(self, margins: FloatArray, sign: int) -> BoolArray:
        """Whether such margins prove the class: class 1 is above its threshold, class 0 may be at it."""
        return margins > 0 if sign > 0 or not self.is_whole else margins >= 0

    def tabulate(self, rows: FloatArray, sign: int) -> list[FloatArray]:
        """For each term the bound of every subset of its columns that is held, (n_subsets, n_rows)."""
        return [
            np.stack([one.bound(rows, [not held for held in subset], sign) for subset in one.list_subsets()])
            for one in self.ranges
        ]


def list_columns(sums: Sequence[DomainSum]) -> IntArray:
    """The columns that some term of some sum reads, increasing."""
    return np.unique(np.array([at for one in sums for term in one.ranges for at in term.features], dtype=np.int64))
