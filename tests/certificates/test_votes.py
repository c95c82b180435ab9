"""Votes: shares of weight are shares."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from derand.certificates import vote_share


@pytest.mark.parametrize("n_members", range(2, 60))
def test_shares_stay_within_0_and_1(n_members: int) -> None:
    """However the weights round when they are added; scikit-learn refuses probabilities beyond."""
    rng = np.random.default_rng(n_members)
    for weights in rng.random((20, n_members)):
        votes = np.stack([np.ones(n_members), np.zeros(n_members), rng.integers(0, 2, n_members)], axis=1)
        share = vote_share(votes.astype(np.int64), weights)
        assert share.min() >= 0
        assert share.max() <= 1
        assert share[1] == 0
        assert log_loss([1, 0, 1], np.stack([1 - share, share], axis=1), labels=[0, 1]) >= 0


def test_without_any_weight_nobody_is_ahead() -> None:
    """All members weigh nothing."""
    assert vote_share(np.ones((2, 3), dtype=np.int64), np.zeros(2)).tolist() == [0.5, 0.5, 0.5]
