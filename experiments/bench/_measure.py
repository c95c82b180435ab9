"""How benchmarks measure: the best of several runs, and memory. Must not know what is measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

Figures: TypeAlias = dict[str, float | None]
"""What a benchmark returns: flat, a number by its name, None where the system does not tell."""


def time_best(work: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """Seconds of the fastest of several runs, at least one, and what the last one returned."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def measure_peak_memory() -> int | None:
    """Largest memory, in bytes, that this process has had; None where the system does not tell."""
    try:  # Linux counts what the parent had when it started this process as well, but not here
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def run_apart(work: Callable[Given, Result], *arguments: Given.args, **options: Given.kwargs) -> Result:
    """What a module's function returns in a fresh process of its own, whose peak memory is then that of the work."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **options).result()


def prefix(name: str, figures: Mapping[str, float | None]) -> Figures:
    """The same figures under longer names.

    Examples
    --------
    >>> prefix("adult", {"rows": 3})
    {'adult_rows': 3}
    """
    return {f"{name}_{what}": value for what, value in figures.items()}
