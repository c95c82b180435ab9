"""Coded rows that stay with Dask's workers while weights are fitted to them.

Owns how tables travel to the workers and sums come back. Must not know what is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derand._core.arrays import IntArray
from derand.distributed._cluster import get_current_client
from derand.distributed._parts import reduce_tree
from derand.train import CodedRows


class DaskShards:
    """Parts as delayed CodedRows; they are computed once, and again only where a worker was lost.

    Parameters
    ----------
    coded : sequence of delayed CodedRows
    """

    def __init__(self, coded: Sequence[object]) -> None:
        import dask

        self._parts = list(dask.persist(*coded))

    def spread(self, work: Callable[..., Any], *arguments: object) -> Any:
        import dask

        return list(dask.persist(*self._map(work, arguments, [()] * len(self._parts))))

    def add(
        self, work: Callable[..., tuple[IntArray, ...]], *arguments: object, beside: Sequence[object]
    ) -> list[IntArray]:
        total = reduce_tree(self._map(work, arguments, [(own,) for own in beside]), _add)
        return list(total or ())

    def _map(
        self, work: Callable[..., object], arguments: tuple[object, ...], own: Sequence[tuple[object, ...]]
    ) -> Any:
        """What the work on each part gives, delayed; all arguments travel to each worker once."""
        import dask

        client = get_current_client()
        if client is None:
            shared = dask.delayed(arguments, traverse=False)
        else:  # not through the scheduler
            shared = client.scatter([arguments], broadcast=True, hash=False)[0]
        run = dask.delayed(_work_on_rows, pure=False)
        return [run(work, rows, shared, *more) for rows, more in zip(self._parts, own, strict=True)]


def _work_on_rows(
    work: Callable[..., object], rows: CodedRows | None, arguments: tuple[object, ...], *own: object
) -> object:
    return None if rows is None else work(rows, *own, *arguments)


def _add(found: Sequence[Sequence[IntArray]]) -> Sequence[IntArray]:
    return [np.sum(one, axis=0) for one in zip(*found, strict=True)]
