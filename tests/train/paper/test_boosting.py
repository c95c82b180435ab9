"""Boosting as functions: frozen results, rows set aside, the rule for leaves, progress, texts instead of warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from derand import Gaussian, RobAdaBoostClassifier, RobTreeBoostClassifier
from derand.train import TrainingTable, boost_stumps, boost_vote
from derand.train.paper.residual_splits import ResidualSearch
from derand.train.splits import SplitGrid
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


def make_gaps(n_rows: int = 160) -> TrainingTable:
    """Like `make_table`, with gaps in both columns, more often of class 1 in the first."""
    table, rng = make_table(n_rows), np.random.default_rng(5)
    X = table.X.copy()
    X[rng.random(n_rows) < np.where(table.target == 1, 0.4, 0.05), 0] = np.nan
    X[rng.random(n_rows) < 0.1, 1] = np.nan
    return TrainingTable(X, table.target)


def test_boosting_learns_from_gaps() -> None:
    """Every stump of a column with gaps has a leaf for them; the certifiable prediction gets better."""
    table = make_gaps()
    boosting = boost_stumps(table, NOISE, failure=0.25, n_estimators=8, split_step=0.05)
    assert not np.isnan(boosting.stumps.missing).any()
    assert boosting.train_score[-1] > boosting.train_score[0]
    gapped = np.isnan(table.X[:, 0])
    scores = boosting.model.score(table.X[gapped])
    assert (scores > boosting.model.threshold).mean() > 0.8  # class 1 is what is mostly missing there


def test_a_leaf_for_gaps_is_a_newton_step_of_their_rows() -> None:
    """The same formula as that of the two sides, with the rows that miss the value."""
    table = make_gaps()
    one = boost_stumps(table, NOISE, failure=0.25, n_estimators=1, split_step=0.05, max_entropy=1e-9)
    feature = int(one.stumps.features[0])
    gaps = np.isnan(table.X[:, feature])
    residual = table.target - 0.5  # without any stump before it
    step = 0.25 * residual[gaps].sum() / (1e-6 + 0.25) / gaps.sum()
    assert one.stumps.missing[0] == pytest.approx(np.rint(np.clip(0.5 + step, 0, 1) * 100) / 100)


def test_gaps_among_rows_set_aside_alone_are_taken() -> None:
    """Their leaf is 1/2: training knows nothing of them."""
    table, aside = make_table(), make_gaps(40)
    boosting = boost_stumps(table, NOISE, failure=0.25, aside=aside, n_estimators=3, split_step=0.05)
    assert boosting.stumps.missing.tolist() == [0.5] * len(boosting.stumps)
    assert boosting.model.refuses_missing == ()
    assert boosting.validation_score is not None


def test_a_missing_value_is_one_more_cell_of_the_search() -> None:
    """The split of least squared error, by trying all: rows that miss the value are a cell of their own."""
    table, rng = make_gaps(60), np.random.default_rng(8)
    labels = rng.random(60)
    weights = rng.uniform(0.5, 2.0, 60)
    grid = SplitGrid.within(NOISE, 0.05)
    search = ResidualSearch(table.X, np.arange(2), weights, NOISE, grid)
    found = search.find(labels, {0: [], 1: []})
    assert found is not None
    best = -np.inf
    for column in range(2):
        x = table.X[:, column]
        gaps = np.isnan(x)
        for candidate in np.arange(np.nanmin(x) - 0.025, np.nanmax(x) + 0.05, 0.05):
            left = np.where(gaps, 0.0, NOISE.cdf((candidate - np.where(gaps, 0.0, x)) / 0.3))
            value = 0.0
            for share in (left, np.where(gaps, 0.0, 1 - left), gaps.astype(float)):
                weight = weights * share
                value += (weight @ labels) ** 2 / max(weight.sum(), 1e-12)
            if value > best + 1e-12:
                best, chosen = value, (column, candidate)
    assert found.column == chosen[0]
    assert search.threshold(found) == pytest.approx(chosen[1], abs=1e-9)


def test_votes_are_boosted_over_rows_with_gaps() -> None:
    """Members are certified on all rows, those with gaps, too."""
    table = make_gaps()
    boosting = boost_vote(table, NOISE, radius=0.1, n_estimators=4, max_entropy=1.0, split_step=0.05)
    assert boosting.model.refuses_missing == ()
    assert (boosting.member_errors < 0.6).all()
