"""scikit-learn estimators. A trainer is one file here with a `_fit_ensemble`; `_base.py` does the rest."""

from __future__ import annotations

from derand.estimators._ada_boost import RobAdaBoostClassifier
from derand.estimators._independent import StumpClassifier
from derand.estimators._scoring import make_certified_scorer
from derand.estimators._tree_boost import RobTreeBoostClassifier

__all__ = ["RobAdaBoostClassifier", "RobTreeBoostClassifier", "StumpClassifier", "make_certified_scorer"]

TRAINERS = {"stumps": StumpClassifier, "tree-boost": RobTreeBoostClassifier, "ada-boost": RobAdaBoostClassifier}
