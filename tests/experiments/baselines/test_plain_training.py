"""The plain training loop, by hand; `tests/estimators/test_splits.py` compares the fast search with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.baselines.plain_training import train_plainly


def test_leaves_and_entropy_by_hand() -> None:
    """With one row per class the split lies in the middle, and the leaves are the probabilities of the sides."""
    (stump,) = train_plainly([[0.0], [2.0]], [0, 1], "gaussian:1")
    share = stats.norm.cdf(-1.0)
    assert stump.threshold == pytest.approx(1.0)
    assert (stump.left, stump.right) == (pytest.approx(share), pytest.approx(1 - share))
    assert stump.entropy == pytest.approx(stats.entropy([share, 1 - share]))


def test_classes_are_balanced() -> None:
    """Repeating the rows of one class changes nothing."""
    few = train_plainly([[0.0], [1.0]], [0, 1], "laplace:0.5")[0]
    many = train_plainly([[0.0], [1.0], [1.0], [1.0]], [0, 1, 1, 1], "laplace:0.5")[0]
    np.testing.assert_allclose(few[1:], many[1:], atol=1e-12)


def test_features_are_chosen_and_a_constant_one_teaches_nothing() -> None:
    """Only the features asked for are trained; a constant one keeps the entropy of the labels."""
    stumps = train_plainly([[0.0, 5.0], [1.0, 5.0]], [0, 1], "uniform:0.1", [1])
    assert [stump.feature for stump in stumps] == [1]
    assert stumps[0].entropy == pytest.approx(np.log(2))
