"""Changed rows that a threat allows and that are likely to flip a label: found quickly, in doubles.

Without noise these are all that matter: the nearest point of every cell, in every combination. Under noise the worst
place of each column for a ladder of prices, the ends of balls and boxes, random directions. What doubles find is only
suspected: `exact` decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from random import Random

import numpy as np
from scipy import special

from derand import AdditiveEnsemble
from derand.model import Axis, Term
from tests.fuzz.drawing import Case
from tests.fuzz.exact import find_box, find_codes, find_unit

MOST_COMBINATIONS = 20_000
_INSIDE = 1 - 1e-9  # of a ball; farther out rounding could leave it
_PRICES = 10.0 ** np.arange(-3.0, 3.25, 0.25)
_FAR = 40.0  # noise scales: nothing happens beyond


class Attack:
    """Everything about a case that does not depend on the row."""

    def __init__(self, case: Case, random: Random) -> None:
        self.case, self.random = case, random
        self.categorical = case.model.categorical_features
        self.weights = np.ones(1) if case.model.weights is None else np.asarray(case.model.weights)
        self.edges: dict[int, np.ndarray] = {}
        for term in case.model.member_terms:
            for axis in term.axes:
                known = self.edges.get(axis.feature, np.empty(0))
                self.edges[axis.feature] = np.union1d(known, axis.edges)
        self.columns = [at for at, edges in self.edges.items() if edges.size]

    @cached_property
    def may_go(self) -> list[int]:
        """Columns whose numbers may go missing or appear."""
        return [at for at in self.case.model.missing_features if at not in self.case.threat.frozen]

    def scale(self, column: int) -> float:
        """How far noise blurs a column."""
        noise = self.case.noise
        return 0.0 if noise is None else noise.magnitude * (1.0 if noise.units is None else noise.units[column])

    def find_window(self, column: int, own: float, radius: float) -> tuple[float, float]:
        """Between which ends a number may move if no other one does."""
        low, high = find_box(self.case.threat, column, own)
        if self.case.norm in (None, 0) or math.isinf(radius):
            return low, high
        reach = radius * find_unit(self.case, column) * _INSIDE
        return max(low, own - reach), min(high, own + reach)

    def find_places(self, column: int, own: float, radius: float) -> np.ndarray:
        """Values of a column that are worth trying, its own first."""
        edges, scale = self.edges[column], self.scale(column)
        if self.case.noise is None:
            low, high = find_box(self.case.threat, column, own)  # beyond the ball, too: how far the nearest flip is
            drawn = [edge if edge > own else math.nextafter(edge, -math.inf) for edge in edges.tolist()]
            step = self.case.threat.steps.get(column)
            if step is not None:
                drawn = [place for edge in drawn for place in _list_steps(own, edge, step)]
            return np.array([own, *(place for place in drawn if low <= place <= high)])
        low, high = self.find_window(column, own, radius)
        first, last = edges[0] - _FAR * scale, edges[-1] + _FAR * scale
        low, high = max(low, min(first, own)), min(high, max(last, own))
        middles = (edges[1:] + edges[:-1]) / 2
        around = (edges[:, None] + scale * np.array([-3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0])).ravel()
        drawn = np.concatenate([[own, low, high], np.linspace(low, high, 17), edges, middles, around])
        return self.snap(column, own, drawn[(low <= drawn) & (drawn <= high)])

    def snap(self, column: int, own: float, places: np.ndarray) -> np.ndarray:
        """The same, nearer by less than a step, where a column moves by steps."""
        step = self.case.threat.steps.get(column)
        if step is None:
            return places
        return np.asarray(own + np.trunc((places - own) / step) * step)

    def list_cells(self, row: np.ndarray, radius: float) -> np.ndarray:
        """Without noise: the nearest row of every combination of cells, (n, n_features); too many are thinned out."""
        free = [at for at in self.columns if not math.isnan(row[at])]
        places = [self.find_places(at, float(row[at]), radius) for at in free]
        found = np.array(list(itertools.product(*places))).reshape(math.prod(map(len, places)), len(free))
        if len(found) > MOST_COMBINATIONS:
            found = found[:: len(found) // MOST_COMBINATIONS + 1]
        moved = np.tile(row, (len(found), 1))
        moved[:, free] = found
        return moved

    def list_moves(self, row: np.ndarray, label: int, radius: float) -> np.ndarray:
        """Under noise: rows in which numbers have moved, the row itself first."""
        free = [at for at in self.columns if not math.isnan(row[at]) and self.can_move(at, float(row[at]))]
        if not free:
            return row[None, :].copy()
        places = [self.find_places(at, float(row[at]), radius) for at in free]
        curves = [self.curve(at, one, label) for at, one in zip(free, places, strict=True)]
        shifts = np.array(list(self._list_shifts(row, free, places, curves, radius)))
        moved = np.tile(row, (len(shifts), 1))
        for k, at in enumerate(free):
            low, high = find_box(self.case.threat, at, float(row[at]))
            moved[:, at] = self.snap(at, float(row[at]), np.clip(row[at] + shifts[:, k], low, high))
        return moved

    def can_move(self, column: int, own: float) -> bool:
        """Whether a number may become another one."""
        low, high = find_box(self.case.threat, column, own)
        return low < high

    def _list_shifts(
        self, row: np.ndarray, free: list[int], places: list[np.ndarray], curves: list[np.ndarray], radius: float
    ) -> Iterator[np.ndarray]:
        """How far to move each free column."""
        norm, count = self.case.norm, len(free)
        own = row[free]
        units = np.array([find_unit(self.case, at) for at in free])
        worst = np.array([one[curve.argmin()] for one, curve in zip(places, curves, strict=True)]) - own
        yield np.zeros(count)
        yield worst  # of a box all of it; of a ball only where that is large
        if norm is None or math.isinf(radius) or math.isinf(norm):
            for corner in itertools.islice(itertools.product((0, -1), repeat=count), 16):
                yield np.array([one[end] for one, end in zip(map(np.sort, places), corner, strict=True)]) - own
            for _ in range(8):
                yield np.array([self.random.choice(one.tolist()) for one in places]) - own
            return
        if norm == 0:
            for chosen in itertools.combinations(range(count), min(int(radius), count)):
                yield np.where(np.isin(np.arange(count), chosen), worst, 0.0)
            return
        power = int(norm)
        spread = max(float(np.ptp(curve)) for curve in curves) or 1.0
        for price in _PRICES * spread:
            shares = [np.abs((one - x) / u / radius) for one, x, u in zip(places, own, units, strict=True)]
            costs = [price * share**power for share in shares]
            chosen = [one[(curve + cost).argmin()] for one, curve, cost in zip(places, curves, costs, strict=True)]
            yield from _fit(np.array(chosen) - own, units, power, radius)
        for at in range(count):
            yield from _fit(np.where(np.arange(count) == at, worst, 0.0), units, power, radius)
        for _ in range(8):
            yield from _fit(np.array([self.random.gauss(0, 1) for _ in free]) * units, units, power, radius)

    def curve(self, column: int, places: np.ndarray, label: int) -> np.ndarray:
        """How much each value of a column speaks for the label, over all members."""
        total = np.zeros(places.size)
        for member, weight in zip(self.case.model.members, self.weights, strict=True):
            for term in member.terms:
                for k, axis in enumerate(term.axes):
                    if axis.feature != column or not axis.edges.size:
                        continue
                    scores = _average_others(term, k)
                    share = (self.find_cells(axis, places) @ scores) / max(float(np.ptp(scores)), 1.0)
                    total += share if self.weights.size == 1 else np.sign(weight) * share
        return total if label else -total

    def find_cells(self, axis: Axis, values: np.ndarray) -> np.ndarray:
        """Probability of each cell of a column at each value, (n_values, n_cells)."""
        edges, noise = axis.edges, self.case.noise
        if noise is None or not edges.size:
            return np.asarray(np.eye(edges.size + 1)[np.searchsorted(edges, values, side="right")])
        with np.errstate(over="ignore"):
            z = (values[:, None] - edges) / self.scale(axis.feature)
        if noise.name == "gaussian":
            above, below = special.ndtr(z), special.ndtr(-z)
        elif noise.name == "uniform":
            above, below = np.clip(0.5 + 0.5 * z, 0.0, 1.0), np.clip(0.5 - 0.5 * z, 0.0, 1.0)
        else:
            tail = 0.5 * np.exp(-np.abs(z))
            above, below = np.where(z > 0, 1.0 - tail, tail), np.where(z > 0, tail, 1.0 - tail)
        ones, zeros = np.ones((values.size, 1)), np.zeros((values.size, 1))
        right, left = np.hstack([ones, above, zeros]), np.hstack([zeros, below, ones])
        return np.where(left[:, 1:] < 0.5, np.diff(left, axis=1), -np.diff(right, axis=1))

    def list_categories(self, row: np.ndarray, label: int) -> list[dict[int, float]]:
        """Changes of categories: of a single model the worst one, of a vote all of them, or a share."""
        if not self.case.threat.l0 or not self.categorical:
            return [{}]
        options = {at: sorted(find_codes(self.case, at), key=str) for at in self.categorical}
        changes = [
            dict(zip(chosen, codes, strict=True))
            for count in range(min(self.case.threat.l0, len(options)) + 1)
            for chosen in itertools.combinations(options, count)
            for codes in itertools.product(*(options[at] for at in chosen))
        ]
        if self.weights.size > 1 or self.case.model.weights is not None:
            return changes if len(changes) <= 12 else [changes[0], *self.random.sample(changes[1:], 11)]
        changed = np.tile(row, (len(changes), 1))
        for at, change in enumerate(changes):
            changed[at, list(change)] = list(change.values())
        fixed = self.add_fixed(self.case.model.members[0], changed)
        return [changes[int(fixed.argmin() if label else fixed.argmax())]]

    def add_fixed(self, member: AdditiveEnsemble, rows: np.ndarray) -> np.ndarray:
        """What categories add to the score of each row."""
        total = np.zeros(len(rows), dtype=np.int64)
        for term in member.terms:
            if not term.axes:
                values, scores = rows[:, term.features[0]], np.full(len(rows), term.describe()["other"])
                if term.missing is not None:
                    scores[np.isnan(values)] = term.missing
                for code, score in zip(term.codes.tolist(), term.scores[:, 0].tolist(), strict=True):
                    scores[values == code] = score
                total += scores
        return total

    def list_gone(self, row: np.ndarray, label: int) -> Iterator[dict[int, float]]:
        """Changes of which numbers there are, the empty one first; what appears stands at its worst place."""
        for count in range(min(self.case.threat.missing_budget, len(self.may_go)) + 1):
            for chosen in itertools.combinations(self.may_go, count):
                options = [self._list_appearing(at, label) if math.isnan(row[at]) else [math.nan] for at in chosen]
                yield from (dict(zip(chosen, values, strict=True)) for values in itertools.product(*options))

    def _list_appearing(self, column: int, label: int) -> list[float]:
        edges, far = self.edges[column], _FAR * self.scale(column) + 1.0
        if not edges.size:
            return [0.0]
        places = np.concatenate([[edges[0] - far], edges, (edges[1:] + edges[:-1]) / 2, [edges[-1] + far]])
        if self.case.model.weights is not None:
            return [float(place) for place in places[[0, places.size // 2, -1]]]
        return [float(places[self.curve(column, places, label).argmin()])]

    def list_rows(self, row: np.ndarray, label: int, radius: float) -> tuple[np.ndarray, int]:
        """All rows to try, and how many of them at the front have no number moved."""
        moves = row[None, :]
        if radius > 0 or self.case.norm is None:
            moves = self.list_cells(row, radius) if self.case.noise is None else self.list_moves(row, label, radius)
        categories = self.list_categories(row, label)
        gone = list(self.list_gone(row, label))
        if len(gone) * len(categories) > 24:
            gone = [gone[0], *self.random.sample(gone[1:], max(1, 24 // len(categories)))]
        if len(moves) * len(gone) * len(categories) > MOST_COMBINATIONS:
            moves = moves[:: len(moves) * len(gone) * len(categories) // MOST_COMBINATIONS + 1]
        still, others = [], []
        for change in (one | other for one in categories for other in gone):
            changed = moves.copy()
            changed[:, list(change)] = list(change.values())
            still.append(changed[:1])
            others.append(changed[1:])
        return np.concatenate(still + others), len(still)

    def measure(self, member: AdditiveEnsemble, rows: np.ndarray, label: int) -> np.ndarray:
        """How far each row is from the other label: of a vote 1/2 less the failing mass, of a mean in shares of scores.

        The score error is taken off. Good to some 1e-12.
        """
        assert member.threshold is not None
        fixed, error = self.add_fixed(member, rows), member.score_error
        steps = [term for term in member.terms if term.axes]
        cells = [self._find_boxes(term, rows) for term in steps]
        scores = [
            term.scores[:, 0] if len(term.axes) > 1 else np.append(term.scores[:, 0], term.missing or 0)
            for term in steps
        ]
        sign = 1 if label else -1
        if self.case.rule == "mean":
            mean = fixed - member.threshold + sum((c @ s for c, s in zip(cells, scores, strict=True)), start=0.0)
            size = max(float(sum(np.abs(s).max() for s in scores)) + float(np.abs(fixed).max()), 1.0)
            return np.asarray((sign * mean - error) / size)
        sums, masses = np.zeros(1, dtype=np.int64), np.ones((len(rows), 1))
        for cell, score in zip(cells, scores, strict=True):
            sums = (sums[:, None] + score).ravel()
            masses = (masses[:, :, None] * cell[:, None, :]).reshape(len(rows), -1)
        total = sums + (fixed - member.threshold)[:, None]
        wrong = total - error <= 0 if label else total + error > 0
        return np.asarray(0.5 - (masses * wrong).sum(axis=1))

    def _find_boxes(self, term: Term, rows: np.ndarray) -> np.ndarray:
        """Probabilities of the cells of a term, or of the boxes of one of several columns, in C order."""
        boxes = np.ones((len(rows), 1))
        for axis in term.axes:
            side = self._add_gap(axis, rows[:, axis.feature])
            if len(term.axes) > 1 and axis.feature not in term.missing_features:
                side = side[:, :-1]
            boxes = (boxes[:, :, None] * side[:, None, :]).reshape(len(rows), -1)
        return boxes

    def _add_gap(self, axis: Axis, values: np.ndarray) -> np.ndarray:
        """Probabilities of the cells of a column with that of a missing value, which is the last."""
        gaps = np.isnan(values)
        cells = self.find_cells(axis, np.where(gaps, 0.0, values))
        return np.hstack([np.where(gaps[:, None], 0.0, cells), gaps[:, None].astype(np.float64)])

    def find_margins(self, rows: np.ndarray, label: int) -> np.ndarray:
        """How far each row is from the other label; of a vote the margin that decides the majority."""
        if self.case.model.weights is None:
            return self.measure(self.case.model.members[0], rows, label)
        pairs = list(zip(self.case.model.members, self.weights.tolist(), strict=True))
        margins = np.stack([self.measure(member, rows, label ^ int(weight < 0)) for member, weight in pairs])
        order = np.argsort(margins, axis=0)  # the easiest members to turn first
        turned = np.cumsum(np.abs(self.weights)[order], axis=0) * 2 >= np.abs(self.weights).sum() * (1 - 1e-12)
        decides = turned.argmax(axis=0)
        return np.asarray(np.take_along_axis(margins, np.take_along_axis(order, decides[None], 0), 0)[0])


def _average_others(term: Term, k: int) -> np.ndarray:
    """The scores of a column's cells; of a term of several columns their mean over the cells of the others."""
    scores = term.scores[:, 0].astype(np.float64)
    if len(term.axes) == 1:
        return scores
    shape = [axis.edges.size + 1 + (axis.feature in term.missing_features) for axis in term.axes]
    others = tuple(at for at in range(len(shape)) if at != k)
    return np.asarray(scores.reshape(shape).mean(axis=others)[: term.axes[k].edges.size + 1])


def _list_steps(own: float, edge: float, step: float) -> list[float]:
    """The first values on steps on both sides of an edge."""
    count = math.floor((edge - own) / step)
    return [own + near * step for near in (count - 1, count, count + 1, count + 2)]


def _fit(shift: np.ndarray, units: np.ndarray, power: int, radius: float) -> Iterator[np.ndarray]:
    """A shift as long as the ball allows, and as it is where it lies inside."""
    moves = shift / units
    largest = float(np.abs(moves).max(initial=0.0))
    if 0 < largest < math.inf:
        moves = moves / largest  # squares neither vanish nor overflow
        moves /= float(np.linalg.norm(moves, ord=power))
        yield moves * units * (radius * _INSIDE)
        yield moves * (radius * _INSIDE) * units
        if largest * float(np.linalg.norm(shift / units / largest, ord=power)) < radius:
            yield shift
