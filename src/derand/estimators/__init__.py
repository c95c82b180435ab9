"""scikit-learn estimators: thin faces over `derand.learn`.

A trainer is a function in `derand.learn`, one file here with its parameters, and its row in `TRAINERS`; `_base.py` and
`_classifier.py` do the rest.
"""

from __future__ import annotations

from derand.estimators._ada_boost import RobAdaBoostClassifier
from derand.estimators._additive import AdditiveClassifier
from derand.estimators._base import DEFAULT_NOISE
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._reading import MOST_CLASSES
from derand.estimators._scoring import make_certified_scorer
from derand.estimators._stumps import StumpClassifier
from derand.estimators._tree_boost import RobTreeBoostClassifier

__all__ = [
    "DEFAULT_NOISE",
    "MOST_CLASSES",
    "TRAINERS",
    "AdditiveClassifier",
    "CertifiedClassifier",
    "RobAdaBoostClassifier",
    "RobTreeBoostClassifier",
    "StumpClassifier",
    "make_certified_scorer",
]

TRAINERS: dict[str, type[CertifiedClassifier]] = {
    "additive": AdditiveClassifier,
    "stumps": StumpClassifier,
    "tree-boost": RobTreeBoostClassifier,
    "ada-boost": RobAdaBoostClassifier,
}
"""Every trainer by its name: what can be saved, what the command line offers, what scikit-learn's checks run over."""
