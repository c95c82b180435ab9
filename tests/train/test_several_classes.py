"""Training for several classes: stumps and additive models, what does not change them, and rare classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand.model import AdditiveEnsemble, Argmax
from derand.noise import Gaussian, Noise
from derand.threat import Threat
from derand.train import AdditiveOptions, AdditiveTraining, TrainingTable, strategies, train_additive, train_stumps
from derand.train.additive import bin_rows, measure_sizes
from derand.train.formulations import Problem


def make_table(n_rows: int = 240, seed: int = 0, n_classes: int = 3, n_columns: int = 3) -> TrainingTable:
    """Centers on a circle, columns that say nothing, and a category that says something."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, n_classes, size=n_rows).astype(np.uint8)
    angle = 2 * np.pi * target / n_classes
    X = rng.normal(size=(n_rows, n_columns + 1))
    X[:, 0] += 3 * np.cos(angle)
    X[:, 1] += 3 * np.sin(angle)
    X[:, n_columns] = np.where(rng.random(n_rows) < 0.5, target, rng.integers(0, n_classes, size=n_rows))
    return TrainingTable(X, target, np.ones(n_classes), n_categories={n_columns: n_classes})


def predict(model: AdditiveEnsemble, X: Any) -> Any:
    decision = model.decision
    assert isinstance(decision, Argmax)
    return (model.score(X) + np.array(decision.offsets)).argmax(axis=1)


def score(model: AdditiveEnsemble, X: Any) -> Any:
    """Scores as real numbers, less what all classes share."""
    decision = model.decision
    assert isinstance(decision, Argmax)
    scores = (model.score(X) + np.array(decision.offsets)) / model.levels
    return scores - scores.mean(axis=1, keepdims=True)


def train(table: TrainingTable, radius: float, noise: Noise | None = None, **options: Any) -> AdditiveTraining:
    options = {"regularization": 0.1} | options
    return train_additive(table, noise, Threat(norm=2), AdditiveOptions(radius, **options))


@pytest.mark.parametrize(("radius", "noise"), [(0.0, None), (0.3, None), (0.3, Gaussian(0.15))])
def test_additive_models_learn_several_classes(radius: float, noise: Noise | None) -> None:
    table, test = make_table(), make_table(seed=1)
    training = train(table, radius, noise)
    assert isinstance(training.model.decision, Argmax)
    assert (predict(training.model, test.X) == test.target).mean() > 0.9
    assert training.importances.sum() == pytest.approx(1.0)
    assert training.importances[2] < training.importances[0]
    assert len(training.calibration) == 4
    assert training.warnings == ()


@pytest.mark.parametrize("norm", [1, 2, np.inf, None])
def test_every_threat_can_be_trained_against(norm: float | None) -> None:
    table, test = make_table(), make_table(seed=1)
    limits = {"limits": {"*": 0.2}} if norm is None else {}
    threat = Threat(norm=norm, l0=1, frozen=(2,), **limits)
    training = train_additive(table, Gaussian(0.1), threat, AdditiveOptions(0.2, regularization=0.1))
    assert (predict(training.model, test.X) == test.target).mean() > 0.85


def test_cross_validation_chooses_and_calibrates() -> None:
    table = make_table(n_columns=2)
    training = train(table, 0.2, regularization=None)
    path = training.path
    assert training.regularization == path.regularization[path.loss.argmin()]
    scores = training.calibration[0] * score(training.model, table.X) + np.array(training.calibration[1:])
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert shares.max(axis=1).mean() == pytest.approx((shares.argmax(axis=1) == table.target).mean(), abs=0.05)


def test_class_weights_move_the_decision_and_are_taken_back_by_shifts() -> None:
    table = make_table(n_columns=2)
    weighted = replace(table, class_weight=np.array([1.0, 1.0, 20.0]))
    plain, moved = train(table, 0.0), train(weighted, 0.0)
    assert (predict(moved.model, table.X) == 2).sum() > (predict(plain.model, table.X) == 2).sum()
    assert moved.calibration[3] < min(moved.calibration[1:3])


