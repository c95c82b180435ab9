"""Reports of models whose columns interact: what can be said of them is said, and what is not drawn is named."""

from __future__ import annotations

import numpy as np

from derand import AdditiveClassifier, Report


def test_reports_name_functions_of_several_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 4))
    y = ((X[:, 0] > 0) ^ (X[:, 2] > 0)).astype(int)
    clf = AdditiveClassifier(radius=0.05, regularization=0.3, groups=[[0, 2]]).fit(X, y)
    told = Report(clf, X[:30], y[:30]).to_markdown()
    assert "Functions of several columns together are not drawn" in told
