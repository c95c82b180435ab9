"""A noise that overrides nothing that training needs still trains, and certifies, correctly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import special

from derand import Noise
from derand.estimators import TRAINERS, CertifiedClassifier, RobTreeBoostClassifier
from derand.train import SplitGrid, measure_entropy, measure_left, search_minimum, search_splits, tabulate
from experiments.baselines.plain_boosting import BoostedStump, add_stump_plainly
from experiments.baselines.plain_training import train_plainly

SLACK = 1 + 2.0**-40


@dataclass(frozen=True, slots=True)
class Plain(Noise):
    """What all noises of this test share: upper bounds of probabilities by a distribution function, generously."""

    scale: float
    units: tuple[float, ...] | None = None

    norm: ClassVar[int] = 1
    parameter: ClassVar[str] = "scale"

    def failure_at(self, radius: ArrayLike) -> Any:
        return self.cdf(-np.asarray(radius, dtype=np.float64) / self.scale)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        raise NotImplementedError

    def _sides(self, x: Any, edges: Any, scales: Any) -> Any:
        z = (edges - x) / scales
        return np.minimum(np.stack([self.cdf(z), self.cdf(-z)], axis=-1) * SLACK, 1.0)

    def _cells(self, x: Any, edges: Any, scales: Any, starts: Any) -> Any:
        parts = []
        for start, stop in pairwise(starts):
            own = slice(start, stop)
            z = (edges[own] - x[:, own]) / scales[own]
            below = np.concatenate([np.zeros((len(x), 1)), self.cdf(z), np.ones((len(x), 1))], axis=1)
            parts.append(np.diff(below, axis=1))
        return np.clip(np.concatenate(parts, axis=1) * SLACK + 2.0**-50, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Logistic(Plain):
    """Heavier tails than the normal pmf; log-concave, so that half-lines are the worst case in one dimension."""

    name: ClassVar[str] = "logistic"

    def cdf(self, z: ArrayLike) -> Any:
        return special.expit(np.asarray(z, dtype=np.float64))

    def radius(self, failure: ArrayLike) -> Any:
        return np.maximum(-self.scale * special.logit(np.minimum(np.asarray(failure), 0.5)) * (1 - 1e-9), 0.0)


@dataclass(frozen=True, slots=True)
class Triangular(Plain):
    """Bounded on [-scale, scale], without saying so."""

    name: ClassVar[str] = "triangular"

    def cdf(self, z: ArrayLike) -> Any:
        at = np.clip(np.asarray(z, dtype=np.float64), -1.0, 1.0)
        return np.where(at < 0, 0.5 * (1 + at) ** 2, 1 - 0.5 * (1 - at) ** 2)

    def radius(self, failure: ArrayLike) -> Any:
        return np.maximum(self.scale * (1 - np.sqrt(2 * np.minimum(np.asarray(failure), 0.5))) * (1 - 1e-9), 0.0)


@dataclass(frozen=True, slots=True)
class Cauchy(Logistic):
    """Tails so heavy that the noise reaches everywhere."""

    name: ClassVar[str] = "cauchy"

    def cdf(self, z: ArrayLike) -> Any:
        at = np.asarray(z, dtype=np.float64)
        return np.where(at < 0, np.arctan2(1.0, -at) / np.pi, 1 - np.arctan2(1.0, at) / np.pi)


NOISES = [Logistic(0.2), Triangular(0.6), Cauchy(0.1)]


def draw(n_rows: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    target = rng.integers(0, 2, n_rows).astype(np.uint8)
    X = np.stack([rng.normal(1.5 * target, 1.0), rng.integers(0, 4, n_rows) + 0.5 * target], axis=1)
    return X, target


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_splits_are_those_of_the_plain_loop(noise: Noise) -> None:
    """Grid search agrees with the paper's loop over candidates and rows, and no denser grid beats the minimum."""
    X, target = draw()
    balance = target.size / (2 * np.bincount(target))
    grid = SplitGrid.around(noise, 0.01)
    splits = search_splits(X, np.arange(2), target, noise, grid, class_weight=balance)
    plain = train_plainly(X, target, noise)
    np.testing.assert_allclose(splits.thresholds, [stump.threshold for stump in plain], atol=1e-9)
    np.testing.assert_allclose(splits.entropy, [stump.entropy for stump in plain], atol=1e-12)
    exact = search_splits(X, np.arange(2), target, noise, grid, class_weight=np.ones(2), search=search_minimum)
    for histogram in tabulate(X, np.arange(2), target, None, np.ones(2), 0.001):
        dense = np.arange(-1.0, histogram.spans.max() + 1.0, 0.0005)
        totals = histogram.counts.sum(axis=2).astype(np.float64)
        least = measure_entropy(measure_left(histogram, dense, noise), totals).min(axis=1)
        assert (exact.entropy[histogram.columns] <= least + 1e-12).all()


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_added_stumps_are_the_brute_force_best(noise: Noise) -> None:
    """Boosting adds the stump that a plain search over all candidates finds next."""
    X, target = draw(30)
    clf = RobTreeBoostClassifier(noise=noise, quantile=0.7, n_estimators=3, split_step=0.1).fit(X, target)
    columns = (clf.stump_features_, clf.stump_thresholds_, clf.stump_left_, clf.stump_right_)
    stumps = [BoostedStump(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]
    for at in range(len(stumps) - 3, len(stumps)):
        expected = add_stump_plainly(stumps[:at], X, target, noise, 0.7, split_step=0.1)
        assert stumps[at] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", TRAINERS.values(), ids=TRAINERS)
@pytest.mark.parametrize("noise", [Logistic(0.2), Triangular(0.6)], ids=str)
def test_every_trainer_learns_and_certifies(noise: Noise, kind: type[CertifiedClassifier]) -> None:
    """Each trainer learns under the noise, and in one dimension no shift below the radius changes a label."""
    X, target = draw()
    steps = {"split_step": 0.05} if "split_step" in kind._get_param_names() else {}  # faster, where splits are searched
    clf = kind(noise=noise, **steps).fit(X[:, :1], target)
    certificates = clf.certify(X[:, :1])
    assert np.mean(certificates.label == target) > 0.7
    assert (certificates.radius > 0).mean() > 0.5
    for share in (-0.999, 0.999):
        shifted = X[:, :1] + share * certificates.radius[:, None]
        np.testing.assert_array_equal(clf.predict(shifted), certificates.label)


def test_a_noise_that_overrides_nothing_reaches_far_enough() -> None:
    """The reach is found from the distribution function, also where the tails are heavy."""
    assert Triangular(1.0).reach == 1.0
    assert Logistic(1.0).reach == 42.0
    assert 2.0**57 <= Cauchy(1.0).reach <= 2.0**60
