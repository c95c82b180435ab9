"""What holds of models as deployed: which share of decisions flips within limits, and what a row costs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from derand import Threat, from_model
from experiments.deployed._models import DATASETS, LEARNERS, list_learners, load_parts

LIMITS = ("1%", "5%", "10%")


@dataclass(frozen=True, slots=True)
class Deployed:
    """One line of the table; shares in per cent of the test rows.

    `flips`, `undecided`, `ties` and `microseconds` (per row, one thread, the public call) have an entry for each of
    LIMITS, and a last one for 5 % together with any one category where there are categories.
    """

    dataset: str
    model: str
    rows: int
    accuracy: float
    seconds_to_read: float
    flips: tuple[float, ...]
    undecided: tuple[float, ...]
    ties: tuple[float, ...]
    microseconds: tuple[float, ...]


def measure_models(
    datasets: Sequence[str] = DATASETS, learners: Sequence[str] = (), rows: int = 10_000
) -> Iterator[Deployed]:
    """The lines of the table, one after the other; at most `rows` test rows of each dataset."""
    for dataset in datasets:
        for learner in learners or list_learners():
            yield measure_model(dataset, learner, rows)


def measure_model(dataset: str, learner: str, rows: int) -> Deployed:
    """One model of one dataset."""
    data, X, y, tested, truth = load_parts(dataset)
    tested, truth = tested.iloc[:rows], truth[:rows]
    fitted = LEARNERS[learner][1](data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(X, y)
        started = time.process_time()
        model = from_model(fitted, X, n_jobs=1)
        seconds = time.process_time() - started
        accuracy = float((np.asarray(fitted.predict(tested)) == truth).mean())
        threats = [Threat(norm=None, limits={"*": limit}) for limit in LIMITS]
        if data.categorical:
            threats.append(Threat(norm=None, limits={"*": "5%"}, l0=1))
        model.certify(tested.iloc[:20], threat=threats[-1])  # compiles, prepares
        found = [_certify(model, tested, threat) for threat in threats]
    columns = zip(*found, strict=True)
    return Deployed(dataset, learner, len(truth), 100 * accuracy, seconds, *(tuple(one) for one in columns))


def _certify(model, tested, threat: Threat) -> tuple[float, float, float, float]:  # type: ignore[no-untyped-def]
    """Shares that flip, are undecided, are ties among these, and microseconds per row."""
    started = time.process_time()
    found = model.certify(tested, threat=threat)
    seconds = time.process_time() - started
    ties = found.is_tie if getattr(found, "is_tie", None) is not None else np.zeros(len(tested), dtype=bool)
    flips, undecided = (100 * float((found.verdict == name).mean()) for name in ("flips", "undecided"))
    return flips, undecided, 100 * float(np.mean(ties)), 1e6 * seconds / len(tested)
