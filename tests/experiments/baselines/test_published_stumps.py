"""Stumps as the published runs trained them."""

from __future__ import annotations

import numpy as np
import pytest

from derand import StumpClassifier
from experiments.baselines.published_stumps import train_stumps_as_published
from tests.experiments.baselines.test_noise_free_training import draw_rows


def test_published_stumps_differ_only_where_a_side_is_light() -> None:
    """On a feature that matters both sides are heavy, and the published training is the right one."""
    X, y = draw_rows()
    X = X[:, :1]
    right = StumpClassifier(noise="gaussian:0.3", class_weight="balanced").fit(X, y).ensemble_
    published = train_stumps_as_published(X, y, "gaussian:0.3")
    for one, other in zip(right.step_functions, published.step_functions, strict=True):
        np.testing.assert_allclose(one.edges, other.edges, atol=1e-12)
    with pytest.raises(ValueError, match="balanced"):
        train_stumps_as_published(X, y, "gaussian:0.3", class_weight="none")
