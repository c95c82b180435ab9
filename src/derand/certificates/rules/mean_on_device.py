"""The mean rule on a device: rows go there first, and those that it leaves come back to the host.

Owns who does what. A device has the tables that the host has made so far; rows that need more of them, that lie near
their threshold or of which no multiplier proves anything are the host's, which makes tables for them. Must not know how
levels are found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand._core.threads import run_blocks
from derand.certificates.bounds.worst_case import SmoothedCase
from derand.certificates.rules.base import DUAL, NO_PROOF, Bounds
from derand.kernels import DeviceBackend
from derand.kernels.worst_case.envelopes import AskedMeans

_HOST_ROWS = 2**11
"""That the host takes before the device, with the tables made for them, tries the others again."""


class DeviceMeans:
    """A device that bounds rows by the mean rule, and what it is asked about them."""

    def __init__(
        self,
        device: DeviceBackend,
        curve: SmoothedCase,
        cases: tuple[Any, ...],
        ask: Callable[[FloatArray], AskedMeans],
        *,
        must_look: bool,
    ) -> None:
        self._device, self._curve, self._cases, self._ask, self._must_look = device, curve, cases, ask, must_look

    def sees_all(self, n_features: int) -> bool:
        """Whether all columns travel to the device."""
        return self._device.sees_all(self._curve.curves[0], n_features)

    def bound(self, rows: Numbers, bound_on_host: Callable[[Numbers], Bounds]) -> Bounds:
        """Label and radius of each row."""
        n_rows = rows.shape[0]
        label, radius = np.empty(n_rows, dtype=np.int64), np.empty(n_rows)
        proof = np.empty(n_rows, dtype=np.uint8)
        nothing, is_preliminary = np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool)

        def bound_block(block: slice) -> None:
            label[block], radius[block] = self._maximise_dual(
                np.asarray(rows[block], dtype=np.float64), self._must_look
            )

        run_blocks(bound_block, n_rows, self._device.BLOCK_ROWS, 1)
        proof[:] = np.where(radius > 0, DUAL, NO_PROOF)
        whole = Bounds(label, nothing, radius, proof, is_preliminary=is_preliminary)
        left = np.flatnonzero(label < 0)
        return whole if not left.size else self._merge(whole, rows, left, bound_on_host)

    def _merge(
        self,
        whole: Bounds,
        rows: NDArray[np.generic],
        left: IntArray,
        bound_on_host: Callable[[NDArray[np.generic]], Bounds],
    ) -> Bounds:
        """The same with the rows that were left."""
        gains = True
        while left.size:
            part, left = (left[:_HOST_ROWS], left[_HOST_ROWS:]) if gains else (left, left[:0])
            found = bound_on_host(rows[part])
            whole.label[part], whole.radius[part], whole.proof[part] = found.label, found.radius, found.proof
            if left.size:
                label, radius = self._maximise_dual(np.asarray(rows[left], dtype=np.float64), must_look=False)
                done = label >= 0
                at = left[done]
                whole.label[at], whole.radius[at] = label[done], radius[done]
                whole.proof[at] = np.where(radius[done] > 0, DUAL, NO_PROOF)
                gains, left = 2 * at.size > left.size, left[~done]
        return whole

    def _maximise_dual(self, rows: FloatArray, must_look: bool) -> tuple[IntArray, FloatArray]:
        """Label, negative where a row is left to the host, and radius of each row."""
        asked = self._ask(rows)
        label_tables = tuple(case.build_label_tables() for case in self._cases)
        label, powers = self._device.bound_means(rows, self._curve.curves, label_tables, asked, must_look=must_look)
        roots = [case.root_powers(powers, levels) for case, levels in zip(self._cases, asked.levels, strict=True)]
        return label.astype(np.int64), np.where(label == 1, roots[1], roots[0])
