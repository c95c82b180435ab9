"""Trees over a domain: what a search within a budget of nodes decides of rows some of whose columns are free.

Owns how a domain is asked of the search, and the columns of a row that are needed for its answer. A query that the
search leaves open keeps its column, so that the set is enough, but perhaps not irreducible. Must not know promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.threads import count_threads
from derand.certificates.bounds.tree_labels import compare_classes
from derand.certificates.bounds.trees import FLIPS, HOLDS, TIE, decide_within
from derand.certificates.statements.domain import Domain
from derand.model import AdditiveEnsemble
from derand.perturbation import Perturbation


def open_domain(domain: Domain, free: BoolArray, rows: FloatArray) -> Perturbation:
    """The threat under which the free columns of some rows may hold whatever the domain allows, or what they hold.

    Of rows outside the domain it allows somewhat more: the numbers between, and more missing ones.
    """
    n_features, is_category = domain.low.size, np.zeros(domain.low.size, dtype=bool)
    is_category[list(domain.codes)] = True
    numbers = free & ~is_category
    with np.errstate(invalid="ignore"):
        steps = numbers & domain.whole & (rows == np.rint(rows)).all(axis=0)
    may_miss = bool(domain.missing) or bool(np.isnan(rows[:, numbers]).any())
    nothing, anything = np.zeros(n_features), np.where(numbers, np.inf, 0.0)
    return Perturbation(
        threats=(),
        norm=None,
        units=np.ones(n_features),
        free=numbers,
        share=nothing,
        down=anything,
        up=anything,
        least=domain.low,
        most=domain.high,
        steps=steps.astype(np.float64),
        has_box=True,
        budgets=(len(domain.codes),),
        frozen=frozenset(np.flatnonzero(~free).tolist()),
        codes=domain.codes,
        unseen=False,
        missing_budget=n_features if may_miss else 0,
    )


class Decided(NamedTuple):
    """What the search says of rows; arrays of shape (n_rows,).

    Attributes
    ----------
    status : HOLDS, FLIPS, TIE or UNDECIDED
    margin : how far the score stays beyond what the label needs, in grid units: a lower bound
    witness : array of shape (n_rows, n_features)
        A row with another label, where one was found; else the row.
    """

    status: NDArray[np.uint8]
    margin: FloatArray
    witness: FloatArray


class Search:
    """The comparisons of a model's classes over a domain."""

    def __init__(self, model: AdditiveEnsemble, domain: Domain, budget: int, n_jobs: int | None) -> None:
        self.model, self.domain, self.budget = model, domain, budget
        self.n_threads = count_threads(n_jobs)
        self.columns = np.unique(np.array([at for term in model.terms for at in term.features], dtype=np.int64))

    def decide(self, rows: FloatArray, labels: IntArray, held: BoolArray) -> Decided:
        """Whether each row keeps its label while all columns but those held, (n_rows, n_features), are free."""
        found = Decided(np.full(len(rows), HOLDS, dtype=np.uint8), np.full(len(rows), np.inf), rows.copy())
        held = held | ~np.isin(np.arange(rows.shape[1]), self.columns)
        keys = np.packbits(held, axis=1)
        for group in _group(np.concatenate([labels[:, None], keys], axis=1)):
            label, own_rows = int(labels[group[0]]), self._fill(rows[group], held[group[0]])
            asked = open_domain(self.domain, ~held[group[0]], own_rows)
            for rival in (other for other in range(self.model.n_classes) if other != label):
                contrast = compare_classes(self.model, min(label, rival), max(label, rival)).contrast
                is_one = np.full(group.size, label > rival)
                own = decide_within(contrast, own_rows, is_one, asked, self.budget, self.n_threads)
                found.margin[group] = np.minimum(found.margin[group], own.bound)
                worse = (own.status != HOLDS) & (found.status[group] != FLIPS)
                at = group[worse]
                found.status[at], found.witness[at] = own.status[worse], own.witness[worse]
        return found

    def _fill(self, rows: FloatArray, held: BoolArray) -> FloatArray:
        """Rows with a number of the domain where a free one is missing that may be: the same rows are reached."""
        filled, some = rows.copy(), self.domain.choose_row()
        for column in self.domain.missing:
            if not held[column]:
                filled[np.isnan(filled[:, column]), column] = some[column]
        return filled

    def holds_rows(self, rows: FloatArray) -> BoolArray:
        """Which rows belong to the domain, by the columns that the model reads."""
        terms = self.model.terms
        return np.array([all(self.domain.holds(row[None], term) for term in terms) for row in rows], dtype=bool)


def _group(keys: IntArray) -> list[IntArray]:
    """The rows of each distinct key."""
    _, index = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(index.reshape(-1), kind="stable")
    starts = np.flatnonzero(np.diff(index.reshape(-1)[order], prepend=-1))
    return np.split(order, starts[1:]) if order.size else []


class NeededColumns(NamedTuple):
    """For each row columns that force its label.

    Attributes
    ----------
    held : array of shape (n_rows, n_features)
    is_enough : whether that is proven, (n_rows,)
    is_irreducible : whether no column of them can be dropped, (n_rows,)
    margin : in grid units, (n_rows,)
    """

    held: BoolArray
    is_enough: BoolArray
    is_irreducible: BoolArray
    margin: FloatArray


def reduce_columns(search: Search, rows: FloatArray, labels: IntArray, costs: Mapping[int, int]) -> NeededColumns:
    """Drop columns as long as the rest is proven to be enough: many at once by halving, then each that is left."""
    columns = search.columns
    rank = _rank_columns(search, rows, labels, costs)
    low, high = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), columns.size)
    while (at := np.flatnonzero(low < high)).size:
        middle = (low[at] + high[at]) // 2
        holds = search.decide(rows[at], labels[at], rank[at] < middle[:, None]).status == HOLDS
        low[at], high[at] = np.where(holds, low[at], middle + 1), np.where(holds, middle, high[at])
    held = rank < high[:, None]
    is_irreducible = search.holds_rows(rows)
    for place in range(columns.size - 1, -1, -1):
        at = np.flatnonzero(high > place)
        if not at.size:
            continue
        fewer = held[at] & (rank[at] != place)
        status = search.decide(rows[at], labels[at], fewer).status
        dropped = status == HOLDS
        held[at[dropped]] = fewer[dropped]
        is_irreducible[at] &= dropped | (status == FLIPS)
    last = search.decide(rows, labels, held)
    is_enough = last.status == HOLDS
    return NeededColumns(held & is_enough[:, None], is_enough, is_irreducible & is_enough, last.margin)


def _rank_columns(search: Search, rows: FloatArray, labels: IntArray, costs: Mapping[int, int]) -> IntArray:
    """The columns of each row from the one whose own changes lower the score most for their cost, (n_rows, n_features).

    Columns that the model does not read come beyond all others.
    """
    columns, held = search.columns, np.ones(rows.shape, dtype=bool)
    own, losses = search.decide(rows, labels, held).margin, np.empty((len(rows), columns.size))
    for place, column in enumerate(columns.tolist()):
        held[:, column] = False
        losses[:, place] = (own - search.decide(rows, labels, held).margin) / costs.get(column, 1)
        held[:, column] = True
    order = np.argsort(-losses, axis=1, kind="stable")
    rank = np.full(rows.shape, columns.size, dtype=np.int64)
    np.put_along_axis(rank, columns[order], np.arange(columns.size)[None], axis=1)
    return rank


__all__ = ["FLIPS", "HOLDS", "TIE", "Decided", "NeededColumns", "Search", "open_domain", "reduce_columns"]
