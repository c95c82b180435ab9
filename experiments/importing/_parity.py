"""Models of other libraries beside what stands for them: raw scores, draws, attacks and audits.

Owns what `python -m experiments import-parity` measures; the tests of importers ask the same of fewer rows. Must not
know how models are read or printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from derand import from_model
from derand.convert import compare_scores, probe_rows, read_model
from derand.fitted import encode_rows
from experiments.importing.models import EXAMPLES

NOISE_SIZE = 0.3


@dataclass(frozen=True, slots=True)
class Parity:
    """What was found of one model.

    Attributes
    ----------
    model : str
    probes : int
        Rows on every edge, one step of doubles and of singles beside it, between, missing and unseen.
    difference, allowed : float
        The largest of raw scores, and what `score_error` says.
    wrong : int
        Labels of these rows that are not the library's, though its raw score is further from 0 than `allowed`.
    draws : int
    deviation : float
        The largest distance of the failing mass by vote from the share of failing draws, in standard deviations: the
        library itself labels the draws.
    flips : int
        Attacks that flipped a row within its radius, by vote and by mean.
    proven : bool
        Whether the audit proved what was certified, by vote and by mean.
    """

    model: str
    probes: int
    difference: float
    allowed: float
    wrong: int
    draws: int
    deviation: float
    flips: int
    proven: bool


def list_examples() -> list[str]:
    """Those of EXAMPLES whose library is here."""
    return [name for name, (library, _) in EXAMPLES.items() if find_spec(library) is not None]


def compare_examples(
    names: Sequence[str] = (), *, probes: int = 5_000, rows: int = 50, draws: int = 200_000
) -> Iterator[Parity]:
    """What is found of each model, one after the other."""
    for name in names or list_examples():
        model, X = EXAMPLES[name][1]()
        yield measure_parity(name, model, X, probes=probes, rows=rows, draws=draws)


def measure_parity(name: str, model: Any, X: Any, *, probes: int, rows: int, draws: int) -> Parity:
    """What is found of a fitted classifier of two classes.

    Parameters
    ----------
    name : str
    model : fitted classifier
    X : rows as it takes them
    probes, rows, draws : int
        Probes for raw scores; rows of X to certify; draws of noise for each of them.
    """
    imported: Any = from_model(model)
    reading = read_model(model)
    ensemble = reading.build()
    allowed = ensemble.score_error / ensemble.levels
    tried = probe_rows(reading, ensemble, probes)
    assert reading.raw_scores is not None
    theirs = reading.raw_scores(tried)
    ours = ensemble.score(tried) > ensemble.threshold
    table = X[:rows]
    noise = f"gaussian:{NOISE_SIZE}"
    votes = imported.certify(table, noise=noise, rule="vote")
    encoded = encode_rows(imported, table)
    labels = np.searchsorted(imported.classes_, votes.label)
    deviation = _measure_deviation(reading, encoded, labels, votes.failure, draws)
    flips, proven = 0, True
    for rule, law in (("vote", noise), ("mean", noise), ("mean", "none")):
        found = imported.certify(table, noise=law, rule=rule)
        flips += int((imported.attack(table, noise=law, rule=rule).distance < found.radius).sum())
        proven &= imported.audit(table, found, rows=min(rows, 20)).passed
    return Parity(
        name,
        probes,
        compare_scores(reading, ensemble, tried),
        allowed,
        int(((theirs > 0) != ours)[np.abs(theirs) > allowed].sum()),
        draws,
        deviation,
        flips,
        proven,
    )


def _measure_deviation(reading: Any, rows: Any, labels: Any, failure: Any, draws: int) -> float:
    """The largest distance of masses from shares of draws, which the library labels, in standard deviations."""
    rng = np.random.default_rng(0)
    numbers = list(reading.encoding.numerical)
    worst = 0.0
    for row, label, mass in zip(rows, labels, failure, strict=True):
        noisy = np.repeat(row[None], draws, axis=0)
        noisy[:, numbers] += rng.normal(scale=NOISE_SIZE, size=(draws, len(numbers)))
        share = float(((reading.raw_scores(noisy) > 0) != label).mean())
        spread = np.sqrt(max(mass * (1 - mass), 1 / draws) / draws)
        worst = max(worst, abs(share - mass) / spread)
    return worst
