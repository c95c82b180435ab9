"""Failures of models of stumps on the GPU: which kernels a block of rows goes through, and in which order.

Few terms: all outcomes are listed. Many: cells, tilt and Fourier inversion in one launch. Pmfs are built for the rows
that are left; those whose pmfs do not fit into the memory of the first launch are known when results come back, and
only then the next one is queued.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels import INVERTED, LAW, TILTED, Edges, Failures, NotFiniteError
from derand.kernels.cuda.blocks import (
    FEWEST_BLOCKS,
    PickedRows,
    claim_device,
    keep_arrays,
    launch_in_workspaces,
    stream_rows,
)
from derand.kernels.cuda.cells import NOISE_CODES
from derand.kernels.cuda.device import OnDevice, Stream, grant_shared
from derand.kernels.cuda.fourier import count_shared_bytes, invert_rows
from derand.kernels.cuda.groups import count_shared_numbers, sum_in_global, sum_in_shared
from derand.kernels.cuda.outcomes import sum_outcomes
from derand.kernels.cuda.pmfs import THREADS
from derand.kernels.cuda.stumps import BY_INVERSION, BY_LISTING, DID_NOT_FIT, NOT_FINITE, PROVEN, TO_DO, Stumps

_FIRST_STATES, _MORE_STATES = 3072, 6144  # of pmfs, by which rows that do not fit are tried again


class StumpRows:
    """Rows and thresholds of a model of stumps, whose largest sum is `whole`."""

    def __init__(
        self, stumps: Stumps, whole: int, rows: FloatArray, edges: Edges, thresholds: IntArray, *, must_look: bool
    ) -> None:
        self._stumps, self._whole, self._thresholds = stumps, whole, thresholds
        self._picked = PickedRows(rows, edges.features)
        order = stumps.order
        columns = self._picked.places[order], edges.values[order], edges.units[order]
        self._packed = np.stack([*columns, stumps.rises, stumps.shifts])
        self._numbers = NOISE_CODES[edges.noise], float(edges.magnitude), whole, int(must_look)
        self._pmf_bytes = 8 * count_shared_numbers(order.size, stumps.groups.size - 1)
        self._states, self._log_failure = np.empty(rows.shape[0], dtype=np.int8), np.empty(rows.shape[0])
        self._model: tuple[OnDevice, ...] = ()

    def settle(self) -> Failures:
        """Label and failing mass of each row."""
        stumps = self._stumps
        with claim_device():
            self._model = keep_arrays("stumps", (self._packed, self._packed[4], stumps.groups, *(stumps.halves or ())))
            stream_rows(self._states.size, max(2 * stumps.order.size, self._picked.width), self._begin)
        states = self._states
        if (states == NOT_FINITE).any():
            raise NotFiniteError("Rows hold NaN or infinity.")
        listed = np.where(states & BY_LISTING, LAW, TILTED)
        path = np.where(states & BY_INVERSION, INVERTED, listed).astype(np.uint8)
        return Failures(states & ~np.int8(BY_INVERSION + BY_LISTING) == PROVEN, self._log_failure, path)

    def _begin(self, stream: Stream, block: slice) -> Callable[[], None]:
        """Queue a block; what is returned stores its results."""
        n_rows, n_terms = block.stop - block.start, self._stumps.order.size
        x, limits = self._picked.bring(stream, block, self._thresholds[block])
        table = stream.reserve("table", (n_rows, 2 * n_terms), np.float64)
        results = stream.lay_out("results", (((n_rows,), np.int8), ((n_rows,), np.float64)))
        found, (states, masses) = results.on_device, results.on_host
        model, shifts, groups, *halves = self._model
        given = table, shifts, groups, limits, self._whole
        if halves:
            arguments = (x, model, *halves, limits, *self._numbers, n_rows, table, *found)
            stream.launch(sum_outcomes, max(FEWEST_BLOCKS, -(-n_rows // THREADS)), THREADS, arguments)
            launches = self._list_launches(stream, given, found)
        else:
            arguments = (x, model, groups, limits, *self._numbers, n_rows, table, *found)
            n_bytes = grant_shared(invert_rows, arguments, count_shared_bytes(n_terms, groups.size - 1))
            stream.launch(invert_rows, max(FEWEST_BLOCKS, n_rows), THREADS, arguments, n_bytes)
            first, *launches = self._list_launches(stream, given, found)
            first()
        stream.fetch_laid_out("results")

        def store() -> None:
            for launch in launches:
                if not _are_left(states):
                    break
                launch()
                stream.fetch_laid_out("results")
                stream.finish()
            self._states[block], self._log_failure[block] = states, masses

        return store

    def _list_launches(
        self, stream: Stream, given: tuple[object, ...], found: tuple[OnDevice, ...]
    ) -> list[Callable[[], None]]:
        """Launches that build pmfs of the rows that are left, each with more memory than the one before."""
        size, n_rows, pmf_bytes = self._whole + 1, found[0].size, self._pmf_bytes
        asked = pmf_bytes + 16 * _MORE_STATES
        granted = grant_shared(sum_in_shared, (*given, size, n_rows, *found), asked) - pmf_bytes
        most = min(size, granted // 16)

        def in_shared(capacity: int) -> Callable[[], None]:
            arguments, n_bytes = (*given, capacity, n_rows, *found), pmf_bytes + 16 * capacity
            return lambda: stream.launch(sum_in_shared, max(FEWEST_BLOCKS, n_rows), THREADS, arguments, n_bytes)

        launches = [in_shared(capacity) for capacity in sorted({min(most, _FIRST_STATES), most})]
        if size > most:
            launches.append(lambda: launch_in_workspaces(stream, sum_in_global, given, size, n_rows, found, pmf_bytes))
        return launches


def _are_left(states: NDArray[np.int8]) -> bool:
    return bool(((states == TO_DO) | (states == DID_NOT_FIT)).any())
