"""The exact linf radius of XGBoost's stumps, by derand and by Veritas, a verifier of tree ensembles."""

from __future__ import annotations

from experiments.bench._measure import Figures, prefix
from experiments.peers import DATASETS, compare_with_veritas


def bench_peer(datasets: tuple[str, ...] = DATASETS, rows: int = 500) -> Figures:
    """Find the exact linf radius of 200 stumps of XGBoost, by derand and by Veritas.

    Parameters
    ----------
    datasets : tuple of str
    rows : int
        Test rows of each, at most.

    Returns
    -------
    dict
        Flat: `<dataset>_<what>`, as `compare_with_veritas` has them.
    """
    results: Figures = {}
    for dataset in datasets:
        results |= prefix(dataset, compare_with_veritas(dataset, rows))
    return results
