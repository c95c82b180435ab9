"""Votes: shares of weight are shares, and members need not know the same categories."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from derand import AdditiveEnsemble, CategoryTable, Threat, WeightedVote, attack, certify
from derand.certificates import vote_share


@pytest.mark.parametrize("n_members", [2, 3, 7, 19, 59])
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


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_a_category_that_only_one_member_knows_is_unknown_to_the_others(rule: str) -> None:
    """A change from 3 to 0 is one between known categories, but the second member gives 0 its score of unseen ones."""
    members = [
        AdditiveEnsemble([CategoryTable(0, [0.0], [7], other=14)], 7, 1),
        AdditiveEnsemble([CategoryTable(0, [1.0, 3.0], [-4, 2], other=9)], 7, 1),
    ]
    model = WeightedVote(members, [0.1, 0.2])
    threat = Threat(l0=1, unseen=False)
    c = certify(model, [[3.0]], "uniform:1", rule=rule, threat=threat)
    assert certify(model, [[0.0]], "uniform:1", rule=rule).label.tolist() == [1] != c.label.tolist()
    assert c.radius.tolist() == [0.0]
    named = certify(model, [[3.0]], "uniform:1", rule=rule, threat=Threat(l0=1, unseen=False, may_become={0: (1.0,)}))
    assert named.radius.tolist() == [np.inf]


def test_witnesses_of_a_vote_change_to_known_categories_alone() -> None:
    """A member whose table is empty would flip where the category goes missing, which the other table rules out."""
    members = [
        AdditiveEnsemble([CategoryTable(0, [3.0], [0], other=1)], 5, 1),
        AdditiveEnsemble([CategoryTable(0, [], [], other=-2, missing=4)], 3, 1),
    ]
    model = WeightedVote(members, [0.1, 0.2])
    c = certify(model, [[3.0]], None, rule="mean", threat=Threat(norm=None, l0=1, unseen=False))
    assert c.verdict is not None
    assert c.verdict.tolist() == ["holds"]
    c = certify(model, [[3.0]], None, rule="mean", threat=Threat(norm=None, l0=1, unseen=True))
    assert c.verdict is not None
    assert c.verdict.tolist() == ["flips"]


def test_attacks_on_a_vote_stay_within_the_codes_that_members_know() -> None:
    """A member without categories knows none: what another one knows is all that a category may become."""
    members = [
        AdditiveEnsemble([CategoryTable(0, [3.0], [5], 5, missing=-5)], 0, 1),
        AdditiveEnsemble([CategoryTable(0, [], [], 5, missing=-5)], 0, 1),
    ]
    model, threat = WeightedVote(members, [1.0, 2.0]), Threat(l0=1, unseen=False)
    found = attack(model, [[3.0]], "gaussian:1", threat=threat)
    assert not found.found[0]
    assert found.threat == certify(model, [[3.0]], "gaussian:1", threat=threat).threat
    assert attack(model, [[3.0]], "gaussian:1", threat=Threat(l0=1)).found[0]
