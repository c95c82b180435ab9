"""The nearest-centroid rule: its radius is the distance from a hyperplane."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.baselines.nearest_centroid import NearestCentroid


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_the_radius_is_exact(p: float) -> None:
    """The nearest point of the hyperplane, by the dual norm's direction, lies at the radius and has no margin."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.repeat([0, 1], 20)
    rule = NearestCentroid.fit(X + y[:, None], y)
    certificates = rule.certify(X, p)
    for row, label, radius in zip(X, certificates.label, certificates.radius, strict=True):
        weights = rule.weights
        if p == 1:
            step = np.where(np.arange(5) == np.abs(weights).argmax(), np.sign(weights), 0.0)
        elif np.isinf(p):
            step = np.sign(weights)
        else:
            step = np.sign(weights) * np.abs(weights) ** (1 / (p - 1))
        step *= (1 - 2 * label) / np.linalg.norm(step, p)
        assert ((row + 0.999999 * radius * step) @ weights + rule.offset > 0) == label
        assert ((row + 1.000001 * radius * step) @ weights + rule.offset > 0) != label


def test_labels_are_those_of_the_nearer_mean() -> None:
    """Class 1 where the mean of class 1 is nearer."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [6.0, 5.0]])
    rule = NearestCentroid.fit(X, [0, 0, 1, 1])
    rows = np.random.default_rng(1).uniform(0, 6, size=(50, 2))
    nearer = np.linalg.norm(rows - [5.5, 5.0], axis=1) < np.linalg.norm(rows - [0.5, 0.0], axis=1)
    np.testing.assert_array_equal(rule.certify(rows).label, nearer)


def test_equal_means_give_a_constant_rule() -> None:
    """Where the classes have the same mean, no change flips the label."""
    assert NearestCentroid.fit([[1.0], [1.0]], [0, 1]).certify([[3.0]]).radius.tolist() == [np.inf]


def test_other_norms_are_refused() -> None:
    """Below 1 there is no norm."""
    with pytest.raises(ValueError, match="`p` must be"):
        NearestCentroid.fit([[0.0], [1.0]], [0, 1]).certify([[0.0]], 0.5)
