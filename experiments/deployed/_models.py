"""Classifiers of other libraries by their default settings, trained on tables with names and categories.

Owns how each library wants its columns. Must not know how models are read or certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import Dataset, load
from experiments.importing.frames import make_frame, name_columns, split_rows

if TYPE_CHECKING:
    from pandas import DataFrame

DATASETS = ("adult", "credit", "diabetes", "breast_cancer")


class Classifier(Protocol):
    """What is asked of a library's classifier."""

    def fit(self, X: DataFrame, y: NDArray[np.int64]) -> Classifier: ...

    def predict(self, X: DataFrame) -> NDArray[np.int64]: ...


def load_parts(dataset: str) -> tuple[Dataset, DataFrame, NDArray[np.int64], DataFrame, NDArray[np.int64]]:
    """A dataset, its training rows and labels, its test rows and labels."""
    data = load(dataset)
    frame, (train, test) = make_frame(data), split_rows(data.y)
    return data, frame.iloc[train], data.y[train], frame.iloc[test].reset_index(drop=True), data.y[test]


def list_learners() -> list[str]:
    """Those of LEARNERS whose library is here."""
    return [name for name, (library, _) in LEARNERS.items() if find_spec(library) is not None]


def _encode(data: Dataset, inner: object) -> Classifier:
    """A pipeline that gives a column to each category."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    names = [name_columns(data)[at] for at in data.categorical]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    pipeline: Classifier = make_pipeline(make_column_transformer((encoder, names), remainder="passthrough"), inner)
    return pipeline


def _make_xgboost(data: Dataset) -> Classifier:
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=True, n_jobs=2)


def _make_deep(data: Dataset) -> Classifier:
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=True, max_depth=8, n_estimators=500, learning_rate=0.1, n_jobs=2)


def _make_lightgbm(data: Dataset) -> Classifier:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=2, verbose=-1)


def _make_catboost(data: Dataset) -> Classifier:
    from catboost import CatBoostClassifier

    return _encode(data, CatBoostClassifier(verbose=0, allow_writing_files=False, thread_count=2, random_seed=0))


def _make_forest(data: Dataset) -> Classifier:
    from sklearn.ensemble import RandomForestClassifier

    return _encode(data, RandomForestClassifier(random_state=0, n_jobs=2))


def _make_histogram(data: Dataset) -> Classifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    histogram: Classifier = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    return histogram


def _make_ebm(data: Dataset) -> Classifier:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if at in data.categorical else "continuous" for at in range(len(data.feature_names))]
    ebm: Classifier = ExplainableBoostingClassifier(feature_types=kinds, random_state=0, n_jobs=2)
    return ebm


LEARNERS: Mapping[str, tuple[str, Callable[[Dataset], Classifier]]] = {
    "XGBoost": ("xgboost", _make_xgboost),
    "LightGBM": ("lightgbm", _make_lightgbm),
    "CatBoost": ("catboost", _make_catboost),
    "RandomForest": ("sklearn", _make_forest),
    "HistGradientBoosting": ("sklearn", _make_histogram),
    "EBM": ("interpret", _make_ebm),
    "XGBoost, depth 8 x 500": ("xgboost", _make_deep),
}
"""The library of each, and how it is made."""
