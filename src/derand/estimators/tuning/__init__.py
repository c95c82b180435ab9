"""Tuning: what robustness costs, measured for several values of a parameter, and which of them to take.

`_candidates` says what is tried and where it is measured, `_tune` measures by cross-validation, `_result` recommends.
Must not know how classifiers are trained or certified: it clones them, fits and asks.
"""

from __future__ import annotations

from derand.estimators.tuning._candidates import RADIUS, has_training_radius
from derand.estimators.tuning._result import Tuning, TuningSummary
from derand.estimators.tuning._tune import tune

__all__ = ["RADIUS", "Tuning", "TuningSummary", "has_training_radius", "tune"]
