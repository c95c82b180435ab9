"""Without a radius: AdditiveClassifier beside an EBM, gradient boosting and a linear model, all with their defaults.

Owns the tables of `python -m experiments natural`, how each model wants its categories, and what a radius costs. Must
not know how anything is trained or printed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.estimators import AdditiveClassifier
from experiments.beyond._shares import fit_quietly
from experiments.datasets import Dataset, Split, load

NATURAL_DATASETS = (
    "adult",
    "credit",
    "bank",
    "breast_cancer",
    "diabetes",
    "sklearn_breast_cancer",
    "spambase",
    "mammographic",
    "mushroom",
    "sklearn_digits",
)
PRICE_RADII = (0.1, 0.25, 0.5)
"""In l2, in the estimator's own units: interquartile ranges."""
OURS, PEER = "AdditiveClassifier", "EBM"
_NEEDS = {PEER: "interpret", "XGBoost": "xgboost", "LightGBM": "lightgbm"}
ONE_SPLIT = "adult"
"""The dataset with one split, whose times are compared."""
LEAST_AUC, MOST_LOSS, LEAST_SPEED = -0.01, 0.015, 10.0
"""Floors: how far we may lie from the EBM, and how many times faster training must be on adult."""
NO_PEER = "What is not installed is left out: EBM, XGBoost and LightGBM need pip install --group peers."


@dataclass(frozen=True, slots=True)
class Natural:
    """One line of the table: means over the splits; accuracy in per cent."""

    dataset: str
    model: str
    splits: int
    accuracy: float
    auc: float
    log_loss: float
    seconds: float
    """Of training, per split."""


def has_peer() -> bool:
    """Whether all other libraries are here."""
    return all(map(_is_here, MODELS))


def _is_here(model: str) -> bool:
    return model not in _NEEDS or find_spec(_NEEDS[model]) is not None


def _load(name: str) -> Dataset:
    """A dataset of two classes; of digits the even and the odd ones."""
    data = load(name)
    if len(data.target_names) == 2:
        return data
    return replace(data, y=data.y % 2, target_names=("even", "odd"))


def compare_naturally(datasets: Sequence[str] = NATURAL_DATASETS, models: Sequence[str] = ()) -> Iterator[Natural]:
    """The lines of the table, one after the other.

    Parameters
    ----------
    datasets : sequence of str
    models : sequence of str
        Of MODELS; all that can be trained here where none are named.
    """
    chosen = models or [name for name in MODELS if _is_here(name)]
    for dataset in datasets:
        data = _load(dataset)
        splits = [data.split] if dataset == ONE_SPLIT else draw_splits(data)
        for name in chosen:
            some = np.random.default_rng(0).permutation(len(data.y))[:300]
            MODELS[name](data).fit(data.X[some], data.y[some])  # compiles, imports
            measured = np.array([_measure(MODELS[name](data), data, split) for split in splits])
            yield Natural(dataset, name, len(splits), *measured.mean(axis=0).tolist())


@dataclass(frozen=True, slots=True)
class Price:
    """What a radius costs: accuracy in per cent and AUC on test rows, and the share that is right and certified."""

    dataset: str
    radius: float
    accuracy: float
    auc: float
    certified: float
    constant: float
    """What a constant answer certifies at any radius."""


def measure_price(datasets: Sequence[str] = NATURAL_DATASETS) -> Iterator[Price]:
    """What training for a radius costs, without one and at PRICE_RADII, on one of the splits."""
    from sklearn.metrics import roc_auc_score

    for dataset in datasets:
        data = _load(dataset)
        split = data.split if dataset == ONE_SPLIT else draw_splits(data)[0]
        rows, truth = data.X[split.test], data.y[split.test]
        for radius in (0.0, *PRICE_RADII):
            model = AdditiveClassifier(radius=radius, categorical_features=list(data.categorical))
            fit_quietly(model, data.X[split.train], data.y[split.train])
            found = model.certify(rows)
            right = found.label == truth
            yield Price(
                dataset,
                radius,
                100 * float(right.mean()),
                float(roc_auc_score(truth, model.predict_proba(rows)[:, 1])),
                100 * float((right & (found.radius >= radius)).mean()),
                100 * float(np.bincount(truth).max() / truth.size),
            )


