"""Threads: how many, and blocks of rows spread over them. Must not know what is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise, starmap

from derand._core.arrays import is_whole
from derand._core.progress import count

_MOST_PARTS = 8  # memory is busy then
_PART_BYTES = 2**19  # worth a thread


def count_threads(n_jobs: int | None = None) -> int:
    """Threads to use: all cores that this process may use for None and -1.

    Examples
    --------
    >>> count_threads(3)
    3
    """
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_whole(n_jobs) or n_jobs < 1:
        raise ValueError(f"`n_jobs` must be a positive number of threads, -1 or None, got {n_jobs!r}.")
    return int(n_jobs)


def run_blocks(work: Callable[[slice], None], n_rows: int, block: int, jobs: int) -> None:
    """Call `work` for blocks of rows, in threads; whoever counts rows is told how many are done."""
    blocks = [slice(start, min(start + block, n_rows)) for start in range(0, n_rows, block)]
    if jobs == 1 or len(blocks) == 1:
        for one in blocks:
            work(one)
            count(one.stop, n_rows)
        return
    with ThreadPoolExecutor(jobs) as pool:
        for one, _ in zip(blocks, pool.map(work, blocks), strict=True):
            count(one.stop, n_rows)


def share_out(work: Callable[[slice], object], n_rows: int, n_bytes: int, jobs: int) -> None:
    """Call `work`, which must not do so itself, for parts of rows of so many bytes, in threads that stay for the next.

    For short work on memory, next to which starting threads would take long; nobody counts these rows.
    """
    parts = min(jobs, _MOST_PARTS, n_bytes // _PART_BYTES, n_rows)
    if parts < 2:
        work(slice(0, n_rows))
        return
    cuts = [n_rows * part // parts for part in range(parts + 1)]
    *others, own = starmap(slice, pairwise(cuts))
    waiting = [_keep_pool(os.getpid()).submit(work, part) for part in others]
    try:
        work(own)
    finally:  # whoever fails, nobody goes on working after this
        wait(waiting)
    for one in waiting:
        one.result()


@cache
def _keep_pool(process: int) -> ThreadPoolExecutor:
    """Threads of this process: those of another one did not survive the fork."""
    return ThreadPoolExecutor(_MOST_PARTS)
