"""Retraining on witnesses: a model of any library is fitted again with the changed rows that flipped it.

The recipe of docs/import.md: fit, certify the training rows, add the witnesses with their rows' labels, fit again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derand import Threat, from_model
from experiments.datasets import load
from experiments.importing.frames import make_frame

ROUNDS = 6
LIMIT, WIDER = "5%", "10%"
_COPIES = 5


@dataclass(frozen=True, slots=True)
class Retrained:
    """One way to train: accuracy, and the share of test rows that are right and hold at 5 % and 10 %; in per cent."""

    seed: int
    way: str
    accuracy: float
    certified: float
    certified_wider: float


def compare_retraining(dataset: str = "adult", seeds: int = 5, rows: int = 4_000) -> Iterator[Retrained]:
    """XGBoost of depth 4 as it is, on noisy copies, and retrained on witnesses; fresh test rows for each seed."""
    import pandas as pd
    from sklearn.model_selection import train_test_split

    data = load(dataset)
    frame = make_frame(data)
    numbers = [frame.columns[at] for at in data.numerical]
    for seed in range(seeds):
        train, test = train_test_split(np.arange(len(frame)), test_size=rows, stratify=data.y, random_state=seed)
        X, y, tested, truth = frame.iloc[train], data.y[train], frame.iloc[test], data.y[test]
        yield _measure(seed, "as it is", _fit(X, y, seed), tested, truth)
        rng = np.random.default_rng(seed)
        copies = [X] + [_blur(X, numbers, rng) for _ in range(_COPIES)]
        noisy = _fit(pd.concat(copies), np.tile(y, _COPIES + 1), seed)
        yield _measure(seed, "noisy copies", noisy, tested, truth)
        yield _measure(seed, "on witnesses", retrain(X, y, seed), tested, truth)


def retrain(X, y: NDArray[np.int64], seed: int):  # type: ignore[no-untyped-def]
    """Fit, certify the training rows within the wider limits, add the witnesses, and fit again."""
    import pandas as pd

    threat = Threat(norm=None, limits={"*": WIDER})
    rows, labels = X, y
    fitted = _fit(rows, labels, seed)
    for _ in range(ROUNDS):
        model = from_model(fitted, X)
        found = model.certify(X, threat=threat)
        flips = found.verdict == "flips"
        witnesses = model.decode_rows(found.witness[flips], like=X[flips]).astype(X.dtypes)
        rows, labels = pd.concat([rows, witnesses]), np.concatenate([labels, y[flips]])
        fitted = _fit(rows, labels, seed)
    return fitted


def _fit(X, y: NDArray[np.int64], seed: int):  # type: ignore[no-untyped-def]
    from xgboost import XGBClassifier

    return XGBClassifier(max_depth=4, enable_categorical=True, random_state=seed, n_jobs=2).fit(X, y)


def _blur(X, numbers: list[str], rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """The rows with each number moved by up to 10 % either way."""
    moved = X.copy()
    moved[numbers] = X[numbers] * rng.uniform(0.9, 1.1, size=(len(X), len(numbers)))
    return moved


def _measure(seed: int, way: str, fitted, tested, truth: NDArray[np.int64]) -> Retrained:  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = from_model(fitted)
        shares = []
        for limit in (LIMIT, WIDER):
            found = model.certify(tested, threat=Threat(norm=None, limits={"*": limit}))
            shares.append(100 * float(((found.verdict == "holds") & (found.label == truth)).mean()))
    accuracy = 100 * float((fitted.predict(tested) == truth).mean())
    return Retrained(seed, way, accuracy, *shares)
