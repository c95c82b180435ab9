"""The radius that `derand init` proposes: measured on the table, and a usual one where nothing can be measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from derand.app.jobs import init_file


def write_table(folder: Path, n_rows: int, gap: float) -> Path:
    """Two classes, a gap apart in one column, which no radius below half of it closes."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, n_rows) + (2 + gap) * y, "z": rng.normal(size=n_rows)})
    frame.assign(label=np.where(y == 1, "yes", "no")).to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def test_a_radius_is_proposed_with_what_it_costs(tmp_path: Path) -> None:
    """Wide apart, the largest one that is tried; the file says so."""
    found = init_file(write_table(tmp_path, 60, 6.0), "label", tmp_path / "derand.toml")
    assert found["radius"] == 0.5
    assert found["radius_reason"] == "costs no accuracy, certifies 100.0 % of rows (60 rows, 3 folds)"
    assert "radius = 0.5 " in (tmp_path / "derand.toml").read_text()
    assert found["radius_reason"] in (tmp_path / "derand.toml").read_text()


def test_few_rows_of_a_class_say_nothing(tmp_path: Path) -> None:
    found = init_file(write_table(tmp_path, 12, 6.0), "label", tmp_path / "derand.toml")
    assert (found["radius"], found["radius_reason"]) == (0.25, "a usual one, not tried: some class has few rows")
