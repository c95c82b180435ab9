"""Terms as tables: the cell of each column, and the score of every cell. Must not know any format.

A term is asked for its score once in every cell, so that a table holds what the term itself answers, missing and unseen
values included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.model import Term

_KNOWN = ("step_function", "category_table", "grid_term", "linear_term")
"""Kinds of terms that cells and slopes say all of."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """How a column is cut into cells.

    Attributes
    ----------
    feature : int
    places : array of shape (k,)
        Edges of a number, whose cells are k + 1; or the codes of a category, each of which is a cell, and any other
        code is cell k.
    is_category : bool
    missing : int or None
        The cell of a missing value, the last one; None where there is none, and such a value is refused.
    """

    feature: int
    places: FloatArray
    is_category: bool
    missing: int | None

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.places.size + 1 + (self.missing is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A term as a table.

    Attributes
    ----------
    axes : tuple of Cells
    scores : array of integers, shape (n_cells, n_outputs)
        Of all cells of all axes, the last axis first (C order).
    """

    axes: tuple[Cells, ...]
    scores: IntArray


def tabulate(term: Term, n_codes: int | None = None) -> Lookup:
    """A term as a table.

    `n_codes`: of a category, that its codes are 0 to n_codes - 1; None: those that the term tells apart. The result: of
    a line one cell of score 0, and one more where it takes missing values: what it adds is no whole number.
    """
    if term.kind not in _KNOWN:
        raise ValueError(
            f"`model` must consist of step functions, tables and lines to be written, got a term of the kind "
            f"{term.kind!r} for column {term.features[0]}."
        )
    if term.slope is not None:
        axis = Cells(term.features[0], np.empty(0), False, 1 if term.takes_missing else None)
        return Lookup((axis,), np.zeros((axis.size, term.n_outputs), dtype=np.int64))
    if not term.axes:
        codes = term.codes if n_codes is None else np.arange(n_codes, dtype=np.float64)
        unseen = max(codes.max(initial=0.0), term.codes.max(initial=0.0)) + 1
        axis = Cells(term.features[0], codes, True, codes.size + 1)
        return Lookup((axis,), _evaluate(term, [np.concatenate([codes, [unseen, np.nan]])]))
    axes, inside = [], []
    for feature, edges in term.axes:
        takes = feature in term.missing_features
        axes.append(Cells(feature, edges, False, edges.size + 1 if takes else None))
        below = np.nextafter(edges[:1], -np.inf) if edges.size else np.zeros(1)
        inside.append(np.concatenate([below, edges, [np.nan] * takes]))
    return Lookup(tuple(axes), _evaluate(term, inside))


def _evaluate(term: Term, inside: Sequence[FloatArray]) -> IntArray:
    """What a term says in every cell, by a value inside of each cell of its columns."""
    if len(inside) == 1:
        scores = term.evaluate(inside[0])
    else:
        grid = np.meshgrid(*inside, indexing="ij")
        scores = term.evaluate(np.stack([part.ravel() for part in grid], axis=1))
    return np.asarray(scores.reshape(math.prod(part.size for part in inside), term.n_outputs), dtype=np.int64)
