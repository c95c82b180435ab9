"""A contrast of a model as arrays: what rules and kernels work on.

Owns packing terms into arrays, what categorical changes can do to the sum, and the plans that kernels prepare; all of
it is made once per model and kept for as long as the model lives. Must not know rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray, freeze
from derand.certificates.bounds.grid_packing import PackedGrid, bound_boxes, pack_grid
from derand.certificates.bounds.shared_edges import SharedEdges
from derand.kernels import TAIL_ERROR, Backend, Edges, Plan, failure_excess
from derand.model import MAX_SCORE, AdditiveEnsemble, Axis, Contrast, Term
from derand.noise import Noise
from derand.perturbation import Perturbation

MAX_SUPPORT = 2**23
"""Largest number of grid levels between the lowest and the highest score of a distribution: those of two threads take
up to 700 MB. A sum that spans more has a distribution on a coarser grid."""
COARSE_SUPPORT = 2**13
"""Levels of such a coarser grid, at least, and for each term where that can be afforded for every row. Each term may be
off by half a step, so that what rounding moves the sum is the same share of its span for any number of terms: radii of
an EBM of 14 terms lose less than a thousandth (`python -m experiments import-cost`)."""
_MOST_WORK = 2**29
"""Cells times levels of a distribution: some 10 milliseconds a row."""

_lock = Lock()


class MissingCell(NamedTuple):
    """A term that noise acts on and that has a cell for a missing value, on which it does not; scores as they are."""

    feature: int
    edges: FloatArray
    scores: IntArray
    missing: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PackedTerms:
    """The terms of a sum as the kernels see them: reduced scores, 0 at the lowest and without a common divisor.

    Attributes
    ----------
    fixed : tuple of Term
        Those that noise leaves alone.
    missing_cells : tuple of MissingCell
        Of those that it acts on, constant ones included, the ones that have a cell for a missing value.
    edges, edge_features, edge_terms : arrays of shape (n_edges,)
        Of all other terms of one column that are not constant, one after the other.
    grids : tuple of PackedGrid
        Terms of several columns that are not constant. Their cells, boxes of equal score merged, come after all others.
    starts : array of shape (n_terms + 1,)
        The cells of term i are those from `starts[i]` to `starts[i + 1] - 1`.
    scores : array of shape (n_cells,)
    base, step, largest : int
        A sum of reduced scores s stands for `base + step * s`, and is at most `largest`.
    error : int
        By how much that may differ from the sum of the scores: 0 but on a coarser grid.
    common : SharedEdges or None
        What these terms share with those of other comparisons of the same classes.
    """

    fixed: tuple[Term, ...]
    missing_cells: tuple[MissingCell, ...]
    edges: FloatArray
    edge_features: IntArray
    edge_terms: IntArray
    starts: IntArray
    scores: IntArray
    base: int
    step: int
    largest: int
    error: int = 0
    grids: tuple[PackedGrid, ...] = ()
    common: SharedEdges | None = None
    _plans: dict[Backend, Plan] = field(default_factory=dict, repr=False)
    kept: dict[object, Any] = field(default_factory=dict, repr=False)
    shared: WeakValueDictionary[object, Any] = field(default_factory=WeakValueDictionary, repr=False)
    """Worst cases of these terms, and tables that several of them share; see `worst_case`."""
    lock: Any = field(default_factory=RLock, repr=False)
    """Of what is kept."""

    @property
    def n_terms(self) -> int:
        return self.starts.size - 1

    @property
    def n_plain(self) -> int:
        """Terms of one column."""
        return self.n_terms - len(self.grids)

    @property
    def features(self) -> IntArray:
        """Column of each term of one column, (n_plain,)."""
        return np.asarray(self.edge_features[self.starts[: self.n_plain] - np.arange(self.n_plain)])

    @property
    def moving(self) -> IntArray:
        """All columns that noise acts on, increasing."""
        own = [np.asarray(grid.features, dtype=np.int64) for grid in self.grids]
        return np.unique(np.concatenate([self.edge_features, *own]))

    def list_edges(self, feature: int) -> FloatArray:
        """All edges in one column, increasing within a term."""
        of_grids = [
            edges for grid in self.grids for at, edges in zip(grid.features, grid.edges, strict=True) if at == feature
        ]
        return np.concatenate([self.edges[self.edge_features == feature], *of_grids])

    @property
    def ranges(self) -> FloatArray:
        """Largest reduced score of each term, (n_terms,)."""
        if not self.n_terms:
            return np.empty(0)
        return np.maximum.reduceat(self.scores, self.starts[:-1]).astype(np.float64)

    def table(self, rows: FloatArray, noise: Noise) -> FloatArray:
        """Upper bounds of all cell probabilities, shape (n_rows, n_cells)."""
        plain = noise.cell_table(
            np.take(rows, self.edge_features, axis=1), self.edges, self.edge_features, self.edge_terms, self.n_plain
        )
        return np.concatenate([plain, *bound_boxes(self.grids, rows, noise)], axis=1) if self.grids else plain

    def edges_under(self, noise: Noise) -> Edges:
        """The edges with what a device needs to know of the noise."""
        units = noise.units_of(self.edge_features)
        return Edges(self.edges, self.edge_features, units, noise.magnitude, noise.name)

    def plan(self, kernels: Backend) -> Plan:
        """What these kernels have prepared for these terms."""
        with _lock:
            if kernels not in self._plans:
                self._plans[kernels] = kernels.prepare(self.starts, self.scores)
            return self._plans[kernels]

    def tie_band(self) -> float:
        """By how much a computed failure mass near 1/2 can exceed the true one (kernels/README.md, step 5)."""
        of_grids = sum(grid.excess for grid in self.grids)
        return 3 * TAIL_ERROR * self.edges.size + failure_excess(self.n_terms, self.scores.size) + of_grids

    def cell_errors(self) -> FloatArray:
        """By how much, at most, the cells of each term can have too much probability together, (n_terms,)."""
        errors = 3 * TAIL_ERROR * np.diff(self.starts)
        errors[self.n_plain :] = [grid.excess + 8 * EPSILON for grid in self.grids]
        return np.asarray(errors)

    def fixed_scores(self, rows: FloatArray) -> IntArray:
        """What the terms that noise leaves alone add to the sum, (n_rows,).

        A missing number counts as one in the last cell of its term (`missing`): its own score less that cell's.
        """
        total = np.zeros(rows.shape[0], dtype=np.int64)
        for term in self.fixed:
            total += term.score_rows(rows)
        for cell in self.missing_cells:
            total[np.isnan(rows[:, cell.feature])] += cell.missing - int(cell.scores[-1])
        return total

    def category_shifts(
        self, rows: FloatArray, budgets: IntArray, perturbation: Perturbation
    ) -> tuple[IntArray, IntArray]:
        """Largest decrease and increase of the sum by changing at most k categories, each (n_rows, n_budgets).

        The features' effects add up, so the k largest ones are the worst choice (docs/theory.md).
        """
        decreases, increases = (np.zeros((rows.shape[0], len(self.fixed)), dtype=np.int64) for _ in range(2))
        for column, term in enumerate(self.fixed):
            if not perturbation.frozen.isdisjoint(term.features):
                continue
            scores = term.score_rows(rows)
            lowest, highest = _list_reachable(term, perturbation)
            decreases[:, column] = np.maximum(scores - lowest, 0)
            increases[:, column] = np.maximum(highest - scores, 0)
        at = np.minimum(budgets, len(self.fixed))

        def of_the_largest(effects: IntArray) -> IntArray:
            sums = np.cumsum(-np.sort(-effects, axis=1), axis=1)
            return np.concatenate([np.zeros((rows.shape[0], 1), dtype=np.int64), sums], axis=1)[:, at]

        return of_the_largest(decreases), of_the_largest(increases)


class _Cells(NamedTuple):
    """A term that noise acts on: its axes, and its scores on the grid."""

    axes: tuple[Axis, ...]
    shape: tuple[int, ...]
    scores: IntArray

    @property
    def is_plain(self) -> bool:
        """Whether it has one column and no cells but those between edges."""
        return len(self.axes) == 1 and self.scores.size == self.axes[0].edges.size + 1

    @classmethod
    def of(cls, term: Term, grid: int) -> _Cells:
        """The cells of a term, scores rounded to multiples of the grid."""
        inside = tuple(axis.edges.size + 1 for axis in term.axes)
        missing_cells = term.missing_features if math.prod(inside) < term.scores.shape[0] else ()
        shape = tuple(size + (axis.feature in missing_cells) for size, axis in zip(inside, term.axes, strict=True))
        return cls(term.axes, shape, np.rint(term.cell_scores / grid).astype(np.int64))

    @property
    def range(self) -> int:
        return int(self.scores.max() - self.scores.min())


def _list_reachable(term: Term, perturbation: Perturbation) -> tuple[int, int]:
    """Lowest and highest score that a change of a category can reach."""
    named = [perturbation.codes[feature] for feature in term.features if feature in perturbation.codes]
    if not named:
        return term.score_range(perturbation.unseen)
    scores = term.evaluate(named[0])
    # without any value to change to nothing is reached: an empty range
    return int(scores.min(initial=MAX_SCORE)), int(scores.max(initial=-MAX_SCORE))


def pack_terms(terms: Sequence[Term], grid: int = 1, common: SharedEdges | None = None) -> PackedTerms:
    """The terms of a sum as arrays for the kernels, scores rounded to multiples of `grid`."""
    moved = [term for term in terms if term.axes]
    rounded = [_Cells.of(term, grid) for term in moved]
    varying = [cells for cells in rounded if cells.range]
    chosen = _in_two_halves([cells for cells in varying if cells.is_plain])
    axes = [cells.axes[0] for cells in chosen]
    reduced = [cells.scores - cells.scores.min() for cells in chosen]
    boxes = _in_two_halves([cells for cells in varying if not cells.is_plain])
    packed = [pack_grid(cells.axes, cells.shape, cells.scores) for cells in boxes]
    counts_of_boxes = [scores.size for _, scores in packed]
    reduced += [scores for _, scores in packed]
    step = (int(np.gcd.reduce(np.concatenate(reduced))) if reduced else 1) or 1
    largest = sum(int(scores.max()) for scores in reduced) // step
    counts = [axis.edges.size for axis in axes]
    nothing: list[NDArray[np.generic]] = [np.empty(0)]
    return PackedTerms(
        fixed=tuple(term for term in terms if not term.axes),
        missing_cells=tuple(
            MissingCell(*term.axes[0], term.cell_scores, cell)
            for term in moved
            if (cell := term.missing_score) is not None
        ),
        edges=freeze(np.concatenate([axis.edges for axis in axes] or nothing)),
        edge_features=freeze(np.repeat(np.array([axis.feature for axis in axes], dtype=np.int64), counts)),
        edge_terms=freeze(np.repeat(np.arange(len(axes), dtype=np.int64), counts)),
        starts=freeze(np.cumsum([0, *(count + 1 for count in counts), *counts_of_boxes], dtype=np.int64)),
        scores=freeze(np.concatenate(reduced or nothing).astype(np.int64) // step),
        base=grid * sum(int(cells.scores.min()) for cells in rounded),  # a constant term is only a shift
        step=grid * step,
        largest=largest,
        error=sum(
            int(np.abs(term.cell_scores - grid * cells.scores).max())
            for term, cells in zip(moved, rounded, strict=True)
        ),
        grids=tuple(one.divide(step) for one, _ in packed),
        common=common,
    )


def pack_distribution(terms: Sequence[Term], packed: PackedTerms) -> PackedTerms:
    """The same terms on a grid on which their distribution can be afforded: coarser where the sum spans too much."""
    if packed.largest < MAX_SUPPORT:
        return packed
    return pack_terms(terms, grid=-(-packed.largest * packed.step // choose_support(terms)))


def choose_support(terms: Sequence[Term]) -> int:
    """The number of levels of a coarser grid for the distribution of these terms."""
    cells = [math.prod(axis.edges.size + 1 for axis in term.axes) for term in terms if term.axes]
    return max(COARSE_SUPPORT, min(COARSE_SUPPORT * len(cells), _MOST_WORK // sum(cells)))


def _in_two_halves(terms: Sequence[_Cells]) -> list[_Cells]:
    """Order for kernels that meet in the middle: two halves of like range, each from narrow to wide."""
    by_range = sorted(terms, key=lambda cells: cells.range)
    return by_range[1::2] + by_range[0::2]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A contrast as arrays: its class is 1 iff the sum of its terms is above the threshold.

    Attributes
    ----------
    terms : PackedTerms
    distribution : PackedTerms
        The same on a grid on which the distribution of the sum can be afforded; mostly the terms themselves.
    threshold : int
    widening : int
        Whole scores by which the sum of the model that is meant may differ: what is proven must hold with the threshold
        that much higher and lower.
    n_features : int
        Columns of the rows.
    """

    terms: PackedTerms
    distribution: PackedTerms
    threshold: int
    widening: int
    n_features: int


