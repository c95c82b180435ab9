"""The GPU backend: rows stream through the device in blocks; one file per method.

Contract: README.md, plus `failures_from_edges` and `tails_from_edges`, which compute the probability table on the
device (`cells.py`), and `bound_means`, the mean rule (`means.py`). Tails: `pmfs.py`; the fast path: `tilted.py`, of
models of stumps `settle.py`; whole pmfs are the host's. Two streams take the blocks in turn, so that one copies while
the other computes. A call uses the whole device; calls from several threads wait for each other. Double precision, but
for frequencies that are left out and for blending tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels import TILTED, Edges, Failures
from derand.kernels.cuda.device import OnDevice, Stream, explain_absence, grant_shared
from derand.kernels.tails import numpy_backend
from derand.kernels.tails import pmfs as host_pmfs

_missing = explain_absence()
if _missing is not None:
    raise ValueError(_missing)

from derand.kernels.cuda.blocks import (  # noqa: E402 - numba-cuda is there, now
    FEWEST_BLOCKS,
    MOST_ROWS,
    PickedRows,
    claim_device,
    keep_arrays,
    launch_in_workspaces,
    pick_columns,
    stream_blocks,
)
from derand.kernels.cuda.cells import NOISE_CODES, fill_table  # noqa: E402
from derand.kernels.cuda.means import MOST_TERMS, bound_means, sees_all  # noqa: E402
from derand.kernels.cuda.pmfs import (  # noqa: E402
    MANY_CELLS,
    THREADS,
    tails_in_global,
    tails_in_shared,
)
from derand.kernels.cuda.settle import StumpRows  # noqa: E402
from derand.kernels.cuda.stumps import PROVEN, Stumps, list_stumps  # noqa: E402
from derand.kernels.cuda.tilted import failures_in_global, failures_in_shared  # noqa: E402

__all__ = ["MOST_TERMS", "bound_means", "sees_all"]

HOLDS_ALL_PMFS = False
BLOCK_ROWS = 2**17
"""Rows that a call should get: several blocks for both streams, and no more than the host can hold many times over."""
NOISES = frozenset(NOISE_CODES)
"""The noises whose probability tables the device computes itself."""

_STATES_IN_SHARED = 4096  # states of a pmf, twice over, so that three blocks share a multiprocessor
_BLOCK_NUMBERS = 2**21  # numbers in a block's table: large enough to fill the device, small enough to overlap
_FEW_ROWS = 256  # rows that keep the device busy, however wide the model
_CELLS_IN_SHARED = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A model as the device's kernels see it, still on the host; nobody writes to its arrays."""

    starts: IntArray
    scores: IntArray
    whole: int
    """Largest sum of scores."""
    steepest: int
    """Largest score."""
    jumps: IntArray
    """Second score minus the first for terms of two cells, 0 for one cell, MANY_CELLS for more."""
    both_scores: IntArray
    both_jumps: IntArray
    """(2, ...): of both sides, the scores and each counted from its term's largest."""
    bounds: tuple[IntArray, IntArray]
    """The edges below and above each cell, -1 where there is none."""
    stumps: Stumps | None = None
    """The terms where all have two cells and a block can hold them; else None."""

    @property
    def plain(self) -> numpy_backend.Plan:
        """For the plain backend, which serves models without terms."""
        return numpy_backend.Plan(self.starts, self.scores)


def prepare(starts: IntArray, scores: IntArray, *, invert: bool = True) -> Plan:
    """The plan of a model; nothing is inverted here."""
    if not scores.size:
        nothing = np.empty((2, 0), dtype=np.int64)
        return Plan(starts, scores, 0, 1, nothing[0], nothing, nothing, (nothing[0], nothing[1]))
    most = np.maximum.reduceat(scores, starts[:-1])
    jumps = _jump_per_term(starts, scores)
    return Plan(
        starts,
        scores,
        whole=int(most.sum()),
        steepest=int(scores.max(initial=1)),
        jumps=jumps,
        both_scores=np.stack([scores, np.repeat(most, np.diff(starts)) - scores]),
        both_jumps=np.stack([jumps, np.where(jumps == MANY_CELLS, jumps, -jumps)]),
        bounds=_bound_cells(starts),
        stumps=list_stumps(starts, scores) if 2 * starts.size < _CELLS_IN_SHARED else None,
    )


