"""Attacking an estimator: rows of its table in, changed rows of the same table out, which its `predict` takes.

Owns the way from tables to `derand.attack` and back. Must not know how flips are searched for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.origin import Origin
from derand.certificates import Attacks, attack
from derand.model import Model
from derand.noise import Noise
from derand.tables import TableEncoding, make_unseen
from derand.threat import Threat


class Readable(Protocol):
    """What is asked of a fitted estimator."""

    encoding_: TableEncoding


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
    """The same with rows in the words of the table: numbers alone, objects, or a frame where it has names."""
    return replace(attacks, rows=name_changed(classifier, attacks.rows, attacks.origin))


def name_changed(estimator: Readable, rows: FloatArray, origin: Origin | None) -> Any:
    """Changed rows in the words of the table that they came from, where that is known."""
    encoding = estimator.encoding_
    if encoding.names is None and not encoding.categories:
        return rows
    return encoding.decode(rows, origin, unseen=make_unseen)  # a missing category may be told apart
