"""Labels of models with trees, and what the search proves: of several classes each pair, the nearest rival first.

Owns which comparisons are searched, and what those of a row come to. A row whose own score lies within the rounding of
the model that is meant is a tie. Must not know how a comparison is searched (`trees`).
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand.certificates.bounds.trees import FLIPS, HOLDS, TIE, UNDECIDED, decide_within, measure_radii
from derand.certificates.rules.base import EXACT, NO_PROOF, Bounds, Query, SearchedRows
from derand.model import AdditiveEnsemble, Contrast
from derand.perturbation import Perturbation

_RANKS = np.argsort([HOLDS, TIE, UNDECIDED, FLIPS])
"""By status: which comparison decides the row, the one of the largest rank."""
_lock = Lock()


class Comparison(NamedTuple):
    """Two classes of a model as one sum: the model of both, and the same as the search sees it."""

    model: AdditiveEnsemble
    contrast: Contrast


_comparisons: WeakKeyDictionary[AdditiveEnsemble, dict[tuple[int, int], Comparison]] = WeakKeyDictionary()


def compare_classes(model: AdditiveEnsemble, low: int, high: int) -> Comparison:
    """The comparison of two classes, made when first asked for and kept as long as the model lives."""
    with _lock:
        known = _comparisons.setdefault(model, {}).get((low, high))
    if known is None:
        pair = model.duel(low, high)
        (contrast,) = pair.contrasts()
        with _lock:
            known = _comparisons[model].setdefault((low, high), Comparison(pair, contrast))
    return known


def label_trees(model: AdditiveEnsemble, rows: Numbers) -> IntArray:
    """Label of each row by whole scores: the first of the largest, or class 1 above the threshold."""
    return _choose_labels(compare_scores(model, rows))


def compare_scores(model: AdditiveEnsemble, rows: FloatArray) -> IntArray:
    """Scores of all classes, offsets included, (n_rows, n_classes); of one sum 0 and how far it is ahead."""
    scores = model.score(rows)
    if model.offsets:
        return np.asarray(scores + np.array(model.offsets))
    return np.stack([np.zeros_like(scores), scores - (model.threshold or 0)], axis=1)


def _choose_labels(scores: IntArray) -> IntArray:
    """The first of the largest."""
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def bound_trees(model: AdditiveEnsemble, rows: NDArray[np.generic], query: Query) -> list[Bounds]:
    """What the search proves of each row, for each budget of categorical changes."""
    cells = np.ascontiguousarray(rows, dtype=np.float64)
    scores, every = compare_scores(model, cells), query.perturbation
    labels = _choose_labels(scores)
    rivals = _rank_rivals(scores, labels)
    found = []
    for threat, budget in zip(every.threats, every.budgets, strict=True):
        ledger = _Ledger(cells, scores, labels, rivals[:, 0], replace(every, threats=(threat,), budgets=(budget,)))
        for rank in range(rivals.shape[1]):
            ledger.meet(model, rivals[:, rank], query)
        found.append(ledger.sum_up(several=model.n_classes > 2))
    return found


def _rank_rivals(scores: IntArray, labels: IntArray) -> IntArray:
    """The other classes of each row from the largest score on, (n_rows, n_classes - 1)."""
    n_rows, n_classes = scores.shape
    if n_classes == 2:
        return np.asarray(1 - labels[:, None])
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.asarray(order[order != labels[:, None]].reshape(n_rows, n_classes - 1))


class _Ledger:
    """What is proven of each row so far."""

    def __init__(
        self, rows: FloatArray, scores: IntArray, labels: IntArray, nearest: IntArray, perturbation: Perturbation
    ) -> None:
        n_rows = len(rows)
        self.rows, self.scores, self.labels, self.perturbation = rows, scores, labels, perturbation
        self.witness, self.runner_up = rows.copy(), nearest.copy()
        self.status = np.full(n_rows, HOLDS, dtype=np.uint8)
        self.own_tie = np.zeros(n_rows, dtype=bool)
        self.certified, self.attacked = np.full(n_rows, np.inf), np.full(n_rows, np.inf)
        self.is_exact = np.ones(n_rows, dtype=bool)

    def meet(self, model: AdditiveEnsemble, rivals: IntArray, query: Query) -> None:
        """Search the comparison of each row with one rival; rows that flip already are left out within limits."""
        low, high = np.minimum(self.labels, rivals), np.maximum(self.labels, rivals)
        is_open = self.status != FLIPS
        for pair in np.unique(np.stack([low, high], axis=1), axis=0).tolist():
            at = np.flatnonzero((low == pair[0]) & (high == pair[1]) & is_open)
            if not at.size:
                continue
            comparison, is_one = compare_classes(model, *pair), self.labels[at] == pair[1]
            ahead = self.scores[at, pair[1]] - self.scores[at, pair[0]]
            self.own_tie[at] |= ~_is_sure(comparison.model, self.rows[at], ahead, is_one)
            if self.perturbation.norm is None:
                self._decide(comparison.contrast, at, is_one, rivals[at], query)
            else:
                self._measure(comparison.contrast, at, is_one, rivals[at], query)

    def _decide(self, contrast: Contrast, at: IntArray, is_one: BoolArray, rivals: IntArray, query: Query) -> None:
        found = decide_within(contrast, self.rows[at], is_one, self.perturbation, query.search.budget, query.n_threads)
        worse = _RANKS[found.status] > _RANKS[self.status[at]]
        self.status[at[worse]], self.runner_up[at[worse]] = found.status[worse], rivals[worse]
        kept = worse & ((found.status == FLIPS) | (found.status == TIE))
        self.witness[at[kept]] = found.witness[kept]

    def _measure(self, contrast: Contrast, at: IntArray, is_one: BoolArray, rivals: IntArray, query: Query) -> None:
        found = measure_radii(contrast, self.rows[at], is_one, self.perturbation, query.search.budget, query.n_threads)
        nearer = found.attacked < self.attacked[at]
        self.attacked[at[nearer]], self.witness[at[nearer]] = found.attacked[nearer], found.witness[nearer]
        less = found.certified < self.certified[at]
        self.certified[at[less]], self.is_exact[at[less]] = found.certified[less], found.is_exact[less]
        self.runner_up[at[less]] = rivals[less]

    def sum_up(self, *, several: bool) -> Bounds:
        """What the comparisons of each row come to."""
        in_ball = self.perturbation.norm is not None
        if in_ball:
            radius = np.where(self.own_tie, 0.0, self.certified)
            tree = SearchedRows(
                self.witness, np.isfinite(self.attacked) & ~self.own_tie, self.own_tie, self.attacked, self.is_exact
            )
        else:
            radius = np.where((self.status == HOLDS) & ~self.own_tie, np.inf, 0.0)
            tree = SearchedRows(
                self.witness, (self.status == FLIPS) & ~self.own_tie, self.own_tie | (self.status == TIE)
            )
        return Bounds(
            self.labels,
            np.full(len(self.rows), np.nan),
            radius,
            np.where(radius > 0, EXACT, NO_PROOF).astype(np.uint8),
            runner_up=self.runner_up if several else None,
            tree=tree,
        )


def is_sure_label(model: AdditiveEnsemble, rows: FloatArray) -> tuple[IntArray, BoolArray]:
    """Label of each row, and whether the model that is meant certainly has it, too."""
    scores, sure = compare_scores(model, rows), np.ones(len(rows), dtype=bool)
    labels = _choose_labels(scores)
    for low, high in model.pairs:
        at = np.flatnonzero((labels == low) | (labels == high))
        pair, ahead = compare_classes(model, low, high).model, scores[at, high] - scores[at, low]
        sure[at] &= _is_sure(pair, rows[at], ahead, labels[at] == high)
    return labels, sure


def differs_surely(model: AdditiveEnsemble, rows: FloatArray, labels: IntArray) -> BoolArray:
    """Which rows certainly have another label than these, by the model that is meant as well."""
    scores, differs = compare_scores(model, rows), np.zeros(len(rows), dtype=bool)
    winners = _choose_labels(scores)
    low, high = np.minimum(winners, labels), np.maximum(winners, labels)
    moved = np.flatnonzero(winners != labels)
    for pair in np.unique(np.stack([low[moved], high[moved]], axis=1), axis=0).tolist():
        at = moved[(low[moved] == pair[0]) & (high[moved] == pair[1])]
        ahead = scores[at, pair[1]] - scores[at, pair[0]]
        differs[at] = _is_sure(compare_classes(model, *pair).model, rows[at], ahead, winners[at] == pair[1])
    return differs


def _is_sure(model: AdditiveEnsemble, rows: FloatArray, ahead: IntArray, is_one: BoolArray) -> BoolArray:
    """Whether the model that is meant certainly has this label, for a comparison and how far its score is ahead."""
    largest = model.score_error + sum(term.largest_rounding for term in model.terms if term.is_tree)
    sure, near = np.ones(len(rows), dtype=bool), np.flatnonzero(np.abs(ahead) <= largest * (1 + 2.0**-40))
    if near.size:  # the error of each row takes a while
        errors = model.bound_errors(rows[near])
        sure[near] = np.where(is_one[near], ahead[near] > errors, -ahead[near] >= errors)
    return sure
