"""Wide tables: both ways of training are measured on the same rows."""

from __future__ import annotations

import pytest

from experiments.bench import _wide
from experiments.bench._wide import bench_wide, draw_normal


@pytest.mark.long
def test_both_ways_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """With columns chosen first few of them have a term, and all of them without."""
    monkeypatch.setattr(_wide, "TABLES", {"small": lambda: draw_normal(60, 4)})
    results = bench_wide()
    assert (results["small_chosen_terms"] or 0) < 30
    assert results["small_all_terms"] == 60
    for what in ("accuracy", "certified_accuracy"):
        assert (results[f"small_chosen_{what}"] or 0) > (results[f"small_all_{what}"] or 0) - 0.02
