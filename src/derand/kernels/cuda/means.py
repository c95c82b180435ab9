"""The mean rule on the GPU: expected scores and best multipliers of rows, from tables that the host has made.

Contract: `add_curves` and `maximise_powers` of `envelopes.py` for rows of one threshold. Where entries are missing,
nothing is proven or the label is not certain, a row is left to the host. Tables stay on the device from call to call.
One block of threads per row. Cost per row: terms x multipliers tried / threads. Rounding: README.md, step 9.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from weakref import ref

import numpy as np
from numba import cuda, float32, float64, int32
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray, Numbers
from derand.kernels import NotFiniteError
from derand.kernels.cuda.blocks import FEWEST_BLOCKS, PickedRows, claim_device, pick_columns, stream_rows
from derand.kernels.cuda.device import OnDevice, Stream
from derand.kernels.cuda.pmfs import PARTS, THREADS, add_up, compile_kernel, on_device
from derand.kernels.cuda.stumps import are_finite
from derand.kernels.worst_case.curves import Curves, FloatTable, Positions, search
from derand.kernels.worst_case.envelopes import COARSE, FINE, AskedMeans, LabelTables, select_best

MOST_TERMS = 4096
"""Of which a block can note the positions."""
LEFT = -1
"""In place of a label: the host must see to this row."""

_NOT_FINITE = -2
_FEATURE, _ANCHOR, _FACTOR, _BEGIN, _RATE, _BASE, _COUNT, _FIRST, _LAST, _RANGE = range(10)
_KEPT = 6  # sets of tables on the device
_ONE = np.float32(1.0)
_search, _select_best = on_device(search), on_device(select_best)
_kept: OrderedDict[tuple[int, ...], tuple[list[ref[OnDevice]], tuple[OnDevice, ...]]] = OrderedDict()


def sees_all(positions: Positions, n_features: int) -> bool:
    """Whether all columns travel."""
    return pick_columns(positions.features, n_features)[0].size == n_features


def bound_means(
    rows: FloatArray,
    curve: tuple[Positions, Curves],
    sides: tuple[LabelTables, LabelTables],
    asked: AskedMeans,
    *,
    must_look: bool,
) -> tuple[NDArray[np.int8], FloatArray]:
    """The label of each row, or LEFT, and the best margin per multiplier of its side, rounded downward."""
    n_rows, n_terms = rows.shape[0], curve[0].features.size
    label, powers = np.empty(n_rows, dtype=np.int8), np.empty(n_rows)
    picked = PickedRows(rows, curve[0].features)
    levels = np.stack([*asked.levels, asked.thresholds])

    def begin(stream: Stream, block: slice) -> Callable[[], None]:
        size = block.stop - block.start
        grid = max(FEWEST_BLOCKS, size)
        x, targets = picked.bring(stream, block, levels[:, block])
        results = stream.lay_out("results", (((size,), np.int8), ((size,), np.float64)))
        found = results.on_device
        stream.launch(label_rows, grid, THREADS, (x, *means, targets, asked.slack, int(must_look), size, found[0]))
        for side, (given, one) in enumerate(zip(tables, sides, strict=True)):
            stream.launch(bound_rows, grid, THREADS, (x, *given, targets, one.error, side, size, *found), 8 * n_terms)
        stream.fetch_laid_out("results")

        def store() -> None:
            label[block], powers[block] = results.on_host

        return store

    with claim_device():
        means = _keep([_pack_terms(*curve, picked), curve[1].knots, curve[1].low, curve[1].sag], curve[1])
        tables = [_send_side(one, picked) for one in sides]
        stream_rows(n_rows, max(picked.width, n_terms), begin)
    if (label == _NOT_FINITE).any():
        raise NotFiniteError("Rows hold NaN or infinity.")
    return label, powers


def _send_side(side: LabelTables, picked: PickedRows) -> tuple[OnDevice, ...]:
    tables = side.tables
    fine, multipliers = tables.fine, tables.fine_multipliers
    if not len(fine):  # a device has no empty arrays
        fine, multipliers = np.zeros((1, 1, FINE), dtype=np.float32), np.ones((1, FINE))
    packed = _pack_terms(side.positions, side.curves, picked)
    return _keep(
        [packed, side.curves.knots, tables.coarse_multipliers, tables.coarse, tables.slots, multipliers, fine], tables
    )


def _pack_terms(positions: Positions, curves: Curves, picked: PickedRows) -> FloatArray:
    """What a row needs to know of each term, (10, n_terms), features as they travel."""
    known = curves.even[positions.curves], curves.even_knots[positions.curves]
    ends = curves.starts[positions.curves], curves.starts[positions.curves + 1] - 1
    where = positions.anchors, positions.factors, *known[0].T, *known[1].T, *ends, curves.ranges[positions.curves]
    return np.stack([picked.find(positions.features), *where]).astype(np.float64)


def _keep(arrays: Sequence[Numbers], owner: Sequence[Numbers]) -> tuple[OnDevice, ...]:
    """The arrays on the device; copied only where the owner, whose arrays nobody changes, is not there already."""
    key = (*(id(array) for array in owner), hash(arrays[0].tobytes()))
    if key not in _kept or not all(known() is array for known, array in zip(_kept[key][0], owner, strict=True)):
        sent = tuple(cuda.to_device(np.ascontiguousarray(array)) for array in arrays)
        _kept[key] = [ref(array) for array in owner], sent
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key][1]


@compile_kernel
def label_rows(
    x: FloatArray,
    terms: FloatArray,
    knots: FloatArray,
    low: FloatArray,
    sag: FloatArray,
    levels: FloatArray,
    slack: float,
    must_look: int,
    n_rows: int,
    label: NDArray[np.int8],
) -> None:
    """Whether the expected score of each row is above its threshold; LEFT where the curves do not tell."""
    parts = cuda.shared.array(PARTS, float64)
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        if must_look and not are_finite(x[row], parts):
            if cuda.threadIdx.x == 0:
                label[row] = _NOT_FINITE
            continue
        total = error = 0.0
        for term in range(cuda.threadIdx.x, terms.shape[1], THREADS):
            knot, share = _locate(x[row, int(terms[_FEATURE, term])], terms, term, knots)
            total += (1.0 - share) * low[knot] + share * low[knot + 1]
            error += sag[knot]
            if share == 1.0 or (share == 0.0 and knot == terms[_FIRST, term]):
                error += terms[_RANGE, term]  # beyond the knots: somewhere within its range
        total, error = add_up(parts, total, error)
        if cuda.threadIdx.x == 0:
            distance = total - levels[2, row]
            is_near = not abs(distance) > error + slack + 8.0 * EPSILON * abs(levels[2, row])
            label[row] = LEFT if is_near else 1 if distance > 0.0 else 0


@compile_kernel
def bound_rows(
    x: FloatArray,
    terms: FloatArray,
    knots: FloatArray,
    coarse_multipliers: FloatArray,
    coarse: FloatTable,
    slots: IntArray,
    fine_multipliers: FloatArray,
    fine: FloatTable,
    levels: FloatArray,
    error: float,
    side: int,
    n_rows: int,
    label: NDArray[np.int8],
    powers: FloatArray,
) -> None:
    """`maximise_powers` for the rows of a label."""
    at, shares = cuda.shared.array(0, int32), cuda.shared.array(0, float32)
    parts = cuda.shared.array(PARTS, float64)
    sums = cuda.shared.array(FINE, float64)  # the simulator takes two of one line for the same
    n_terms = terms.shape[1]
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        if label[row] != side:
            continue
        for term in range(cuda.threadIdx.x, n_terms, THREADS):
            knot, share = _locate(x[row, int(terms[_FEATURE, term])], terms, term, knots)
            at[term], shares[n_terms + term] = knot, share
        cuda.syncthreads()
        target = levels[side, row] + error
        _add_columns(coarse, at, shares, n_terms, COARSE, parts, sums)
        best, middle, rises = _select_best(sums[:COARSE], coarse_multipliers, target)
        power, is_missing = best, not best > 0.0
        for attempt in range(2):
            block = middle if rises == (attempt == 0) else middle - 1
            if not is_missing and power == best:  # else it was the right side
                slot = slots[block]
                if slot < 0:
                    is_missing = True
                else:
                    _add_columns(fine[slot], at, shares, n_terms, FINE, parts, sums)
                    power = max(best, _select_best(sums, fine_multipliers[slot], target)[0])
        if cuda.threadIdx.x == 0:
            powers[row] = power
            if is_missing:
                label[row] = LEFT
        cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def _locate(value: float, terms: FloatArray, term: int, knots: FloatArray) -> tuple[int, float]:
    """The knot left of a number on a term's curve, and the share of the way to the next one."""
    x = (value - terms[_ANCHOR, term]) * terms[_FACTOR, term]
    position = (x - terms[_BEGIN, term]) * terms[_RATE, term]
    if 0.0 <= position < terms[_COUNT, term]:
        whole = int(position)
        return int(terms[_BASE, term]) + whole, position - whole
    return _search(x, int(terms[_FIRST, term]), int(terms[_LAST, term]), knots)


@cuda.jit(device=True, fastmath=False)
def _add_columns(
    table: FloatTable,
    at: NDArray[np.int32],
    shares: FloatTable,
    n_terms: int,
    width: int,
    parts: FloatArray,
    sums: FloatArray,
) -> None:
    """Sums over all terms of the entries of a row, for each multiplier; neighbouring threads take neighbouring ones."""
    thread = cuda.threadIdx.x
    lanes = min(width, THREADS)
    for first in range(0, width, lanes):
        column, total = first + thread % lanes, 0.0
        for term in range(thread // lanes, n_terms, THREADS // lanes):
            right, knot = shares[n_terms + term], at[term]
            total += (_ONE - right) * table[knot, column] + right * table[knot + 1, column]
        parts[thread] = total
        cuda.syncthreads()
        if thread < lanes:
            for other in range(thread + lanes, THREADS, lanes):
                total += parts[other]
            sums[column] = total
        cuda.syncthreads()
