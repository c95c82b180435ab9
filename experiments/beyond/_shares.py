"""What the tables share: quiet fits, shares of certified rows, and the rows of the paper's tables.

Owns how rows of a printed line are prepared. Must not know which models are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand.certificates import Certificates
from derand.metrics import certified_accuracy
from experiments.datasets import Dataset, Division, load


@dataclass(frozen=True, slots=True)
class Shares:
    """Of test rows, in per cent: labelled right, right and certified, and that as the mean over the classes."""

    natural: float
    certified: float
    balanced: float


def measure_shares(truth: ArrayLike, found: Certificates, radius: float) -> Shares:
    """What was certified of some rows at a radius."""
    return Shares(
        natural=100 * float((found.label == np.asarray(truth)).mean()),
        certified=100 * float(certified_accuracy(truth, found, [radius])[0]),
        balanced=100 * float(certified_accuracy(truth, found, [radius], balanced=True)[0]),
    )


def fit_quietly(classifier: Any, X: NDArray[Any], y: NDArray[Any]) -> Any:
    """Fit without a word about collapse: it shows in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return classifier.fit(X, y)


def prepare_rows(recipe: Mapping[str, Any]) -> Iterator[tuple[Dataset, Division]]:
    """The parts of each split that the recipe of a printed line names, scaled and cut as there."""
    data = load(recipe.get("source", recipe["dataset"]))
    for split in [data.split] if recipe["evaluation"] == "fixed" else data.fold_splits:
        parts = data.divide(split, recipe.get("scaling"))
        if recipe.get("cut_numbers"):
            for X in (parts.X_train, parts.X_test):
                columns = list(data.numerical)
                X[:, columns] = np.trunc(X[:, columns].astype(np.float64))
        yield data, parts
