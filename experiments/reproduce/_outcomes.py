"""Carrying out plans: load, split, train, certify; what remains of each split is an Outcome.

Owns the registries of trainers and certifiers that recipes may name. Must not know tables or what was published.
"""

from __future__ import annotations

import functools
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.certificates import Certificates, certify
from derand.estimators import RobAdaBoostClassifier, RobTreeBoostClassifier, StumpClassifier
from derand.metrics import certified_share
from derand.model import Model
from derand.noise import Noise, parse_noise
from experiments.baselines.knapsack import certify_without_noise
from experiments.baselines.monte_carlo import certify_by_sampling
from experiments.baselines.noise_free_training import train_gradient_boosting, train_on_clean_rows, train_on_noisy_copy
from experiments.baselines.published_stumps import train_stumps_as_published
from experiments.baselines.published_tree_boost import PublishedRobTreeBoostClassifier
from experiments.datasets import Dataset, Split, load
from experiments.reproduce._plans import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a plan gave on one split.

    Attributes
    ----------
    y, label : arrays of shape (n_rows,)
        True and certified classes.
    radius : array of shape (n_budgets, n_rows)
    edges : array of shape (n_edges,)
        All split positions of the model.
    seconds : array of shape (2,)
        Time of training and of certifying.
    """

    y: IntArray
    label: IntArray
    radius: FloatArray
    edges: FloatArray
    seconds: FloatArray

    def certified_accuracy(self, budget: int, radii: FloatArray, *, balanced: bool) -> FloatArray:
        """Share of the rows that are right and certified at each radius, for the budget of that place."""
        correct, radius = self.y == self.label, self.radius[budget]
        groups = [self.y == name for name in np.unique(self.y)] if balanced else [np.full(self.y.shape, True)]
        return np.asarray(np.mean([certified_share(correct[rows], radius[rows], radii) for rows in groups], axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """What a trainer gets."""

    X: NDArray[Any]
    y: IntArray
    categorical: list[int]
    noise: Noise | None
    n_jobs: int | None
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A model, and how rows become the matrix that it reads."""

    model: Model
    encode: Callable[[NDArray[Any]], FloatArray]


def carry_out(plan: Plan, n_jobs: int | None = None) -> list[Outcome]:
    """Train and certify on each split of a plan.

    Parameters
    ----------
    plan : Plan
    n_jobs : int or None
        Threads; None is all cores.

    Returns
    -------
    list of Outcome
        One per split: one for "fixed", five for "folds"; only the first where the plan is for a part of the rows.
    """
    data = _load(plan.dataset)
    splits = [data.split] if plan.evaluation == "fixed" else list(data.fold_splits)
    if plan.part is not None:
        splits = splits[:1]
    return [_carry_out_split(plan, data, split, n_jobs) for split in splits]


@functools.lru_cache(maxsize=2)
def _load(name: str) -> Dataset:
    return load(name)


def _carry_out_split(plan: Plan, data: Dataset, split: Split, n_jobs: int | None) -> Outcome:
    parts = data.divide(split, plan.scaling)
    columns = {"all": range(len(data.feature_names)), "numerical": data.numerical, "categorical": data.categorical}
    chosen = list(columns[plan.features])
    categorical = [at for at, column in enumerate(chosen) if column in data.categorical]
    X_train, X_test = (_prepare(X[:, chosen], categorical, plan) for X in (parts.X_train, parts.X_test))
    y_test = parts.y_test
    if plan.part is not None and plan.part < len(y_test):
        kept = np.linspace(0, len(y_test) - 1, plan.part).astype(np.int64)
        X_test, y_test = X_test[kept], y_test[kept]
    noise = None if plan.noise is None else parse_noise(plan.noise)
    rows = TrainingRows(X_train, parts.y_train, categorical, noise, n_jobs, plan.seed)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant models and widened steps are part of the tables
        trained = TRAINERS[plan.trainer](rows, **json.loads(plan.training))
    finished = time.perf_counter()
    certifier, options = CERTIFIERS[plan.certifier], json.loads(plan.certification)
    matrix = trained.encode(X_test)
    certifier(trained.model, matrix[:1], noise, plan.budgets, plan.seed, n_jobs, **options)  # compiles
    begun = time.perf_counter()
    certificates = certifier(trained.model, matrix, noise, plan.budgets, plan.seed, n_jobs, **options)
    certified = time.perf_counter()
    return Outcome(
        y=y_test,
        label=certificates[0].label,
        radius=np.stack([one.radius for one in certificates]),
        edges=_list_edges(trained.model),
        seconds=np.array([finished - started, certified - begun]),
    )


