"""How benchmarks measure: the best of several runs, and memory. Must not know what is measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


def time_best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and what the last one returned."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def measure_peak_memory() -> int | None:
    """Largest memory, in bytes, that this process has had; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def run_apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a module's function returns in a fresh process of its own, whose peak memory is then that of the work."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
