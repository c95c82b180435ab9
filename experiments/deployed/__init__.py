"""Models as users have them, by default settings, certified as deployed; and models retrained on what flips them."""

from __future__ import annotations

from experiments.deployed._check import Check, check_model
from experiments.deployed._measure import LIMITS, Deployed, measure_models
from experiments.deployed._models import DATASETS, LEARNERS, list_learners
from experiments.deployed._retrain import Retrained, compare_retraining

__all__ = [
    "DATASETS",
    "LEARNERS",
    "LIMITS",
    "Check",
    "Deployed",
    "Retrained",
    "check_model",
    "compare_retraining",
    "list_learners",
    "measure_models",
]