@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_other_numbers_for_the_classes_give_the_same_model(radius: float) -> None:
    table = make_table()
    order = np.array([2, 0, 1])
    renamed = replace(table, target=order.astype(np.uint8)[table.target])
    first, second = train(table, radius).model, train(renamed, radius).model
    np.testing.assert_allclose(score(second, table.X)[:, order], score(first, table.X), atol=0.05)
    stumps = [train_stumps(one, Gaussian(0.3)).model for one in (table, renamed)]
    np.testing.assert_array_equal(stumps[1].score(table.X)[:, order], stumps[0].score(table.X))


def test_a_weight_counts_as_so_many_rows() -> None:
    table = make_table(80)
    repeats = np.random.default_rng(0).integers(1, 4, size=80)
    weighted = replace(table, sample_weight=repeats / repeats.mean())
    repeated = table.take(np.repeat(np.arange(80), repeats))
    rows = make_table(200, seed=1).X
    for radius in (0.0, 0.2):
        models = [train(one, radius, regularization=1.0).model for one in (weighted, repeated)]
        np.testing.assert_allclose(*(score(model, rows) for model in models), atol=0.05)
    stumps = [train_stumps(one, Gaussian(0.3)).model for one in (weighted, repeated)]
    np.testing.assert_array_equal(*(model.score(rows) for model in stumps))


def test_a_class_that_occurs_once_can_be_trained() -> None:
    table = make_table(60)
    target = np.where(table.target == 2, 0, table.target).astype(np.uint8)
    target[0] = 2
    rare = replace(table, target=target)
    for radius in (0.0, 0.2):
        training = train(rare, radius, regularization=None)
        assert np.isfinite(score(training.model, table.X)).all()
    assert train_stumps(rare, Gaussian(0.3)).model.n_classes == 3


def test_a_class_that_does_not_occur_is_never_the_answer() -> None:
    table = make_table(60)
    absent = replace(table, target=(table.target % 2).astype(np.uint8))
    for radius in (0.0, 0.2):
        assert not (predict(train(absent, radius).model, table.X) == 2).any()


def test_a_radius_that_is_too_large_is_told() -> None:
    training = train(make_table(n_columns=2), 50.0, Gaussian(25.0))
    assert any("collapsed" in text or "no numerical column counts" in text for text in training.warnings)


def test_many_columns_and_classes_go_by_steepness() -> None:
    table, test = (make_table(400, seed, n_classes=6, n_columns=40) for seed in (0, 1))
    numbers = replace(table, X=table.X[:, :40], n_categories={})
    training = train(numbers, 0.3, Gaussian(0.3), regularization=1.0)
    assert (predict(training.model, test.X[:, :40]) == test.target).mean() > 0.7


def test_large_tables_go_by_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "LIMITS", replace(strategies.LIMITS, batch_cells=1000))
    table, test = (make_table(600, seed, n_classes=6, n_columns=40) for seed in (0, 1))
    numbers = replace(table, X=table.X[:, :40], n_categories={})
    training = train(numbers, 0.3, Gaussian(0.3), regularization=None)
    assert training.record.strategy == "first order, in batches, all columns"
    again = train(numbers, 0.3, Gaussian(0.3), regularization=None, n_threads=2)
    assert (predict(training.model, test.X[:, :40]) == test.target).mean() > 0.7
    np.testing.assert_array_equal(training.model.score(numbers.X), again.model.score(numbers.X))


def test_steepness_is_not_for_every_threat() -> None:
    table = make_table(100, n_classes=6, n_columns=40)
    binned = bin_rows(table, AdditiveOptions(0.3), 8)

    def prefers(noise: Noise | None, threat: Threat, radius: float = 0.3) -> bool:
        problem = Problem(noise, threat, AdditiveOptions(radius), 41, 6)
        return strategies.choose_strategy(measure_sizes(table, binned, problem)).loss == "first order"

    assert prefers(Gaussian(0.1), Threat(norm=2))
    assert prefers(Gaussian(0.1), Threat(norm=1, frozen=(0,)))
    assert not prefers(None, Threat(norm=2))
    assert not prefers(Gaussian(0.1), Threat(norm=2), radius=0.0)
    assert not prefers(Gaussian(0.1), Threat(norm=np.inf))
    assert not prefers(Gaussian(0.1), Threat(norm=2, l0=1))
    assert not prefers(Gaussian(0.1), Threat(norm=2, limits={0: 1.0}))