_problems: WeakKeyDictionary[AdditiveEnsemble, Problem] = WeakKeyDictionary()
_sums: WeakKeyDictionary[AdditiveEnsemble, Problem] = WeakKeyDictionary()


def pose_problem(model: AdditiveEnsemble, common: SharedEdges | None = None) -> Problem:
    """The problem of a model of two classes, made when first asked for and kept as long as the model lives.

    Whoever makes a comparison says first what it has in common with others.
    """
    with _lock:
        known = _problems.get(model)
    if known is None:
        (contrast,) = model.contrasts()
        known = _pack_contrast(contrast, common)
        with _lock:
            known = _problems.setdefault(model, known)
    return known


def pose_sum(model: AdditiveEnsemble) -> Problem:
    """The sum of a regression model, as a problem whose threshold is where the prediction is 0; kept, too."""
    with _lock:
        known = _sums.get(model)
    if known is None:
        known = _pack_contrast(model.as_sum())
        with _lock:
            known = _sums.setdefault(model, known)
    return known


def _pack_contrast(contrast: Contrast, common: SharedEdges | None = None) -> Problem:
    terms = pack_terms(contrast.terms, common=common)
    distribution, widening = pack_distribution(contrast.terms, terms), math.ceil(contrast.score_error)
    return Problem(terms, distribution, contrast.threshold, widening, contrast.n_features)
