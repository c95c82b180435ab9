"""What certificates of an EBM cost, and what the vote's own grid takes off its radii.

Owns the table of `python -m experiments import-cost`. Must not know how models are read, certified or printed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, Gaussian, certify
from derand._core.arrays import FloatArray
from derand.convert import read_model

N_TERMS, N_CELLS = 14, 250
FINE_LEVELS = 2**20
"""Of the grid that radii are compared with: so fine that all scores fit into a law, which then is exact on it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time per row, and mean radii."""

    terms: int
    cells: int
    rows: int
    microseconds_by_mean: float
    microseconds_deployed: float
    microseconds_by_vote: float
    microseconds_by_law: float
    """Of the vote, by the paper's proof alone."""
    radius_by_mean: float
    radius_by_vote: float
    radius_by_law: float
    radius_on_fine_grid: float
    """By the paper's proof, on a grid without any rounding that a certificate must cover."""

    @property
    def slack(self) -> float:
        """What the vote's own grid takes off the mean radius, as a share of it."""
        return 1 - self.radius_by_law / self.radius_on_fine_grid


def measure_cost(n_rows: int = 200, n_fine: int = 40) -> Cost:
    """Train an EBM of 14 terms with 250 cells each and certify rows of it, on one thread.

    Parameters
    ----------
    n_rows : int
        Rows that are timed.
    n_fine : int
        Rows of which radii are compared with those on a finer grid, which takes long.
    """
    ebm, rows = train_ebm(n_rows)
    reading = read_model(ebm)
    model, noise = reading.build(), Gaussian(0.25)
    deployed, _ = _time(lambda: certify(model, rows, None, rule="mean", n_jobs=1))
    mean, by_mean = _time(lambda: certify(model, rows, noise, rule="mean", n_jobs=1))
    vote, by_vote = _time(lambda: certify(model, rows, noise, rule="vote", n_jobs=1))
    law, by_law = _time(lambda: certify(model, rows, noise, rule="vote", proof="paper", n_jobs=1))
    span = sum(float(np.ptp(shape.values)) for shape in reading.shapes)
    fine = AdditiveEnsemble.from_shapes(
        reading.shapes,
        intercept=reading.intercept,
        n_features=model.n_features,
        levels=int(FINE_LEVELS / span),
    )
    exact = certify(fine, rows[:n_fine], noise, rule="vote", proof="paper")
    share = by_law.radius.mean() / by_law.radius[:n_fine].mean()  # so that both speak of all rows
    return Cost(
        len(reading.shapes),
        sum(shape.values.shape[0] for shape in reading.shapes),
        n_rows,
        1e6 * mean / n_rows,
        1e6 * deployed / n_rows,
        1e6 * vote / n_rows,
        1e6 * law / n_rows,
        float(by_mean.radius.mean()),
        float(by_vote.radius.mean()),
        float(by_law.radius.mean()),
        float(exact.radius.mean() * share),
    )


def train_ebm(n_rows: int) -> tuple[Any, FloatArray]:
    """An EBM of waves in 14 columns, and rows that it has not seen."""
    from interpret.glassbox import ExplainableBoostingClassifier

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4_000 + n_rows, N_TERMS))
    score = np.sin(2 * rows) @ rng.normal(size=N_TERMS) + rows[:, 0]
    labels = score + rng.normal(scale=0.5, size=len(rows)) > 0
    ebm = ExplainableBoostingClassifier(interactions=0, max_bins=N_CELLS + 2, outer_bags=4, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ebm.fit(rows[:4_000], labels[:4_000]), rows[4_000:]


def _time(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time of a second call, after tables and plans are made, and what it returns."""
    work()
    start = time.process_time()
    found = work()
    return time.process_time() - start, found
