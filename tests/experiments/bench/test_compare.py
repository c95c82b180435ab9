"""One file of all benchmarks, and what changed beyond noise between two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.bench import compare_figures, run_all
from experiments.bench._measure import Figures


def test_all_benchmarks_run_as_often_as_asked_and_say_what_was_left_out() -> None:
    """Every repeat is kept; a benchmark that cannot run here is named with its reason, and runs once."""
    calls = []

    def measure() -> Figures:
        calls.append("quick")
        return {"seconds": float(len(calls)), "memory": None}

    def fail() -> Figures:
        calls.append("gpu")
        raise RuntimeError("no GPU here")

    found = run_all({"quick": measure, "gpu": fail}, repeats=3)
    assert found["figures"] == {"quick": {"seconds": [1.0, 3.0, 4.0]}}
    assert found["left_out"] == {"gpu": "no GPU here"}
    assert calls.count("gpu") == 1
    assert found["machine"]["cores"] >= 1
    with pytest.raises(ValueError, match="`repeats` must be at least 1"):
        run_all({}, repeats=0)


def test_only_what_changed_beyond_noise_is_named(tmp_path: Path) -> None:
    """Runs that overlap, and medians that lie close, are noise; the largest change comes first."""
    before = {"a": [1.0, 1.1, 1.2], "b": [1.0, 1.01], "c": [2.0, 2.1], "d": [1.0], "gone": [1.0]}
    after = {"a": [1.15, 3.0], "b": [1.02, 1.03], "c": [1.0, 1.1], "d": [9.0], "new": [1.0]}
    paths = [tmp_path / "old.json", tmp_path / "new.json"]
    for path, figures in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps({"figures": {"core": figures}}), encoding="utf-8")
    assert [change.figure for change in compare_figures(*paths)] == ["d", "c"]
    assert compare_figures(*paths)[1].ratio == pytest.approx(1.05 / 2.05)
    paths[1].write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"new\.json is not a file of `bench all --json`"):
        compare_figures(*paths)
