"""Unbalanced data: no trainer is silent about a model that gives every row the same label."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from derand import AdditiveEnsemble, RobAdaBoostClassifier, RobTreeBoostClassifier, SmoothedClassifier, StumpClassifier
from derand.estimators import CertifiedClassifier
from derand.estimators._one_label import _ROUNDS, spread_rows

PAPER: dict[str, CertifiedClassifier] = {
    "stumps": StumpClassifier(noise="gaussian:0.5"),
    "tree-boost": RobTreeBoostClassifier(noise="gaussian:0.5", n_estimators=5),
    "ada-boost": RobAdaBoostClassifier(noise="gaussian:0.5", n_estimators=3),
}


def make_unbalanced(n_rows: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """95 rows of "no" for 5 of "yes", which lie one deviation apart in each of four columns."""
    y = np.arange(n_rows) % 20 == 7
    return np.random.default_rng(seed).normal(size=(n_rows, 4)) + y[:, None], np.where(y, "yes", "no")


def fit_and_listen(classifier: CertifiedClassifier, X: Any, y: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(X, y, **options)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("name", PAPER)
def test_one_label_for_all_rows_is_told_once(name: str, rule: str) -> None:
    """The warning names the share of the larger class and what to try; with balanced weights there is none."""
    X, y = make_unbalanced()
    classifier = PAPER[name].set_params(rule=rule, class_weight=None)
    told = fit_and_listen(classifier, X, y)
    assert set(classifier.predict(X)) == {"no"}
    (text,) = [one for one in told if "Every training row gets the label 'no'" in one]
    for part in (f"rule '{rule}', gaussian:0.5", "95.0 %", 'class_weight="balanced"', "AdditiveClassifier"):
        assert part in text
    balanced = fit_and_listen(classifier.set_params(class_weight="balanced"), X, y)
    assert set(classifier.predict(X)) == {"yes", "no"}
    assert not [one for one in balanced if "training row" in one]


def test_weights_that_were_given_are_not_suggested() -> None:
    """Where they did not help, the warning names what is left; weights of rows count for the share."""
    X, y = make_unbalanced()
    (text,) = fit_and_listen(StumpClassifier(noise="gaussian:0.5", class_weight={"no": 2.0}), X, y)
    assert "class_weight" not in text
    assert "Try less noise or AdditiveClassifier." in text
    (text,) = fit_and_listen(StumpClassifier(noise="gaussian:0.5"), X, y, sample_weight=np.where(y == "no", 2.0, 1.0))
    assert "'no', has 97.4 % of the rows" in text


def test_a_constant_model_is_told_in_the_same_words() -> None:
    """One warning, not two; equal classes have no use for weights."""
    (text,) = fit_and_listen(StumpClassifier(), np.zeros((6, 1)), [0, 1, 0, 1, 0, 1])
    assert "the model is constant: every row gets 0" in text
    assert "class_weight" not in text
    assert "less noise, another scaling, a larger max_entropy or AdditiveClassifier" in text


def test_a_part_of_many_rows_is_looked_at() -> None:
    """The warning says so; a model that tells one row in twenty apart is not complained about."""
    X, y = make_unbalanced(5000)
    (text,) = fit_and_listen(StumpClassifier(noise="gaussian:0.5"), X, y)
    assert text.startswith("Each of 2,000 training rows, spread over both classes, gets the label 'no'")
    assert not fit_and_listen(StumpClassifier(noise="gaussian:0.1"), X + 9 * (y == "yes")[:, None], y)


def make_overlapping(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A column whose top tenth has three rare labels in ten, so that to name them there costs right answers."""
    x = np.arange(n_rows) / n_rows
    rare = (x > 0.9) & (np.arange(n_rows) % 10 < 3) | (np.arange(n_rows) % 20 == 0)
    return x[:, None], rare.astype(int)


class Stubborn(StumpClassifier):
    """Answers 1 in the top tenth, whatever the rows say."""

    def _train(self, table: Any, noise: Any) -> Any:
        model = AdditiveEnsemble.from_stumps([0], [0.9], [0.1], [0.9], n_features=1)
        return SimpleNamespace(model=model, warnings=())


@pytest.mark.parametrize("n_rows", [200, 5000])
def test_a_model_that_does_not_beat_the_constant_answer_is_told(n_rows: int) -> None:
    """Several labels, and fewer right ones than by one label alone; weights that ask for it are no fault."""
    X, y = make_overlapping(n_rows)
    classifier = Stubborn(noise="gaussian:0.01")
    (text,) = fit_and_listen(classifier, X, y)
    rate, constant = (classifier.predict(X) == y).mean(), (y == 0).mean()
    assert rate < constant
    assert "the accuracy of this model is" in text
    assert "% of 0 for every row (rule 'vote', gaussian:0.01): its certificates say little" in text
    assert 'class_weight="balanced"' in text
    assert ("were looked at" in text) == (n_rows > _ROUNDS[-1])
    assert not fit_and_listen(Stubborn(noise="gaussian:0.01", class_weight="balanced"), X, y)
    assert not fit_and_listen(Stubborn(noise="gaussian:0.01"), X, (X[:, 0] > 0.9) * 1)
    upside = fit_and_listen(Stubborn(noise="gaussian:0.01", class_weight="balanced"), X, (X[:, 0] < 0.9) * 1)
    assert "the balanced accuracy of this model is" in upside[0]
    assert "not above the 50.0 % of any constant answer" in upside[0]


def test_a_smoothed_model_that_does_not_beat_the_constant_answer_is_told() -> None:
    """Of the rows that it is compared on; silent where it beats the constant, or tells classes apart at its cost."""
    smoothed = SmoothedClassifier(DecisionTreeClassifier(max_depth=1))
    y = np.arange(200) % 8 == 0
    smoothed.classes_ = np.unique(y)
    (text,) = smoothed._warn_of_one_answer(np.arange(200) % 9 == 0, y)
    assert text.startswith("On 200 training rows: The accuracy of this model, 79.0 %, is not above the 87.5 %")
    assert not smoothed._warn_of_one_answer(y, y)
    assert not smoothed._warn_of_one_answer(np.arange(200) % 4 == 0, y)
    assert "the same answer" in smoothed._warn_of_one_answer(np.zeros(200, dtype=bool), y)[0]


def test_certifying_many_rows_that_get_one_label_warns() -> None:
    """From 50 rows on, once, at the caller's line; a few rows and rows of several labels are certified in silence."""
    X, y = make_unbalanced()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    with pytest.warns(UserWarning, match=r"All 60 rows get the answer 'no'\. Unless all of them are") as caught:
        classifier.certify(X[:60], l0=[0, 1])
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.certify(X[:49])
        StumpClassifier(noise="gaussian:0.5", class_weight="balanced").fit(X, y).certify(X)


@pytest.mark.parametrize("n_rare", [1, 3, 40, 1500, 5000])
@pytest.mark.parametrize("most", _ROUNDS)
def test_rows_are_spread_over_both_classes(n_rare: int, most: int) -> None:
    """Half of them are of the rare class, or all of it; the same ones each time, none twice."""
    target = np.zeros(10000, dtype=np.uint8)
    target[np.linspace(0, 9999, n_rare).astype(int)] = 1
    chosen = spread_rows(target, most)
    assert np.unique(chosen).size == chosen.size == most
    assert target[chosen].sum() == min(n_rare, most // 2)
    assert np.diff(chosen[target[chosen] == 0]).max() < 10000 / (most / 2) * 3
    np.testing.assert_array_equal(chosen, spread_rows(target, most))
    assert spread_rows(target[:60], 64).tolist() == list(range(60))
