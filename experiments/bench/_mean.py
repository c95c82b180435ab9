"""The rule mean on terms of many cells, in every norm, beside the vote on the same model."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates import certify
from derand.model import AdditiveEnsemble, StepFunction
from derand.noise import Gaussian, Noise
from derand.threat import Threat
from experiments.bench._measure import Figures, prefix, time_best

NORMS = (2, 1, np.inf, 0)


def bench_mean(n_terms: int = 14, n_cells: int = 250, n_rows: int = 10_000) -> Figures:
    """Certify a random additive model with terms of many cells, as EBMs have, by the rule mean, on one thread.

    Parameters
    ----------
    n_terms, n_cells, n_rows : int

    Returns
    -------
    dict
        For each norm: seconds of the first call, which builds the tables, microseconds per row and core of later ones
        with noise and without; the vote's microseconds on a few rows.
    """
    model, rows = draw_model(n_terms, n_cells, n_rows)
    noise = Gaussian(0.25)
    results: Figures = {"terms": n_terms, "cells_per_term": n_cells, "rows": n_rows}
    for norm in NORMS:
        for kind, smoothing in (("smoothed", noise), ("deployed", None)):
            part = rows if kind == "smoothed" or norm in (0, np.inf) else rows[:1000]
            results |= prefix(f"l{norm:g}_{kind}", _time_certify(model, part, smoothing, Threat(norm=norm)))
    few = rows[:200]
    certify(model, few[:8], noise, proof="paper")
    seconds, _ = time_best(lambda: certify(model, few, noise, proof="paper", n_jobs=1), repeats=3)
    return results | {"vote_microseconds_per_row": 1e6 * seconds / len(few)}


def _time_certify(model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None, threat: Threat) -> Figures:
    certify(*draw_model(2, 3, 8), noise, rule="mean", threat=threat)  # compiles
    first, _ = time_best(lambda: certify(model, rows, noise, rule="mean", threat=threat, n_jobs=1), repeats=1)
    again, _ = time_best(lambda: certify(model, rows, noise, rule="mean", threat=threat, n_jobs=1), repeats=3)
    return {"first_seconds": first, "microseconds_per_row": 1e6 * again / len(rows)}


def draw_model(n_terms: int, n_cells: int, n_rows: int) -> tuple[AdditiveEnsemble, FloatArray]:
    """Terms whose scores are random walks over normal quantiles, and normal rows."""
    rng = np.random.default_rng(0)
    terms = []
    for feature in range(n_terms):
        edges = np.sort(rng.normal(size=n_cells - 1))
        scores = np.rint(30 * rng.normal(size=n_cells)).cumsum()
        terms.append(StepFunction(feature, edges, scores - np.rint(scores.mean())))
    return AdditiveEnsemble(terms, 0, n_terms), rng.normal(size=(n_rows, n_terms))
