"""RobAdaBoostClassifier: rounds against plain ones, the vote's certificate against brute force, the paper's rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import NotFittedError

from derand import (
    AdditiveEnsemble,
    Gaussian,
    Noise,
    RobAdaBoostClassifier,
    StumpClassifier,
    Uniform,
    certified_accuracy,
    certify,
    load,
    save,
)
from derand.train.paper import boosting
from experiments.baselines.plain_boosting import weigh_member_plainly
from tests.paper_data import load_paper_data


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :8], y


SMALL = RobAdaBoostClassifier(noise="gaussian:0.5", scaling="standard", radius=0.4, n_estimators=6)


def make_vote(seed: int = 7, n_features: int = 6, radius: float = 0.2) -> tuple[Any, np.ndarray, np.ndarray]:
    """A vote of members that differ, and what it was trained on."""
    X, y = make_classification(
        300, n_features, n_informative=n_features - 2, n_clusters_per_class=3, class_sep=1.5, random_state=seed
    )
    clf = RobAdaBoostClassifier(
        noise=Gaussian(0.5), radius=radius, n_estimators=5, class_weight="balanced", split_step=0.05
    )
    return clf.fit(X, y), X, y


def test_rounds_are_those_of_the_paper() -> None:
    """Errors, members and weights follow from the certifiable error of each member, by plain certificates."""
    clf, X, y = make_vote()
    weights = np.where(y == 1, 0.5 / np.mean(y == 1), 0.5 / np.mean(y == 0))
    assert clf.member_errors_.size == len(clf.ensemble_.members) == 5
    for member, vote, error in zip(clf.ensemble_.members, clf.ensemble_.weights, clf.member_errors_, strict=True):
        alone = StumpClassifier(noise=Gaussian(0.5), max_entropy=0.693, split_step=0.05)
        expected = alone.fit(X, y, sample_weight=weights).ensemble_
        assert [term.scores.tolist() for term in member.terms] == [term.scores.tolist() for term in expected.terms]
        plain_error, weights = weigh_member_plainly(member, X, y, Gaussian(0.5), 0.2, weights)
        assert error == pytest.approx(plain_error, abs=1e-12)
        assert vote == pytest.approx(np.log((1 - error) / error), abs=1e-12)


def test_certificates_hold_against_all_member_labels() -> None:
    """Below the radius no labels of the members that may change flip the vote; just above some do."""
    clf, X, _ = make_vote()
    vote, found = clf.ensemble_, clf.certify(X[:100])
    members = [certify(member, X[:100], clf.noise_) for member in vote.members]
    labels = np.stack([member.label for member in members])
    radii = np.stack([member.radius for member in members])
    assert np.unique(labels, axis=1).shape[1] > 2, "the members differ"

    def winners(row: int, radius: float) -> set[int]:
        """Labels that the vote can have inside an open ball, where only certified members are bound."""
        choices = [
            (int(label),) if own >= radius else (0, 1) for label, own in zip(labels[:, row], radii[:, row], strict=True)
        ]
        return {int(2 * np.dot(vote.weights, one) > vote.weights.sum()) for one in product(*choices)}

    for row in range(100):
        assert winners(row, 0.0) == {found.label[row]}
        assert winners(row, found.radius[row]) == {found.label[row]}
        assert winners(row, np.nextafter(found.radius[row], np.inf)) == {0, 1}
    assert np.isnan(found.failure).all()
    assert (found.radius > 0).mean() > 0.5


def test_probabilities_are_shares_of_the_weight() -> None:
    """`predict_proba` is the weighted share of the members' labels, and its larger side is `predict`."""
    clf, X, _ = make_vote()
    labels = np.stack([certify(member, X, clf.noise_).label for member in clf.ensemble_.members])
    share = np.average(labels, axis=0, weights=clf.ensemble_.weights)
    shares = clf.predict_proba(X)
    np.testing.assert_allclose(shares, np.stack([1 - share, share], axis=1), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(shares.argmax(axis=1), clf.predict(X))
    np.testing.assert_array_equal(clf.decision_function(X) > 0, clf.predict(X) == 1)
    assert np.isfinite(clf.decision_function(X)).all()


def test_a_member_without_error_decides_alone() -> None:
    """Where a member certifies all rows, training ends and the vote is that member."""
    X, y = [[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1]
    clf = RobAdaBoostClassifier(noise="gaussian:0.5", radius=1.0).fit(X, y)
    assert clf.member_errors_.tolist() == [0.0]
    assert clf.ensemble_.weights.tolist() == [1.0]
    expected = StumpClassifier(noise="gaussian:0.5", max_entropy=0.693).fit(X, y).certify(X)
    np.testing.assert_array_equal(clf.certify(X).radius, expected.radius)


def test_members_without_merit_have_no_vote() -> None:
    """A member that fails on half of the weight or more is left out, and boosting goes on."""
    clf, _, _ = make_vote(seed=11, n_features=12, radius=0.8)
    assert (clf.member_errors_ > 0.5).tolist() == [False, False, False, True, False]
    good = clf.member_errors_[[0, 1, 2, 4]]
    np.testing.assert_allclose(clf.ensemble_.weights, np.log((1 - good) / good), rtol=1e-12)


def test_boosting_ends_where_weights_stand_still(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """A member that fails on half of the weight, up to rounding, changes nothing: training ends without it."""
    clf = clone(SMALL).set_params(radius=1.0).fit(*tumours)
    assert clf.member_errors_[-1] == pytest.approx(0.5, abs=1e-9)
    assert len(clf.ensemble_.members) == clf.member_errors_.size - 1 < clf.n_estimators


def test_a_radius_out_of_reach_warns(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """Where no member certifies half of the weight, the first one decides alone and a warning says so."""
    with pytest.warns(UserWarning, match="No member certifies half of the rows, by weight, at radius=50"):
        clf = clone(SMALL).set_params(radius=50.0).fit(*tumours)
    assert clf.member_errors_.tolist() == [1.0]
    alone = StumpClassifier(noise="gaussian:0.5", scaling="standard", max_entropy=0.693).fit(*tumours)
    np.testing.assert_array_equal(clf.predict(tumours[0]), alone.predict(tumours[0]))


def test_default_radius(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """Without a radius the target is the one that a failure mass of 1/4 certifies."""
    clf = clone(SMALL).set_params(radius=None, noise="uniform:2", n_estimators=1).fit(*tumours)
    assert clf.radius_ == pytest.approx(1.0)


def test_scaling_equals_scaling_by_hand(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """`scaling` gives the labels and radii that scaled columns give."""
    X, y = tumours
    by_hand = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = clone(SMALL).fit(X, y).certify(X)
    scaled = clone(SMALL).set_params(scaling=None).fit(by_hand, y).certify(by_hand)
    np.testing.assert_array_equal(alone.label, scaled.label)
    np.testing.assert_allclose(alone.radius, scaled.radius, rtol=1e-6, atol=1e-9)


def test_categories_are_certified_together_with_numbers(tmp_path: Path) -> None:
    """Members have tables for categories, budgets of changes shrink the radius, and all of it can be saved."""
    rng = np.random.default_rng(0)
    numbers, words = rng.normal(size=(200, 2)), rng.choice(["a", "b", "c"], size=200)
    y = np.where(numbers[:, 0] + (words == "a") + 0.5 * rng.normal(size=200) > 0.5, "yes", "no")
    X = np.column_stack([numbers.astype(object), words])
    clf = RobAdaBoostClassifier(noise=Gaussian(0.3), n_estimators=3, categorical_features=[2]).fit(X, y)
    assert {table.feature for member in clf.ensemble_.members for table in member.category_tables} == {2}
    none, one = clf.certify(X, l0=[0, 1])
    assert one.radius.mean() < none.radius.mean()
    save(clf, tmp_path / "vote.json")
    again = load(tmp_path / "vote.json")
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.certify(X, l0=1).radius, one.radius)
    np.testing.assert_array_equal(again.member_errors_, clf.member_errors_)


def test_threads_do_not_change_the_model(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """One thread and three train the same vote."""
    one, three = (clone(SMALL).set_params(n_jobs=n_jobs).fit(*tumours) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.ensemble_.weights, three.ensemble_.weights)
    np.testing.assert_array_equal(one.certify(tumours[0]).radius, three.certify(tumours[0]).radius)


def test_interrupted_training(tumours: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves a new estimator unfitted and a fitted one as it was."""
    fitted = clone(SMALL).fit(*tumours)
    before = vars(fitted).copy()
    calls: list[AdditiveEnsemble] = []

    def interrupt(member: AdditiveEnsemble, *arguments: Any, **options: Any) -> Any:
        calls.append(member)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return certify(member, *arguments, **options)

    monkeypatch.setattr(boosting, "certify", interrupt)
    fresh = clone(SMALL)
    for clf in (fresh, fitted):
        with pytest.raises(KeyboardInterrupt):
            clf.fit(tumours[0][:, :5], tumours[1])
    with pytest.raises(NotFittedError):
        fresh.predict(tumours[0][:, :5])
    assert vars(fitted) == before
    assert len(fitted.predict(tumours[0])) == len(tumours[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"radius": 0.0}, "`radius` must be positive and finite, got 0.0"),
        ({"n_estimators": 0}, "`n_estimators` must be a whole number, 1 or larger, got 0"),
        ({"max_entropy": -1.0}, "`max_entropy` must be positive and finite"),
        ({"scaling": "max"}, "`scaling` must be None, 'standard', 'range' or 'robust'"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """Every parameter that makes no sense is refused by name."""
    with pytest.raises(ValueError, match=message):
        RobAdaBoostClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


PAPER = [  # dataset, noise, target radius, radius of the table; natural, certified
    ("fmnist_shoes", Uniform(4.0), 0.8, 0.5, 87.2, 84.2),
    ("mnist_1v5", Uniform(4.0), 1.0, 1.0, 99.3, 98.1),
    ("mnist_2v6", Uniform(4.0), 1.0, 1.0, 96.6, 94.1),
    ("fmnist_shoes", Gaussian(0.25), 0.4, 0.4, 91.0, 84.5),
    ("mnist_1v5", Gaussian(0.25), 0.8, 0.8, 99.2, 96.3),
    ("mnist_2v6", Gaussian(0.25), 0.8, 0.8, 96.3, 89.6),
]


@pytest.mark.long
@pytest.mark.parametrize(("dataset", "noise", "target", "radius", "natural", "certified"), PAPER)
def test_paper_rows(dataset: str, noise: Noise, target: float, radius: float, natural: float, certified: float) -> None:
    """Natural and certified accuracy of 20 members are at most half a point below the paper's."""
    X_train, y_train, X_test, y_test = load_paper_data(dataset).divide()
    clf = RobAdaBoostClassifier(noise=noise, radius=target, class_weight="balanced").fit(X_train, y_train)
    certificates = clf.certify(X_test)
    assert 100 * np.mean(certificates.label == y_test) >= natural - 0.5
    assert 100 * certified_accuracy(y_test, certificates, [radius])[0] >= certified - 0.5
