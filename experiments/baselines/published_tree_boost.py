"""RobTreeBoost as the published runs did it, with their slip in assigning cells to leaves: for reproducing tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derand.estimators import RobTreeBoostClassifier


class PublishedRobTreeBoostClassifier(RobTreeBoostClassifier):
    """RobTreeBoost whose added stumps take their leaves from the wrong cells, as in the paper's published runs.

    On a feature that has splits already, the left leaf is not fitted to the cells below the new split but to the first
    `1 + a` cells, where `a` is the position, in order of addition, of the largest split. Use
    `RobTreeBoostClassifier` for anything but the paper's tables.
    """

    def _choose_leaf_edge(self, splits: Sequence[int]) -> int:
        return sorted(splits)[int(np.argmax(splits))]
