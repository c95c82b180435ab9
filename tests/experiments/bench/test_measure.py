"""How benchmarks measure."""

from __future__ import annotations

import os

from experiments.bench._measure import measure_peak_memory, run_apart, time_best


def test_the_fastest_run_and_the_last_result_are_returned() -> None:
    """Every run counts for the time; the result is that of the last."""
    results = iter(["first", "second"])
    seconds, result = time_best(lambda: next(results), repeats=2)
    assert (result, next(results, None)) == ("second", None)
    assert seconds >= 0


def tell_process() -> tuple[int, int | None]:
    return os.getpid(), measure_peak_memory()


def test_work_apart_runs_in_a_process_of_its_own() -> None:
    """Its memory is not that of this process."""
    process, peak = run_apart(tell_process)
    assert process != os.getpid()
    assert peak is None or peak > 2**20
