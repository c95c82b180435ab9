"""Reasons: the fewest columns of a row whose values force its answer, while all others take any value of a domain.

Of two classes and one sum: by a sort where every term has one column, else by a dynamic programme over the cost. Of
several classes the columns must hold against every rival: exactly for few columns, else until none can be dropped, as
of trees (`trees`). Owns the choice of columns. Must not know how terms are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray, is_whole
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.labels import find_labels
from derand.certificates.results.statements import Reason, Reasons
from derand.certificates.rules.base import read_budget
from derand.certificates.statements.domain import Domain, require_sum
from derand.certificates.statements.sums import DomainSum, list_columns
from derand.certificates.statements.trees import Search, reduce_columns
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise

UNDECIDED, SUFFICIENT, IRREDUCIBLE, SMALLEST = range(4)
_FEW_COLUMNS = 12
_LARGEST_COST = 10_000
_BLOCK_NUMBERS = 2**20
_LISTED = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The columns that are held for some rows, (n_rows, n_columns), and how that is proven, (n_rows,)."""

    held: BoolArray
    proof: IntArray


class _Rivalry:
    """Rows of one class against all rivals: what each subset of the columns of each term leaves of each margin."""

    def __init__(self, sums: Sequence[tuple[DomainSum, int]], rows: FloatArray, columns: IntArray) -> None:
        self.sums, self.n_rows, self.columns = sums, len(rows), columns
        self.tables = [one.tabulate(rows, sign) for one, sign in sums]
        at = {int(feature): k for k, feature in enumerate(columns)}
        self.subsets = [one.list_subsets() for one in sums[0][0].ranges]
        self.places = [np.array([at[feature] for feature in one.features]) for one in sums[0][0].ranges]
        self.is_split = all(len(own) == 2 ** len(at) for own, at in zip(self.subsets, self.places, strict=True))
        self.is_separable = all(len(own) == 1 for own in self.places)
        self.is_exact = all(one.is_whole for one, _ in sums) and self.is_split

    def index(self, held: BoolArray, term: int) -> IntArray:
        """The subset of a term's columns that are held, (...,)."""
        own = held[..., self.places[term]]
        if len(self.subsets[term]) == 2 and own.shape[-1] > 1:
            return np.asarray(own.all(axis=-1).astype(np.int64))
        return np.asarray((own * 2 ** np.arange(own.shape[-1])).sum(axis=-1))

    def measure(self, held: BoolArray) -> FloatArray:
        """The margins of each row against each rival where these columns are held, (n_rivals, n_rows)."""
        every = np.arange(self.n_rows)
        margins = np.zeros((len(self.sums), self.n_rows))
        for term in range(len(self.places)):
            index = self.index(held, term)
            for rival, table in enumerate(self.tables):
                margins[rival] += table[term][index, every]
        return self._subtract_needs(margins)

    def measure_masks(self, masks: BoolArray) -> FloatArray:
        """The same of the same sets for all rows, (n_rivals, n_rows, n_sets)."""
        margins = np.zeros((len(self.sums), self.n_rows, len(masks)))
        for term in range(len(self.places)):
            index = self.index(masks, term)
            for rival, table in enumerate(self.tables):
                margins[rival] += table[term][index].T
        return self._subtract_needs(margins)

    def _subtract_needs(self, margins: FloatArray) -> FloatArray:
        return np.stack([one.subtract_need(own, sign) for (one, sign), own in zip(self.sums, margins, strict=True)])

    def hold(self, margins: FloatArray) -> BoolArray:
        """Whether all rivals are beaten, of margins by rival."""
        parts = zip(self.sums, margins, strict=True)
        return np.asarray(np.all([one.is_forced(own, sign) for (one, sign), own in parts], axis=0))

    def measure_gains(self) -> FloatArray:
        """What holding each column alone adds to each margin, as a share of what is needed; (n_rows, n_columns)."""
        nothing = np.zeros((self.n_rows, self.columns.size), dtype=bool)
        missing = np.maximum(-self.measure(nothing), 1e-300)
        gains = np.zeros((self.n_rows, self.columns.size))
        for term, places in enumerate(self.places):
            for column in places.tolist():
                alone = nothing.copy()
                alone[:, places if not self.is_split else column] = True
                index = int(self.index(alone[:1], term)[0])
                for rival, table in enumerate(self.tables):
                    gains[:, column] += (table[term][index] - table[term][0]) / missing[rival]
        return gains


