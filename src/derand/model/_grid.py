"""Terms of several numerical columns: step functions on a grid of boxes, and joining terms that share columns.

Owns `GridTerm`, into which a tree over a few columns turns, and `join_terms`. Must not know models, decisions or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.model._terms import (
    TERMS,
    Axis,
    Description,
    StepFunction,
    Term,
    as_feature,
    as_positions,
    as_scores,
    pick_outputs,
)

MAX_CELLS = 10**6
"""Largest number of joint cells of a term."""


@dataclass(frozen=True, slots=True, eq=False)
class GridTerm(Term):
    """A step function of several numerical features: one score per box between the edges of its axes.

    Parameters
    ----------
    features : sequence of int
        Columns, each once.
    edges : sequence of array-likes
        Strictly increasing split points, one list per feature; a feature with k of them has k + 1 cells.
    scores : array-like of integers
        In grid units, of shape (cells of the first feature, cells of the second, ...), with one more axis for several
        outputs; or flat in the same (C) order, of shape (n_cells,) or (n_cells, n_outputs). At most a million cells.
    missing : sequence of bool
        Whether each feature takes missing values, NaN: its axis then has one more cell, the last one. Empty for none.

    Examples
    --------
    >>> grid = GridTerm(features=(0, 2), edges=([0.0], [0.0, 1.0]), scores=[[1, 2, 3], [4, 5, 6]])
    >>> grid.evaluate([[-1.0, 0.5], [0.0, 7.0]]).tolist()
    [2, 6]
    >>> gapped = GridTerm((0, 2), ([0.0], [0.0]), [[1, 2], [3, 4], [5, 6]], missing=(True, False))
    >>> gapped.evaluate([[float("nan"), 0.5]]).tolist()
    [6]
    """

    features: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    scores: IntArray
    missing: tuple[bool, ...] = ()

    kind: ClassVar[str] = "grid_term"
    uneven: ClassVar[tuple[str, ...]] = ("edges",)

    def __post_init__(self) -> None:
        features = tuple(as_feature(value, "GridTerm") for value in _as_list(self.features, "features"))
        if not features:
            raise ValueError("`features` of GridTerm must name at least one column, got none.")
        for feature in features:
            if features.count(feature) > 1:
                raise ValueError(
                    f"`features` of GridTerm must name each column once, got {feature} twice in {features}: "
                    "leave one of them out."
                )
        parts = _as_list(self.edges, "edges")
        if len(parts) != len(features):
            raise ValueError(
                f"`edges` of GridTerm must have one list per feature, {len(features)} in all, got {len(parts)}."
            )
        object.__setattr__(self, "features", features)
        object.__setattr__(
            self, "edges", tuple(as_positions(part, "each list of `edges` of GridTerm") for part in parts)
        )
        object.__setattr__(self, "missing", _as_flags(self.missing, len(features)))
        _require_few(features, self.shape)
        object.__setattr__(self, "scores", self._read_scores(self.scores))

    def _read_scores(self, values: ArrayLike) -> IntArray:
        raw, n_cells = np.asarray(values), int(np.prod(self.shape))
        if raw.shape[: len(self.shape)] == self.shape and raw.ndim <= len(self.shape) + 1:
            raw = raw.reshape(n_cells, -1)
        elif raw.ndim > 2:
            raise ValueError(
                f"`scores` of GridTerm must have the shape {self.shape}, one number per box, with one more axis for "
                f"several outputs, got {raw.shape}."
            )
        return as_scores(raw, n_cells, "`scores` of GridTerm")

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each axis, that of missing values included."""
        return tuple(part.size + 1 + takes for part, takes in zip(self.edges, self.missing, strict=True))

    def expect(self, rows: FloatArray, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Expected scores of rows: those of the boxes, by the products of probabilities along each axis."""
        is_missing = np.isnan(rows[:, list(self.features)])
        joint = np.ones((is_missing.shape[0], 1))
        for at, (probability, takes) in enumerate(zip(probabilities, self.missing, strict=True)):
            here = np.where(is_missing[:, [at]], 0.0, probability)
            if takes:
                here = np.concatenate([here, is_missing[:, [at]]], axis=1)
            joint = (joint[:, :, None] * here[:, None, :]).reshape(is_missing.shape[0], -1)
        return np.asarray(joint @ self.scores)

    @property
    def grid(self) -> IntArray:
        """The scores as a grid, of shape (*shape, n_outputs)."""
        return self.scores.reshape(*self.shape, self.scores.shape[1])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its columns with their edges."""
        return tuple(Axis(feature, part) for feature, part in zip(self.features, self.edges, strict=True))

    @property
    def takes_missing(self) -> bool:
        """Whether one of its columns may hold NaN; `missing_features` says which."""
        return any(self.missing)

    @property
    def missing_features(self) -> tuple[int, ...]:
        """The columns that have a cell for NaN."""
        return tuple(feature for feature, takes in zip(self.features, self.missing, strict=True) if takes)

    @property
    def missing_score(self) -> int | None:
        """None: what a missing value scores depends on the other columns."""
        return None

    def evaluate(self, x: ArrayLike) -> IntArray:
        """Score of each row of its own columns, (n_rows, n_axes); NaN is an error where its axis has no cell."""
        values = np.asarray(x, dtype=np.float64)
        if len(self.features) == 1 and values.ndim < 2:  # of one column, its values alone
            values = values[..., None]
        if values.ndim < 1 or values.shape[-1] != len(self.features):
            raise ValueError(
                f"`x` must hold the {len(self.features)} columns of this GridTerm, got shape {values.shape}."
            )
        indices = []
        for k, (feature, part) in enumerate(zip(self.features, self.edges, strict=True)):
            column = values[..., k]
            is_missing = np.isnan(column)
            if is_missing.any() and not self.missing[k]:
                raise ValueError(
                    f"`x` must hold numbers, got NaN for feature {feature}: this GridTerm has no cell for a missing "
                    "value of it. Drop such rows or fill the missing values first, or give it cells with `missing`."
                )
            indices.append(np.where(is_missing, part.size + 1, np.searchsorted(part, column, side="right")))
        return pick_outputs(self.scores[np.ravel_multi_index(tuple(indices), self.shape)])

    def score_rows(self, rows: FloatArray) -> IntArray:
        """Scores of whole rows: reads its own columns."""
        return self.evaluate(rows[:, list(self.features)])

    def score_range(self, unseen: bool = True) -> tuple[int, int]:
        """Lowest and highest score of all boxes."""
        return int(self.scores.min()), int(self.scores.max())

    def subtract(self, plus: int, minus: int) -> GridTerm:
        """The difference of two outputs; edges at which it does not change are left out."""
        return GridTerm(
            self.features, self.edges, self.grid[..., plus] - self.grid[..., minus], self.missing
        ).drop_idle_edges()

    def drop_idle_edges(self) -> GridTerm:
        """The same function without edges at which no score changes."""
        edges, grid = list(self.edges), self.grid
        for k, part in enumerate(edges):
            cells = np.moveaxis(grid, k, 0)
            there = cells[: part.size + 1]
            changes = np.flatnonzero((there[1:] != there[:-1]).any(axis=tuple(range(1, there.ndim))))
            kept = np.concatenate([[0], changes + 1, np.arange(part.size + 1, cells.shape[0])])
            edges[k], grid = part[changes], np.moveaxis(cells[kept], 0, k)
        return self if grid.size == self.scores.size else GridTerm(self.features, tuple(edges), grid, self.missing)

    def describe(self) -> Description:
        """The constructor's arguments as plain numbers and lists; scores are flat, and `missing` is 0 or 1."""
        own: dict[str, object] = {
            "features": list(self.features),
            "edges": [part.tolist() for part in self.edges],
            "scores": self.scores.tolist(),
        }
        return own | ({"missing": [int(takes) for takes in self.missing]} if any(self.missing) else {})


def _as_list(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise ValueError(f"`{name}` of GridTerm must be a list with one entry per feature, got {values!r}.")
    return list(values)


def _as_flags(values: object, count: int) -> tuple[bool, ...]:
    flags = _as_list(values, "missing") or [False] * count
    if len(flags) != count or any(flag not in (0, 1) for flag in flags):
        raise ValueError(
            f"`missing` of GridTerm must say True or False for each of its {count} features, got {values!r}."
        )
    return tuple(bool(flag) for flag in flags)


def _require_few(features: Sequence[int], shape: Sequence[int]) -> None:
    """Refuse a grid of too many boxes."""
    n_cells = 1
    for size in shape:
        n_cells *= int(size)
    if n_cells > MAX_CELLS:
        cells = " x ".join(str(size) for size in shape)
        raise ValueError(
            f"A term of features {', '.join(map(str, features))} would have {cells} = {n_cells} joint cells, at most "
            f"{MAX_CELLS} can be held: use fewer edges, or fewer features that are joined with each other."
        )


def join_terms(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Terms of which no two read the same column: those that share some are added up into one.

    Parameters
    ----------
    terms : sequence of Term
        Any number of them over a column. Those that are connected, directly or through others, become one term.

    Returns
    -------
    tuple of Term
        In the order in which their columns first occur; the sum over all terms is the same on every row. A column takes
        missing values if all terms that read it do.

    Examples
    --------
    >>> pair = GridTerm((0, 1), ([0.0], [0.0]), [[1, -1], [-1, 1]])
    >>> joined = join_terms([StepFunction(0, [0.5], [0, 5]), StepFunction(2, [0.0], [0, 1]), pair])
    >>> [term.features for term in joined], joined[0].scores.ravel().tolist()
    ([(0, 1), (2,)], [1, -1, -1, 1, 4, 6])
    """
    return tuple(part[0] if len(part) == 1 else _join(part) for part in _connect(terms))


def _connect(terms: Sequence[Term]) -> Iterator[list[Term]]:
    """The terms in groups that share columns with each other."""
    groups: list[tuple[set[int], list[Term]]] = []
    for term in terms:
        touched = [group for group in groups if group[0] & set(term.features)]
        if not touched:
            groups.append((set(term.features), [term]))
            continue
        first = touched[0]
        for other in touched[1:]:
            first[0].update(other[0])
            first[1].extend(other[1])
            groups = [group for group in groups if group is not other]
        first[0].update(term.features)
        first[1].append(term)
    yield from (group[1] for group in groups)


def _join(terms: list[Term]) -> Term:
    """The sum of terms as one."""
    if any(not term.axes for term in terms):
        named = sorted({feature for term in terms for feature in term.features})
        raise ValueError(
            f"`terms` that share a column must be functions of numbers, got a category among those of features "
            f"{', '.join(map(str, named))}: a table of categories cannot be joined with other terms. Leave it out, or "
            "add its scores to one table."
        )
    if len({term.n_outputs for term in terms}) > 1:
        raise ValueError("`terms` that share a column must have the same number of outputs.")
    grids = [_as_grid(term) for term in terms]
    features = list(dict.fromkeys(feature for one in grids for feature in one.features))
    edges = [np.unique(np.concatenate([_edges_of(one, at) for one in grids])) for at in features]
    missing = [all(_takes(one, at) for one in grids if at in one.features) for at in features]
    shape = [part.size + 1 + takes for part, takes in zip(edges, missing, strict=True)]
    _require_few(features, shape)
    total = np.zeros((*shape, terms[0].n_outputs), dtype=np.int64)
    for one in grids:
        total += _spread(one, features, edges, missing)
    if len(features) > 1:
        return GridTerm(tuple(features), tuple(edges), total, tuple(missing)).drop_idle_edges()
    score: Any = tuple(total[-1].tolist()) if missing[0] else None
    scores = total[: edges[0].size + 1]
    return StepFunction(features[0], edges[0], scores, score if score is None or len(score) > 1 else score[0])


def _as_grid(term: Term) -> GridTerm:
    if isinstance(term, GridTerm):
        return term
    ((feature, edges),) = term.axes
    scores = term.scores
    if term.missing is not None:
        scores = np.concatenate([scores, np.reshape(term.missing, (1, -1))])
    return GridTerm((feature,), (edges,), scores, (term.missing is not None,))


def _edges_of(grid: GridTerm, feature: int) -> FloatArray:
    return grid.edges[grid.features.index(feature)] if feature in grid.features else np.empty(0)


def _takes(grid: GridTerm, feature: int) -> bool:
    return grid.missing[grid.features.index(feature)]


def _spread(
    one: GridTerm, features: Sequence[int], edges: Sequence[FloatArray], missing: Sequence[bool]
) -> NDArray[np.int64]:
    """The scores of a grid on a finer one of more columns, with axes of length 1 for columns that it does not read."""
    own = np.moveaxis(
        one.grid, range(len(one.features)), np.argsort(np.argsort([features.index(at) for at in one.features]))
    )
    ordered = sorted(one.features, key=features.index)
    for k, feature in enumerate(ordered):
        at = features.index(feature)
        coarse = _edges_of(one, feature)
        indices = np.concatenate([[0], np.searchsorted(coarse, edges[at], side="right")])
        if missing[at]:
            indices = np.append(indices, coarse.size + 1)
        own = np.take(own, indices, axis=k)
    lengths = [own.shape[ordered.index(at)] if at in ordered else 1 for at in features]
    return np.asarray(own.reshape(*lengths, own.shape[-1]))


TERMS[GridTerm.kind] = GridTerm
