"""Classifiers that many tests of the report look at."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier
from tests.report.samples import make_mixed, make_rows


@pytest.fixture(scope="session")
def numbers() -> tuple[StumpClassifier, np.ndarray, np.ndarray]:
    X, y = make_rows()
    return StumpClassifier(noise="gaussian:0.5", scaling="standard").fit(X, y), X, y


@pytest.fixture(scope="session")
def mixed() -> tuple[StumpClassifier, pd.DataFrame, np.ndarray]:
    X, y = make_mixed()
    return StumpClassifier(noise="gaussian:0.5", scaling="standard", class_weight="balanced").fit(X, y), X, y
