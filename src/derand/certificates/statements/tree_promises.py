"""Promises about every row of models with trees: bounds that a search within a budget of nodes proves, and rows.

A budget that is spent leaves a promise undecided, with bounds: the whole domain is the hardest box. Owns which forests
are searched. Must not know how they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand.certificates.bounds.tree_labels import compare_classes
from derand.certificates.bounds.tree_packing import PackedTrees, pack_trees
from derand.certificates.bounds.trees import FLIPS, HOLDS, bound_forest, bound_scores
from derand.certificates.results.statements import LargestChange, Promise, TermSwing
from derand.certificates.statements.domain import Domain
from derand.certificates.statements.forests import Owners, bound_tree_changes, double, widen_domain
from derand.certificates.statements.promises import Statements
from derand.certificates.statements.sums import mesh_points
from derand.certificates.statements.trees import Search, open_domain
from derand.model import AdditiveEnsemble, Contrast, Model

_FEW_ROWS = 2**12
"""Settings of the columns that are not protected, all of which are asked."""


class TreeSum:
    """A comparison of two classes, or a number, over a domain: its ends, and how far columns move it."""

    def __init__(self, contrast: Contrast, search: Search) -> None:
        self.contrast, self.domain, self._search = contrast, search.domain, search
        self.packed: PackedTrees = pack_trees(contrast.terms)
        self.owners = Owners(self.packed.forest)
        self.threshold, self.widening = contrast.threshold, 0  # ends hold the errors
        row = self.domain.choose_row()[None]
        every = np.ones(row.shape[1], dtype=bool)
        found = bound_scores(contrast, row, open_domain(self.domain, every, row), search.budget, search.n_threads)
        self.ends = float(found.least[0]), float(found.most[0])
        self.extremes = np.concatenate([found.least_witness, found.most_witness])

    def locate(self, columns: Sequence[int]) -> list[int]:
        """Columns of the model as those of the forest; such as it does not read are left out."""
        known = {int(column): at for at, column in enumerate(self.packed.columns)}
        return [known[one] for one in columns if one in known]

    def list_edges(self, column: int) -> FloatArray:
        """The edges of a column of numbers."""
        forest, at = self.packed.forest, self.locate([column])
        return forest.edges[forest.edge_starts[at[0]] : forest.edge_starts[at[0] + 1]] if at else np.empty(0)

    def bound_swing(self, columns: Sequence[int], budget: int) -> float:
        """How far some columns alone can move the sum at most."""
        at = self.locate(columns)
        if not at:
            return 0.0
        trees, every = self.owners.find_trees(at), self.packed.columns[at].tolist()
        doubled = double(self.packed, at, trees, self.domain.low.size)
        domain = widen_domain(self.domain, every)
        row = domain.choose_row()[None]
        asked = open_domain(domain, np.ones(row.shape[1], dtype=bool), row)
        return -float(bound_forest(doubled, row, asked, budget, self._search.n_threads)[0][0])

    def bound_drops(self, column: int, sign: int, budget: int) -> tuple[float, float, FloatArray | None]:
        """How far the sum moves against a direction at most, how far it does for a pair of rows, and that pair.

        Edge by edge: what the next number adds to the one before, by the trees that ask an edge between both.
        """
        values = self.domain.list_numbers(column, self.list_edges(column))
        bins = np.searchsorted(self.list_edges(column), values, side="right")
        total, worst, pair, at = 0.0, 0.0, None, self.locate([column])
        for first in range(values.size - 1 if at else 0):
            trees = self.owners.find_trees(at, int(bins[first]), int(bins[first + 1]))
            if not trees.size:
                continue
            doubled = double(self.packed, at, trees, self.domain.low.size)
            row = widen_domain(self.domain, [column]).choose_row()
            row[[column, -1]] = values[[first + 1, first]] if sign > 0 else values[[first, first + 1]]
            free = ~np.isin(np.arange(row.size), [column, row.size - 1])
            asked = open_domain(widen_domain(self.domain, [column]), free, row[None])
            least, witness = bound_forest(doubled, row[None], asked, budget, self._search.n_threads)
            total += max(-float(least[0]), 0.0)
            rows = np.repeat(witness[:, :-1], 2, axis=0)
            rows[:, column] = values[[first, first + 1]]
            low, high = self.score(rows)
            if sign * (low - high) > worst:
                worst, pair = sign * (low - high), rows
        return total, worst, pair

    def score(self, rows: FloatArray) -> list[int]:
        """The sum of each row."""
        scores = sum(term.score_rows(rows).reshape(len(rows)).astype(np.int64) for term in self.contrast.terms)
        return [int(one) for one in np.asarray(scores)]


class TreeStatements(Statements):
    """A model with trees over a domain, and what is promised of it."""

    def __init__(self, model: Model, domain: Domain, budget: int, n_jobs: int | None = None) -> None:
        self.model, self.noise, self.domain = model, None, domain
        ensemble: AdditiveEnsemble = model.members[0]
        self.levels, self.budget = float(ensemble.levels), budget
        self.search = Search(ensemble, domain, budget, n_jobs)
        if model.n_classes:
            contrasts = [compare_classes(ensemble, *pair).contrast for pair in ensemble.pairs]
        else:
            contrasts = [ensemble.as_sum()]
        self.trees = [TreeSum(one, self.search) for one in contrasts]
        self.sums = self.trees  # type: ignore[assignment] # their ends are all that is asked of them
        self.values = self._list_values()

    def _list_values(self) -> list[FloatArray]:
        """Of each column the values that stand for all its cells."""
        found = []
        for column, some in enumerate(self.domain.choose_row()):
            if column in self.domain.codes:
                found.append(self.domain.codes[column])
                continue
            edges = np.unique(np.concatenate([one.list_edges(column) for one in self.trees]))
            own = self.domain.list_numbers(column, edges) if edges.size else np.array([some])
            found.append(np.append(own, np.nan) if column in self.domain.missing else own)
        return found

    def prove_protected(self, columns: Sequence[int], table: FloatArray | None = None) -> Promise:
        """Whether a change of these columns alone never flips an answer; of a table the share of rows that it flips."""
        budget = max(self.budget // len(self.trees), 1)
        size = max(one.bound_swing(columns, budget) for one in self.trees) / self.levels
        share, pair = None, None
        if table is not None and len(table):
            flips, may_flip, pair = self._flip(columns, table)
            share = float(flips.mean()), float(may_flip.mean())
        is_proven = size <= 0 or self._has_one_label()
        if pair is None and not is_proven:
            rows, is_every = self._list_others(columns)
            _, may_flip, pair = self._flip(columns, rows)
            is_proven = is_every and not may_flip.any()
        verdict = "counterexample" if pair is not None else "proven" if is_proven else "undecided"
        return Promise("protected", tuple(columns), "", verdict, size, pair, share)

    def _has_one_label(self) -> bool:
        """Whether each comparison ends the same way for all rows."""
        ends = [(*one.ends, one.threshold) for one in self.trees]
        return all(least > threshold or most <= threshold for least, most, threshold in ends)

    def _list_others(self, columns: Sequence[int]) -> tuple[FloatArray, bool]:
        """All rows that differ in the other columns where there are few, else random ones; and whether these are all.

        Beside them those of the lowest and the highest sums.
        """
        values = [own[:1] if at in columns else own for at, own in enumerate(self.values)]
        if np.prod([float(own.size) for own in values]) <= _FEW_ROWS:
            return mesh_points(values), True
        return np.concatenate([self._draw_rows(), *self._list_extremes()]), False

    def _flip(self, columns: Sequence[int], rows: FloatArray) -> tuple[BoolArray, BoolArray, FloatArray | None]:
        """Which rows flip by these columns alone, which may, and a pair that does by the labels of `predict`.

        The search says of some that the model that is meant flips for certain: only these count as flips.
        """
        held = np.ones(rows.shape, dtype=bool)
        held[:, list(columns)] = False
        labels = self.label(rows)
        found = self.search.decide(rows, labels, held)
        at, changed = np.flatnonzero(found.status != HOLDS), rows.copy()
        free = np.ix_(at, np.array(columns))
        changed[free] = found.witness[free]
        differs = (self.label(changed) != labels) & self._is_allowed(columns, rows, changed)
        first = np.flatnonzero(differs)[:1]
        pair = np.concatenate([rows[first], changed[first]]) if first.size else None
        return differs & (found.status == FLIPS), found.status != HOLDS, pair

    def _is_allowed(self, columns: Sequence[int], rows: FloatArray, changed: FloatArray) -> BoolArray:
        """Whether numbers are such as the domain allows, or as they were."""
        fine, domain = np.ones(len(rows), dtype=bool), self.domain
        for column in (one for one in columns if one not in domain.codes):  # the search keeps to their codes
            before, after = rows[:, column], changed[:, column]
            same = (before == after) | (np.isnan(before) & np.isnan(after))
            inside = (after >= domain.low[column]) & (after <= domain.high[column])
            inside &= ~domain.whole[column] | (after == np.rint(after))
            fine &= same | inside | (np.isnan(after) & (column in domain.missing))
        return fine

    def prove_monotone(self, column: int, direction: str) -> Promise:
        """Whether the score, or each difference of a higher class and a lower one, never moves the other way."""
        sign = 1 if direction == "increasing" else -1
        found = [one.bound_drops(column, sign, self.budget) for one in self.trees]
        bound = max(total for total, _, _ in found)
        _, worst, pair = max(found, key=lambda one: one[1])
        if pair is not None:
            return Promise("monotone", (column,), direction, "counterexample", worst / self.levels, pair)
        verdict = "proven" if bound <= 0 else "undecided"
        return Promise("monotone", (column,), direction, verdict, bound / self.levels)

    def list_swings(self) -> tuple[TermSwing, ...]:
        """An upper bound of the swing of each column that the model reads, from the largest."""
        columns = self.search.columns.tolist()
        budget = max(self.budget // (len(columns) * len(self.trees)), 1)
        sizes = [max(one.bound_swing([column], budget) for one in self.trees) for column in columns]
        order = np.argsort([-size for size in sizes], kind="stable")
        return tuple(TermSwing((columns[at],), sizes[at] / self.levels, "") for at in order.tolist())

    def compute_change(self, radius: float, norm: float, units: FloatArray) -> LargestChange:
        """An upper bound of how far scores lie apart within a radius, tree by tree."""
        size = max(bound_tree_changes(one.packed, self.domain, radius, norm, units) for one in self.trees)
        return LargestChange(radius, norm, size / self.levels, is_exact=False)

    def compute_ends(self) -> tuple[float, float]:
        """Bounds of the score less the threshold; NaN for several classes."""
        if len(self.trees) > 1:
            return float("nan"), float("nan")
        (low, high), threshold = self.trees[0].ends, self.trees[0].threshold
        return (low - threshold) / self.levels, (high - threshold) / self.levels

    def _list_extremes(self) -> list[FloatArray]:
        return [one.extremes for one in self.trees]
