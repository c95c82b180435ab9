"""RobTreeBoostClassifier: each added stump against brute force, the paper's rows, stages and early stopping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import NotFittedError

from derand import (
    Gaussian,
    Laplace,
    Noise,
    RobTreeBoostClassifier,
    StumpClassifier,
    Uniform,
    certified_accuracy,
    load,
    save,
)
from derand.train.paper.residual_splits import ResidualSearch
from experiments.baselines.plain_boosting import BoostedStump, add_stump_plainly
from experiments.baselines.published_tree_boost import PublishedRobTreeBoostClassifier
from tests.paper_data import load_paper_data
from tests.shared import shared_folder


def list_stumps(clf: RobTreeBoostClassifier) -> list[BoostedStump]:
    columns = (clf.stump_features_, clf.stump_thresholds_, clf.stump_left_, clf.stump_right_)
    return [BoostedStump(*stump) for stump in zip(*(column.tolist() for column in columns), strict=True)]


@pytest.mark.parametrize("noise", [Gaussian(0.4), Uniform(0.8), Laplace(0.3), Gaussian(0.3, units=(2.0, 0.5))], ids=str)
def test_added_stumps_are_the_brute_force_best(noise: Noise) -> None:
    """Each added stump is the one that a plain search over all candidates, with fresh laws, finds next."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(25, 2)).round(2)
    y = (X[:, 0] + 0.5 * rng.normal(size=25) > 0).astype(int)
    weights = rng.uniform(0.5, 2.0, size=25)
    clf = RobTreeBoostClassifier(noise=noise, quantile=0.8, n_estimators=6, split_step=0.1)
    stumps = list_stumps(clf.fit(X, y, sample_weight=weights))
    assert len({stump.feature for stump in stumps}) < len(stumps), "some feature has several splits"
    for at in range(len(stumps) - 6, len(stumps)):
        expected = add_stump_plainly(stumps[:at], X, y, noise, 0.8, weights=weights, split_step=0.1)
        assert stumps[at] == pytest.approx(expected, abs=1e-9)


PAPER = {  # noise, quantile, added stumps, class weight, most stumps per feature, radius; natural, certified
    "breast_cancer_l1": (Uniform(2.0), 0.60, 30, "balanced", 4, 1.0, (100.0, 83.9), (99.3, 88.3)),
    "breast_cancer_l2": (Gaussian(0.25), 0.98, 40, None, 6, 0.7, (100.0, 82.5), (100.0, 81.0)),
    "diabetes_l1": (Uniform(0.28), 0.70, 15, "balanced", 3, 0.05, (77.9, 72.1), (78.6, 71.4)),
    "diabetes_l2": (Gaussian(0.15), 0.95, 100, "balanced", 51, 0.05, (79.9, 71.4), (78.6, 70.1)),
}


@pytest.mark.parametrize("published", [False, True], ids=["right", "published"])
@pytest.mark.parametrize("name", PAPER)
def test_paper_rows(name: str, published: bool) -> None:
    """The published variant gives the printed figures and stumps; the right one is at most three rows below."""
    noise, quantile, n_estimators, class_weight, most, radius, printed, right = PAPER[name]
    dataset = {"breast_cancer": "breast_cancer_with_id"}.get(name[:-3], name[:-3])
    X_train, y_train, X_test, y_test = load_paper_data(dataset).divide(scaling="range")
    kind = PublishedRobTreeBoostClassifier if published else RobTreeBoostClassifier
    clf = kind(
        noise=noise,
        quantile=quantile,
        n_estimators=n_estimators,
        max_stumps_per_feature=most,
        class_weight=class_weight,
    ).fit(X_train, y_train)
    certificates = clf.certify(X_test, proof="paper")
    natural = 100 * np.mean(certificates.label == y_test)
    certified = 100 * certified_accuracy(y_test, certificates, [radius])[0]
    assert (natural.round(1), certified.round(1)) == (printed if published else right)
    assert min(natural - printed[0], certified - printed[1]) * len(y_test) / 100 >= -3.1
    if published:
        path = shared_folder("golden") / "models" / f"boosted_{name}.json"
        stumps = np.array(json.loads(path.read_text(encoding="utf-8"))["stumps"])
        np.testing.assert_array_equal(clf.stump_features_, stumps[:, 0])
        np.testing.assert_allclose(clf.stump_thresholds_, stumps[:, 1], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(np.rint(100 * np.stack([clf.stump_left_, clf.stump_right_])).T, stumps[:, 2:])


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :8], y


