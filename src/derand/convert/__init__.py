"""Fitted models of other libraries, read as sums of functions. One file per library, which is imported where used.

To add one: a file with a function `read(model) -> Reading`, and a row per class in `IMPORTERS`. `derand.from_model`,
the command line and the parity tests then know it. Must not know estimators.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from derand.convert._columns import adopt_table, decode_rows
from derand.convert._files import read_file
from derand.convert._objects import PICKLES, SKOPS, load_pickle, load_skops
from derand.convert._probing import compare_scores, is_explained, probe_rows
from derand.convert._reading import Reading
from derand.convert._sklearn_threshold import Wrapped, unwrap

IMPORTERS: dict[str, str] = {
    "catboost.CatBoost": "_catboost",
    "catboost.CatBoostClassifier": "_catboost",
    "catboost.CatBoostRegressor": "_catboost",
    "derand.CertifiedEstimator": "_own",
    "interpret.DPExplainableBoostingClassifier": "_interpret",
    "interpret.DPExplainableBoostingRegressor": "_interpret",
    "interpret.ExplainableBoostingClassifier": "_interpret",
    "interpret.ExplainableBoostingRegressor": "_interpret",
    "lightgbm.Booster": "_lightgbm",
    "lightgbm.LGBMClassifier": "_lightgbm",
    "lightgbm.LGBMRanker": "_lightgbm",
    "lightgbm.LGBMRegressor": "_lightgbm",
    "sklearn.ARDRegression": "_sklearn_linear",
    "sklearn.AdaBoostClassifier": "_sklearn_trees",
    "sklearn.AdaBoostRegressor": "_sklearn_trees",
    "sklearn.BayesianRidge": "_sklearn_linear",
    "sklearn.DecisionTreeClassifier": "_sklearn_trees",
    "sklearn.DecisionTreeRegressor": "_sklearn_trees",
    "sklearn.ElasticNet": "_sklearn_linear",
    "sklearn.ElasticNetCV": "_sklearn_linear",
    "sklearn.ExtraTreesClassifier": "_sklearn_trees",
    "sklearn.ExtraTreesRegressor": "_sklearn_trees",
    "sklearn.FixedThresholdClassifier": "_sklearn_threshold",
    "sklearn.GradientBoostingClassifier": "_sklearn_boosting",
    "sklearn.GradientBoostingRegressor": "_sklearn_boosting",
    "sklearn.GridSearchCV": "_sklearn_search",
    "sklearn.HistGradientBoostingClassifier": "_sklearn_hist",
    "sklearn.HistGradientBoostingRegressor": "_sklearn_hist",
    "sklearn.HuberRegressor": "_sklearn_linear",
    "sklearn.Lars": "_sklearn_linear",
    "sklearn.LarsCV": "_sklearn_linear",
    "sklearn.Lasso": "_sklearn_linear",
    "sklearn.LassoCV": "_sklearn_linear",
    "sklearn.LassoLars": "_sklearn_linear",
    "sklearn.LassoLarsCV": "_sklearn_linear",
    "sklearn.LassoLarsIC": "_sklearn_linear",
    "sklearn.LinearDiscriminantAnalysis": "_sklearn_linear",
    "sklearn.LinearRegression": "_sklearn_linear",
    "sklearn.LinearSVC": "_sklearn_linear",
    "sklearn.LinearSVR": "_sklearn_linear",
    "sklearn.LogisticRegression": "_sklearn_linear",
    "sklearn.LogisticRegressionCV": "_sklearn_linear",
    "sklearn.OrthogonalMatchingPursuit": "_sklearn_linear",
    "sklearn.PassiveAggressiveClassifier": "_sklearn_linear",
    "sklearn.PassiveAggressiveRegressor": "_sklearn_linear",
    "sklearn.Perceptron": "_sklearn_linear",
    "sklearn.Pipeline": "_pipeline",
    "sklearn.QuantileRegressor": "_sklearn_linear",
    "sklearn.RandomForestClassifier": "_sklearn_trees",
    "sklearn.RandomForestRegressor": "_sklearn_trees",
    "sklearn.RandomizedSearchCV": "_sklearn_search",
    "sklearn.Ridge": "_sklearn_linear",
    "sklearn.RidgeCV": "_sklearn_linear",
    "sklearn.RidgeClassifier": "_sklearn_linear",
    "sklearn.RidgeClassifierCV": "_sklearn_linear",
    "sklearn.SGDClassifier": "_sklearn_linear",
    "sklearn.SGDRegressor": "_sklearn_linear",
    "sklearn.TheilSenRegressor": "_sklearn_linear",
    "sklearn.TunedThresholdClassifierCV": "_sklearn_threshold",
    "xgboost.Booster": "_xgboost",
    "xgboost.XGBClassifier": "_xgboost",
    "xgboost.XGBRanker": "_xgboost",
    "xgboost.XGBRegressor": "_xgboost",
}
"""Module of the importer of each class, by library and name of the class: "xgboost.XGBClassifier" -> "_xgboost"."""

__all__ = [
    "IMPORTERS",
    "PICKLES",
    "SKOPS",
    "Reading",
    "Wrapped",
    "adopt_table",
    "compare_scores",
    "decode_rows",
    "find_wrapped",
    "is_explained",
    "load_pickle",
    "load_skops",
    "probe_rows",
    "read_file",
    "read_model",
    "truncates_categories",
]


def find_importer(model: Any) -> str | None:
    """Name of a model's class in `IMPORTERS`, of itself or of the nearest class that it is derived from."""
    for kind in type(model).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in IMPORTERS:
            return name
    return None


def find_wrapped(model: Any) -> Wrapped | None:
    """What a classifier of scikit-learn that moves another one's threshold consists of; None for all else."""
    name = find_importer(model)
    return unwrap(model) if name is not None and IMPORTERS[name] == "_sklearn_threshold" else None


def truncates_categories(source: str) -> bool:
    """Whether the library of a `Reading.source` takes 1.5 for the category 1 of a column of whole numbers."""
    return source.startswith(("lightgbm.", "xgboost."))


def read_model(model: Any) -> Reading:
    """A fitted model of another library as a sum of functions; what cannot be read exactly is refused.

    `model`: an instance of one of `IMPORTERS`.
    """
    name = find_importer(model)
    if name is None:
        kind = type(model)
        known = ", ".join(sorted({key.partition(".")[0] for key in IMPORTERS}))
        if isinstance(model, type):
            raise TypeError(f"`model` must be a fitted model, got the class {model.__name__}: make one and fit it.")
        if isinstance(model, str | os.PathLike):
            raise TypeError(f"`model` must be a fitted model, got a path: files are read by `derand import {model}`.")
        raise TypeError(
            f"`model` is a {kind.__module__}.{kind.__qualname__}, which is no sum of functions of few columns that can "
            f"be read. Additive models, linear ones and shallow trees of {known} can: docs/import.md lists them."
        )
    reading: Reading = import_module(f"derand.convert.{IMPORTERS[name]}").read(model)
    return reading
