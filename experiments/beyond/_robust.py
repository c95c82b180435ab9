"""The field's own table for changes of every column by itself (linf): natural and robust test errors.

Owns the tables of `python -m experiments robust` and `convergence`: rows, published errors, floors. Classifiers are the
public ones with their defaults, and choose their penalty on training rows; an error is a wrong label, or one that is
not proven within the row's radius. Must not know how anything is trained, certified or printed.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from derand import from_model
from derand._core.arrays import FloatArray
from derand.estimators import AdditiveClassifier
from derand.threat import Threat
from experiments.beyond._choice import divide_in_five
from experiments.beyond._shares import fit_quietly
from experiments.datasets import Dataset, Split, load
from experiments.sharper import attack_rows

FEW_ROWS = 2_000
"""Tables of fewer rows are measured on five folds as well: a split leaves out some 150 of them."""
ATTACKED = 10
SINGLE, PAIRS, PATCHES, PEER = "single columns", "all pairs", "patches", "XGBoost"
STEPS = (5, 10, 20, 40, 80, 160)
"""Sweeps after which fits are looked at."""
FINER = 0.1
"""Share of the tolerance at which the last fit ends: it takes about twice the steps."""


class Errors(NamedTuple):
    """Robust test errors in per cent."""

    chen_stumps: float
    chen_trees: float
    stumps: float
    trees: float


@dataclass(frozen=True, slots=True)
class RobustRow:
    """A row: what may change, what was published, and what must be reached.

    `published`: of Chen et al. 2019, and of Andriushchenko and Hein 2019, from the tables of the latter. Columns of
    tables count in ranges of training rows. Splits may differ from theirs. `groups`: as AdditiveClassifier takes them;
    None for all pairs of columns. `floors`: of single columns, and of groups.
    """

    dataset: str
    radius: float
    published: Errors
    floors: tuple[float, float]
    groups: str | None = None

    def list_models(self) -> list[str]:
        """What is compared on this row, as far as it can be trained here."""
        groups = PAIRS if self.groups is None else self.groups
        return [SINGLE, groups, *([PEER] if find_spec("xgboost") else [])]


ROWS = (
    RobustRow("breast_cancer", 0.3, Errors(16.8, 13.1, 10.9, 6.6), (11.7, 11.7)),
    RobustRow("diabetes", 0.05, Errors(30.5, 40.3, 31.8, 35.7), (34.4, 33.8)),
    RobustRow("mnist_1v5", 0.3, Errors(5.2, 2.9, 3.6, 1.3), (2.5, 1.5), "patches:3"),
    RobustRow("mnist_2v6", 0.3, Errors(13.9, 6.9, 9.1, 3.8), (7.2, 4.2), "patches:3"),
    RobustRow("fmnist_shoes", 0.1, Errors(22.2, 13.2, 10.8, 8.0), (9.2, 7.5), "patches:2"),
)


@dataclass(frozen=True, slots=True)
class Robust:
    """One line of the table; errors in per cent of the test rows."""

    dataset: str
    radius: float
    model: str
    published: Errors
    floor: float | None
    tests: int
    natural: float
    robust: float
    undecided: float
    """Rows that no budget of the search decided; they are among the robust errors."""
    folds: float | None
    """Mean robust error over five folds of all rows, for tables of few rows."""
    penalty: float | None
    steps: int
    gap: float | None
    seconds: float
    """Of the processor, of the fit with its choice of penalty."""
    certifying: float
    """The same of certifying all test rows."""
    inside: int
    """Of the rows that were attacked, how many were flipped within their radius: must be 0."""


class Shares(NamedTuple):
    """Errors in per cent."""

    natural: float
    robust: float
    undecided: float


def compare_robustly(names: Sequence[str] = (), models: Sequence[str] = ()) -> Iterator[Robust]:
    """The lines of the table; `names`: of datasets, `models`: of SINGLE, PAIRS, PATCHES, PEER; all without names."""
    for row in ROWS:
        for model in row.list_models():
            kind = PATCHES if model.startswith(PATCHES) else model
            if (not names or row.dataset in names) and (not models or kind in models):
                yield _measure_row(row, model)


def check_robust(lines: Sequence[Robust]) -> Iterator[tuple[str, bool]]:
    """Each floor in words with its figure, and whether it is met: within two rows where few are tested."""
    for line in lines:
        if line.floor is not None:
            spare = 200 / line.tests if line.tests < FEW_ROWS / 10 else 0.05
            text = f"{line.dataset}, {line.model}: {line.robust:.1f} % robust errors, {line.floor:g} at most"
            yield text, line.robust <= line.floor + spare


def _measure_row(row: RobustRow, model: str) -> Robust:
    data = load(row.dataset)
    classifier, seconds, X, y = _train(row, model, data, data.split)
    begun = time.process_time()
    found = _measure(classifier, X, y, row.radius)
    certifying = time.process_time() - begun
    some = X[np.linspace(0, len(X) - 1, ATTACKED).astype(int)]
    certificates = classifier.certify(some, threat=Threat(norm=np.inf))
    inside, _ = attack_rows(classifier.ensemble_, some, None, certificates)
    folds = None
    if len(data.y) < FEW_ROWS:
        parts = [_train(row, model, data, split) for split in divide_in_five(data.y)]
        folds = float(np.mean([_measure(one, rows, truth, row.radius).robust for one, _, rows, truth in parts]))
    is_ours = model != PEER
    return Robust(
        row.dataset,
        row.radius,
        model,
        row.published,
        row.floors[model != SINGLE] if is_ours else None,
        len(X),
        *found,
        folds,
        classifier.regularization_ if is_ours else None,
        classifier.training_.n_iterations if is_ours else 0,
        classifier.gap_ if is_ours else None,
        seconds,
        certifying,
        inside,
    )


def _train(
    row: RobustRow, model: str, data: Dataset, split: Split, **options: Any
) -> tuple[Any, float, FloatArray, np.ndarray]:
    """The classifier, seconds of its fit, the test rows, and their labels."""
    parts = data.divide(split, "range" if len(data.y) < FEW_ROWS else None)
    X, y = parts.X_train, parts.y_train
    begun = time.process_time()
    classifier: Any
    if model == PEER:
        from xgboost import XGBClassifier

        classifier = from_model(XGBClassifier(n_jobs=1, random_state=0).fit(X, y), X, n_jobs=1)
    else:
        pairs = [list(pair) for pair in itertools.combinations(range(X.shape[1]), 2)] if model == PAIRS else None
        groups = {SINGLE: None, PAIRS: pairs}.get(model, model)
        classifier = AdditiveClassifier(
            radius=row.radius,
            norm=np.inf,
            scaling=None,
            categorical_features=None,
            random_state=0,
            n_jobs=1,
            groups=groups,
            **options,
        )
        fit_quietly(classifier, X, y)
    return classifier, time.process_time() - begun, parts.X_test, parts.y_test


def _measure(classifier: Any, X: FloatArray, y: np.ndarray, radius: float) -> Shares:
    """Natural and robust errors; where a search certifies the model, by whether rows hold within the box."""
    if classifier.ensemble_.has_trees:
        found = classifier.certify(X, threat=Threat(norm=None, limits={"*": radius}))
        holds, undecided = found.verdict == "holds", float((found.verdict == "undecided").mean())
    else:
        found = classifier.certify(X)
        holds, undecided = found.radius >= radius, 0.0
    right = found.label == y
    return Shares(100 * float(1 - right.mean()), 100 * float(1 - (right & holds).mean()), 100 * undecided)


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of the study of convergence: what a fit is worth after so many sweeps, at one penalty."""

    dataset: str
    model: str
    ended: bool
    """Whether the gap ended it, at the usual tolerance; at a share of that in the last line."""
    steps: int
    loss: float
    gap: float
    natural: float
    robust: float
    rows: float
    """How many test rows one per cent is."""
    seconds: float


def follow_fits(names: Sequence[str] = (), models: Sequence[str] = ()) -> Iterator[Progress]:
    """What the classifiers of the table are worth while they are fitted, at the penalty that was chosen."""
    for row in ROWS:
        for model in row.list_models()[:2]:
            kind = PATCHES if model.startswith(PATCHES) else model
            if (names and row.dataset not in names) or (models and kind not in models):
                continue
            data = load(row.dataset)
            chosen = _train(row, model, data, data.split)[0].regularization_
            for steps in (*STEPS, None, 0):
                limit = {} if steps is None else {"tol": 1e-3 * FINER} if not steps else {"max_iter": steps}
                classifier, seconds, X, y = _train(row, model, data, data.split, regularization=chosen, **limit)
                fit, shares = classifier.training_.fit, _measure(classifier, X, y, row.radius)
                if steps and fit.has_ended:
                    continue
                yield Progress(
                    row.dataset,
                    model,
                    fit.has_ended,
                    classifier.n_iter_,
                    fit.loss,
                    fit.gap,
                    shares.natural,
                    shares.robust,
                    len(X) / 100,
                    seconds,
                )