def compute_reasons(
    model: Model,
    rows: FloatArray,
    noise: Noise | None,
    domain: Domain,
    *,
    rule: str = "mean",
    costs: Mapping[int, int] | None = None,
    n_jobs: int | None = None,
    budget: int | None = None,
) -> Reasons:
    """For each row the fewest columns, or the cheapest by whole costs, that force its answer over a domain.

    Rows were checked already. Free columns may keep the row's own values where these lie outside the domain. `budget`:
    nodes that each search of a model with trees may look at.
    """
    ensemble = require_sum(model, noise, rule)
    if not model.n_classes:
        raise ValueError("Reasons are for classes, got a model that answers with a number.")
    labels = find_labels(model, rows, noise, rule="mean", n_jobs=n_jobs)
    if model.has_trees:
        return _reduce_trees(ensemble, rows, labels, Search(ensemble, domain, read_budget(budget), n_jobs), costs)
    pairs = _Pairs(model, noise, domain)
    fixed = np.zeros(rows.shape, dtype=bool)
    proof, margin = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.nan)
    for label in np.unique(labels).tolist():
        sums = pairs.against(label)
        columns = list_columns([one for one, _ in sums])
        price = _read_costs(costs, columns, rows.shape[1])
        at = np.flatnonzero(labels == label)
        for part in np.array_split(at, max(1, -(-at.size // _count_block(sums, columns)))):
            rivalry = _Rivalry(sums, rows[part], columns)
            found = _choose(rivalry, price)
            fixed[np.ix_(part, columns)] = found.held
            proof[part] = found.proof
            margin[part] = rivalry.measure(found.held).min(axis=0)
    margin = np.where(proof == UNDECIDED, np.nan, margin / ensemble.levels)
    return Reasons(labels, fixed, margin, proof, np.arange(model.n_classes))


def _reduce_trees(
    model: AdditiveEnsemble, rows: FloatArray, labels: IntArray, search: Search, costs: Mapping[int, int] | None
) -> Reasons:
    """Sets of which no column can be dropped, where the search decides that."""
    _read_costs(costs, search.columns, rows.shape[1])
    found = reduce_columns(search, rows, labels, costs or {})
    proof = np.where(found.is_irreducible, IRREDUCIBLE, np.where(found.is_enough, SUFFICIENT, UNDECIDED))
    margin = np.where(found.is_enough, np.maximum(found.margin, 0.0) / model.levels, np.nan)
    return Reasons(labels, found.held, margin, proof, np.arange(model.n_classes))


def list_reasons(
    model: Model, row: FloatArray, noise: Noise | None, domain: Domain, *, rule: str = "mean", budget: int | None = None
) -> tuple[int, list[Reason]]:
    """The answer of a row, and up to three sets of columns of the smallest size found, the widest margin first.

    Others than the first differ from it by one column; of trees there is one.
    """
    first = compute_reasons(model, row[None], noise, domain, rule=rule, budget=budget)
    if first.proof[0] == UNDECIDED:
        return int(first.label[0]), []
    if model.has_trees:
        held = tuple(np.flatnonzero(first.fixed[0]).tolist())
        return int(first.label[0]), [Reason(held, float(first.margin[0]), int(first.proof[0]))]
    sums = _Pairs(model, noise, domain).against(int(first.label[0]))
    columns = list_columns([one for one, _ in sums])
    rivalry = _Rivalry(sums, row[None], columns)
    best = first.fixed[0, columns]
    masks = [best]
    for out in np.flatnonzero(best).tolist():
        for added in np.flatnonzero(~best).tolist():
            other = best.copy()
            other[out], other[added] = False, True
            masks.append(other)
    margins = rivalry.measure_masks(np.array(masks).reshape(len(masks), columns.size))[:, 0]
    holds, least = rivalry.hold(margins), margins.min(axis=0) / model.members[0].levels
    order = [0, *(at for at in np.argsort(-least, kind="stable").tolist() if at and holds[at])]
    proof = int(first.proof[0])
    proofs = [proof, *([proof if proof == SMALLEST else SUFFICIENT] * len(order))]
    found = [
        Reason(tuple(columns[masks[at]].tolist()), float(least[at]), own)
        for at, own in zip(order[:_LISTED], proofs, strict=False)
    ]
    return int(first.label[0]), found


class _Pairs:
    """The sums that a class must win, each with the sign that it needs; made once."""

    def __init__(self, model: Model, noise: Noise | None, domain: Domain) -> None:
        self._model, self._noise, self._domain = model, noise, domain
        self._made: dict[tuple[int, int], DomainSum] = {}

    def against(self, label: int) -> list[tuple[DomainSum, int]]:
        """All rivals of a class."""
        rivals = [other for other in range(self._model.n_classes) if other != label]
        return [(self._make(min(label, other), max(label, other)), 1 if label > other else -1) for other in rivals]

    def _make(self, low: int, high: int) -> DomainSum:
        if (low, high) not in self._made:
            ensemble = self._model.members[0]
            pair = ensemble if ensemble.n_outputs == 1 else build_pair(ensemble, low, high)
            self._made[low, high] = DomainSum(pair, self._domain, self._noise)
        return self._made[low, high]


def _count_block(sums: Sequence[tuple[DomainSum, int]], columns: IntArray) -> int:
    n_subsets = sum(len(term.list_subsets()) for term in sums[0][0].ranges)
    widest = max(n_subsets, columns.size + 1, 1)
    return max(64, _BLOCK_NUMBERS // (len(sums) * widest))


def _read_costs(costs: Mapping[int, int] | None, columns: IntArray, n_features: int) -> IntArray:
    """What holding each column costs, 1 where nothing is said."""
    price = np.ones(n_features, dtype=np.int64)
    for feature, cost in (costs or {}).items():
        if not is_whole(cost) or not 1 <= cost <= _LARGEST_COST:
            raise ValueError(f"`costs` must be whole numbers from 1 to {_LARGEST_COST}, got {cost!r}.")
        price[feature] = cost
    own = price[columns]
    if own.sum() > _LARGEST_COST * 4:
        raise ValueError(f"`costs` must add up to {_LARGEST_COST * 4:,} at most, got {int(own.sum()):,}.")
    return np.asarray(own)


def _choose(rivalry: _Rivalry, price: IntArray) -> _Found:
    """The sets of columns of all rows."""
    if len(rivalry.sums) == 1:
        if rivalry.is_separable and (price == 1).all():
            return _sort_gains(rivalry)
        return _solve_by_cost(rivalry, price)
    if rivalry.columns.size <= _FEW_COLUMNS and rivalry.is_split:
        return _try_all(rivalry, price)
    return _reduce(rivalry, price)


def _close(rivalry: _Rivalry, held: BoolArray, proof: int) -> _Found:
    """Sets with what is proven of each: nothing where even all columns do not hold."""
    holds = rivalry.hold(rivalry.measure(held))
    return _Found(held & holds[:, None], np.where(holds, proof, UNDECIDED))


def _sort_gains(rivalry: _Rivalry) -> _Found:
    """One sum of terms of one column each: those that lose most, until it holds."""
    ((total, sign),), (table,) = rivalry.sums, rivalry.tables
    order_of_columns = np.array([int(places[0]) for places in rivalry.places], dtype=np.int64)
    free = np.stack([one[0] for one in table], axis=1) if table else np.zeros((rivalry.n_rows, 0))
    own = np.stack([one[1] for one in table], axis=1) if table else free
    gains = np.maximum(own - free, 0.0)
    order = np.argsort(-gains, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1)
    sums = np.concatenate([np.zeros((rivalry.n_rows, 1)), sums], axis=1) + free.sum(axis=1)[:, None]
    holds = total.is_forced(total.subtract_need(sums, sign), sign)
    count = np.where(holds.any(axis=1), holds.argmax(axis=1), order.shape[1])
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
    held = np.zeros((rivalry.n_rows, rivalry.columns.size), dtype=bool)
    held[:, order_of_columns] = rank < count[:, None]
    return _close(rivalry, held, SMALLEST if rivalry.is_exact else SUFFICIENT)


def _solve_by_cost(rivalry: _Rivalry, price: IntArray) -> _Found:
    """One sum of any terms: the largest gain for each total cost, term by term, and the least cost that holds."""
    ((total, sign),), (table,) = rivalry.sums, rivalry.tables
    n_costs = int(price.sum()) + 1
    held = np.zeros((rivalry.n_rows, rivalry.columns.size), dtype=bool)
    size = max(1, 4 * _BLOCK_NUMBERS // (n_costs * max(len(table), 1)))
    for start in range(0, rivalry.n_rows, size):
        part = slice(start, start + size)
        n_rows = held[part].shape[0]
        best, chosen = np.zeros((n_rows, n_costs)), []
        for places, subsets, bounds in zip(rivalry.places, rivalry.subsets, table, strict=True):
            wider, index = best.copy(), np.zeros((n_rows, n_costs), dtype=np.int16)
            for at in range(1, len(subsets)):
                cost = int(price[places[np.array(subsets[at])]].sum())
                gain = (bounds[at, part] - bounds[0, part])[:, None]
                other = best[:, : n_costs - cost] + gain
                better = other > wider[:, cost:]
                wider[:, cost:][better] = other[better]
                index[:, cost:][better] = at
            best = wider
            chosen.append(index)
        free = np.sum([bounds[0, part] for bounds in table], axis=0) if table else np.zeros(n_rows)
        holds = total.is_forced(total.subtract_need(best + free[..., None], sign), sign)
        cost_left = np.where(holds.any(axis=1), holds.argmax(axis=1), n_costs - 1)
        for places, subsets, index in reversed(list(zip(rivalry.places, rivalry.subsets, chosen, strict=True))):
            taken = np.array(subsets)[index[np.arange(n_rows), cost_left]]
            held[part][:, places] = taken
            cost_left = cost_left - (taken * price[places]).sum(axis=1)
    return _close(rivalry, held, SMALLEST if rivalry.is_exact else SUFFICIENT)


def _try_all(rivalry: _Rivalry, price: IntArray) -> _Found:
    """Few columns and several rivals: every set, the cheapest one that holds against all, with the widest margin."""
    n_columns = rivalry.columns.size
    masks = (np.arange(2**n_columns)[:, None] >> np.arange(n_columns) & 1).astype(bool)
    cost = masks @ price
    held = np.zeros((rivalry.n_rows, n_columns), dtype=bool)
    size = max(1, _BLOCK_NUMBERS // (len(masks) * len(rivalry.sums)))
    for start in range(0, rivalry.n_rows, size):
        part = _take(rivalry, slice(start, start + size))
        margins = part.measure_masks(masks)
        holds, least = part.hold(margins), margins.min(axis=0)
        lowest = np.where(holds, cost, cost[-1]).min(axis=1)
        rank = np.where((holds & (cost == lowest[:, None])), least, -np.inf)
        best = np.where(holds.any(axis=1), rank.argmax(axis=1), len(masks) - 1)
        held[start : start + size] = masks[best]
    return _close(rivalry, held, SMALLEST if rivalry.is_exact else SUFFICIENT)


def _reduce(rivalry: _Rivalry, price: IntArray) -> _Found:
    """Many columns and several rivals: those that gain most for their cost, then each that is not needed is dropped."""
    gains = rivalry.measure_gains() / price
    order = np.argsort(-gains, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
    low, high = np.zeros(rivalry.n_rows, dtype=np.int64), np.full(rivalry.n_rows, order.shape[1])
    while (low < high).any():  # holding more columns never narrows a margin
        middle = (low + high) // 2
        holds = rivalry.hold(rivalry.measure(rank < middle[:, None]))
        low, high = np.where(holds | (low >= high), low, middle + 1), np.where(holds, middle, high)
    held = rank < high[:, None]
    for at in range(order.shape[1] - 1, -1, -1):
        fewer = held & (rank != at)
        holds = rivalry.hold(rivalry.measure(fewer))
        held = np.where(holds[:, None], fewer, held)
    return _close(rivalry, held, IRREDUCIBLE if rivalry.is_exact else SUFFICIENT)


def _take(rivalry: _Rivalry, rows: slice) -> _Rivalry:
    """Some of the rows."""
    part = object.__new__(_Rivalry)
    part.__dict__.update(rivalry.__dict__)
    part.tables = [[table[:, rows] for table in own] for own in rivalry.tables]
    part.n_rows = part.tables[0][0].shape[1] if part.tables[0] else len(range(*rows.indices(rivalry.n_rows)))
    return part
