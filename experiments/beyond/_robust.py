"""The field's own table for changes of every column by itself (linf): natural and robust test errors.

Owns the table of `python -m experiments robust`: rows, published errors, floors. The classifier is the public one with
its defaults, and chooses its penalty on training rows; an error is a wrong label, or a radius below the row's. Must not
know how anything is trained, certified or printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from derand.estimators import AdditiveClassifier
from experiments.beyond._choice import divide_in_five
from experiments.beyond._shares import fit_quietly
from experiments.datasets import Dataset, Split, load
from experiments.sharper import attack_rows

FEW_ROWS = 2_000
"""Tables of fewer rows are measured on five folds as well: a split leaves out some 150 of them."""
ATTACKED = 10


class Errors(NamedTuple):
    """Robust test errors in per cent."""

    chen_stumps: float
    chen_trees: float
    stumps: float
    trees: float


@dataclass(frozen=True, slots=True)
class RobustRow:
    """A row: what may change, what was published, and what single columns must reach.

    `published`: of Chen et al. 2019, and of Andriushchenko and Hein 2019, from the tables of the latter. Columns of
    tables count in ranges of training rows. Splits may differ from theirs.
    """

    dataset: str
    radius: float
    published: Errors
    floor: float


ROWS = (
    RobustRow("breast_cancer", 0.3, Errors(16.8, 13.1, 10.9, 6.6), 11.7),
    RobustRow("diabetes", 0.05, Errors(30.5, 40.3, 31.8, 35.7), 34.4),
    RobustRow("mnist_1v5", 0.3, Errors(5.2, 2.9, 3.6, 1.3), 2.5),
    RobustRow("mnist_2v6", 0.3, Errors(13.9, 6.9, 9.1, 3.8), 7.2),
    RobustRow("fmnist_shoes", 0.1, Errors(22.2, 13.2, 10.8, 8.0), 9.2),
)


@dataclass(frozen=True, slots=True)
class Robust:
    """One line of the table; errors in per cent of the test rows."""

    dataset: str
    radius: float
    published: Errors
    floor: float
    tests: int
    natural: float
    robust: float
    folds: float | None
    """Mean robust error over five folds of all rows, for tables of few rows."""
    penalty: float
    steps: int
    gap: float
    seconds: float
    """Of the processor, of the fit with its choice of penalty."""
    inside: int
    """Of the rows that were attacked, how many were flipped within their radius: must be 0."""


def compare_robustly(names: Sequence[str] = ()) -> Iterator[Robust]:
    """The lines of the table, one after the other; `names`: of datasets, all where none is named."""
    for row in ROWS:
        if not names or row.dataset in names:
            yield _measure_row(row)


def check_robust(lines: Sequence[Robust]) -> Iterator[tuple[str, bool]]:
    """Each floor in words with its figure, and whether it is met: within two rows where few are tested."""
    for line in lines:
        spare = 200 / line.tests if line.tests < FEW_ROWS / 10 else 0.05
        text = f"{line.dataset}: {line.robust:.1f} % robust errors, {line.floor:g} at most"
        yield text, line.robust <= line.floor + spare


def _measure_row(row: RobustRow) -> Robust:
    data = load(row.dataset)
    classifier, seconds, X, natural, robust = _measure_split(row, data, data.split)
    some = np.linspace(0, len(X) - 1, ATTACKED).astype(int)
    inside, _ = attack_rows(classifier.ensemble_, X[some], classifier.noise_, classifier.certify(X[some]))
    folds = None
    if len(data.y) < FEW_ROWS:
        folds = float(np.mean([_measure_split(row, data, split)[4] for split in divide_in_five(data.y)]))
    fit = classifier.training_.fit
    return Robust(
        row.dataset,
        row.radius,
        row.published,
        row.floor,
        len(X),
        natural,
        robust,
        folds,
        classifier.regularization_,
        classifier.training_.n_iterations,
        fit.gap,
        seconds,
        inside,
    )


def _measure_split(
    row: RobustRow, data: Dataset, split: Split
) -> tuple[AdditiveClassifier, float, np.ndarray, float, float]:
    """The classifier, seconds of its fit, the test rows, and its natural and robust errors on them."""
    is_table = len(data.y) < FEW_ROWS
    parts = data.divide(split, "range" if is_table else None)
    classifier = AdditiveClassifier(
        radius=row.radius, norm=np.inf, scaling=None, categorical_features=None, random_state=0, n_jobs=1
    )
    begun = time.process_time()
    fit_quietly(classifier, parts.X_train, parts.y_train)
    seconds = time.process_time() - begun
    found = classifier.certify(parts.X_test)
    right = found.label == parts.y_test
    robust = right & (found.radius >= row.radius)
    return classifier, seconds, parts.X_test, 100 * float(1 - right.mean()), 100 * float(1 - robust.mean())
