"""A classifier with a training radius, rows to tune on, and tunings made up from figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from derand import Gaussian, StumpClassifier, Tuning
from derand.estimators import CertifiedClassifier
from derand.noise import Noise
from derand.train import StumpTraining, TrainingTable, train_stumps


class RadiusClassifier(CertifiedClassifier):
    """Stumps whose noise grows with the radius that they are trained for."""

    def __init__(
        self,
        *,
        radius: float = 0.1,
        norm: float = 2,
        noise: Noise | str | None = None,
        class_weight: Any = None,
        scaling: str | None = None,
        categorical_features: Any = "from_dtype",
        rule: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        self.radius = radius
        self.norm = norm
        self.noise = noise
        self.class_weight = class_weight
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.rule = rule
        self.n_jobs = n_jobs

    @property
    def _default_noise(self) -> Noise | None:
        return Gaussian(max(2 * self.radius, 0.01))

    def _train(self, table: TrainingTable, noise: Noise) -> StumpTraining:
        return train_stumps(table, noise)


def make_rows(n_rows: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two columns that tell most labels, a and b, of which b is somewhat rarer."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.45
    return rng.normal(size=(n_rows, 2)) + np.column_stack([2.5 * y, 1.0 * y]), np.where(y, "b", "a")


def make_tuning(
    own_radii: list[float],
    natural: list[float],
    own: list[float],
    *,
    error: float = 0.0,
    constant: float = 0.6,
    accuracy_loss: float = 0.01,
    by_balanced: bool = False,
) -> Tuning:
    """A tuning of training radii with these figures; of each at the radii of others it is its own."""
    figures, shares = np.array(natural), np.tile(np.array(own)[:, None], (1, len(own)))
    other = np.zeros_like(figures)
    return Tuning(
        RadiusClassifier(),
        "radius",
        tuple(own_radii),
        np.array([radius for radius in own_radii if radius > 0]),
        natural=other if by_balanced else figures,
        natural_balanced=figures if by_balanced else other,
        natural_error=np.full(len(own), error),
        certified=shares[:, 1:],
        certified_error=0 * shares[:, 1:],
        balanced=shares[:, 1:],
        balanced_error=0 * shares[:, 1:],
        own_radii=np.array(own_radii),
        own_certified=shares,
        constant=constant,
        norm=2,
        by_balanced=by_balanced,
        accuracy_loss=accuracy_loss,
    )


PLAIN = StumpClassifier(noise="gaussian:0.4", rule="mean")
