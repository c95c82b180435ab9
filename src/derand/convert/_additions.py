"""Readings of trees that a library adds up one by one: base, leaves, and what its arithmetic may lose.

Owns how trees of several outputs and their sum become a Reading. Must not know any library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray
from derand.convert._reading import Reading
from derand.convert._trees import Node, bound_leaves, bound_sum_error, find_largest_leaf, sum_trees
from derand.tables import TableEncoding

SINGLE = 2.0**-24
DOUBLE = 2.0**-53


def read_sum(
    trees: Sequence[Node],
    base: FloatArray,
    encoding: TableEncoding,
    *,
    classes: NDArray[Any] | None,
    arithmetic_error: float,
    link: str,
    raw_scores: Callable[[FloatArray], FloatArray] | None,
    source: str,
    cure: str,
) -> Reading:
    """A base and trees, whose leaves are numbers where `base` has one entry, as a Reading.

    Parameters are those of Reading, `base` of shape (n_outputs,), and `cure` of `sum_trees`.
    """
    n_outputs = base.size
    total = sum_trees(trees, encoding, n_outputs=n_outputs, cure=cure)
    intercept = np.asarray(total.constant) + base
    rounding = float(np.abs(intercept).max()) * EPSILON
    return Reading(
        encoding,
        total.shapes,
        total.grids,
        total.tables,
        intercept if n_outputs > 1 else float(intercept[0]),
        classes,
        arithmetic_error + total.error + rounding,
        link,
        raw_scores,
        source,
    )


def measure_total(trees: Sequence[Node], base: float) -> float:
    """The largest magnitude that the sum of base and leaves can have: of every tree its largest leaf."""
    return abs(base) + math.fsum(map(find_largest_leaf, trees))


def bound_additions(trees: Sequence[Node], base: FloatArray, n_roundings: int, unit: float) -> float:
    """How far any output may lie from the exact sum of its base and its leaves, added up one by one.

    `n_roundings` is how often the library rounds for one output, at most; `unit` is `SINGLE` or `DOUBLE`.
    """
    largest = np.array([bound_leaves(tree, base.size) for tree in trees]).reshape(-1, base.size)
    return max(
        bound_sum_error(n_roundings, abs(start) + math.fsum(own), unit)
        for own, start in zip(largest.T.tolist(), base.tolist(), strict=True)
    )


def place_leaf(value: float, output: int, n_outputs: int) -> float | FloatArray:
    """A leaf of a tree that adds to one of several outputs."""
    if n_outputs == 1:
        return value
    leaf = np.zeros(n_outputs)
    leaf[output] = value
    return leaf


def order_categories(values: Sequence[Any], column: str | int) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Values of a category in increasing order, and the library's code of each.

    `values`: value k has the library's code k; `column`: its name, for the error.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({_name_kind(value) for value in plain}) > 1:
        raise ValueError(
            f"The categories of column {column!r} are of several kinds, which no table of ours can hold: turn all of "
            "them into text before training."
        )
    order = sorted(range(len(plain)), key=plain.__getitem__)
    return tuple(plain[code] for code in order), tuple(order)


def _name_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    return "text" if isinstance(value, str) else "numbers"


def recode_rows(rows: FloatArray, codes: dict[int, tuple[int, ...]]) -> FloatArray:
    """Encoded rows with the library's codes of categories; unseen (-1) and missing ones stay as they are."""
    if not codes:
        return rows
    found = np.array(rows, dtype=np.float64)
    for column, own in codes.items():
        seen = found[:, column] >= 0
        found[seen, column] = np.asarray(own, dtype=np.float64)[found[seen, column].astype(np.intp)]
    return found
