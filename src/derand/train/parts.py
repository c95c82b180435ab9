"""Tables of which a sample is at hand: their rows lie in parts, perhaps on other machines.

Owns what training asks of parts. Must not know what is summed, where parts lie or who computes there: `Shards` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import IntArray, Numbers


class CodedRows(NamedTuple):
    """The rows of one part: codes (n_rows, n_columns) as in BinnedTable, labels, and whole weights, (n_rows,)."""

    codes: Numbers
    target: NDArray[np.uint8]
    weights: IntArray | None = None


class Shards(Protocol):
    """Coded rows in parts, each where it can be worked on."""

    def spread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Results of `work(rows, *arguments)` for every part, which stay where they are; a handle to them."""
        ...

    def add(self, work: Callable[..., tuple[IntArray, ...]], *arguments: Any, beside: Any = None) -> list[IntArray]:
        """Sums over all parts of what `work(rows, own, *arguments)` gives; `own` is what `beside` holds of the part."""
        ...


class PartsInMemory:
    """Shards of this process, one after the other."""

    def __init__(self, parts: list[CodedRows]) -> None:
        self._parts = parts

    def spread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return [work(rows, *arguments) for rows in self._parts]

    def add(self, work: Callable[..., tuple[IntArray, ...]], *arguments: Any, beside: Any = None) -> list[IntArray]:
        found = [work(rows, own, *arguments) for rows, own in zip(self._parts, beside, strict=True)]
        return [np.sum(one, axis=0) for one in zip(*found, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class WholeTable:
    """The table that some rows are a sample of.

    Attributes
    ----------
    class_counts : array of shape (n_classes,)
        Rows of each class, by their weights.
    n_distinct : int
        How many different rows there are.
    share : callable
        Codes all rows by the bins of a BinnedTable: the Shards.
    largest_weight : int
        Of a row.
    """

    class_counts: IntArray
    n_distinct: int
    share: Callable[[Any], Shards]
    largest_weight: int = 1
