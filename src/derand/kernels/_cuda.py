"""The GPU backend: rows stream through the device in blocks; one file per method.

Contract: README.md, plus `failures_from_edges` and `tails_from_edges`, which compute the probability table on the
device (`_cuda_cells.py`). Laws and tails: `_cuda_laws.py`; the fast path: `_cuda_tilted.py`. Two lanes take the blocks
in turn, so that one copies while the other computes. A call uses the whole device; calls from several threads wait for
each other. Double precision throughout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import config
from numpy.typing import NDArray

from derand.kernels import _numpy
from derand.kernels._cuda_device import Lane, explain_absence, explain_fork, grant_shared, open_lanes

_missing = explain_absence()
if _missing is not None:
    raise ValueError(_missing)

from derand.kernels._cuda_cells import NOISE_CODES, fill_table  # noqa: E402 - numba-cuda is there, now
from derand.kernels._cuda_laws import (  # noqa: E402
    MANY_CELLS,
    THREADS,
    laws_in_global,
    laws_in_shared,
    tails_in_global,
    tails_in_shared,
)
from derand.kernels._cuda_tilted import PROVEN, failures_in_global, failures_in_shared  # noqa: E402

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

HOLDS_ALL_LAWS = False
BLOCK_ROWS = 2**17
"""Rows that a call should get: several blocks for both lanes, and no more than the host can hold many times over."""
NOISES = frozenset(NOISE_CODES)
"""The noises whose probability tables the device computes itself."""

_STATES_IN_SHARED = 4096  # states of a law, twice over, so that three blocks share a multiprocessor
_BLOCK_NUMBERS = 2**21  # numbers in a block's table: large enough to fill the device, small enough to overlap
_BLOCK_ROWS = 2**16
_FEW_ROWS = 256  # rows that keep the device busy, however wide the model
_ROOM_NUMBERS = 2**27  # numbers in the laws that are held in device memory
_MOST_ROOMS = 264
_FEWEST_BLOCKS = 1 if config.ENABLE_CUDASIM else 128  # numba warns of smaller grids; a block without a row ends at once
_lock = threading.Lock()


def failures(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    if not scores.size:  # no work for a device
        return _numpy.failures(table, starts, scores, thresholds)
    return _find_failures(_SentTables(table), starts, scores, thresholds)


def tails(
    table: FloatArray, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    if not scores.size:
        return _numpy.tails(table, starts, scores, low, high)
    return _find_tails(_SentTables(table), starts, scores, low, high)


def failures_from_edges(
    rows: FloatArray,
    edges: FloatArray,
    edge_features: IntArray,
    units: FloatArray,
    magnitude: float,
    noise: str,
    starts: IntArray,
    scores: IntArray,
    thresholds: IntArray,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """`failures` with the table computed on the device; `units` holds one number per edge, `noise` is one of NOISES."""
    if not edges.size:  # every term has one cell
        return failures(np.ones((rows.shape[0], scores.size)), starts, scores, thresholds)
    tables = _ComputedTables(rows, edges, edge_features, units, magnitude, noise, starts)
    return _find_failures(tables, starts, scores, thresholds)


def tails_from_edges(
    rows: FloatArray,
    edges: FloatArray,
    edge_features: IntArray,
    units: FloatArray,
    magnitude: float,
    noise: str,
    starts: IntArray,
    scores: IntArray,
    low: IntArray,
    high: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """`tails` with the table computed on the device."""
    if not edges.size:
        return tails(np.ones((rows.shape[0], scores.size)), starts, scores, low, high)
    tables = _ComputedTables(rows, edges, edge_features, units, magnitude, noise, starts)
    return _find_tails(tables, starts, scores, low, high)


def laws(table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    if not scores.size:
        return _numpy.laws(table, starts, scores)
    size = int(_most_per_term(starts, scores).sum()) + 1
    result = np.empty((table.shape[0], size))
    tables = _SentTables(table)

    def begin(lane: Lane, block: slice) -> Callable[[], None]:
        found = lane.reserve("laws", (block.stop - block.start, size), np.float64)
        arguments = (tables.bring(lane, block), *model)
        _launch_laws(lane, laws_in_shared, laws_in_global, arguments, size, (found,))
        fetched = lane.fetch("laws", found)
        return lambda: np.copyto(result[block], fetched)

    with _claim_device():
        model = _send_arrays("model", (starts, scores, _jump_per_term(starts, scores)))
        _stream(table.shape[0], max(scores.size, size), begin)
    return result


class _SentTables:
    """Probability tables that the host has computed."""

    def __init__(self, table: FloatArray) -> None:
        self._table = table
        self.n_rows, self.width = table.shape

    def send_model(self) -> None:
        """Nothing but the table is needed."""

    def bring(self, lane: Lane, block: slice) -> Any:
        """The table of a block of rows, on the device."""
        return lane.send("table", self._table[block])


class _ComputedTables:
    """Probability tables that the device computes from the rows, of which only the columns in use travel."""

    def __init__(
        self,
        rows: FloatArray,
        edges: FloatArray,
        edge_features: IntArray,
        units: FloatArray,
        magnitude: float,
        noise: str,
        starts: IntArray,
    ) -> None:
        self._rows = rows
        self._columns, places = np.unique(edge_features, return_inverse=True)
        if 2 * self._columns.size > rows.shape[1]:  # copying all is faster than picking
            self._columns, places = np.arange(rows.shape[1]), edge_features
        self._arrays = (places.astype(np.int64), edges, units, *_bound_cells(starts))
        self._numbers = (float(magnitude), NOISE_CODES[noise])
        self._n_cells = int(starts[-1])
        self.n_rows, self.width = rows.shape[0], max(self._n_cells, self._columns.size)
        self._sent: tuple[Any, ...] = ()

    def send_model(self) -> None:
        """Bring the edges to the device, once for all blocks."""
        self._sent = _send_arrays("edges", self._arrays)

    def bring(self, lane: Lane, block: slice) -> Any:
        """The table of a block of rows, on the device."""
        n_rows = block.stop - block.start
        staged = lane.stage("rows", (n_rows, self._columns.size), np.float64)
        if self._columns.size == self._rows.shape[1]:
            np.copyto(staged, self._rows[block])
        else:
            np.take(self._rows[block], self._columns, axis=1, out=staged, mode="clip")
        x = lane.send_staged("rows", staged)
        table = lane.reserve("table", (n_rows, self._n_cells), np.float64)
        grid = max(_FEWEST_BLOCKS, -(-n_rows * self._n_cells // THREADS))
        lane.launch(fill_table, grid, THREADS, (x, *self._sent, *self._numbers, n_rows, table))
        return table


_Tables = _SentTables | _ComputedTables


def _find_failures(
    tables: _Tables, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    most = _most_per_term(starts, scores)
    both_scores = np.stack([scores, np.repeat(most, np.diff(starts)) - scores])
    jumps = _jump_per_term(starts, scores)
    both_jumps = np.stack([jumps, np.where(jumps == MANY_CELLS, jumps, -jumps)])
    whole, steepest = int(most.sum()), int(scores.max(initial=1))
    proven = np.zeros(tables.n_rows, dtype=np.bool_)
    log_failure = np.zeros(tables.n_rows)

    def begin(lane: Lane, block: slice) -> Callable[[], None]:
        table = tables.bring(lane, block)
        cuts = lane.send("thresholds", thresholds[block])
        weights = lane.reserve("weights", table.shape, np.float64)
        state = lane.reserve("state", cuts.shape, np.int8)
        log_mass = lane.reserve("log_mass", cuts.shape, np.float64)
        arguments = (table, *model, cuts, whole, steepest, weights)
        _launch_failures(lane, arguments, whole + 1, (state, log_mass))
        states, masses = lane.fetch("state", state), lane.fetch("log_mass", log_mass)

        def store() -> None:
            proven[block], log_failure[block] = states == PROVEN, masses

        return store

    with _claim_device():
        model = _send_arrays("model", (starts, both_scores, both_jumps))
        tables.send_model()
        _stream(tables.n_rows, tables.width, begin)
    return proven, log_failure


def _find_tails(
    tables: _Tables, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    size = int(_most_per_term(starts, scores).sum()) + 1
    low_mass, high_mass = np.empty(low.shape), np.empty(high.shape)

    def begin(lane: Lane, block: slice) -> Callable[[], None]:
        table = tables.bring(lane, block)
        cuts = lane.send("low", low[block]), lane.send("high", high[block])
        found = tuple(lane.reserve(f"{side}_mass", cuts[0].shape, np.float64) for side in ("low", "high"))
        _launch_laws(lane, tails_in_shared, tails_in_global, (table, *model, *cuts), size, found)
        below, above = (lane.fetch(f"{side}_mass", mass) for side, mass in zip(("low", "high"), found, strict=True))

        def store() -> None:
            low_mass[block], high_mass[block] = below, above

        return store

    with _claim_device():
        model = _send_arrays("model", (starts, scores, _jump_per_term(starts, scores)))
        tables.send_model()
        _stream(tables.n_rows, max(tables.width, low.shape[1]), begin)
    return low_mass, high_mass


@contextmanager
def _claim_device() -> Iterator[None]:
    """One call at a time; a process forked from one that uses the GPU is refused before it can hang on a lock."""
    if (forked := explain_fork()) is not None:
        raise ValueError(forked)
    with _lock:
        yield


def _stream(n_rows: int, width: int, begin: Callable[[Lane, slice], Callable[[], None]]) -> None:
    """Send blocks of rows through the lanes in turn: `begin` queues a block, what it returns stores the results."""
    most = max(_BLOCK_NUMBERS // max(width, 1), min(_FEW_ROWS, 2**26 // max(width, 1)), 1)
    n_blocks = max(-(-n_rows // min(most, _BLOCK_ROWS)), 1)
    n_block = max(-(-n_rows // n_blocks), 1)  # all alike, so that lanes need not cut their memory anew
    waiting: list[tuple[Lane, Callable[[], None]]] = []
    for number, start in enumerate(range(0, n_rows, n_block)):
        if len(waiting) == len(open_lanes()):
            _store_first(waiting)
        lane = open_lanes()[number % len(open_lanes())]
        waiting.append((lane, begin(lane, slice(start, min(start + n_block, n_rows)))))
    while waiting:
        _store_first(waiting)


def _store_first(waiting: list[tuple[Lane, Callable[[], None]]]) -> None:
    lane, store = waiting.pop(0)
    lane.finish()
    store()


def _launch_failures(lane: Lane, arguments: tuple[Any, ...], size: int, found: tuple[Any, Any]) -> None:
    """The failing masses of a block: in shared memory, then in device memory for the rows that did not fit."""
    n_rows = arguments[0].shape[0]
    capacity = min(size, _states_in_shared(failures_in_shared, (*arguments, size, n_rows, *found)))
    grid = max(_FEWEST_BLOCKS, n_rows)
    lane.launch(failures_in_shared, grid, THREADS, (*arguments, capacity, n_rows, *found), 16 * capacity)
    if size > capacity:
        _launch_in_rooms(lane, failures_in_global, arguments, size, n_rows, found)


def _launch_laws(
    lane: Lane, in_shared: Any, in_global: Any, arguments: tuple[Any, ...], size: int, found: tuple[Any, ...]
) -> None:
    """Whole laws of a block: in shared memory where they fit, else in device memory."""
    n_rows = arguments[0].shape[0]
    if size <= _states_in_shared(in_shared, (*arguments, size, n_rows, *found)):
        grid = max(_FEWEST_BLOCKS, n_rows)
        lane.launch(in_shared, grid, THREADS, (*arguments, size, n_rows, *found), 16 * size)
    else:
        _launch_in_rooms(lane, in_global, arguments, size, n_rows, found)


def _states_in_shared(kernel: Any, arguments: tuple[Any, ...]) -> int:
    """States of a law that a block may keep in shared memory, two buffers of 8 bytes each."""
    return grant_shared(kernel, arguments, 16 * _STATES_IN_SHARED) // 16


def _launch_in_rooms(
    lane: Lane, kernel: Any, arguments: tuple[Any, ...], size: int, n_rows: int, found: tuple[Any, ...]
) -> None:
    """Launch with the laws in device memory: room for as many at a time as fit."""
    count = max(1, min(_MOST_ROOMS, _ROOM_NUMBERS // (2 * size)))
    rooms = lane.reserve("rooms", (count, 2 * size), np.float64)
    lane.launch(kernel, max(_FEWEST_BLOCKS, count), THREADS, (*arguments, rooms, size, n_rows, *found))


def _send_arrays(name: str, arrays: tuple[NDArray[Any], ...]) -> tuple[Any, ...]:
    """Bring arrays that all blocks share to the device."""
    lane = open_lanes()[0]
    sent = lane.send_together(name, arrays)
    lane.finish()
    return sent


def _bound_cells(starts: IntArray) -> tuple[IntArray, IntArray]:
    """The edges below and above each cell, -1 where there is none: cell c of term i lies above edge c - i - 1."""
    counts = np.diff(starts)
    cells = np.arange(starts[-1])
    terms = np.repeat(np.arange(counts.size), counts)
    lower = np.where(cells > starts[terms], cells - terms - 1, -1)
    upper = np.where(cells + 1 < starts[terms + 1], cells - terms, -1)
    return lower, upper


def _most_per_term(starts: IntArray, scores: IntArray) -> IntArray:
    return np.asarray(np.maximum.reduceat(scores, starts[:-1]))


def _jump_per_term(starts: IntArray, scores: IntArray) -> IntArray:
    """Second score minus the first for terms of two cells, 0 for one cell, MANY_CELLS for more."""
    counts = np.diff(starts)
    second = np.minimum(starts[:-1] + 1, starts[1:] - 1)
    return np.where(counts > 2, MANY_CELLS, scores[second] - scores[starts[:-1]])
