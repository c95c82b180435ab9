"""The figures of reasons and promises, on a table of our own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from derand import AdditiveClassifier
from experiments.bench._reasons import measure


def test_figures_of_one_model() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"late": rng.poisson(1.0, 200), "sex": rng.choice(["f", "m"], 200)})
    answers = table.late + (table.sex == "m") + rng.normal(size=200) > 1.5
    found = measure(AdditiveClassifier(radius=0, regularization=0.1).fit(table, answers), table, "sex")
    assert found["rows"] == 200
    assert found["microseconds_per_row"] > 0
    assert 0 <= found["median_columns"] <= 2
    assert found["protected_verdict"] == 1
    assert 0 < found["lowest_share"] == found["highest_share"] <= 100
