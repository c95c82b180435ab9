"""Several classes: natural and certified accuracy of tables with three and ten of them.

Owns the table of `python -m experiments classes`. Must not know how anything is trained, certified or printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split

from derand.estimators import TRAINERS
from derand.metrics import certified_accuracy
from experiments.beyond import fit_quietly
from experiments.datasets import load
from experiments.interactions import cut_patches

Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Training rows, test rows, and the labels of both."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with the radii at which it is looked at (l2), and the least that is to be reached, in per cent.

    Attributes
    ----------
    splits : int
        Random splits, three rows in ten for the test, over which shares are means; 0 for the table's own split.
    unit : float or None
        By what numbers are divided, so that radii are about shares of it; None for standard deviations.
    """

    name: str
    splits: int
    unit: float | None
    radii: tuple[float, ...]
    natural: float
    certified: tuple[float, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_image(self) -> bool:
        """Whether its columns are pixels of 28 x 28, of which neighbours may be grouped."""
        return self.name in ("mnist", "fashion_mnist")


TABLES = (
    Table("iris", 10, None, (0.1, 0.25, 0.5), 0.0, ()),
    Table("wine", 10, None, (0.25, 0.5, 1.0), 99.0, (95.0, 88.0, 71.0), {"radius": 0.5}),
    Table("digits", 2, 16.0, (0.1, 0.25, 0.5), 96.8, (92.0, 83.0, 44.0)),
    Table("mnist", 0, 1.0, (0.25, 0.5, 0.8), 94.0, (91.0, 84.0, 67.0), {"noise": "gaussian:0.25"}),
    Table("fashion_mnist", 0, 1.0, (0.25, 0.5, 0.8), 0.0, (), {"noise": "gaussian:0.25"}),
)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "additive, mean": {"trainer": "additive", "rule": "mean"},
    "additive, mean, 2 x 2 patches": {
        "trainer": "additive",
        "rule": "mean",
        "options": {"groups": (2, 2), "radius": 0.5, "regularization": 1.0},
    },
    "additive, vote": {"trainer": "additive", "rule": "vote"},
    "stumps, vote": {"trainer": "stumps", "rule": "vote"},
}


@dataclass(frozen=True, slots=True)
class Line:
    """One model on one table: means over its splits, in per cent; seconds of one split."""

    table: str
    way: str
    rows: int
    natural: float
    radii: tuple[float, ...]
    certified: tuple[float, ...]
    fit_seconds: float
    certify_seconds: float


def measure_classes(
    names: Sequence[str], ways: Sequence[str] = tuple(WAYS), test_rows: int | None = None
) -> Iterator[Line]:
    """The lines of some tables, in order.

    Parameters
    ----------
    names : sequence of str
        Of TABLES.
    ways : sequence of str
        Of WAYS.
    test_rows : int or None
        How many test rows of each split are certified; None for all.
    """
    for table in TABLES:
        for way in ways if table.name in names else ():
            if "groups" in WAYS[way].get("options", {}) and not table.is_image:
                continue
            yield _measure_line(table, way, test_rows)


def _measure_line(table: Table, way: str, test_rows: int | None) -> Line:
    shares, seconds, n_rows = [], [], 0
    for X_train, X_test, y_train, y_test in _divide(table):
        kept = slice(test_rows)
        classifier = _make_classifier(table, WAYS[way])
        start = time.perf_counter()
        fit_quietly(classifier, X_train, y_train)
        fitted = time.perf_counter()
        found = classifier.certify(X_test[kept])
        seconds.append((fitted - start, time.perf_counter() - fitted))
        truth = y_test[kept]
        held = certified_accuracy(truth, found, table.radii).tolist()
        shares.append([float((found.label == truth).mean()), *held])
        n_rows += len(truth)
    natural, *certified = (100 * np.mean(shares, axis=0)).tolist()
    fit, certify = np.mean(seconds, axis=0).tolist()
    return Line(table.name, way, n_rows, natural, table.radii, tuple(certified), fit, certify)


def _make_classifier(table: Table, way: Mapping[str, Any]) -> Any:
    options: dict[str, Any] = {"rule": way["rule"], "scaling": "standard" if table.unit is None else None}
    if way["trainer"] == "additive":
        options |= {"radius": 0.25, "random_state": 0, **table.options, **way.get("options", {})}
        if "groups" in options:
            options["groups"] = cut_patches(*options["groups"])
    else:
        options["noise"] = table.options.get("noise", f"gaussian:{table.radii[1]:g}")
    return TRAINERS[way["trainer"]](**options)


def _divide(table: Table) -> Iterator[Parts]:
    if not table.splits:
        parts = (data := load(table.name)).divide(data.split)
        yield parts.X_train, parts.X_test, parts.y_train, parts.y_test
        return
    X, y = getattr(datasets, f"load_{table.name}")(return_X_y=True)
    for seed in range(table.splits):
        yield tuple(train_test_split(X / (table.unit or 1.0), y, test_size=0.3, random_state=seed, stratify=y))


def check_floors(lines: Sequence[Line]) -> Iterator[tuple[str, bool]]:
    """What was to be reached, by the better rule of each table, and whether it was."""
    for table in TABLES:
        own = [line for line in lines if line.table == table.name]
        if not own or not table.certified:
            continue
        best = max(own, key=lambda line: sum(line.certified))
        yield f"{table.name} natural {best.natural:.1f} of {table.natural:.1f}", best.natural >= table.natural
        for radius, share, floor in zip(table.radii, best.certified, table.certified, strict=True):
            yield f"{table.name} at {radius:g}: {share:.1f} of {floor:.1f}", share >= floor