def failures(plan: Plan, table: FloatArray, thresholds: IntArray) -> Failures:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    if not plan.scores.size:  # no work for a device
        return numpy_backend.failures(plan.plain, table, thresholds)
    return _compute_failures(plan, _SentTables(table), thresholds)


def tails(plan: Plan, table: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    if not plan.scores.size:
        return numpy_backend.tails(plan.plain, table, low, high)
    return _compute_tails(plan, _SentTables(table), low, high)


def looks_at_all(plan: Plan, edges: Edges, n_features: int) -> bool:
    """Whether `failures_from_edges`, asked to look, refuses NaN and infinity in every one of so many columns."""
    stumps = plan.stumps is not None and edges.values.size > 0
    return stumps and pick_columns(edges.features, n_features)[0].size == n_features


def failures_from_edges(
    plan: Plan, rows: FloatArray, edges: Edges, thresholds: IntArray, *, must_look: bool = False
) -> Failures:
    """`failures` with the table computed on the device, for a noise among NOISES."""
    if not edges.values.size:  # every term has one cell
        return failures(plan, np.ones((rows.shape[0], plan.scores.size)), thresholds)
    if plan.stumps is not None:
        return StumpRows(plan.stumps, plan.whole, rows, edges, thresholds, must_look=must_look).settle()
    return _compute_failures(plan, _ComputedTables(plan, rows, edges), thresholds)


def tails_from_edges(
    plan: Plan, rows: FloatArray, edges: Edges, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """`tails` with the table computed on the device."""
    if not edges.values.size:
        return tails(plan, np.ones((rows.shape[0], plan.scores.size)), low, high)
    return _compute_tails(plan, _ComputedTables(plan, rows, edges), low, high)


def pmfs(plan: Plan, table: FloatArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score, by the host: few rows are asked for whole pmfs."""
    if not plan.scores.size:
        return numpy_backend.pmfs(plan.plain, table)
    return host_pmfs.pmfs(np.ascontiguousarray(table), plan.starts, plan.scores)


class _SentTables:
    """Probability tables that the host has computed."""

    def __init__(self, table: FloatArray) -> None:
        self._table = table
        self.n_rows, self.width = table.shape

    def send_model(self) -> None:
        """Nothing but the table is needed."""

    def bring(self, stream: Stream, block: slice) -> object:
        """The table of a block of rows, on the device."""
        return stream.send("table", self._table[block])[0]


class _ComputedTables:
    """Probability tables that the device computes from the rows, of which only the columns in use travel."""

    def __init__(self, plan: Plan, rows: FloatArray, edges: Edges) -> None:
        self._rows = PickedRows(rows, edges.features)
        places = self._rows.places
        self._arrays = (places.astype(np.int64), edges.values, edges.units, *plan.bounds)
        self._numbers = (float(edges.magnitude), NOISE_CODES[edges.noise])
        self._n_cells = int(plan.starts[-1])
        self.n_rows, self.width = rows.shape[0], max(self._n_cells, self._rows.width)
        self._sent: tuple[OnDevice, ...] = ()

    def send_model(self) -> None:
        """Bring the edges to the device, once for all blocks."""
        self._sent = keep_arrays("edges", self._arrays)

    def bring(self, stream: Stream, block: slice) -> object:
        """The table of a block of rows, on the device."""
        n_rows = block.stop - block.start
        (x,) = self._rows.bring(stream, block)
        table = stream.reserve("table", (n_rows, self._n_cells), np.float64)
        grid = max(FEWEST_BLOCKS, -(-n_rows * self._n_cells // THREADS))
        stream.launch(fill_table, grid, THREADS, (x, *self._sent, *self._numbers, n_rows, table))
        return table


_Tables = _SentTables | _ComputedTables


def _compute_failures(plan: Plan, tables: _Tables, thresholds: IntArray) -> Failures:
    state, log_mass = np.zeros(tables.n_rows, dtype=np.int8), np.zeros(tables.n_rows)

    def launch(stream: Stream, block: slice, given: tuple[OnDevice, ...], found: tuple[object, ...]) -> None:
        weights = stream.reserve("weights", given[0].shape, np.float64)
        arguments = (*given, *stream.send("thresholds", thresholds[block]), plan.whole, plan.steepest, weights)
        kernels = failures_in_shared, failures_in_global
        _launch(stream, kernels, arguments, plan.whole + 1, found, marks_rows=True)

    model = plan.starts, plan.both_scores, plan.both_jumps
    _stream_tables(tables, model, tables.width, (state, log_mass), launch)
    return Failures(state == PROVEN, log_mass, np.full(tables.n_rows, TILTED, dtype=np.uint8))


def _compute_tails(plan: Plan, tables: _Tables, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    low_mass, high_mass = np.empty(low.shape), np.empty(high.shape)

    def launch(stream: Stream, block: slice, given: tuple[object, ...], found: tuple[object, ...]) -> None:
        arguments = (*given, *stream.send("thresholds", low[block], high[block]))
        _launch(stream, (tails_in_shared, tails_in_global), arguments, plan.whole + 1, found)

    model, width = (plan.starts, plan.scores, plan.jumps), max(tables.width, low.shape[1])
    _stream_tables(tables, model, width, (low_mass, high_mass), launch)
    return low_mass, high_mass


def _stream_tables(
    tables: _Tables,
    model: tuple[IntArray, ...],
    width: int,
    results: tuple[NDArray[np.generic], ...],
    launch: Callable[[Stream, slice, tuple[object, ...], tuple[object, ...]], None],
) -> None:
    """Fill the results of all rows, whose tables or pmfs have so many numbers each, block by block.

    `launch` queues the kernels of a block: given its table and the model on the device, and what they fill there.
    """
    most = max(_BLOCK_NUMBERS // max(width, 1), min(_FEW_ROWS, 2**26 // max(width, 1)), 1)

    def begin(stream: Stream, block: slice) -> Callable[[], None]:
        n_rows = block.stop - block.start
        found = stream.lay_out("results", tuple(((n_rows, *one.shape[1:]), one.dtype) for one in results))
        launch(stream, block, (tables.bring(stream, block), *sent), found.on_device)
        stream.fetch_laid_out("results")

        def store() -> None:
            for result, one in zip(results, found.on_host, strict=True):
                result[block] = one

        return store

    with claim_device():
        sent = keep_arrays("model", model)
        tables.send_model()
        stream_blocks(tables.n_rows, min(most, MOST_ROWS), begin)


def _launch(
    stream: Stream,
    kernels: tuple[OnDevice, OnDevice],
    arguments: tuple[OnDevice, ...],
    size: int,
    found: tuple[object, ...],
    *,
    marks_rows: bool = False,
) -> None:
    """Launch the first kernel where pmfs fit into shared memory, two buffers of 8 bytes per state; else the second.

    Kernels that mark the rows that did not fit are launched one after the other.
    """
    (in_shared, in_global), n_rows = kernels, arguments[0].shape[0]
    granted = grant_shared(in_shared, (*arguments, size, n_rows, *found), 16 * _STATES_IN_SHARED)
    capacity = min(size, granted // 16)
    if marks_rows or capacity == size:
        grid = max(FEWEST_BLOCKS, n_rows)
        stream.launch(in_shared, grid, THREADS, (*arguments, capacity, n_rows, *found), 16 * capacity)
    if capacity < size:
        launch_in_workspaces(stream, in_global, arguments, size, n_rows, found)


def _bound_cells(starts: IntArray) -> tuple[IntArray, IntArray]:
    """The edges below and above each cell, -1 where there is none: cell c of term i lies above edge c - i - 1."""
    counts = np.diff(starts)
    cells = np.arange(starts[-1])
    terms = np.repeat(np.arange(counts.size), counts)
    lower = np.where(cells > starts[terms], cells - terms - 1, -1)
    upper = np.where(cells + 1 < starts[terms + 1], cells - terms, -1)
    return lower, upper


def _jump_per_term(starts: IntArray, scores: IntArray) -> IntArray:
    """Second score minus the first for terms of two cells, 0 for one cell, MANY_CELLS for more."""
    counts = np.diff(starts)
    second = np.minimum(starts[:-1] + 1, starts[1:] - 1)
    return np.where(counts > 2, MANY_CELLS, scores[second] - scores[starts[:-1]])
