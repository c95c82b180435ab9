"""Fitted models of other libraries, read as sums of functions. One file per library, which is imported where used.

To add one: a file with a function `read(model) -> Reading`, and a row per class in `IMPORTERS`. `derand.from_model`,
the command line and the parity tests then know it. Must not know estimators.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from derand.importers._files import read_file
from derand.importers._probing import compare_scores, probe_rows
from derand.importers._reading import Reading

IMPORTERS: dict[str, str] = {
    "catboost.CatBoost": "_catboost",
    "catboost.CatBoostClassifier": "_catboost",
    "catboost.CatBoostRegressor": "_catboost",
    "lightgbm.Booster": "_lightgbm",
    "lightgbm.LGBMClassifier": "_lightgbm",
    "lightgbm.LGBMRanker": "_lightgbm",
    "lightgbm.LGBMRegressor": "_lightgbm",
    "sklearn.GradientBoostingClassifier": "_sklearn_boosting",
    "sklearn.GradientBoostingRegressor": "_sklearn_boosting",
    "xgboost.Booster": "_xgboost",
    "xgboost.XGBClassifier": "_xgboost",
    "xgboost.XGBRanker": "_xgboost",
    "xgboost.XGBRegressor": "_xgboost",
}
"""Module of the importer of each class, by library and name of the class: "xgboost.XGBClassifier" -> "_xgboost"."""

__all__ = ["IMPORTERS", "Reading", "compare_scores", "probe_rows", "read_file", "read_model"]


def find_importer(model: Any) -> str | None:
    """Name of a model's class in `IMPORTERS`, of itself or of the nearest class that it is derived from."""
    for kind in type(model).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in IMPORTERS:
            return name
    return None


def read_model(model: Any) -> Reading:
    """A fitted model of another library as a sum of functions; what cannot be read exactly is refused.

    Parameters
    ----------
    model : object
        An instance of one of `IMPORTERS`.

    Returns
    -------
    Reading
    """
    name = find_importer(model)
    if name is None:
        kind = type(model)
        known = ", ".join(sorted({key.partition(".")[0] for key in IMPORTERS}))
        raise TypeError(
            f"`model` must be a fitted model of a library that can be read ({known}), got a {kind.__module__}."
            f"{kind.__qualname__}. Its classes are listed in the docs under 'Certify the model you already have'."
        )
    reading: Reading = import_module(f"derand.importers.{IMPORTERS[name]}").read(model)
    return reading