def _prepare(X: NDArray[Any], categorical: Sequence[int], plan: Plan) -> NDArray[Any]:
    """The chosen columns: a float matrix where none is categorical; numbers cut towards 0 where the plan says so."""
    numerical = [column for column in range(X.shape[1]) if column not in categorical]
    if plan.cut_numbers:
        X = X.copy()
        X[:, numerical] = np.trunc(X[:, numerical].astype(np.float64))
    return X if categorical else X.astype(np.float64)


def _list_edges(model: Model) -> FloatArray:
    edges = [axis.edges for term in model.member_terms for axis in term.axes]
    return np.concatenate(edges) if edges else np.empty(0)


def _use_estimator(kind: Callable[..., Any]) -> Callable[..., Trained]:
    """A trainer that fits an estimator of derand."""

    def train(rows: TrainingRows, **parameters: Any) -> Trained:
        classifier = kind(
            noise=rows.noise, categorical_features=rows.categorical, n_jobs=rows.n_jobs, **parameters
        ).fit(rows.X, rows.y)
        return Trained(classifier.ensemble_, classifier.encoding_.encode)

    return train


def _as_it_is(X: NDArray[Any]) -> FloatArray:
    return np.asarray(X, dtype=np.float64)


def _train_clean_stumps(rows: TrainingRows, **parameters: Any) -> Trained:
    return Trained(train_on_clean_rows(rows.X, rows.y, _require(rows.noise), **parameters), _as_it_is)


def _train_sampled_stumps(rows: TrainingRows, **parameters: Any) -> Trained:
    return Trained(train_on_noisy_copy(rows.X, rows.y, _require(rows.noise), seed=rows.seed, **parameters), _as_it_is)


def _train_stumps_as_published(rows: TrainingRows, **parameters: Any) -> Trained:
    return Trained(train_stumps_as_published(rows.X, rows.y, _require(rows.noise), **parameters), _as_it_is)


def _train_gradient_boosting(rows: TrainingRows, **parameters: Any) -> Trained:
    return Trained(train_gradient_boosting(rows.X, rows.y, seed=rows.seed, **parameters), _as_it_is)


def _require(noise: Noise | None) -> Noise:
    if noise is None:
        raise ValueError("This trainer needs a noise: give the line or its recipe one.")
    return noise


def _certify_exactly(
    model: Model, X: FloatArray, noise: Noise | None, budgets: Sequence[int], seed: int, n_jobs: int | None
) -> list[Certificates]:
    without_numbers = parse_noise("gaussian:1")  # any noise: no number is there to be changed
    return certify(model, X, noise or without_numbers, budgets, unseen=False, n_jobs=n_jobs, proof="paper")


def _certify_by_sampling(
    model: Model,
    X: FloatArray,
    noise: Noise | None,
    budgets: Sequence[int],
    seed: int,
    n_jobs: int | None,
    *,
    n_samples: int,
) -> list[Certificates]:
    (ensemble,) = model.members
    return [certify_by_sampling(ensemble, X, _require(noise), n_samples, seed=seed, n_jobs=n_jobs)]


def _certify_without_noise(
    model: Model,
    X: FloatArray,
    noise: Noise | None,
    budgets: Sequence[int],
    seed: int,
    n_jobs: int | None,
    *,
    norm: str,
) -> list[Certificates]:
    (ensemble,) = model.members
    return [certify_without_noise(ensemble, X, p=float(norm[1:]), n_jobs=n_jobs)]


TRAINERS: Mapping[str, Callable[..., Trained]] = {
    "stumps": _use_estimator(StumpClassifier),
    "stumps_as_published": _train_stumps_as_published,
    "robtreeboost": _use_estimator(RobTreeBoostClassifier),
    "robtreeboost_as_published": _use_estimator(PublishedRobTreeBoostClassifier),
    "robadaboost": _use_estimator(RobAdaBoostClassifier),
    "clean_stumps": _train_clean_stumps,
    "sampled_stumps": _train_sampled_stumps,
    "gradient_boosting": _train_gradient_boosting,
}

CERTIFIERS: Mapping[str, Callable[..., list[Certificates]]] = {
    "exact": _certify_exactly,
    "monte_carlo": _certify_by_sampling,
    "knapsack": _certify_without_noise,
}
