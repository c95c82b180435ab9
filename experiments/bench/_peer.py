"""XGBoost by derand and by Veritas, a verifier of tree ensembles: linf radii of stumps, verdicts of deep trees."""

from __future__ import annotations

from experiments.bench._measure import Figures, prefix
from experiments.peers import DATASETS, compare_limits, compare_with_veritas

TREES = (
    *((dataset, "default", limit) for dataset in ("adult", "credit") for limit in (0.01, 0.05, 0.1)),
    ("adult", "deep", 0.05),
)
"""Which trees, and by which share of itself each number may change."""


def bench_peer(
    datasets: tuple[str, ...] = DATASETS, rows: int = 500, trees: tuple[tuple[str, str, float], ...] = TREES
) -> Figures:
    """Find the exact linf radius of 200 stumps of XGBoost, and verdicts of its deep trees, by derand and by Veritas.

    Parameters
    ----------
    datasets : tuple of str
        Of the stumps.
    rows : int
        Test rows of each, at most.
    trees : tuple of (dataset, settings, limit)

    Returns
    -------
    dict
        Flat: `<dataset>_<what>`, as `compare_with_veritas` has them, and `<dataset>_<settings>_<percent>_<what>`, as
        `compare_limits` does.
    """
    results: Figures = {}
    for dataset in datasets:
        results |= prefix(dataset, compare_with_veritas(dataset, rows))
    for dataset, settings, limit in trees:
        results |= prefix(f"{dataset}_{settings}_{100 * limit:g}", compare_limits(dataset, settings, limit, rows))
    return results
