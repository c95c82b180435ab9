"""The figures of prediction sets under attack, on a table of our own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.bench._sets import Case, measure


@pytest.mark.parametrize("is_number", [True, False])
def test_sets_hold_under_attack_and_plain_ones_do_not(is_number: bool) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": rng.uniform(1, 4, 600), "age": rng.uniform(0, 1, 600)})
    score = 2 * table.income + table.age + rng.normal(size=600) / 2
    answers = score if is_number else pd.Series(np.where(score > 5.5, "yes", "no"))
    found = measure(Case(table, answers, {"income": "10%"}), n_splits=20)
    assert found["rows"] == 200
    assert abs(found["robust_attacked_coverage"] - 0.9) < 0.03
    assert found["robust_clean_coverage"] >= found["robust_attacked_coverage"]
    assert found["plain_attacked_coverage"] < 0.87
    assert found["plain_width"] < found["robust_width"] <= found["widened_width"]
