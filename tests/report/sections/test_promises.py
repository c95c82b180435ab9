"""The part on promises about every row, in every output."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, Report


def test_the_part_is_there_where_protected_columns_are_named() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"late": rng.poisson(1.0, 200), "sex": rng.choice(["f", "m"], 200)})
    y = np.where(X.late + (X.sex == "m") + rng.normal(size=200) > 1.5, "refused", "granted")
    clf = AdditiveClassifier(radius=0, regularization=0.1).fit(X, y)
    report = Report(clf, X, y, protected="sex", n_explained=0, n_detailed=1)
    found = report.to_dict()["promises"]
    assert found["verdicts"] == ["counterexample"]
    assert found["swings"][0]["columns"] == ["late"]
    assert "Promises about every row" in report.to_html()
    assert found["sentences"][0].replace("'", "&#39;") in report.to_html()
    assert "## Promises about every row" in report.to_markdown()
    assert Report(clf, X, y, n_explained=0, n_detailed=1).to_dict()["promises"] is None
    with pytest.raises(ValueError, match=r"`protected` needs a fitted classifier"):
        Report(clf.ensemble_, clf._encode_rows(X), noise="none", rule="mean", protected=[1]).to_dict()
