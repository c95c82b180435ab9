"""Training without noise: least entropy on the rows as they are, and scikit-learn's boosted stumps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

from derand import StumpClassifier
from experiments.baselines.noise_free_training import train_gradient_boosting, train_on_clean_rows, train_on_noisy_copy


def draw_rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).round(2)
    return X, (X[:, 0] + 0.5 * rng.normal(size=120) > 0.3).astype(int)


def measure_plainly(x: np.ndarray, y: np.ndarray, split: float) -> float:
    weight = np.where(y == 1, (y == 0).sum() / (y == 1).sum(), 1.0)
    total = 0.0
    for side in (x < split, x >= split):
        masses = [weight[side & (y == code)].sum() for code in (0, 1)]
        total -= sum(mass * np.log(mass / sum(masses)) for mass in masses if mass > 0)
    return float(total / weight.sum())


def test_clean_stumps_have_the_least_entropy_of_all_candidates() -> None:
    """No candidate of the grid parts the rows better than the split that was chosen."""
    X, y = draw_rows()
    model = train_on_clean_rows(X, y, "gaussian:0.5")
    assert len(model.step_functions) == 3
    for term in model.step_functions:
        x = X[:, term.feature]
        candidates = np.arange(x.min() - 1.0, x.max() + 1.01, 0.01)
        best = min(measure_plainly(x, y, split) for split in candidates)
        assert measure_plainly(x, y, float(term.edges[0])) == pytest.approx(best, abs=1e-12)


def test_little_noise_trains_the_same_splits() -> None:
    """Training under next to no noise parts the rows as training on clean rows does."""
    X, y = draw_rows()
    clean = train_on_clean_rows(X, y, "gaussian:0.001")
    noisy = StumpClassifier(noise="gaussian:0.001", class_weight="balanced").fit(X, y).ensemble_
    for one, other in zip(clean.step_functions, noisy.step_functions, strict=True):
        np.testing.assert_array_equal(one.evaluate(X[:, one.feature]), other.evaluate(X[:, one.feature]))


@pytest.mark.parametrize("noise", ["gaussian:0.3", "uniform:0.5"])
def test_a_noisy_copy_depends_on_the_seed_alone(noise: str) -> None:
    """Equal seeds give equal models, others other ones."""
    X, y = draw_rows()
    one, same, other = (train_on_noisy_copy(X, y, noise, seed=seed) for seed in (0, 0, 1))
    assert [term.edges.tolist() for term in one.step_functions] == [term.edges.tolist() for term in same.step_functions]
    assert [term.edges.tolist() for term in one.step_functions] != [
        term.edges.tolist() for term in other.step_functions
    ]


def test_gradient_boosting_decides_as_scikit_learn_does() -> None:
    """Scores are those of scikit-learn's model up to their rounding, and so are labels."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    booster = GradientBoostingClassifier(n_estimators=40, learning_rate=0.3, max_depth=1, random_state=0).fit(X, y)
    model = train_gradient_boosting(X, y, n_stumps=40, levels=100_000)
    margin = (model.score(X) - model.threshold) / 100_000
    np.testing.assert_allclose(margin, booster.decision_function(X), atol=40 / 100_000 + 2e-5)
    assert ((model.score(X) > model.threshold) == booster.predict(X)).all()
