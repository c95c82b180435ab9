"""Terms of decision trees: a sum of trees over columns that they share.

Owns `TreeTerm`, into which models are read whose trees join more columns, or more cells, than a grid holds; grids and
functions of one column can be written as trees as well. Noise does not act on it. Must not know models, decisions or
files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray, freeze
from derand.kernels.trees.descend import Splits, reach_leaves
from derand.model._base import Once
from derand.model._terms import TERMS, Axis, Description, Score, Term, as_feature, as_scores, pick_outputs

UNSEEN = -1
"""The code of a category that training did not see."""
_BLOCK = 2**20
AnyLeaves = TypeVar("AnyLeaves", IntArray, FloatArray)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TreeTerm(Term):
    """A sum of decision trees: of each tree one leaf, all added up.

    Splits and leaves are numbered apart. A child that is 0 or larger is a split; a child below 0 is the leaf `~child`
    (-1 is leaf 0, -2 leaf 1, ...).

    Parameters
    ----------
    roots : array-like of shape (n_trees,)
        The split at which each tree begins.
    columns : array-like of shape (n_splits,)
        The column that a split asks.
    edges : array-like of shape (n_splits,)
        Numbers with `x >= edge` go right; finite. Of splits by category it is not read.
    left, right : array-likes of shape (n_splits,)
        The children; those that are splits have a larger number than their parent.
    scores : array-like of integers, shape (n_leaves,) or (n_leaves, n_outputs)
        In grid units.
    missing_left : array-like of booleans, shape (n_splits,)
        Whether a missing value, NaN, goes left.
    category_splits : array-like of int
        Splits by category, increasing.
    left_codes : sequence of array-likes
        For each of them the codes that go left, increasing; -1 is every category that training did not see. All other
        codes go right.
    categories : sequence of (column, int)
        How many categories each categorical column has: its codes are 0, 1, ...
    refused : sequence of int
        Columns of numbers that must not hold NaN.
    rounding : float
        How far the score of the model that is meant, which adds up leaves in its own arithmetic, may lie from this one
        at a row: at most `rounding` times the sum of the magnitudes of the leaves that the row reaches.
    magnitudes : array-like of numbers, shape (n_leaves, n_outputs)
        What counts as the magnitude of a leaf there; empty for that of its score.

    Examples
    --------
    >>> tree = TreeTerm([0], [0, 1], [0.5, 2.0], [-1, -2], [1, -3], [-5, 1, 7], [True, False])
    >>> tree.score_rows(np.array([[0.0, 9.0], [0.5, 1.0], [0.5, 2.0], [np.nan, 2.0]])).tolist()
    [-5, 1, 7, -5]
    """

    roots: IntArray
    columns: IntArray
    edges: FloatArray
    left: IntArray
    right: IntArray
    scores: IntArray
    missing_left: BoolArray
    category_splits: IntArray = ()  # type: ignore[assignment]
    left_codes: tuple[IntArray, ...] = ()
    categories: tuple[tuple[int, int], ...] = ()
    refused: tuple[int, ...] = ()
    rounding: float = 0.0
    magnitudes: FloatArray = ()  # type: ignore[assignment]

    kind: ClassVar[str] = "tree_term"
    uneven: ClassVar[tuple[str, ...]] = ("left_codes",)

    def __post_init__(self) -> None:
        for name in ("roots", "columns", "left", "right", "category_splits"):
            object.__setattr__(self, name, _as_whole(getattr(self, name), name))
        count = self.columns.size
        object.__setattr__(self, "edges", freeze(_as_array(self.edges, "edges").astype(np.float64)))
        object.__setattr__(self, "missing_left", freeze(_as_array(self.missing_left, "missing_left").astype(np.bool_)))
        for name, array in (("edges", self.edges), ("missing_left", self.missing_left)):
            if array.shape != (count,) or not np.isfinite(array).all():
                raise ValueError(f"`{name}` of TreeTerm must hold a finite number for each of its {count} splits.")
        scores = _as_array(self.scores, "scores")
        n_leaves = len(scores) if scores.ndim else 0
        object.__setattr__(self, "scores", as_scores(scores, n_leaves, "`scores` of TreeTerm"))
        codes = tuple(_as_whole(own, "left_codes") for own in _as_list(self.left_codes, "left_codes"))
        object.__setattr__(self, "left_codes", codes)
        counts = [_as_whole(pair, "categories") for pair in _as_list(self.categories, "categories")]
        if any(pair.size != 2 or pair.min() < 0 for pair in counts):
            raise ValueError("`categories` of TreeTerm must hold pairs of a column and how many categories it has.")
        object.__setattr__(self, "categories", tuple((int(column), int(size)) for column, size in counts))
        refused = tuple(as_feature(one, "TreeTerm") for one in _as_list(self.refused, "refused"))
        object.__setattr__(self, "refused", refused)
        self._check_magnitudes()
        if isinstance(self.rounding, bool) or not isinstance(self.rounding, int | float | np.floating):
            raise ValueError(f"`rounding` of TreeTerm must be a number, got {self.rounding!r}.")
        object.__setattr__(self, "rounding", float(self.rounding))
        if not 0 <= self.rounding < 1:
            raise ValueError(f"`rounding` of TreeTerm must be 0 or larger, and below 1, got {self.rounding!r}.")
        self._check_splits(n_leaves)
        self._check_categories()

    def _check_magnitudes(self) -> None:
        given = _as_array(self.magnitudes, "magnitudes").astype(np.float64)
        known = given if given.size else np.abs(self.scores).astype(np.float64)
        if known.size != self.scores.size or not (np.isfinite(known) & (known >= 0)).all():
            raise ValueError(
                f"`magnitudes` of TreeTerm must hold a number, 0 or larger, for each of {len(self.scores)} leaves and "
                "each output."
            )
        object.__setattr__(self, "magnitudes", freeze(known.reshape(self.scores.shape)))

    def _check_splits(self, n_leaves: int) -> None:
        count = self.columns.size
        if not self.roots.size or self.left.shape != (count,) or self.right.shape != (count,):
            raise ValueError("`left` and `right` of TreeTerm must have one child per split, and `roots` at least one.")
        if (self.roots < 0).any() or (self.roots >= count).any() or (self.columns < 0).any():
            raise ValueError("`roots` and `columns` of TreeTerm must be splits and columns that there are.")
        for children in (self.left, self.right):
            if ((children >= 0) & ((children <= np.arange(count)) | (children >= count))).any():
                raise ValueError("A child in TreeTerm that is a split must have a larger number than its parent.")
            if (~children[children < 0] >= n_leaves).any():
                raise ValueError(f"A child in TreeTerm names a leaf beyond the {n_leaves} that there are.")

    def _check_categories(self) -> None:
        at = self.category_splits
        if at.size != len(self.left_codes) or (at[1:] <= at[:-1]).any() or ((at < 0) | (at >= self.columns.size)).any():
            raise ValueError(
                "`category_splits` of TreeTerm must name splits, increasing, with one list of `left_codes` each."
            )
        sizes = dict(self.categories)
        is_category = np.isin(self.columns, list(sizes))
        if not np.array_equal(np.flatnonzero(is_category), at):
            raise ValueError(
                "`categories` of TreeTerm must hold the columns that splits by category ask, and no column may be "
                "asked both as a number and as a category."
            )
        for split, codes in zip(at.tolist(), self.left_codes, strict=True):
            size = sizes[int(self.columns[split])]
            if codes.size and (codes.min() < UNSEEN or codes.max() >= size or (codes[1:] <= codes[:-1]).any()):
                raise ValueError(f"`left_codes` of TreeTerm must increase and lie from -1 to {size - 1}.")

    @Once
    def features(self) -> tuple[int, ...]:
        """The columns that splits ask, increasing."""
        return tuple(np.unique(self.columns).tolist())

    @Once
    def axes(self) -> tuple[Axis, ...]:
        """Its columns of numbers, each with the edges of all splits."""
        order = np.lexsort((self.edges, self.columns))
        columns, edges = self.columns[order], self.edges[order]
        starts = np.append(np.flatnonzero(np.diff(columns, prepend=-1)), columns.size)
        coded = self.category_codes
        return tuple(
            Axis(int(columns[first]), freeze(np.unique(edges[first:last])))
            for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
            if int(columns[first]) not in coded
        )

    @property
    def category_codes(self) -> Mapping[int, FloatArray]:
        """The codes of each of its categorical columns."""
        return {column: np.arange(size, dtype=np.float64) for column, size in self.categories}

    @property
    def is_tree(self) -> bool:
        """Always: its scores are those of leaves, not of cells."""
        return True

    @property
    def n_trees(self) -> int:
        """How many trees it adds up."""
        return int(self.roots.size)

    @property
    def takes_missing(self) -> bool:
        """Whether one of its columns may hold NaN; `missing_features` says which."""
        return len(self.refused) < len(self.features)

    @property
    def missing_features(self) -> tuple[int, ...]:
        """The columns that may hold NaN."""
        return tuple(one for one in self.features if one not in self.refused)

    @property
    def missing(self) -> Score | None:
        """None: what a missing value scores depends on the other columns."""
        return None

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each row of its own columns, (n_rows, n_features), in the order of `features`."""
        return pick_outputs(self._add_leaves(np.asarray(x, dtype=np.float64), self.scores))

    def bound_rounding(self, rows: FloatArray) -> FloatArray:
        """How far the score of the model that is meant may lie from this one at each row, (n_rows, n_outputs)."""
        if not self.rounding:
            return np.zeros((rows.shape[0], self.n_outputs))
        sums = self._add_leaves(rows[:, list(self.features)], self.magnitudes)
        return np.asarray(sums * self.rounding * (1 + (self.roots.size + 4) * EPSILON))

    @property
    def largest_rounding(self) -> float:
        """More than `bound_rounding` of any row and output: each tree counted by the largest leaf of all."""
        most = float(self.magnitudes.max(initial=0.0))
        return self.rounding * most * self.n_trees * (1 + (2 * self.n_trees + 16) * EPSILON)

    def reach_leaves(self, rows: FloatArray) -> IntArray:
        """The leaf of each tree that each row reaches, (n_rows, n_trees); rows hold all columns."""
        return reach_leaves(self.roots, self._splits._replace(positions=self.columns), rows)

    def _add_leaves(self, values: FloatArray, leaves: AnyLeaves) -> AnyLeaves:
        """What the leaves of all trees add up to for each row of its own columns, (n_rows, n_outputs)."""
        for feature in self.refused:
            if feature in self.features and np.isnan(values[:, self.features.index(feature)]).any():
                raise ValueError(
                    f"`x` must hold numbers, got NaN for feature {feature}: these trees take no missing value of it. "
                    "Drop such rows or fill the missing values first."
                )
        size = max(_BLOCK // (self.roots.size * self.n_outputs), 1)
        found = np.zeros((len(values), self.n_outputs), dtype=leaves.dtype)
        for at in range(0, len(values), size):
            reached = reach_leaves(self.roots, self._splits, values[at : at + size])
            found[at : at + size] = leaves[reached].sum(axis=1)
        return found

    @Once
    def _splits(self) -> Splits:
        """Its splits as the walk reads them, by position among its own columns."""
        sizes, rows = dict(self.categories), np.full(self.columns.size, -1, dtype=np.int64)
        rows[self.category_splits] = np.arange(self.category_splits.size)
        table = np.zeros((len(self.left_codes), max(sizes.values(), default=0) + 1), dtype=bool)
        for row, codes in enumerate(self.left_codes):
            table[row, codes] = True  # that of unseen codes, -1, is the last one
        counts = np.zeros(max(self.features) + 1, dtype=np.int64)
        for column, size in sizes.items():
            counts[column] = size
        positions = np.searchsorted(np.array(self.features), self.columns)
        return Splits(
            positions, self.edges, self.left, self.right, self.missing_left, rows, counts[self.columns], table
        )

    def score_rows(self, rows: FloatArray) -> IntArray:
        """Scores of whole rows: reads its own columns."""
        return self.evaluate(rows[:, list(self.features)])

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Sums of the lowest and of the highest leaves of each tree: no row scores less, or more."""
        least, most = self._ends
        return int(least.min()), int(most.max())

    @Once
    def _ends(self) -> tuple[IntArray, IntArray]:
        """The sums of the lowest and of the highest leaves of each tree, (n_outputs,)."""
        least, most = (
            reduce_below(self.roots, self.left, self.right, self.scores, reduce) for reduce in (np.minimum, np.maximum)
        )
        return least.sum(axis=0), most.sum(axis=0)

    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> NoReturn:
        """Refused: trees over columns that they share have no expected score in closed form."""
        raise ValueError("Trees that join many columns are not smoothed: certify them without noise (noise='none').")

    def subtract(self, plus: int, minus: int) -> TreeTerm:
        """The difference of two outputs; trees that add nothing to it are left out, but for one."""
        scores = self.scores[:, [plus]] - self.scores[:, [minus]]
        magnitudes = self.magnitudes[:, [plus]] + self.magnitudes[:, [minus]]
        largest = reduce_below(self.roots, self.left, self.right, np.abs(scores) + magnitudes, np.maximum)
        kept = np.flatnonzero(largest[:, 0] > 0)
        return self._keep_trees(kept if kept.size else np.array([0]), scores, magnitudes)

    def _keep_trees(self, kept: IntArray, scores: IntArray, magnitudes: FloatArray) -> TreeTerm:
        """Some of its trees, with other scores; splits and leaves of the others are left out."""
        levels = list(list_levels(self.roots[kept], self.left, self.right))
        splits = np.unique(np.concatenate(levels))
        children = np.stack([self.left[splits], self.right[splits]])
        leaves = np.unique(~children[children < 0])
        left, right = np.where(
            children >= 0, np.searchsorted(splits, children), ~np.searchsorted(leaves, np.maximum(~children, 0))
        )
        at = np.flatnonzero(np.isin(self.category_splits, splits))
        columns = self.columns[splits]
        return TreeTerm(
            np.searchsorted(splits, self.roots[kept]),
            columns,
            self.edges[splits],
            left,
            right,
            scores[leaves],
            self.missing_left[splits],
            np.searchsorted(splits, self.category_splits[at]),
            tuple(self.left_codes[one] for one in at.tolist()),
            tuple(one for one in self.categories if (columns == one[0]).any()),
            tuple(one for one in self.refused if (columns == one).any()),
            self.rounding,
            magnitudes[leaves],
        )

    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists."""
        is_plain = np.array_equal(self.magnitudes, np.abs(self.scores))
        arrays = ("roots", "columns", "edges", "left", "right", "scores", "category_splits")
        return {
            **{name: getattr(self, name).tolist() for name in arrays},
            "missing_left": self.missing_left.astype(int).tolist(),
            "left_codes": [codes.tolist() for codes in self.left_codes],
            "categories": [list(pair) for pair in self.categories],
            "refused": list(self.refused),
            "rounding": self.rounding,
            "magnitudes": [] if is_plain else self.magnitudes.tolist(),
        }


def as_trees(term: Term) -> TreeTerm | None:
    """The term itself where it is a sum of trees; None where it has cells, or is a line."""
    return term if isinstance(term, TreeTerm) else None


def list_levels(roots: IntArray, left: IntArray, right: IntArray) -> Iterator[IntArray]:
    """The splits of trees level by level, each once in a level."""
    level = np.unique(roots)
    while level.size:
        yield level
        children = np.concatenate([left[level], right[level]])
        level = np.unique(children[children >= 0])


def reduce_below(
    roots: IntArray, left: IntArray, right: IntArray, leaves: AnyLeaves, reduce: Callable[[Any, Any], Any]
) -> AnyLeaves:
    """The least, or the largest, of all leaves of each tree, (n_trees, n_outputs)."""
    found = np.zeros((left.size, leaves.shape[1]), dtype=leaves.dtype)

    def read(children: IntArray) -> AnyLeaves:
        below = found[np.maximum(children, 0)]
        is_leaf = children < 0
        below[is_leaf] = leaves[~children[is_leaf]]
        return below

    for level in reversed(list(list_levels(roots, left, right))):
        found[level] = reduce(read(left[level]), read(right[level]))
    return found[roots]


def _as_array(values: object, name: str) -> NDArray[np.generic]:
    """An array of numbers of any kind, but for objects and text."""
    try:
        array = np.array(values)
    except (TypeError, ValueError):
        array = np.array("")
    if array.size and array.dtype.kind not in "biuf":
        raise ValueError(f"`{name}` of TreeTerm must be a list of numbers, all entries of one length.")
    return array if array.size else np.empty(0, dtype=np.int64)


def _as_list(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise ValueError(f"`{name}` of TreeTerm must be a list, got {values!r}.")
    return list(values)


def _as_whole(values: ArrayLike, name: str) -> IntArray:
    array = _as_array(values, name)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and int(array.max()) >= 2**63):
        raise ValueError(f"`{name}` of TreeTerm must be a flat list of whole numbers.")
    return freeze(array.astype(np.int64))


TERMS[TreeTerm.kind] = TreeTerm
