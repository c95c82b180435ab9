"""Small fitted models of other libraries, one function per library: what parity is measured on, here and in tests.

To add one: a function that returns a fitted classifier and rows as its own `predict` takes them, and a row in EXAMPLES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Example = tuple[Any, Any]
"""A fitted classifier and rows."""
N_TREES = 100


def make_people(n_rows: int = 400, *, gaps: bool = True) -> tuple[Any, Any]:
    """A frame of numbers with zeros and gaps, categories of words in no order and of whole numbers, and two classes."""
    import pandas as pd

    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": np.where(rng.random(n_rows) < 0.2, 0.0, rng.lognormal(0, 1, n_rows)),
            "job": rng.choice(["nurse", "cook", "farmer", "clerk"], n_rows),
            "age": (rng.integers(18, 90, n_rows) - 50) / 20,
            "plan": rng.choice([40, 3, 7], n_rows),
        }
    )
    y = (people["age"] > 0).astype(int) + (people["job"] == "cook") + 2 * (people["plan"] == 40) > 1
    people["job"] = pd.Categorical(people["job"], categories=["nurse", "cook", "farmer", "clerk"])
    people["plan"] = people["plan"].astype("category")
    if gaps:
        people.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
        people.loc[rng.random(n_rows) < 0.1, "job"] = np.nan
    return people, y.to_numpy().astype(int)


def make_numbers(n_rows: int = 400, n_classes: int = 2) -> tuple[Any, Any]:
    """An array of numbers with gaps, and classes 0, 1, ..."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(n_rows, 3)), 3)
    score = X[:, 0] - X[:, 1] + rng.normal(size=n_rows) / 2
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def _make_xgboost() -> Example:
    from xgboost import XGBClassifier

    X, y = make_numbers()
    return XGBClassifier(n_estimators=N_TREES, max_depth=1, n_jobs=1).fit(X, y), X


def _make_xgboost_categories() -> Example:
    from xgboost import XGBClassifier

    X, y = make_people()
    options: dict[str, Any] = {"enable_categorical": True, "tree_method": "hist", "max_cat_to_onehot": 1, "n_jobs": 1}
    return XGBClassifier(n_estimators=N_TREES, max_depth=1, **options).fit(X, y), X


def _make_lightgbm() -> Example:
    from lightgbm import LGBMClassifier

    X, y = make_people()
    options: dict[str, Any] = {"min_data_per_group": 5, "cat_smooth": 1, "verbose": -1, "n_jobs": 1}
    return LGBMClassifier(n_estimators=N_TREES, max_depth=1, **options).fit(X, y), X


def _make_catboost() -> Example:
    from catboost import CatBoostClassifier

    X, y = make_numbers()
    options: dict[str, Any] = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return CatBoostClassifier(iterations=N_TREES, depth=1, **options).fit(X, y), X


def _make_histogram() -> Example:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = make_numbers()
    return HistGradientBoostingClassifier(interaction_cst="no_interactions", random_state=0).fit(X, y), X


def _make_gradient_boosting() -> Example:
    from sklearn.ensemble import GradientBoostingClassifier

    X, y = make_numbers()
    X = np.nan_to_num(X)
    return GradientBoostingClassifier(n_estimators=N_TREES, max_depth=1, random_state=0).fit(X, y), X


def _make_ada_boost() -> Example:
    from sklearn.ensemble import AdaBoostClassifier

    X, y = make_numbers()
    X = np.nan_to_num(X)
    return AdaBoostClassifier(n_estimators=N_TREES, random_state=0).fit(X, y), X


def _make_forest() -> Example:
    from sklearn.ensemble import RandomForestClassifier

    X, y = make_numbers()
    return RandomForestClassifier(n_estimators=N_TREES, max_depth=1, random_state=0).fit(X, y), X


def _make_pipeline() -> Example:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = make_people()
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["income", "age"]),
        (OneHotEncoder(handle_unknown="ignore"), ["job", "plan"]),
    )
    last = GradientBoostingClassifier(n_estimators=N_TREES, max_depth=1, random_state=0)
    return make_pipeline(prepare, last).fit(X, y), X


def _make_bins() -> Example:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer

    X, y = make_numbers()
    X = np.nan_to_num(X)
    return make_pipeline(KBinsDiscretizer(10, strategy="uniform"), LogisticRegression()).fit(X, y), X


def _make_ebm() -> Example:
    from interpret.glassbox import ExplainableBoostingClassifier

    X, y = make_numbers()
    return ExplainableBoostingClassifier(interactions=0, outer_bags=2, random_state=0, n_jobs=1).fit(X, y), X


EXAMPLES: Mapping[str, tuple[str, Callable[[], Example]]] = {
    "XGBoost": ("xgboost", _make_xgboost),
    "XGBoost, categories": ("xgboost", _make_xgboost_categories),
    "LightGBM": ("lightgbm", _make_lightgbm),
    "CatBoost": ("catboost", _make_catboost),
    "HistGradientBoosting": ("sklearn", _make_histogram),
    "GradientBoosting": ("sklearn", _make_gradient_boosting),
    "AdaBoost": ("sklearn", _make_ada_boost),
    "RandomForest": ("sklearn", _make_forest),
    "Pipeline, scaled and one-hot": ("sklearn", _make_pipeline),
    "Pipeline, bins and logistic regression": ("sklearn", _make_bins),
    "EBM": ("interpret", _make_ebm),
}
"""The library of each, and how it is made."""
