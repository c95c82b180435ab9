"""Datasets that scikit-learn brings along: one row each in CATALOG. Must not know files, models or noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from derand._core.origin import Fitted
from derand.datasets._dataset import Dataset, draw_folds, split_at_random


class Entry(Protocol):
    """A row of the catalog: what it is, the file it needs, and how it is read."""

    @property
    def summary(self) -> str: ...

    @property
    def file(self) -> str | None: ...

    def read(self) -> Dataset: ...


@dataclass(frozen=True, slots=True)
class BundledEntry:
    """Two classes of a dataset that scikit-learn brings along, class 0 first."""

    summary: str
    bundle: str
    classes: tuple[int, int]
    origin: str
    file: None = None

    def read(self) -> Dataset:
        """Read the rows of the two classes; three in ten are test rows."""
        from sklearn import datasets

        bundle: Fitted = getattr(datasets, f"load_{self.bundle}")()
        picked = np.isin(bundle.target, self.classes)
        return Dataset(
            X=np.asarray(bundle.data, dtype=np.float64)[picked],
            y=(bundle.target[picked] == self.classes[1]).astype(np.int64),
            target_names=tuple(str(bundle.target_names[code]) for code in self.classes),
            feature_names=tuple(str(name) for name in bundle.feature_names),
            categorical=(),
            split=split_at_random((bundle.target[picked] == self.classes[1]).astype(np.int64)),
            fold=draw_folds(int(picked.sum())),
            provenance=f"{self.origin}, as bundled with scikit-learn.",
        )


CATALOG: Mapping[str, Entry] = {
    "sklearn_breast_cancer": BundledEntry(
        "tumours, 30 measurements; bundled with scikit-learn, needs no file",
        "breast_cancer",
        (0, 1),
        "UCI, Breast Cancer Wisconsin (Diagnostic)",
    ),
    "sklearn_iris": BundledEntry(
        "versicolor and virginica, four measurements; bundled with scikit-learn", "iris", (1, 2), "UCI, Iris"
    ),
    "sklearn_wine": BundledEntry(
        "wines of two growers, 13 measurements; bundled with scikit-learn", "wine", (0, 1), "UCI, Wine"
    ),
    "sklearn_digits": BundledEntry(
        "handwritten 3 and 8, 64 pixels; bundled with scikit-learn",
        "digits",
        (3, 8),
        "UCI, Optical Recognition of Handwritten Digits, test part",
    ),
}
