"""Threads: how many, and blocks of rows spread over them. Must not know what is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from derand.progress import count


def count_threads(n_jobs: int | None = None) -> int:
    """Threads to use: all cores that this process may use for None and -1.

    Examples
    --------
    >>> count_threads(3)
    3
    """
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs < 1:
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
