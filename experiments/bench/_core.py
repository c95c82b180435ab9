"""Certifying random stumps, and how its cost grows with rows, terms, levels and cells."""

from __future__ import annotations

import numpy as np

from derand.certificates import certify
from derand.model import AdditiveEnsemble, StepFunction
from derand.noise import Gaussian
from experiments.baselines.plain_certification import certify_plainly
from experiments.bench._measure import Figures, time_best


def bench_core(n_rows: int = 2000, plain_rows: int = 100, n_terms: int = 600) -> Figures:
    """Certify random rows: the default backend against the paper's Algorithm 1 in NumPy, timed on fewer rows.

    Parameters
    ----------
    n_rows, plain_rows : int
        Rows for derand, and how many of them the plain version gets; its time is scaled up.
    n_terms : int
        Terms of two cells each, their scores 1 to 60 apart.

    Returns
    -------
    dict
        Seconds of both, their ratio, and the largest relative gap between the failure masses.
    """
    rng = np.random.default_rng(0)
    model = draw_stumps(rng, n_terms)
    rows, noise = rng.uniform(size=(n_rows, n_terms)), Gaussian(0.25)
    certify(model, rows[:8], noise, proof="paper")  # compiles
    seconds, certificates = time_best(lambda: certify(model, rows, noise, proof="paper"), repeats=5)
    few = rows[:plain_rows]
    plain_seconds, (label, failure) = time_best(lambda: certify_plainly(model, few, noise), repeats=2)
    scaled = plain_seconds * n_rows / plain_rows
    gaps = np.abs(certificates.failure[:plain_rows] / failure - 1)[failure > 1e-290]
    return {
        "terms": n_terms,
        "rows": n_rows,
        "derand_seconds": seconds,
        "plain_rows": plain_rows,
        "plain_seconds_scaled": scaled,
        "ratio": scaled / seconds,
        "largest_relative_gap": float(gaps.max(initial=0.0)),
        "smallest_failure": float(failure.min()),
        "labels_differ": int((certificates.label[:plain_rows] != label).sum()),
    }


def draw_stumps(rng: np.random.Generator, n_terms: int) -> AdditiveEnsemble:
    """Random terms of two cells, the scores 1 to 60 apart in either direction, split anywhere in [0, 1]."""
    shifts = rng.integers(1, 61, size=n_terms)
    edges = rng.uniform(size=n_terms)
    rising = rng.integers(0, 2, size=n_terms) == 1
    terms = [
        StepFunction(feature, edges[[feature]], np.array([0, shift] if up else [shift, 0]))
        for feature, (shift, up) in enumerate(zip(shifts, rising, strict=True))
    ]
    return AdditiveEnsemble(tuple(terms), threshold=int(shifts.sum()) // 2, n_features=n_terms)
