"""scikit-learn estimators: thin faces over `derand.train`.

A trainer is a function in `derand.train`, one file here with its parameters, and its row in `TRAINERS`; `_base.py`
and `_classifier.py` or `_regressor.py` do the rest; trainers of numbers have their row in `REGRESSORS`.
"""

from __future__ import annotations

from derand.estimators._ada_boost import RobAdaBoostClassifier
from derand.estimators._additive import AdditiveClassifier
from derand.estimators._additive_regressor import AdditiveRegressor
from derand.estimators._base import DEFAULT_NOISE, CertifiedEstimator
from derand.estimators._classifier import CertifiedClassifier, fit_table, prove_encoded
from derand.estimators._conformal import ConformalPredictor
from derand.estimators._imported import ImportedClassifier, ImportedRegressor, from_model, from_reading
from derand.estimators._inputs import MOST_CLASSES, refuse_identifiers, resolve_class_weight
from derand.estimators._inside import assemble, check_parameters, fit_checked
from derand.estimators._regressor import CertifiedRegressor
from derand.estimators._scoring import make_certified_scorer
from derand.estimators._smoothed import SmoothedClassifier, SmoothedRegressor, as_stored
from derand.estimators._stump_regressor import StumpRegressor
from derand.estimators._stumps import StumpClassifier
from derand.estimators._tree_boost import RobTreeBoostClassifier

__all__ = [
    "DEFAULT_NOISE",
    "MOST_CLASSES",
    "REGRESSORS",
    "TRAINERS",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "CertifiedClassifier",
    "CertifiedEstimator",
    "CertifiedRegressor",
    "ConformalPredictor",
    "ImportedClassifier",
    "ImportedRegressor",
    "RobAdaBoostClassifier",
    "RobTreeBoostClassifier",
    "SmoothedClassifier",
    "SmoothedRegressor",
    "StumpClassifier",
    "StumpRegressor",
    "as_stored",
    "assemble",
    "check_parameters",
    "fit_checked",
    "fit_table",
    "from_model",
    "from_reading",
    "make_certified_scorer",
    "prove_encoded",
    "refuse_identifiers",
    "resolve_class_weight",
]

TRAINERS: dict[str, type[CertifiedClassifier]] = {
    "additive": AdditiveClassifier,
    "stumps": StumpClassifier,
    "tree-boost": RobTreeBoostClassifier,
    "ada-boost": RobAdaBoostClassifier,
}
"""Every trainer of labels by its name: what can be saved, what the command line offers, what scikit-learn's checks run
over."""

REGRESSORS: dict[str, type[CertifiedRegressor]] = {"additive": AdditiveRegressor, "stumps": StumpRegressor}
"""Every trainer of numbers by its name: what can be saved, and what scikit-learn's checks run over."""
