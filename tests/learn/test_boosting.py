"""Boosting as functions: frozen results, rows set aside, the rule for leaves, progress, texts instead of warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from derand import Gaussian, RobAdaBoostClassifier, RobTreeBoostClassifier
from derand.learn import TrainingTable, boost_stumps, boost_vote
from experiments.baselines.published_tree_boost import choose_leaf_edge_as_published

NOISE = Gaussian(0.3)


def make_table(n_rows: int = 80) -> TrainingTable:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n_rows, 2))
    target = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=n_rows) > 0.7).astype(np.uint8)
    return TrainingTable(X, target)


def test_the_tree_boosting_estimator_is_a_face_of_the_function() -> None:
    """Stumps and scores of the classifier are those of the function."""
    table = make_table()
    boosting = boost_stumps(table, NOISE, failure=1 - 0.75, n_estimators=4, split_step=0.05)
    clf = RobTreeBoostClassifier(noise=NOISE, n_estimators=4, split_step=0.05).fit(table.X, table.target)
    assert boosting.n_added == clf.n_estimators_ == 4
    np.testing.assert_array_equal(boosting.stumps.thresholds, clf.stump_thresholds_)
    np.testing.assert_array_equal(boosting.train_score, clf.train_score_)
    assert boosting.validation_score is None
    for one, other in zip(boosting.model.terms, clf.ensemble_.terms, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


def test_the_vote_estimator_is_a_face_of_the_function() -> None:
    """Members, weights and errors of the classifier are those of the function."""
    table = make_table()
    boosting = boost_vote(table, NOISE, radius=0.1, n_estimators=3, split_step=0.05)
    clf = RobAdaBoostClassifier(noise=NOISE, radius=0.1, n_estimators=3, split_step=0.05).fit(table.X, table.target)
    np.testing.assert_array_equal(boosting.member_errors, clf.member_errors_)
    np.testing.assert_array_equal(boosting.model.weights, clf.ensemble_.weights)


def test_rows_set_aside_are_scored_and_not_trained_on() -> None:
    """The stumps are those of the other rows; the score of rows set aside equals that of a table of them."""
    table = make_table()
    kept, aside = table.take(np.arange(60)), table.take(np.arange(60, 80))
    alone = boost_stumps(kept, NOISE, failure=0.2, n_estimators=3, split_step=0.05)
    both = boost_stumps(kept, NOISE, failure=0.2, aside=aside, n_estimators=3, split_step=0.05)
    same = boost_stumps(kept, NOISE, failure=0.2, aside=kept, n_estimators=3, split_step=0.05)
    np.testing.assert_array_equal(alone.stumps.thresholds, both.stumps.thresholds)
    assert both.validation_score is not None
    assert (both.train_score != both.validation_score).any()
    np.testing.assert_array_equal(same.validation_score, same.train_score)


def test_leaves_are_fitted_on_the_edge_that_the_rule_chooses() -> None:
    """The rule sees a feature's splits in order of addition; by default the newest decides, and others may."""
    table = make_table()
    seen: list[list[float]] = []

    def choose(edges: Sequence[float]) -> float:
        seen.append(list(edges))
        return edges[-1]

    usual = boost_stumps(table, NOISE, failure=0.2, n_estimators=6, split_step=0.05)
    watched = boost_stumps(table, NOISE, failure=0.2, n_estimators=6, split_step=0.05, choose_leaf_edge=choose)
    np.testing.assert_array_equal(usual.stumps.left, watched.stumps.left)
    assert [edges[-1] for edges in seen] == watched.stumps.thresholds[-6:].tolist()
    assert max(len(edges) for edges in seen) > 2
    published = boost_stumps(
        table, NOISE, failure=0.2, n_estimators=6, split_step=0.05, choose_leaf_edge=choose_leaf_edge_as_published
    )
    assert (published.stumps.left != usual.stumps.left).any()


def test_progress_gives_the_rounds() -> None:
    """Whoever trains may count the rounds, or end them early."""
    asked: list[int] = []

    def count_two(n_rounds: int) -> Iterable[int]:
        asked.append(n_rounds)
        return range(2)

    assert boost_stumps(make_table(), NOISE, failure=0.2, n_estimators=5, progress=count_two).n_added == 2
    assert boost_vote(make_table(), NOISE, radius=0.1, n_estimators=5, progress=count_two).member_errors.size == 2
    assert asked == [5, 5]


def test_boosting_warns_by_texts_alone() -> None:
    """The functions never warn; what to say about columns is said once, then about the vote."""
    nothing = TrainingTable(np.zeros((5, 1)), np.array([0, 1, 1, 1, 0], dtype=np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trees = boost_stumps(nothing, NOISE, failure=0.2)
        wide = TrainingTable(1e6 * make_table().X, make_table().target)
        vote = boost_vote(wide, NOISE, radius=1e9, n_estimators=2)
    assert trees.warnings == ()  # that it is constant, `fit` says
    assert [text[:13] for text in vote.warnings] == ["A step of 0.0", "No member cer"]
    assert trees.model.threshold == -1


def test_results_are_frozen() -> None:
    """Arrays are read-only and fields cannot be set."""
    trees = boost_stumps(make_table(), NOISE, failure=0.2, n_estimators=1)
    vote = boost_vote(make_table(), NOISE, radius=0.1, n_estimators=1)
    for array in (trees.train_score, trees.stumps.right, vote.member_errors):
        assert not array.flags.writeable
    with pytest.raises(AttributeError):
        vote.warnings = ()  # type: ignore[misc]
