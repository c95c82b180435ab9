"""Terms of a contrast as one forest over bins, made once for the terms and kept as long as the first of trees lives.

Owns which codes of a category all trees treat alike, whole bounds of what a leaf scores for the model that is meant,
and terms of other kinds written as trees. Must not know perturbations or rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.kernels.trees.forest import Forest
from derand.kernels.trees.packing import Splits, divide_grid, prune_trees
from derand.model import Term, TreeTerm, as_trees

_FINEST = 8
"""Errors of leaves are rounded up to this many bits below a unit of the grid."""
_ROOM = 2**60
"""What all leaves together may reach."""


class Category(NamedTuple):
    """The codes of a categorical column: known ones, then any other, then a missing one."""

    codes: FloatArray
    classes: IntArray
    """The class of each of these states, (n_codes + 2,)."""

    def locate(self, values: FloatArray) -> IntArray:
        """The state of each value."""
        last = self.codes.size
        at = np.searchsorted(self.codes, values)
        known = np.append(self.codes, np.nan)[at] == values
        return np.asarray(np.where(known, at, np.where(np.isnan(values), last + 1, last)))


class PackedTrees(NamedTuple):
    """The trees of a contrast."""

    forest: Forest
    columns: IntArray
    """Columns of the model, by those of the forest."""
    categories: Mapping[int, Category]
    """By column of the forest."""
    takes_missing: BoolArray
    """Columns of numbers that may be missing."""
    shift: int
    """Scores of the forest are those of the model times 2**shift."""


class _Part(NamedTuple):
    """The trees of one term."""

    splits: Splits
    scores: IntArray
    errors: FloatArray
    """How far what a leaf adds for the model that is meant may lie from its score."""


_plans: WeakKeyDictionary[TreeTerm, tuple[tuple[Term | None, ...], PackedTrees]] = WeakKeyDictionary()
_lock = Lock()


def pack_trees(terms: Sequence[Term]) -> PackedTrees:
    """The forest of some terms; made when first asked for, where one of them is a term of trees."""
    first = next((trees for trees in map(as_trees, terms) if trees is not None), None)
    if first is None:
        return _pack(terms)
    others = tuple(None if term is first else term for term in terms)
    with _lock:
        known = _plans.get(first)
    if known is None or not (len(known[0]) == len(others) and all(map(_is_same, known[0], others))):
        known = others, _pack(terms)
        with _lock:
            _plans[first] = known
    return known[1]


def _is_same(one: Term | None, other: Term | None) -> bool:
    return one is other


def _pack(terms: Sequence[Term]) -> PackedTrees:
    columns = np.array(sorted({column for term in terms for column in term.features}), dtype=np.int64)
    positions = {int(column): at for at, column in enumerate(columns)}
    edges = [np.empty(0)] * columns.size
    takes_missing = np.zeros(columns.size, dtype=bool)
    for term in terms:
        for axis in term.axes:
            edges[positions[axis.feature]] = axis.edges
        takes_missing[[positions[one] for one in term.missing_features]] = True
    maker = _Maker(positions, edges)
    parts = [maker.pack(term) for term in terms]
    starts = np.cumsum([0, *map(len, edges)], dtype=np.int64)
    n_bins = np.diff(starts) + 1
    shift = _choose_shift(parts)
    roots, splits, leaves, base, depth = [np.empty(0, np.int32)], [], [], np.zeros(2, dtype=np.int64), 0
    n_splits = n_leaves = 0
    for part in parts:
        pruned = prune_trees(part.splits, n_bins, takes_missing)
        errors = np.ceil(part.errors * 2.0**shift).astype(np.int64)
        values = np.stack([sign * (part.scores << shift) - errors for sign in (1, -1)], axis=1)[pruned.leaves]
        alone = pruned.roots < 0
        base += values[~pruned.roots[alone]].sum(axis=0)
        roots.append(pruned.roots[~alone] + n_splits)
        moved = pruned.splits.copy()
        moved[:, 2:] = np.where(moved[:, 2:] >= 0, moved[:, 2:] + n_splits, moved[:, 2:] - n_leaves)
        splits.append(moved)
        leaves.append(values)
        n_splits, n_leaves, depth = n_splits + len(moved), n_leaves + len(values), max(depth, pruned.depth)
    forest = Forest(
        np.concatenate(roots).astype(np.int32),
        np.ascontiguousarray(np.concatenate(splits), dtype=np.int32),
        np.ascontiguousarray(np.concatenate(leaves)),
        base,
        np.concatenate([*edges, np.empty(0)]),
        starts,
        maker.n_classes,
        maker.pack_sets(),
        depth,
    )
    return PackedTrees(forest, columns, maker.categories, takes_missing, shift)


def _choose_shift(parts: Sequence[_Part]) -> int:
    """Bits below a unit, where errors of leaves ask for them and there is room."""
    if not any(part.errors.any() for part in parts):
        return 0
    total = sum(
        part.splits.roots.size * (int(np.abs(part.scores).max(initial=0)) + int(part.errors.max(initial=0)) + 1)
        for part in parts
    )
    return max(min(_FINEST, _ROOM.bit_length() - 1 - total.bit_length()), 0)


class _Maker:
    """Writes terms as trees, and collects what they ask of categories."""

    def __init__(self, positions: Mapping[int, int], edges: Sequence[FloatArray]) -> None:
        self._positions, self._edges = positions, edges
        self.categories: dict[int, Category] = {}
        self.n_classes = np.zeros(len(positions), dtype=np.int64)
        self._sets: list[IntArray] = []

    def pack(self, term: Term) -> _Part:
        """One term."""
        trees = as_trees(term)
        if trees is not None:
            return self._pack_trees(trees)
        if term.category_codes:
            return self._pack_table(term)
        if term.slope is not None:
            raise ValueError("Lines cannot stand beside trees: certify them apart.")
        return self._pack_grid(term)

    def pack_sets(self) -> IntArray:
        """Classes that go left at each split by category, as bits, (n_sets, n_words)."""
        n_words = max(int(self.n_classes.max(initial=1)) + 63 >> 6, 1)
        sets = np.zeros((len(self._sets), n_words), dtype=np.uint64)
        for row, classes in enumerate(self._sets):
            np.bitwise_or.at(sets[row], classes >> 6, np.uint64(1) << (classes & 63).astype(np.uint64))
        return sets.view(np.int64)

    def _pack_trees(self, term: TreeTerm) -> _Part:
        columns = np.searchsorted(np.array(term.features), term.columns)
        columns = np.array([self._positions[one] for one in term.features])[columns]
        cuts = np.zeros(columns.size, dtype=np.int64)
        is_number = np.ones(columns.size, dtype=bool)
        is_number[term.category_splits] = False
        for column in np.unique(columns[is_number]).tolist():
            at = np.flatnonzero(is_number & (columns == column))
            cuts[at] = np.searchsorted(self._edges[column], term.edges[at]) + 1
        for column, size in term.categories:
            if column in term.features:
                self._add_category(term, self._positions[column], size, columns, cuts)
        errors = term.magnitudes[:, 0] * term.rounding * (1 + (term.roots.size + 8) * EPSILON)
        splits = Splits(
            term.roots, columns.astype(np.int32), cuts.astype(np.int32), term.left, term.right, term.missing_left
        )
        return _Part(splits, term.scores[:, 0], np.asarray(errors))

    def _add_category(self, term: TreeTerm, column: int, size: int, columns: IntArray, cuts: IntArray) -> None:
        """The splits of one categorical column: which of its classes go left."""
        at = term.category_splits[columns[term.category_splits] == column]
        goes_left = np.zeros((size + 2, at.size), dtype=bool)
        for k, split in enumerate(at.tolist()):
            codes = term.left_codes[int(np.searchsorted(term.category_splits, split))]
            goes_left[np.where(codes < 0, size, codes), k] = True
        goes_left[size + 1] = term.missing_left[at]
        self._add_classes(column, np.arange(size, dtype=np.float64), goes_left)
        classes, kept = self.categories[column].classes, len(self._sets)
        for k in range(at.size):
            self._sets.append(np.unique(classes[goes_left[:, k]]))
        cuts[at] = ~np.arange(kept, kept + at.size)

    def _add_classes(self, column: int, codes: FloatArray, goes_left: BoolArray) -> None:
        """States that go the same way at all splits are one class."""
        packed = np.packbits(goes_left, axis=1)
        _, classes = np.unique(packed, axis=0, return_inverse=True)
        self.categories[column] = Category(codes, np.asarray(classes.reshape(-1), dtype=np.int64))
        self.n_classes[column] = int(classes.max()) + 1

    def _pack_table(self, term: Term) -> _Part:
        """A table of categories as one tree over its distinct scores."""
        (feature,) = term.features
        column, codes = self._positions[feature], term.codes
        values = np.append(codes, [codes.max(initial=0.0) + 1.0, np.nan])
        scores = term.evaluate(values)
        distinct, classes = np.unique(scores, return_inverse=True)
        self.categories[column] = Category(codes, np.asarray(classes.reshape(-1), dtype=np.int64))
        self.n_classes[column] = distinct.size
        splits, leaves = divide_grid(np.array([distinct.size]), np.zeros(1, dtype=bool), distinct)
        kept, ends = len(self._sets), splits[:, 1]
        self._sets += [np.arange(end) for end in ends.tolist()]
        return self._build_tree(np.full(len(splits), column), ~np.arange(kept, kept + ends.size), splits, leaves)

    def _pack_grid(self, term: Term) -> _Part:
        """A function of one or several numbers as one tree."""
        takes = [feature in term.missing_features for feature in term.features]
        shape = np.array([axis.edges.size + 1 + cell for axis, cell in zip(term.axes, takes, strict=True)])
        scores = term.cell_scores
        if term.missing_score is not None:
            scores = np.append(scores, term.missing_score)
        splits, leaves = divide_grid(shape.astype(np.int64), np.array(takes), scores.astype(np.int64))
        columns = np.array([self._positions[axis.feature] for axis in term.axes])[splits[:, 0]]
        return self._build_tree(columns, splits[:, 1], splits, leaves)

    @staticmethod
    def _build_tree(columns: IntArray, cuts: IntArray, splits: IntArray, leaves: IntArray) -> _Part:
        roots = np.array([0 if len(splits) else -1], dtype=np.int64)
        own = Splits(
            roots,
            np.asarray(columns, dtype=np.int32),
            np.asarray(cuts, dtype=np.int32),
            np.ascontiguousarray(splits[:, 2]),
            np.ascontiguousarray(splits[:, 3]),
            splits[:, 4] == 1,
        )
        return _Part(own, leaves, np.zeros(leaves.size))


def list_words(classes: NDArray[np.int64], n_words: int) -> IntArray:
    """Classes as bits, (n_words,)."""
    words = np.zeros(n_words, dtype=np.uint64)
    np.bitwise_or.at(words, classes >> 6, np.uint64(1) << (classes & 63).astype(np.uint64))
    return cast(IntArray, words.view(np.int64))