def test_monotone_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="`monotone` must be empty for 3 classes"):
        train(make_table(), 0.0, monotone={0: 1})


@pytest.mark.parametrize("categorical_leaf", [0.125, None])
@pytest.mark.parametrize("split_step", [0.01, None])
def test_stumps_learn_several_classes(categorical_leaf: float | None, split_step: float | None) -> None:
    table, test = make_table(), make_table(seed=1)
    X = table.X.copy()
    X[::7, 0] = np.nan
    gaps = replace(table, X=X)
    training = train_stumps(gaps, Gaussian(0.3), categorical_leaf=categorical_leaf, split_step=split_step)
    assert (predict(training.model, test.X) == test.target).mean() > 0.6
    assert (predict(training.model, X) == table.target).mean() > 0.6
    assert np.nanmax(training.entropy) < np.log(2)
    stumps = training.stumps
    assert stumps.left.shape == stumps.right.shape == stumps.missing.shape == (stumps.features.size, 3)
    assert np.unique(stumps.features, return_counts=True)[1].max() == 3  # one for each class
    for leaves in (stumps.left, stumps.right):
        assert ((leaves > 0).sum(axis=1) <= 1).all()


def test_leaves_are_shares_of_a_class_against_the_rest_under_noise() -> None:
    """By hand: rows left of each split as the noise says, weighed by one over the root of their class's share."""
    from scipy.stats import norm

    X = np.array([[0.0], [0.1], [2.0], [2.1], [2.2], [0.3]])
    target = np.array([0, 0, 1, 2, 2, 2], dtype=np.uint8)
    stumps = train_stumps(TrainingTable(X, target, np.ones(3)), Gaussian(0.5), levels=1000).stumps
    assert stumps.thresholds.size == 3
    for label, split in enumerate(stumps.thresholds):
        is_own = target == label
        weights = np.where(is_own, is_own.mean(), 1 - is_own.mean()) ** -0.5
        for leaves, side in ((stumps.left, 1), (stumps.right, -1)):
            rows = norm.cdf(side * (split - X[:, 0]) / 0.5) * weights
            expected = np.zeros(3)
            expected[label] = rows[is_own].sum() / rows.sum()
            np.testing.assert_allclose(leaves[label], expected, atol=1e-3)


def test_a_class_that_a_column_does_not_tell_keeps_its_leaf() -> None:
    """The same on both sides: what it has without any split."""
    X = np.array([[0.0], [0.1], [5.0], [5.1], [0.05], [5.05]])
    target = np.array([0, 0, 1, 1, 2, 2], dtype=np.uint8)
    stumps = train_stumps(TrainingTable(X, target, np.ones(3)), Gaussian(0.5), max_entropy=0.6, levels=1000).stumps
    assert stumps.features.tolist() == [0, 0]
    even = (1 / 3) ** 0.5 / ((1 / 3) ** 0.5 + (2 / 3) ** 0.5)
    for leaves in (stumps.left, stumps.right):
        assert leaves[:, 2].sum() == pytest.approx(even, abs=1e-3)
        assert (leaves[:, :2] > -1e-12).all()


def test_nothing_to_learn_gives_the_heaviest_class() -> None:
    table = TrainingTable(np.zeros((4, 1)), np.array([0, 1, 2, 2], dtype=np.uint8), np.ones(3))
    assert predict(train_stumps(table, Gaussian(0.3)).model, table.X).tolist() == [2] * 4


def test_too_many_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`class_weight` of TrainingTable .* 256"):
        TrainingTable(np.zeros((2, 1)), np.zeros(2, dtype=np.uint8), np.ones(300))