SMALL = RobTreeBoostClassifier(noise="gaussian:0.5", scaling="standard", radius=0.4, n_estimators=8, split_step=0.05)


def test_stages_are_those_of_shorter_training(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """Stage k of `staged_certify` is the classifier trained with k stumps; the last one is the classifier itself."""
    clf = clone(SMALL).fit(*tumours)
    stages = list(clf.staged_certify(tumours[0], n_jobs=1))
    assert len(stages) == clf.n_estimators_ + 1 == 9
    for n_added in (3, 8):
        shorter = clone(SMALL).set_params(n_estimators=n_added).fit(*tumours).certify(tumours[0])
        np.testing.assert_array_equal(stages[n_added].log_failure, shorter.log_failure)
        np.testing.assert_array_equal(stages[n_added].label, shorter.label)
    with pytest.raises(ValueError, match="features"):
        clf.staged_certify(tumours[0][:, :2])


def test_train_score_is_certified_accuracy(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """The score after each stage is the share of rows that are certified at the target radius."""
    X, y = tumours
    clf = clone(SMALL).fit(X, y)
    shares = [certified_accuracy(y, stage, [0.4])[0] for stage in clf.staged_certify(X)]
    np.testing.assert_allclose(clf.train_score_, shares, rtol=0, atol=1e-12)
    assert clf.train_score_[-1] > clf.train_score_[0]
    assert clf.validation_score_ is None


def test_radius_stands_for_a_quantile(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """A radius trains the same model as its quantile; with neither the quantile is 0.75."""
    by_radius = clone(SMALL).fit(*tumours)
    by_quantile = clone(SMALL).set_params(radius=None, quantile=1 - float(Gaussian(0.5).failure_at(0.4)))
    assert list_stumps(by_quantile.fit(*tumours)) == list_stumps(by_radius)
    assert by_radius.quantile_ == by_quantile.quantile_
    assert clone(SMALL).set_params(radius=None).fit(*tumours).quantile_ == 0.75


def test_early_stopping_keeps_the_best_stage(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """Training ends when the validation score no longer rises, goes back to the best stage, and obeys the seed."""
    patient = clone(SMALL).set_params(n_estimators=40, validation_fraction=0.3, random_state=1).fit(*tumours)
    eager = clone(patient).set_params(n_iter_no_change=3).fit(*tumours)
    assert patient.n_estimators_ == 40
    assert patient.validation_score_ is not None
    assert eager.validation_score_ is not None
    assert eager.n_estimators_ < 40
    assert eager.validation_score_.argmax() == eager.n_estimators_
    np.testing.assert_array_equal(eager.validation_score_, patient.validation_score_[: eager.n_estimators_ + 1])
    following = patient.validation_score_[eager.n_estimators_ + 1 : eager.n_estimators_ + 4]
    assert (following <= eager.validation_score_[-1]).all()
    assert list_stumps(eager) == list_stumps(patient)[: len(list_stumps(eager))]
    other = clone(eager).set_params(random_state=2).fit(*tumours)
    assert list_stumps(other) != list_stumps(eager)
    assert clone(SMALL).set_params(n_iter_no_change=3).fit(*tumours).validation_score_ is not None


def test_stumps_per_feature_are_limited(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """No feature gets more stumps than allowed, and training ends when all are full."""
    clf = clone(SMALL).set_params(max_stumps_per_feature=2, n_estimators=40).fit(*tumours)
    assert np.bincount(clf.stump_features_).tolist() == [2] * 8
    assert clf.n_estimators_ == 8


def test_learning_rate_shrinks_leaves(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """With a smaller learning rate the first added stump has the same split and leaves nearer to 1/2."""
    whole, half = (clone(SMALL).set_params(n_estimators=1, learning_rate=rate).fit(*tumours) for rate in (1.0, 0.5))
    (*_, big), (*_, small) = list_stumps(whole), list_stumps(half)
    assert big[:2] == small[:2]
    for one, other in zip(big[2:], small[2:], strict=True):
        assert abs(other - 0.5 - 0.5 * (one - 0.5)) <= 0.0101
    assert max(abs(leaf - 0.5) for leaf in big[2:]) > 0.05


def test_scaling_equals_scaling_by_hand(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """`scaling` gives the labels and radii that scaled columns give."""
    X, y = tumours
    by_hand = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = clone(SMALL).fit(X, y).certify(X)
    scaled = clone(SMALL).set_params(scaling=None).fit(by_hand, y).certify(by_hand)
    np.testing.assert_array_equal(alone.label, scaled.label)
    np.testing.assert_allclose(alone.radius, scaled.radius, rtol=1e-6, atol=1e-9)


def test_categories_shift_the_score() -> None:
    """Categorical features keep their tables, and the certifiable prediction counts them."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 2))
    words = rng.choice(["a", "b", "c"], size=200)
    y = (numbers[:, 0] + (words == "a") + 0.5 * rng.normal(size=200) > 0.5).astype(int)
    X = np.column_stack([numbers.astype(object), words])
    clf = RobTreeBoostClassifier(noise="gaussian:0.3", quantile=0.9, n_estimators=5, categorical_features=[2]).fit(X, y)
    assert [table.feature for table in clf.ensemble_.category_tables] == [2]
    assert clf.ensemble_.levels == 200
    assert clf.stump_features_.size == 7
    shares = [np.mean((stage.label == y) & (stage.failure <= 1 - 0.9 + 1e-12)) for stage in clf.staged_certify(X)]
    np.testing.assert_allclose(clf.train_score_, shares, rtol=0, atol=1e-12)
    assert clf.certify(X, l0=1).radius.mean() < clf.certify(X).radius.mean()


def test_stages_keep_the_tables_as_they_are() -> None:
    """The category tables of every stage are those of the model itself: nothing is divided and rounded again."""
    rng = np.random.default_rng(1)
    words, numbers = rng.choice(["a", "b", "c"], size=90), rng.normal(size=90)
    y = (numbers + (words == "a") > 0.4).astype(int)
    X = np.column_stack([numbers.astype(object), words])
    clf = RobTreeBoostClassifier(noise="gaussian:0.3", n_estimators=3, levels=3, categorical_leaf=None).fit(X, y)
    whole = clf.ensemble_.category_tables
    for n_added in range(4):
        stage = clf._at_stage(n_added).ensemble_
        assert [one is other for one, other in zip(stage.category_tables, whole, strict=True)] == [True]
        assert stage.threshold == (1 + clf.stump_features_.size - 3 + n_added) * stage.levels // 2


def test_boosting_can_start_from_nothing() -> None:
    """Where no stump of the first ensemble is kept, boosting starts from a prediction of 1/2."""
    X, y = make_classification(200, 4, random_state=0)
    clf = RobTreeBoostClassifier(noise="gaussian:0.5", max_entropy=1e-6, n_estimators=5).fit(X, y)
    assert clf.stump_features_.size == 5
    assert clf.score(X, y) > 0.8
    assert set(next(clf.staged_certify(X)).label) == {0}


def test_constant_columns_give_a_constant_model() -> None:
    """Without a column that can be split the model is the class of the larger weight, with a warning."""
    with pytest.warns(UserWarning, match="the model is constant"):
        clf = RobTreeBoostClassifier().fit(np.zeros((5, 2)), [0, 1, 1, 1, 0])
    assert clf.predict([[0.0, 0.0]]).tolist() == [1]
    assert clf.n_estimators_ == 0
    assert [stage.label.tolist() for stage in clf.staged_certify([[3.0, 3.0]])] == [[1]]
    assert set(clf.ignored_features_) == {0, 1}


def test_threads_do_not_change_the_model(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """One thread and three train the same stumps."""
    one, three = (clone(SMALL).set_params(n_jobs=n_jobs).fit(*tumours) for n_jobs in (1, 3))
    assert list_stumps(one) == list_stumps(three)


def test_interrupted_training(tumours: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves a new estimator unfitted and a fitted one as it was."""
    fitted = clone(SMALL).fit(*tumours)
    before = vars(fitted).copy()
    find, calls = ResidualSearch.find, []

    def interrupt(self: ResidualSearch, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return find(self, *arguments)

    monkeypatch.setattr(ResidualSearch, "find", interrupt)
    fresh = clone(SMALL)
    for clf in (fresh, fitted):
        with pytest.raises(KeyboardInterrupt):
            clf.fit(tumours[0][:, :5], tumours[1])
    with pytest.raises(NotFittedError):
        fresh.predict(tumours[0][:, :5])
    assert vars(fitted) == before
    assert len(fitted.predict(tumours[0])) == len(tumours[1])


def test_save_and_load(tumours: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """A saved classifier comes back with its stages and scores."""
    clf = clone(SMALL).set_params(n_estimators=3, noise=Gaussian(0.5)).fit(*tumours)
    save(clf, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.get_params() == clf.get_params()
    assert list_stumps(again) == list_stumps(clf)
    np.testing.assert_array_equal(again.train_score_, clf.train_score_)
    for one, other in zip(clf.staged_certify(tumours[0]), again.staged_certify(tumours[0]), strict=True):
        np.testing.assert_array_equal(one.radius, other.radius)


def test_verbose_shows_progress(tumours: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    """With `verbose` lines appear on standard error, otherwise nothing."""
    clone(SMALL).fit(*tumours)
    assert capsys.readouterr() == ("", "")
    clone(SMALL).set_params(verbose=True).fit(*tumours)
    out, err = capsys.readouterr()
    assert out == ""
    assert "boosting" in err


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"quantile": 0.9, "radius": 1.0}, "Give one of `quantile` and `radius`, got both"),
        ({"quantile": 0.4}, "`quantile` must be at least 1/2 and below 1, got 0.4"),
        ({"quantile": 1.0}, "`quantile` must be at least 1/2 and below 1, got 1.0"),
        ({"radius": -1.0}, "`radius` must be positive and finite, got -1.0"),
        ({"radius": 2.0, "noise": "uniform:1"}, "`radius` must be one that uniform:1.0 can certify"),
        ({"n_estimators": 0}, "`n_estimators` must be a whole number, 1 or larger, got 0"),
        ({"max_stumps_per_feature": 0}, "`max_stumps_per_feature` must be a whole number"),
        ({"n_iter_no_change": 0.5}, "`n_iter_no_change` must be a whole number"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive"),
        ({"validation_fraction": 1.5}, "`validation_fraction` must be above 0 and at most"),
        ({"levels": 0}, "`levels` must be a whole number"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """Every parameter that makes no sense is refused by name."""
    with pytest.raises(ValueError, match=message):
        RobTreeBoostClassifier(**parameters).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


def test_split_step_must_be_a_number() -> None:
    """The exact search of StumpClassifier, `split_step=None`, is not there for boosting."""
    with pytest.raises(TypeError, match="`split_step` must be a number, got None"):
        RobTreeBoostClassifier(split_step=None).fit([[0.0], [1.0]], [0, 1])  # type: ignore[arg-type]


def test_first_ensemble_is_the_independent_one(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """Training starts with the stumps of StumpClassifier, where their splits lie within the values' range."""
    X, y = tumours
    clf = RobTreeBoostClassifier(noise="gaussian:0.2", scaling="standard", n_estimators=1).fit(X, y)
    alone = StumpClassifier(noise="gaussian:0.2", scaling="standard").fit(X, y)
    for stump, term in zip(list_stumps(clf), alone.ensemble_.step_functions, strict=False):
        assert stump.feature == term.feature
        np.testing.assert_allclose(100 * np.array(stump[2:]), term.scores[:, 0], rtol=0, atol=1.001)
