"""Attacking an estimator: rows of its table in, changed rows of the same table out, which its `predict` takes.

Owns the way from tables to `derand.attack` and back. Must not know how flips are searched for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from derand._arrays import FloatArray
from derand.certificates import Attacks, attack
from derand.frames import TableEncoding, make_unseen
from derand.model import Model
from derand.noise import Noise
from derand.threat import Threat


class Readable(Protocol):
    """What is asked of a fitted estimator."""

    encoding_: TableEncoding

    def decode_rows(self, rows: FloatArray) -> Any:
        """Rows in the words of the table."""


class Attacked(Readable, Protocol):
    """What is asked of a fitted classifier."""

    ensemble_: Model
    classes_: NDArray[Any]
    n_jobs: int | None


def attack_encoded(
    classifier: Attacked, rows: FloatArray, noise: Noise | None, rule: str, threat: Threat, random_state: int
) -> Attacks:
    """`attack` for rows that `encode_rows` returned, with labels of the classifier's classes."""
    found = attack(
        classifier.ensemble_,
        rows,
        noise,
        rule=rule,
        threat=threat,
        random_state=random_state,
        n_jobs=classifier.n_jobs,
    )
    return found.with_classes(classifier.classes_)


def name_rows(classifier: Attacked, attacks: Attacks) -> Attacks:
    """The same with rows in the words of the table: numbers alone, objects, or a pandas frame where it has names."""
    return replace(attacks, rows=name_changed(classifier, attacks.rows))


def name_changed(estimator: Readable, rows: FloatArray) -> Any:
    """Changed rows in the words of the table."""
    encoding = estimator.encoding_
    if encoding.names is None and not encoding.categories:
        return rows
    table = estimator.decode_rows(rows)
    for column, values in encoding.categories.items():
        new = np.flatnonzero(rows[:, column] < 0)  # never seen in training: a missing one may be told apart
        for row in new.tolist():
            if encoding.names is None:
                table[row, column] = make_unseen(values)
            else:
                table.iat[row, column] = make_unseen(values)
    return table
