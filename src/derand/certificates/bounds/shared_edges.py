"""What the comparisons of a model of several classes have in common: the edges of all classes in each column.

The difference of two classes steps at some of the edges of its column. With all of them in place, whether it steps
there or not, the curves of all comparisons stand on the same knots, and what the noise puts into the cells around these
is found once per column instead of once per pair of classes. Owns these edges and what is kept of them, within a budget
of memory. Must not know comparisons, curves or what exactly is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from threading import Lock
from typing import TypeVar

import numpy as np

from derand._core.arrays import FloatArray
from derand.model import Term

Kept = TypeVar("Kept", bound=tuple[object, ...])

MOST_BYTES = 2**28
"""Of what is kept for the columns of one model."""
_PER_OCTAVE = 8


class SharedEdges:
    """The edges of each column of a model of several classes, and what was found for them."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._edges = {term.axes[0].feature: term.axes[0].edges for term in terms if len(term.axes) == 1}
        self._kept: dict[Hashable, object] = {}
        self._bytes = 0
        self._lock = Lock()

    def spread(self, feature: int, edges: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step function that steps at some of its column's edges, written with all of them."""
        every = self._edges[feature]
        cells = np.searchsorted(edges, every, side="right")
        return every, np.concatenate([scores[:1], scores[cells]])

    def find(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under a key, or made; kept, too, where there is room."""
        with self._lock:
            known = self._kept.get(key)
        if known is not None:
            return known  # type: ignore[return-value]
        made = make()
        size = sum(part.nbytes for part in made if isinstance(part, np.ndarray))
        with self._lock:
            if key not in self._kept and self._bytes + size <= MOST_BYTES:
                self._kept[key] = made
                self._bytes += size
        return made


def round_up(count: int) -> int:
    """A count that stays the same for comparisons of which one has a few terms more than another."""
    return math.ceil(2 ** (math.ceil(_PER_OCTAVE * math.log2(count)) / _PER_OCTAVE))