def draw_splits(data: Dataset) -> list[Split]:
    """Five stratified splits, the same for every model."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return [Split(train, test) for train, test in folds.split(data.X, data.y)]


def check_floors(lines: Sequence[Natural]) -> Iterator[tuple[str, bool]]:
    """Each floor in words with its figure, and whether it holds."""
    found = {(line.dataset, line.model): line for line in lines}
    for (dataset, model), ours in found.items():
        peer = found.get((dataset, PEER))
        if model != OURS or peer is None:
            continue
        auc, loss = ours.auc - peer.auc, ours.log_loss - peer.log_loss
        yield f"{dataset}: AUC {auc:+.4f} from the EBM's, {LEAST_AUC:+g} at least", auc >= LEAST_AUC
        yield f"{dataset}: log-loss {loss:+.4f} from the EBM's, {MOST_LOSS:+g} at most", loss <= MOST_LOSS
        if dataset == ONE_SPLIT:
            ratio = peer.seconds / ours.seconds
            yield f"{dataset}: trained {ratio:.1f} times as fast, {LEAST_SPEED:g} at least", ratio >= LEAST_SPEED


def _measure(model: Any, data: Dataset, split: Split) -> tuple[float, float, float, float]:
    """Accuracy in per cent, AUC, log-loss and seconds of training on one split."""
    from sklearn.metrics import log_loss, roc_auc_score

    rows, truth = data.X[split.test], data.y[split.test]
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of EBM about few values, of ours about rare labels
        model.fit(data.X[split.train], data.y[split.train])
    seconds = time.perf_counter() - started
    share: NDArray[Any] = model.predict_proba(rows)[:, 1]
    right = float((model.predict(rows) == truth).mean())
    return 100 * right, float(roc_auc_score(truth, share)), float(log_loss(truth, share)), seconds


def _make_ours(data: Dataset) -> Any:
    return AdditiveClassifier(radius=0, categorical_features=list(data.categorical))


def _make_ebm(data: Dataset) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if at in data.categorical else "continuous" for at in range(len(data.feature_names))]
    return ExplainableBoostingClassifier(interactions=0, feature_types=kinds)


def _make_boosting(data: Dataset) -> Any:
    """Categories become codes, which the model is told not to order; they come first."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = ColumnTransformer([("codes", codes, list(data.categorical))], remainder="passthrough")
    first = list(range(len(data.categorical)))
    return make_pipeline(columns, HistGradientBoostingClassifier(categorical_features=first, random_state=0))


def _put_codes_first(data: Dataset, model: Any) -> Any:
    """Categories as codes, which come first, before a model that takes NaN."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = ColumnTransformer([("codes", codes, list(data.categorical))], remainder="passthrough")
    return make_pipeline(columns, FunctionTransformer(_as_doubles), model)


def _as_doubles(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def _make_xgboost(data: Dataset) -> Any:
    from xgboost import XGBClassifier

    n_categories = len(data.categorical)
    kinds = ["c"] * n_categories + ["q"] * (len(data.feature_names) - n_categories)
    return _put_codes_first(data, XGBClassifier(feature_types=kinds, enable_categorical=True, random_state=0))


def _make_lightgbm(data: Dataset) -> Any:
    from lightgbm import LGBMClassifier

    first = list(range(len(data.categorical)))
    options: dict[str, Any] = {"categorical_feature": first} if first else {}
    return _put_codes_first(data, LGBMClassifier(verbose=-1, random_state=0, **options))


def _make_linear(data: Dataset) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), list(data.numerical)),
            ("categories", OneHotEncoder(handle_unknown="ignore"), list(data.categorical)),
        ]
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


MODELS: Mapping[str, Callable[[Dataset], Any]] = {
    OURS: _make_ours,
    PEER: _make_ebm,
    "HistGradientBoosting": _make_boosting,
    "XGBoost": _make_xgboost,
    "LightGBM": _make_lightgbm,
    "LogisticRegression": _make_linear,
}
