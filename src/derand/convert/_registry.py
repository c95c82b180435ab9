"""Which reader reads which class. A new reader is a module with `read(model)` and a row of READERS.

Must not know any library: readers are imported where one of their models is read.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from derand.convert._reading import Reading
from derand.convert._trees import TreeReading

READERS = (
    ("readers._catboost", "catboost", "CatBoost CatBoostClassifier CatBoostRegressor"),
    ("readers._interpret", "interpret", "ExplainableBoostingClassifier ExplainableBoostingRegressor"),
    ("readers._interpret", "interpret", "DPExplainableBoostingClassifier DPExplainableBoostingRegressor"),
    ("readers._lightgbm", "lightgbm", "Booster LGBMClassifier LGBMRanker LGBMRegressor"),
    ("readers._own", "derand", "CertifiedEstimator"),
    (
        "readers._sklearn_linear",
        "sklearn",
        "ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV LassoLars "
        "LassoLarsCV LassoLarsIC LinearDiscriminantAnalysis LinearRegression LinearSVC LinearSVR LogisticRegression "
        "LogisticRegressionCV OrthogonalMatchingPursuit PassiveAggressiveClassifier PassiveAggressiveRegressor "
        "Perceptron QuantileRegressor Ridge RidgeCV RidgeClassifier RidgeClassifierCV SGDClassifier SGDRegressor "
        "TheilSenRegressor",
    ),
    (
        "readers._sklearn_trees",
        "sklearn",
        "AdaBoostClassifier AdaBoostRegressor DecisionTreeClassifier DecisionTreeRegressor ExtraTreesClassifier "
        "ExtraTreesRegressor GradientBoostingClassifier GradientBoostingRegressor HistGradientBoostingClassifier "
        "HistGradientBoostingRegressor RandomForestClassifier RandomForestRegressor",
    ),
    (
        "readers._sklearn_wrappers",
        "sklearn",
        "FixedThresholdClassifier GridSearchCV RandomizedSearchCV TunedThresholdClassifierCV",
    ),
    ("readers._sklearn_calibrated", "sklearn", "CalibratedClassifierCV"),
    ("readers._xgboost", "xgboost", "Booster XGBClassifier XGBRanker XGBRegressor"),
    ("pipelines._pipeline", "sklearn", "Pipeline"),
)
"""Module of a reader, a library, and the classes of that library that it reads, or that its models are derived from."""
IMPORTERS = {f"{library}.{name}": module for module, library, names in READERS for name in names.split()}
"""Module of the reader of each class, by library and name of the class: "xgboost.XGBClassifier"."""


def select_importer(model: object) -> str | None:
    """Name of a model's class in `IMPORTERS`, of itself or of the nearest class that it is derived from."""
    names = (f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(model).__mro__)
    return next((name for name in names if name in IMPORTERS), None)


def read_model(model: object) -> Reading:
    """A fitted model of another library as a sum of functions; what cannot be read exactly is refused.

    `model`: an instance of one of `IMPORTERS`.
    """
    name = select_importer(model)
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
    return _sum_up(_import_reader(IMPORTERS[name]).read(model))


def load_model(module: str, path: Path) -> Reading:
    """The model in a file of its library, by the reader of that library."""
    return _sum_up(_import_reader(module).load_file(path))


def _import_reader(module: str) -> Any:
    return import_module(f"derand.convert.{module}")


def _sum_up(found: Reading | TreeReading) -> Reading:
    reading = found.sum_up() if isinstance(found, TreeReading) else found
    if reading.classes is not None and len(reading.classes) < 2:
        raise ValueError(
            f"`model` knows only one class, {reading.classes[0]!r}: no change of a row can move its answer."
        )
    return reading
