"""Coded rows that stay with Dask's workers while weights are fitted to them.

Owns how tables travel to the workers and sums come back. Must not know what is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derand._core.arrays import IntArray
from derand.distributed._cluster import find_client
from derand.distributed._parts import drop_empty, reduce_tree


class DaskShards:
    """Parts as delayed CodedRows; they are computed once, and again only where a worker was lost.

    Parameters
    ----------
    coded : sequence of delayed CodedRows
    """

    def __init__(self, coded: Sequence[Any]) -> None:
        import dask

        self._parts = list(dask.persist(*coded))

    def spread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        import dask

        shared = _send(arguments)
        run = dask.delayed(_spread_part, pure=False)
        return list(dask.persist(*(run(rows, work, shared) for rows in self._parts)))

    def add(self, work: Callable[..., tuple[IntArray, ...]], *arguments: Any, beside: Any = None) -> list[IntArray]:
        import dask

        shared = _send(arguments)
        run = dask.delayed(_add_part, pure=False)
        found = [run(rows, own, work, shared) for rows, own in zip(self._parts, beside, strict=True)]
        total: list[IntArray] = reduce_tree(found, _add)
        return total


def _send(arguments: tuple[Any, ...]) -> Any:
    """What all parts need, so that it travels to each worker once, and not through the scheduler."""
    import dask

    client = find_client()
    if client is not None:
        return client.scatter([arguments], broadcast=True, hash=False)[0]
    return dask.delayed(arguments, traverse=False)


def _spread_part(rows: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return None if rows is None else work(rows, *arguments)


def _add_part(rows: Any, own: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return None if rows is None else list(work(rows, own, *arguments))


def _add(found: Sequence[Any]) -> Any:
    known = drop_empty(found)
    return [np.sum(one, axis=0) for one in zip(*known, strict=True)] if known else None
