"""Promises about every row of a domain: each with a proof, a counterexample, or neither.

Owns what is asked of the sums of a model, and confirming counterexamples by the function that `predict` calls. Must not
know how terms are bounded, nor names of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.labels import find_labels
from derand.certificates.results.statements import LargestChange, Promise, TermSwing
from derand.certificates.statements.changes import bound_change
from derand.certificates.statements.domain import Domain, require_sum
from derand.certificates.statements.protected import PairSearch
from derand.certificates.statements.sums import CellRange, DomainSum, TermRange, mesh_points
from derand.model import Model
from derand.noise import Noise

_RANDOM_ROWS = 2_000
_MOST_SETTINGS = 512
_BLOCK_ROWS = 2**16
DIRECTIONS = ("increasing", "decreasing")


class Statements:
    """A model over a domain, and what is promised of it."""

    def __init__(self, model: Model, noise: Noise | None, domain: Domain, *, rule: str = "mean") -> None:
        self.model, self.noise, self.domain = model, noise, domain
        ensemble = require_sum(model, noise, rule)
        self.levels = float(ensemble.levels)
        if model.n_classes > 2 or ensemble.n_outputs > 1:
            every = [build_pair(ensemble, low, high) for low, high in ensemble.pairs]
        else:
            every = [ensemble]
        self.sums = [DomainSum(one, domain, noise) for one in every]
        self.values = self._list_values()

    def _list_values(self) -> list[FloatArray]:
        """Of each column the values at which some term was looked at: one of each cell of all sums together."""
        known: list[list[FloatArray]] = [[] for _ in range(self.model.n_features)]
        for term in (one for total in self.sums for one in total.ranges):
            for at, feature in enumerate(term.features):
                known[feature].append(term.points[:, at])
        some = self.domain.choose_row()
        return [np.unique(np.concatenate(own or [some[[at]]])) for at, own in enumerate(known)]

    def label(self, rows: FloatArray) -> IntArray:
        """Labels by the function that `predict` calls."""
        return find_labels(self.model, rows, self.noise, rule="mean")

    # protected columns

    def prove_protected(self, columns: Sequence[int], table: FloatArray | None = None) -> Promise:
        """Whether a change of these columns alone never flips an answer; of a table the share of rows that it flips."""
        protected = frozenset(columns)
        searches = [PairSearch(one, protected) for one in self.sums]
        size = max(one.swing for one in searches) / self.levels
        settings, is_every = self._list_settings(tuple(columns))
        share, pair = None, None
        if table is not None and len(table):
            share, pair = self._share(columns, searches, table, settings, is_every=is_every)
        solved = [] if pair is not None else [one.solve() for one in searches]
        if pair is None and all(is_proven for is_proven, _ in solved):
            return Promise("protected", tuple(columns), "", "proven", size, None, share)
        pair = self._search_pair(columns, searches, [more for _, more in solved], settings) if pair is None else pair
        verdict = "undecided" if pair is None else "counterexample"
        return Promise("protected", tuple(columns), "", verdict, size, pair, share)

    def _list_settings(self, columns: Sequence[int]) -> tuple[FloatArray, bool]:
        """Values of some columns: all that can differ without noise, (n_settings, n_columns), or some of them."""
        values = [self.values[at] for at in columns]
        count = int(np.prod([float(one.size) for one in values]))
        if count <= _MOST_SETTINGS:
            return mesh_points(values), all(one.is_whole for one in self.sums)
        rng = np.random.default_rng(0)
        return np.stack([rng.choice(one, _MOST_SETTINGS) for one in values], axis=1), False

    def _share(
        self,
        columns: Sequence[int],
        searches: Sequence[PairSearch],
        table: FloatArray,
        settings: FloatArray,
        *,
        is_every: bool,
    ) -> tuple[tuple[float, float], FloatArray | None]:
        """Between which shares of the rows of a table flip by these columns alone, and a pair that does."""
        may_flip = np.zeros(len(table), dtype=bool)
        for search in searches:
            may_flip |= self._bound_flips(search, table)
        at = np.flatnonzero(may_flip)
        is_defined = not any(one.widening for one in self.sums)
        is_two_whole = len(self.sums) == 1 and self.sums[0].is_whole and is_defined
        high = at.size / len(table)
        flips, pair = 0, None
        for start in range(0, at.size, max(1, _BLOCK_ROWS // len(settings))):
            part = at[start : start + max(1, _BLOCK_ROWS // len(settings))]
            every = np.repeat(table[part], len(settings) + 1, axis=0).reshape(part.size, -1, table.shape[1])
            every[:, 1:, list(columns)] = settings
            labels = self.label(every.reshape(-1, table.shape[1])).reshape(part.size, -1)
            is_mixed = (labels != labels[:, :1]).any(axis=1)
            flips += int(is_mixed.sum())
            if pair is None and is_mixed.any():
                row = int(is_mixed.argmax())
                other = int((labels[row] != labels[row, 0]).argmax())
                pair = every[row][[0, other]]
            if is_two_whole and pair is not None:
                return (high, high), pair
        low = flips / len(table)
        return (low, low if is_every and is_defined else high), pair

    def _bound_flips(self, search: PairSearch, table: FloatArray) -> BoolArray:
        """The rows of a table for which the score may lie on both sides; exact where sums are whole."""
        total = search.total
        ends = []
        for sign in (1, -1):
            bounds = [
                one.bound(table, [feature in search.protected for feature in one.features], sign)
                for one in total.ranges
            ]
            ends.append(sign * (np.sum(bounds, axis=0) if bounds else np.zeros(len(table))))
        wide = total.slack + total.widening
        return np.asarray((ends[0] <= total.threshold + wide) & (ends[1] > total.threshold - wide))

    def _search_pair(
        self,
        columns: Sequence[int],
        searches: Sequence[PairSearch],
        more: Sequence[Iterator[list[int]]],
        settings: FloatArray,
    ) -> FloatArray | None:
        """A pair of rows of different labels that differ in these columns alone; None where none was found."""
        for number, search in enumerate(searches):
            for chosen in (*search.walk(), *more[number]):
                pair = search.build_pair(chosen)
                labels = self.label(pair)
                if labels[0] != labels[1]:
                    return pair
        rows = self._draw_rows()
        some = settings[np.linspace(0, len(settings) - 1, min(len(settings), 16)).astype(np.int64)]
        every = np.repeat(rows, len(some), axis=0).reshape(len(rows), len(some), -1)
        every[:, :, list(columns)] = some
        labels = self.label(every.reshape(-1, rows.shape[1])).reshape(len(rows), -1)
        mixed = np.flatnonzero((labels != labels[:, :1]).any(axis=1))
        if not mixed.size:
            return None
        row = int(mixed[0])
        return np.asarray(every[row][[0, int((labels[row] != labels[row, 0]).argmax())]])

    def _draw_rows(self) -> FloatArray:
        """All rows that differ, where there are few; else random ones."""
        if np.prod([float(own.size) for own in self.values]) <= _RANDOM_ROWS:
            return mesh_points(self.values)
        rng = np.random.default_rng(0)
        return np.stack([rng.choice(own, _RANDOM_ROWS) for own in self.values], axis=1)

    # directions

    def prove_monotone(self, column: int, direction: str) -> Promise:
        """Whether the score, or each difference of a higher class and a lower one, never moves the other way."""
        worst, pair, is_exact = 0.0, None, True
        for total in self.sums:
            for term in (one for one in total.ranges if column in one.features):
                drop, own, sure = _measure_drop(term, column, 1 if direction == "increasing" else -1)
                is_exact &= sure
                if drop > worst:
                    worst, pair = drop, own if own is None else self._complete(term, own)
        verdict = "proven" if worst <= 0 else "counterexample" if is_exact else "undecided"
        return Promise("monotone", (column,), direction, verdict, worst / self.levels, pair if is_exact else None)

    def _complete(self, term: TermRange, points: FloatArray) -> FloatArray:
        rows = np.tile(self.domain.choose_row(), (2, 1))
        rows[:, list(term.features)] = points
        return rows

    # ranges and classes

    def list_swings(self) -> tuple[TermSwing, ...]:
        """The swing of each term, from the largest."""
        found: dict[tuple[int, ...], float] = {}
        for total in self.sums:
            for term, low, high in zip(total.ranges, total.least[1], total.least[-1], strict=True):
                found[term.features] = max(found.get(term.features, 0.0), -high - low)
        order = sorted(found, key=lambda columns: -found[columns])
        return tuple(TermSwing(own, found[own] / self.levels, self._name_direction(own)) for own in order)

    def _name_direction(self, columns: tuple[int, ...]) -> str:
        if len(columns) > 1 or columns[0] in self.model.categorical_features:
            return ""
        holds = [self.prove_monotone(columns[0], one).verdict == "proven" for one in DIRECTIONS]
        return "constant" if all(holds) else DIRECTIONS[holds.index(True)] if any(holds) else "mixed"

    def compute_ends(self) -> tuple[float, float]:
        """The lowest and the highest score less the threshold; NaN for several classes."""
        if len(self.sums) > 1:
            return float("nan"), float("nan")
        low, high = (end - self.sums[0].threshold for end in self.sums[0].ends)
        return low / self.levels, high / self.levels

    def compute_change(self, radius: float, norm: float, units: FloatArray) -> LargestChange:
        """How far scores lie apart within a radius."""
        size = max(bound_change(one, radius, norm, units) for one in self.sums)
        is_exact = norm == np.inf and all(one.is_whole for one in self.sums)
        return LargestChange(radius, norm, size / self.levels, is_exact)

    def prove_classes(self, table: FloatArray | None = None) -> tuple[Promise, ...]:
        """For each class a row that gets it, or that no row does."""
        rows = np.concatenate([self._draw_rows(), *self._list_extremes(), *([] if table is None else [table])])
        labels = self.label(rows)
        return tuple(self._prove_class(label, rows, labels) for label in range(self.model.n_classes))

    def _prove_class(self, label: int, rows: FloatArray, labels: IntArray) -> Promise:
        at = np.flatnonzero(labels == label)
        if at.size:
            return Promise("class", (), str(label), "counterexample", float("nan"), rows[at[:1]])
        never = False
        pairs = [(0, 1)] if len(self.sums) == 1 else list(self.model.members[0].pairs)
        for (low, high), total in zip(pairs, self.sums, strict=True):
            least, most = total.ends
            never |= label == high and most + total.widening <= total.threshold
            never |= label == low and least - total.widening > total.threshold
        return Promise("class", (), str(label), "proven" if never else "undecided", float("nan"))

    def _list_extremes(self) -> list[FloatArray]:
        """Rows of the lowest and of the highest score of each sum."""
        found = []
        for total in self.sums:
            rows = np.tile(self.domain.choose_row(), (2, 1))
            for term in total.ranges:
                rows[:, list(term.features)] = term.points[[term.scores.argmin(), term.scores.argmax()]]
            found.append(rows)
        return found


def _measure_drop(term: TermRange, column: int, sign: int) -> tuple[float, FloatArray | None, bool]:
    """How far a term moves against a direction in a column, a pair of points that does, and whether that is exact."""
    if term.term.slope is not None:
        slope, error = sign * float(term.term.slope.values[0]), float(term.term.slope.errors[0])
        low, high = (float(np.nanmin(term.points)), float(np.nanmax(term.points)))
        ends = np.array([[low], [high]])
        return (0.0, None, True) if slope >= error else ((error - slope) * (high - low), ends, slope < -error)
    axis = term.features.index(column)
    worst, pair = _search_drop(term, axis, sign)
    if isinstance(term, CellRange):
        return worst, pair, True
    return _judge_smoothed(term, axis, sign, worst, pair)


def _search_drop(term: TermRange, axis: int, sign: int) -> tuple[float, FloatArray | None]:
    """The largest drop of a term's scores along an axis, and where it is."""
    others = [at for at in range(len(term.features)) if at != axis]
    keys = np.nan_to_num(term.points[:, others], nan=np.inf) if others else np.zeros((len(term.points), 1))
    groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    known = ~np.isnan(term.points[:, axis])
    order = np.lexsort((term.points[:, axis], groups))
    order = order[known[order]]
    worst, pair = 0.0, term.points[:0]
    scores = sign * term.scores[order]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    for part in np.split(np.arange(order.size), starts[1:]):
        own = scores[part]
        drops = np.maximum.accumulate(own) - own
        if drops.max(initial=0.0) > worst:
            last = int(drops.argmax())
            worst, pair = float(drops[last]), term.points[order[part[[int(own[: last + 1].argmax()), last]]]]
    return worst, pair if worst else None


def _judge_smoothed(
    term: TermRange, axis: int, sign: int, worst: float, pair: FloatArray | None
) -> tuple[float, FloatArray | None, bool]:
    """Under noise: a term without a step the other way has none on average; else what its positions show."""
    inside = [edges.size + 1 for _, edges in term.term.axes]
    extra = [feature in term.term.missing_features for feature in term.features]
    flat = np.asarray(term.term.cell_scores)
    with_missing = [size + more for size, more in zip(inside, extra, strict=True)]
    grid = flat.reshape(with_missing if flat.size == int(np.prod(with_missing)) else inside)
    grid = np.take(grid, np.arange(inside[axis]), axis=axis)
    if (sign * np.diff(grid, axis=axis) >= 0).all():
        return 0.0, None, True
    trifle = 1e-9 * float(np.ptp(flat))
    if worst > trifle:
        return worst, pair, True
    return max(worst, EPSILON), None, False
