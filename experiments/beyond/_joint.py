"""The paper's joint certificates once more: numbers within an l2 ball and some categories at the same time.

Owns the table of `python -m experiments joint`: the printed cells beside AdditiveClassifier trained for each cell, and
beside one of these models for all cells, as the paper has it. Must not know how anything is trained or certified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from derand.estimators import AdditiveClassifier
from derand.metrics import certified_accuracy
from derand.threat import Threat
from experiments.beyond._shares import fit_quietly, prepare_rows
from experiments.datasets import Dataset, Division
from experiments.reproduce import read_items

TABLES = {
    "adult": "tab:joint-balanced",
    "credit": "tab:joint-balanced",
    "mammographic": "tab:joint-cv-balanced-l2",
    "bank": "tab:joint-cv-balanced-l2",
}
"""Where the cells of a dataset are printed: for one split, or the means of five folds."""
ONE_RADIUS, ONE_BUDGET = 0.5, 0
"""For which the one model is trained that stands beside those of each cell: as the paper's, not for categories."""
CONSTANT = 50.0
"""Balanced certified accuracy of the same answer for every row, in per cent."""


@dataclass(frozen=True, slots=True)
class Joint:
    """One cell: balanced certified accuracy in per cent, means over the splits."""

    dataset: str
    budget: int
    """How many categories may change."""
    radius: float
    paper: float
    ours: float
    """Of the model that was trained for this cell."""
    natural: float
    """Its balanced accuracy."""
    one: float
    """Of the one model for all cells."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How many cells are above the paper's."""

    cells: int
    above: int
    worst: float
    """The least difference to the paper, in points."""
    one_above: int
    one_worst: float
    below_constant: int
    """Printed cells that the same answer for every row surpasses."""
    above_both: int
    """Cells in which ours is above the paper's and above such an answer by a point."""


def compare_cells(datasets: Sequence[str] = tuple(TABLES)) -> Iterator[Joint]:
    """The cells, dataset by dataset.

    Parameters
    ----------
    datasets : sequence of str
        Of TABLES.
    """
    for dataset in datasets:
        lines = [
            line
            for line in read_items()[TABLES[dataset]].lines
            if line.fields["dataset"] == dataset and line.fields["uses_categorical"] and line.fields["uses_numerical"]
        ]
        cells = [(line.fields["r0"], one.radius or 0.0, one.value) for line in lines for one in line.published]
        asked = [(budget, radius) for budget, radius, _ in cells]
        measured = [_measure_split(data, parts, asked) for data, parts in prepare_rows(lines[0].recipe)]
        means = 100 * np.mean(measured, axis=0)
        for (budget, radius, paper), figures in zip(cells, means.tolist(), strict=True):
            yield Joint(dataset, budget, radius, paper, *figures)


def summarize_cells(lines: Sequence[Joint]) -> Summary:
    """Count the cells above the paper's, to the digit that it prints."""
    ours = [round(line.ours, 1) - line.paper for line in lines]
    one = [round(line.one, 1) - line.paper for line in lines]
    return Summary(
        cells=len(lines),
        above=sum(gap > 0 for gap in ours),
        worst=min(ours),
        one_above=sum(gap > 0 for gap in one),
        one_worst=min(one),
        below_constant=sum(line.paper < CONSTANT for line in lines),
        above_both=sum(line.ours > max(line.paper, CONSTANT + 1) for line in lines),
    )


def _measure_split(data: Dataset, parts: Division, asked: Sequence[tuple[int, float]]) -> list[list[float]]:
    """For each cell: certified by its own model, natural accuracy of that, certified by the one model."""
    single = _fit(data, parts, ONE_BUDGET, ONE_RADIUS)
    found = []
    for budget, radius in asked:
        own = single if (budget, radius) == (ONE_BUDGET, ONE_RADIUS) else _fit(data, parts, budget, radius)
        natural = certified_accuracy(parts.y_test, own.certify(parts.X_test, l0=0), [0.0], balanced=True)
        certified = [
            float(certified_accuracy(parts.y_test, model.certify(parts.X_test, l0=budget), [radius], balanced=True)[0])
            for model in (own, single)
        ]
        found.append([certified[0], float(natural[0]), certified[1]])
    return found


def _fit(data: Dataset, parts: Division, budget: int, radius: float) -> Any:
    """Trained against both changes, of rows in deviations; categories that are not known do not count."""
    classifier = AdditiveClassifier(
        radius=radius,
        threat=Threat(norm=2, l0=budget, unseen=False),
        scaling=None,
        class_weight="balanced",
        categorical_features=list(data.categorical),
    )
    return fit_quietly(classifier, parts.X_train, parts.y_train)
