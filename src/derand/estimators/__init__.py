"""scikit-learn estimators: thin faces over `derand.train`.

A trainer is a function in `derand.train`, one file here with its parameters, and its row in `TRAINERS`; `_base.py`
and `_classifier.py` or `_regressor.py` do the rest; trainers of numbers have their row in `REGRESSORS`. Modules are
imported on first use: scikit-learn takes longer to load than many a command to run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from derand._core.later import import_later

if TYPE_CHECKING:
    from derand.estimators._ada_boost import RobAdaBoostClassifier as RobAdaBoostClassifier
    from derand.estimators._additive import AdditiveClassifier as AdditiveClassifier
    from derand.estimators._additive_regressor import AdditiveRegressor as AdditiveRegressor
    from derand.estimators._base import DEFAULT_NOISE as DEFAULT_NOISE
    from derand.estimators._base import CertifiedEstimator as CertifiedEstimator
    from derand.estimators._classifier import CertifiedClassifier as CertifiedClassifier
    from derand.estimators._classifier import fit_table as fit_table
    from derand.estimators._conformal import ConformalPredictor as ConformalPredictor
    from derand.estimators._imported import ImportedClassifier as ImportedClassifier
    from derand.estimators._imported import ImportedRegressor as ImportedRegressor
    from derand.estimators._imported import from_model as from_model
    from derand.estimators._imported import from_reading as from_reading
    from derand.estimators._inputs import resolve_class_weight as resolve_class_weight
    from derand.estimators._inside import assemble as assemble
    from derand.estimators._inside import check_parameters as check_parameters
    from derand.estimators._inside import fit_checked as fit_checked
    from derand.estimators._proving import prove_encoded as prove_encoded
    from derand.estimators._regressor import CertifiedRegressor as CertifiedRegressor
    from derand.estimators._scoring import make_certified_scorer as make_certified_scorer
    from derand.estimators._smoothed import SmoothedClassifier as SmoothedClassifier
    from derand.estimators._smoothed import SmoothedRegressor as SmoothedRegressor
    from derand.estimators._smoothed import as_stored as as_stored
    from derand.estimators._stump_regressor import StumpRegressor as StumpRegressor
    from derand.estimators._stumps import StumpClassifier as StumpClassifier
    from derand.estimators._tree_boost import RobTreeBoostClassifier as RobTreeBoostClassifier

_HOMES = {
    "AdditiveClassifier": "_additive",
    "AdditiveRegressor": "_additive_regressor",
    "CertifiedClassifier": "_classifier",
    "CertifiedEstimator": "_base",
    "CertifiedRegressor": "_regressor",
    "ConformalPredictor": "_conformal",
    "DEFAULT_NOISE": "_base",
    "ImportedClassifier": "_imported",
    "ImportedRegressor": "_imported",
    "RobAdaBoostClassifier": "_ada_boost",
    "RobTreeBoostClassifier": "_tree_boost",
    "SmoothedClassifier": "_smoothed",
    "SmoothedRegressor": "_smoothed",
    "StumpClassifier": "_stumps",
    "StumpRegressor": "_stump_regressor",
    "as_stored": "_smoothed",
    "assemble": "_inside",
    "check_parameters": "_inside",
    "fit_checked": "_inside",
    "fit_table": "_classifier",
    "from_model": "_imported",
    "from_reading": "_imported",
    "make_certified_scorer": "_scoring",
    "prove_encoded": "_proving",
    "resolve_class_weight": "_inputs",
}
__all__ = ["REGRESSORS", "TRAINERS", *_HOMES]  # noqa: PLE0604 - the names are the keys above
__getattr__ = import_later(__name__, _HOMES)


class _Trainers(Mapping[str, type[Any]]):
    """Estimators by names of their own; each is imported when it is asked for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> type[Any]:
        found: type[Any] = getattr(import_module(__name__), self._names[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


TRAINERS: Mapping[str, type[CertifiedClassifier]] = _Trainers(
    {
        "additive": "AdditiveClassifier",
        "stumps": "StumpClassifier",
        "tree-boost": "RobTreeBoostClassifier",
        "ada-boost": "RobAdaBoostClassifier",
    }
)
"""Every trainer of labels by its name: what can be saved, what the command line offers, what scikit-learn's checks run
over."""

REGRESSORS: Mapping[str, type[CertifiedRegressor]] = _Trainers(
    {"additive": "AdditiveRegressor", "stumps": "StumpRegressor"}
)
"""Every trainer of numbers by its name: what can be saved, and what scikit-learn's checks run over."""
