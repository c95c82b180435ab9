"""RobTreeBoost as the published runs did it, with their slip in assigning cells to leaves: for reproducing tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from derand._core.threads import count_threads
from derand.estimators import CertifiedClassifier
from derand.noise import Noise
from derand.train import TrainingTable, TreeBoosting, boost_stumps


class PublishedRobTreeBoostClassifier(CertifiedClassifier):
    """RobTreeBoost whose added stumps take their leaves from the wrong cells, as in the paper's published runs.

    On a feature that has splits already, the left leaf is not fitted to the cells below the new split but to the first
    `1 + a` cells, where `a` is the position, in order of addition, of the largest split. Use
    `RobTreeBoostClassifier` for anything but the paper's tables.

    Parameters
    ----------
    noise, quantile, n_estimators, max_stumps_per_feature, class_weight, scaling, categorical_features, rule, n_jobs
        As for `RobTreeBoostClassifier`.

    Attributes
    ----------
    stump_features_, stump_thresholds_, stump_left_, stump_right_ : arrays of shape (n_stumps,)
        All stumps in the order in which they were found.
    """

    def __init__(
        self,
        *,
        noise: Noise | str | None = None,
        quantile: float = 0.75,
        n_estimators: int = 40,
        max_stumps_per_feature: int | None = None,
        class_weight: Any = None,
        scaling: str | None = None,
        categorical_features: Any = "from_dtype",
        rule: str = "vote",
        n_jobs: int | None = None,
    ) -> None:
        self.noise = noise
        self.quantile = quantile
        self.n_estimators = n_estimators
        self.max_stumps_per_feature = max_stumps_per_feature
        self.class_weight = class_weight
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.rule = rule
        self.n_jobs = n_jobs

    def _train(self, table: TrainingTable, noise: Noise) -> TreeBoosting:
        boosting = boost_stumps(
            table,
            noise,
            failure=1 - self.quantile,
            n_estimators=self.n_estimators,
            max_stumps_per_feature=self.max_stumps_per_feature,
            choose_leaf_edge=choose_leaf_edge_as_published,
            n_threads=count_threads(self.n_jobs),
        )
        stumps = boosting.stumps
        self.stump_features_, self.stump_thresholds_ = stumps.features, stumps.thresholds
        self.stump_left_, self.stump_right_ = stumps.left, stumps.right
        return boosting


def choose_leaf_edge_as_published(edges: Sequence[float]) -> float:
    """Of a feature's splits in order of addition, that of the wrong place: a rule for `boost_stumps`.

    Examples
    --------
    >>> choose_leaf_edge_as_published([2.0, 5.0, 3.0])
    3.0
    """
    return sorted(edges)[int(np.argmax(edges))]
