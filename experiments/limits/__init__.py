"""Decisions that can flip: "each number by at most 5 %, one category", on adult and credit, exactly and with witnesses.

Owns the table of `python -m experiments limits`. Must not know how anything is certified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates
from derand.estimators import RobTreeBoostClassifier, StumpClassifier
from derand.fitted import encode_rows
from derand.threat import Threat
from experiments.bench import time_best
from experiments.datasets import load

DATASETS = ("adult", "credit")
THREAT = Threat(norm=None, limits={"*": "5%"}, l0=1)
WAYS: dict[str, dict[str, Any]] = {
    "unsmoothed": {"noise": "none", "rule": "mean"},
    "smoothed, mean": {"rule": "mean"},
    "smoothed, vote": {"rule": "vote"},
}
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; shares in per cent of the test rows."""

    dataset: str
    model: str
    way: str
    rows: int
    accuracy: float
    holds: float
    flips: float
    undecided: float
    held_and_right: float
    seconds: float
    ball_seconds: float
    """Of an l2 ball with the same categorical change, on the same rows."""
    witnesses: list[str] = field(default_factory=list)
    """Some changed rows, in words."""


def compare_limits(datasets: tuple[str, ...] = DATASETS) -> Iterator[Line]:
    """The lines of the table, one after the other."""
    for dataset in datasets:
        data = load(dataset)
        train, test = data.split
        codes = [column for column in range(data.X.shape[1]) if column not in data.numerical]
        for kind in (StumpClassifier, RobTreeBoostClassifier):
            classifier = kind(
                noise="gaussian:0.25", scaling="standard", class_weight="balanced", categorical_features=codes
            )
            classifier.fit(data.X[train], data.y[train])
            for way, options in WAYS.items():
                yield _measure(dataset, classifier, data.X[test], data.y[test], way, options)


def _measure(
    dataset: str, classifier: Any, rows: NDArray[Any], truth: NDArray[Any], way: str, options: dict[str, Any]
) -> Line:
    classifier.certify(rows[:8], threat=THREAT, **options)  # compiles, prepares
    classifier.certify(rows, threat=Threat(l0=1), **options)
    seconds, found = time_best(lambda: classifier.certify(rows, threat=THREAT, **options), repeats=3)
    ball_seconds, _ = time_best(lambda: classifier.certify(rows, threat=Threat(l0=1), **options), repeats=3)
    right = found.label == truth
    return Line(
        dataset=dataset,
        model=type(classifier).__name__,
        way=way,
        rows=len(rows),
        accuracy=100 * float(right.mean()),
        **{what: 100 * float((found.verdict == what).mean()) for what in ("holds", "flips", "undecided")},
        held_and_right=100 * float((right & (found.verdict == "holds")).mean()),
        seconds=seconds,
        ball_seconds=ball_seconds,
        witnesses=list_witnesses(classifier, found, rows),
    )


def list_witnesses(classifier: Any, found: Certificates, rows: NDArray[Any]) -> list[str]:
    """The first changed rows that flip: which columns change, from what to what."""
    assert found.flips is not None
    assert found.witness is not None
    texts = []
    for row in np.flatnonzero(found.flips)[:SHOWN].tolist():
        pair = np.stack([encode_rows(classifier, rows[[row]])[0], found.witness[row]])
        both = np.asarray(classifier.decode_rows(pair))
        changes = ", ".join(
            f"column {at}: {before} -> {after}" for at, (before, after) in enumerate(both.T) if before != after
        )
        texts.append(f"row {row}, {found.label[row]}: {changes}")
    return texts
