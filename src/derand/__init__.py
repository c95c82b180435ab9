"""Deterministic, provable robustness for tabular models.

Public names are imported on first use, so that `import derand` is quick and loads no heavy library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from derand._core.later import import_later

__version__ = "0.1.0"

_HOMES = {
    "Noise": "noise",
    "Gaussian": "noise",
    "Uniform": "noise",
    "Laplace": "noise",
    "parse_noise": "noise",
    "Threat": "threat",
    "GridTerm": "model",
    "LinearTerm": "model",
    "StepFunction": "model",
    "CategoryTable": "model",
    "AdditiveEnsemble": "model",
    "WeightedVote": "model",
    "Certificates": "certificates",
    "FlipSummary": "certificates",
    "Distribution": "certificates",
    "certify": "certificates",
    "certify_interval": "certificates",
    "certify_radius": "certificates",
    "Intervals": "certificates",
    "ToleranceRadii": "certificates",
    "attack": "certificates",
    "attack_interval": "certificates",
    "Attacks": "certificates",
    "IntervalAttacks": "certificates",
    "UnsoundError": "certificates",
    "distribution": "certificates",
    "audit": "auditing",
    "Audit": "auditing",
    "certified_accuracy": "metrics",
    "average_certified_radius": "metrics",
    "measure_answers": "metrics",
    "AnswerMetrics": "metrics",
    "summarize_radii": "metrics",
    "RadiusSummary": "metrics",
    "plot_certified_accuracy": "explain.plots",
    "NumberExplanation": "explain",
    "ModelPromises": "explain",
    "Reasons": "certificates",
    "RowExplanation": "explain",
    "AdditiveClassifier": "estimators",
    "StumpClassifier": "estimators",
    "RobTreeBoostClassifier": "estimators",
    "RobAdaBoostClassifier": "estimators",
    "AdditiveRegressor": "estimators",
    "StumpRegressor": "estimators",
    "from_model": "estimators",
    "SmoothedClassifier": "estimators",
    "SmoothedRegressor": "estimators",
    "ConformalPredictor": "estimators",
    "make_certified_scorer": "estimators",
    "dates_to_numbers": "tables",
    "tune": "estimators.tuning",
    "Tuning": "estimators.tuning",
    "Monitor": "report",
    "Report": "report",
    "ReportSettings": "report",
    "save": "storage",
    "load": "storage",
    "export_onnx": "convert.onnx",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the names are the keys above

if TYPE_CHECKING:
    from derand.auditing import Audit as Audit
    from derand.auditing import audit as audit
    from derand.certificates import Attacks as Attacks
    from derand.certificates import Certificates as Certificates
    from derand.certificates import Distribution as Distribution
    from derand.certificates import FlipSummary as FlipSummary
    from derand.certificates import IntervalAttacks as IntervalAttacks
    from derand.certificates import Intervals as Intervals
    from derand.certificates import Reasons as Reasons
    from derand.certificates import ToleranceRadii as ToleranceRadii
    from derand.certificates import UnsoundError as UnsoundError
    from derand.certificates import attack as attack
    from derand.certificates import attack_interval as attack_interval
    from derand.certificates import certify as certify
    from derand.certificates import certify_interval as certify_interval
    from derand.certificates import certify_radius as certify_radius
    from derand.certificates import distribution as distribution
    from derand.convert.onnx import export_onnx as export_onnx
    from derand.estimators import AdditiveClassifier as AdditiveClassifier
    from derand.estimators import AdditiveRegressor as AdditiveRegressor
    from derand.estimators import ConformalPredictor as ConformalPredictor
    from derand.estimators import RobAdaBoostClassifier as RobAdaBoostClassifier
    from derand.estimators import RobTreeBoostClassifier as RobTreeBoostClassifier
    from derand.estimators import SmoothedClassifier as SmoothedClassifier
    from derand.estimators import SmoothedRegressor as SmoothedRegressor
    from derand.estimators import StumpClassifier as StumpClassifier
    from derand.estimators import StumpRegressor as StumpRegressor
    from derand.estimators import from_model as from_model
    from derand.estimators import make_certified_scorer as make_certified_scorer
    from derand.estimators.tuning import Tuning as Tuning
    from derand.estimators.tuning import tune as tune
    from derand.explain import ModelPromises as ModelPromises
    from derand.explain import NumberExplanation as NumberExplanation
    from derand.explain import RowExplanation as RowExplanation
    from derand.explain.plots import plot_certified_accuracy as plot_certified_accuracy
    from derand.metrics import AnswerMetrics as AnswerMetrics
    from derand.metrics import RadiusSummary as RadiusSummary
    from derand.metrics import average_certified_radius as average_certified_radius
    from derand.metrics import certified_accuracy as certified_accuracy
    from derand.metrics import measure_answers as measure_answers
    from derand.metrics import summarize_radii as summarize_radii
    from derand.model import AdditiveEnsemble as AdditiveEnsemble
    from derand.model import CategoryTable as CategoryTable
    from derand.model import GridTerm as GridTerm
    from derand.model import LinearTerm as LinearTerm
    from derand.model import StepFunction as StepFunction
    from derand.model import WeightedVote as WeightedVote
    from derand.noise import Gaussian as Gaussian
    from derand.noise import Laplace as Laplace
    from derand.noise import Noise as Noise
    from derand.noise import Uniform as Uniform
    from derand.noise import parse_noise as parse_noise
    from derand.report import Monitor as Monitor
    from derand.report import Report as Report
    from derand.report import ReportSettings as ReportSettings
    from derand.storage import load as load
    from derand.storage import save as save
    from derand.tables import dates_to_numbers as dates_to_numbers
    from derand.threat import Threat as Threat


__getattr__ = import_later(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
