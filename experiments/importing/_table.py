"""Models of other libraries, as they are and trained for smoothing, beside our own trainers: what can be certified.

Owns the table of `python -m experiments import-table` and how each library wants its columns. Must not know how models
are read, certified or printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand import AdditiveClassifier, SmoothedClassifier, StumpClassifier, certified_accuracy, from_model
from experiments.datasets import Dataset, load
from experiments.importing.frames import make_frame, name_columns, split_rows

IMPORT_DATASETS = ("adult", "credit", "breast_cancer", "diabetes", "spambase")
RADII = (0.1, 0.25, 0.5)
"""In standard deviations of each column."""
NOISE = "gaussian:0.25"
COPIES, MOST_ROWS = 10, 100_000
"""Noisy copies of each training row, fewer where these would be more rows than that."""
PLAIN, AUGMENTED, OWN = "as it is", "noisy copies", "by its own trainer"


@dataclass(frozen=True, slots=True)
class Imported:
    """One line of the table, on the test rows; shares in per cent."""

    dataset: str
    model: str
    trained: str
    majority: float
    plain: float
    """Of the model without noise."""
    vote: float
    mean: float
    certified_by_vote: tuple[float, ...]
    certified_by_mean: tuple[float, ...]


def list_models() -> list[str]:
    """Those of MODELS whose library is here."""
    return [name for name, (library, _) in MODELS.items() if library is None or find_spec(library) is not None]


def compare_imported(datasets: Sequence[str] = IMPORT_DATASETS, models: Sequence[str] = ()) -> Iterator[Imported]:
    """The lines of the table, one after the other.

    Parameters
    ----------
    datasets : sequence of str
    models : sequence of str
        Of MODELS; all whose library is here where none are named.
    """
    for dataset in datasets:
        data = load(dataset)
        for name in models or list_models():
            for trained in (OWN,) if MODELS[name][0] is None else (PLAIN, AUGMENTED):
                yield _measure(data, dataset, name, trained)


def _measure(data: Dataset, dataset: str, name: str, trained: str) -> Imported:
    frame, (train, test) = make_frame(data), split_rows(data.y)
    rows, truth = frame.iloc[train], data.y[train]
    inner = MODELS[name][1](data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of smoothed models that fall far below the plain one: the table says so
        if trained == AUGMENTED:
            copies = min(COPIES, MOST_ROWS // len(rows))
            model = SmoothedClassifier(inner, noise=NOISE, augment=copies, scaling="standard", random_state=0)
            model.fit(rows, truth)
            trained = f"{copies} {AUGMENTED}"
        elif trained == PLAIN:
            model = from_model(inner.fit(rows, truth), rows, noise=NOISE, rule="vote", scaling="standard")
        else:
            model = inner.fit(rows, truth)
    tested, labels = frame.iloc[test], data.y[test]
    plain = model.certify(tested, noise="none", rule="mean").label
    found = {rule: model.certify(tested, noise=NOISE, rule=rule) for rule in ("vote", "mean")}
    shares = {rule: tuple(100 * certified_accuracy(labels, found[rule], RADII)) for rule in found}
    return Imported(
        dataset,
        name,
        trained,
        100 * float(np.unique(labels, return_counts=True)[1].max() / labels.size),
        _share(plain == labels),
        _share(found["vote"].label == labels),
        _share(found["mean"].label == labels),
        shares["vote"],
        shares["mean"],
    )


def _share(right: NDArray[np.bool_]) -> float:
    return 100 * float(right.mean())


def _make_ebm(data: Dataset) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if at in data.categorical else "continuous" for at in range(len(data.feature_names))]
    return ExplainableBoostingClassifier(interactions=0, feature_types=kinds, random_state=0)


def _make_xgboost(data: Dataset) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(max_depth=1, n_estimators=300, learning_rate=0.1, enable_categorical=True, n_jobs=2)


def _make_lightgbm(data: Dataset) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(max_depth=1, n_estimators=300, learning_rate=0.1, n_jobs=2, verbose=-1)


def _make_histogram(data: Dataset) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(interaction_cst="no_interactions", random_state=0)


def _make_linear(data: Dataset) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    names = name_columns(data)
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [names[at] for at in data.numerical]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), [names[at] for at in data.categorical]),
        ]
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def _make_additive(data: Dataset) -> Any:
    return AdditiveClassifier(radius=RADII[1], noise=NOISE, scaling="standard", random_state=0)


def _make_stumps(data: Dataset) -> Any:
    return StumpClassifier(noise=NOISE, scaling="standard")


MODELS: Mapping[str, tuple[str | None, Callable[[Dataset], Any]]] = {
    "EBM": ("interpret", _make_ebm),
    "XGBoost": ("xgboost", _make_xgboost),
    "LightGBM": ("lightgbm", _make_lightgbm),
    "HistGradientBoosting": ("sklearn", _make_histogram),
    "LogisticRegression": ("sklearn", _make_linear),
    "AdditiveClassifier": (None, _make_additive),
    "StumpClassifier": (None, _make_stumps),
}
"""The library of each model, None for our own trainers, and how it is made."""
