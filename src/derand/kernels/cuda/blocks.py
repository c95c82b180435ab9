"""Rows in blocks on their way through the GPU: which columns travel, two streams that take turns, one call at a time.

Must not know what is computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numba import config
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import count_threads, share_out
from derand.kernels.cuda.device import Stream, explain_fork, open_streams
from derand.kernels.cuda.pmfs import THREADS

MOST_ROWS = 2**16
"""In a block."""
FEWEST_BLOCKS = 1 if config.ENABLE_CUDASIM else 128
"""Of threads: numba warns of smaller grids, and a block without a row ends at once."""

_BLOCK_NUMBERS = 2**24  # numbers in a block of rows
_FEW_ROWS = 2**10  # that are worth a block of their own
_WORKSPACE_NUMBERS = 2**27  # numbers in the pmfs that are held in device memory
_MOST_WORKSPACES = 264
_lock = threading.Lock()


def pick_columns(features: IntArray, n_features: int) -> tuple[IntArray, IntArray]:
    """The columns that travel, and where among them these features stand."""
    columns, places = np.unique(features, return_inverse=True)
    if 2 * columns.size > n_features:  # copying all is faster than picking
        return np.arange(n_features), features
    return columns, places


class PickedRows:
    """Rows of the host, of which only the columns in use travel."""

    def __init__(self, rows: FloatArray, features: IntArray) -> None:
        self._rows = rows
        self._columns, self.places = pick_columns(features, rows.shape[1])
        self.width = self._columns.size

    def find(self, features: IntArray) -> IntArray:
        """Where some of these features stand among those that travel."""
        return np.searchsorted(self._columns, features)

    def bring(self, stream: Stream, block: slice, *others: NDArray[np.generic]) -> tuple[object, ...]:
        """A block of rows, and other arrays that travel with it, on the device."""
        shape = block.stop - block.start, self.width
        layout = ((shape, np.float64), *((other.shape, other.dtype) for other in others))
        laid_out = stream.lay_out("rows", layout)
        staged, rows = laid_out.on_host[0], self._rows[block]
        for place, other in zip(laid_out.on_host[1:], others, strict=True):
            np.copyto(place, other)

        def fill(part: slice) -> None:
            if self.width == rows.shape[1]:
                np.copyto(staged[part], rows[part])
            else:
                np.take(rows[part], self._columns, axis=1, out=staged[part], mode="clip")

        share_out(fill, rows.shape[0], staged.nbytes, count_threads())
        stream.send_laid_out("rows")
        return laid_out.on_device


@contextmanager
def claim_device() -> Iterator[None]:
    """One call at a time; a process forked from one that uses the GPU is refused before it can hang on a lock."""
    if (forked := explain_fork()) is not None:
        raise ValueError(forked)
    with _lock:
        yield


def stream_blocks(
    n_rows: int, most: int, begin: Callable[[Stream, slice], Callable[[], None]], fewest: int = 1
) -> None:
    """Send blocks of rows through the streams in turn: `begin` queues a block, what it returns stores the results."""
    n_blocks = max(-(-n_rows // most), fewest)
    n_block = max(-(-n_rows // n_blocks), 1)  # all alike, so that streams need not cut their memory anew
    waiting: list[tuple[Stream, Callable[[], None]]] = []
    for number, start in enumerate(range(0, n_rows, n_block)):
        if len(waiting) == len(open_streams()):
            _store_first(waiting)
        stream = open_streams()[number % len(open_streams())]
        waiting.append((stream, begin(stream, slice(start, min(start + n_block, n_rows)))))
    while waiting:
        _store_first(waiting)


def stream_rows(n_rows: int, width: int, begin: Callable[[Stream, slice], Callable[[], None]]) -> None:
    """`stream_blocks` for rows of so many numbers each; blocks for both streams where rows are many."""
    most = min(max(_BLOCK_NUMBERS // width, _FEW_ROWS), MOST_ROWS)
    stream_blocks(n_rows, most, begin, fewest=2 if n_rows >= 2 * _FEW_ROWS else 1)


def _store_first(waiting: list[tuple[Stream, Callable[[], None]]]) -> None:
    stream, store = waiting.pop(0)
    stream.finish()
    store()


def launch_in_workspaces(
    stream: Stream,
    kernel: object,
    arguments: tuple[object, ...],
    size: int,
    n_rows: int,
    found: tuple[object, ...],
    shared_bytes: int = 0,
) -> None:
    """Launch with the pmfs in device memory: space for as many at a time as fit."""
    count = max(1, min(_MOST_WORKSPACES, _WORKSPACE_NUMBERS // (2 * size)))
    workspaces = stream.reserve("workspaces", (count, 2 * size), np.float64)
    grid = max(FEWEST_BLOCKS, count)
    stream.launch(kernel, grid, THREADS, (*arguments, workspaces, size, n_rows, *found), shared_bytes)


def keep_arrays(name: str, arrays: tuple[NDArray[np.generic], ...]) -> tuple[object, ...]:
    """Arrays that all blocks share, on the device."""
    return open_streams()[0].keep(name, *arrays)
