"""How the cost of a certificate grows with rows, terms, levels and cells per term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from derand.certificates import certify
from derand.model import AdditiveEnsemble, StepFunction
from derand.noise import Gaussian, Noise, Uniform
from experiments.bench._measure import Figures, time_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROWTH = {
    "rows": (250, 1000, 4000, 16000),
    "terms": (75, 150, 300, 600, 1200),
    "levels": (100, 300, 1000, 3000, 10000),
    "cells": (2, 4, 16, 64, 256),
}
"""What grows, and how far. Otherwise: 1,000 rows of 300 terms of two cells on a grid of 100 levels."""


def bench_growth(growth: dict[str, tuple[int, ...]] | None = None) -> Figures:
    """Microseconds per row while one size grows and the others stay.

    Parameters
    ----------
    growth : dict of tuples, or None
        Sizes to measure; None is GROWTH.

    Returns
    -------
    dict
        `<noise>_<what>_<size>`: microseconds per row.
    """
    results: Figures = {}
    for noise in (Gaussian(0.25), Uniform(0.5)):
        for name, sizes in (GROWTH if growth is None else growth).items():
            for size in sizes:
                results[f"{noise.name}_{name}_{size}"] = measure_row(noise, **{name: size})
    return results


def draw_growth(results: Figures) -> Figure:
    """Microseconds per row over each size that grows, both axes logarithmic.

    Parameters
    ----------
    results : dict
        What `bench_growth` returned.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for key, microseconds in results.items():
        noise, name, size = key.split("_")
        assert microseconds is not None
        curves.setdefault(name, {}).setdefault(noise, []).append((int(size), microseconds))
    figure = Figure(figsize=(3.2 * len(curves), 3.2), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for axes, (name, by_noise) in zip(panels, curves.items(), strict=True):
        for noise, points in by_noise.items():
            axes.loglog(*zip(*points, strict=True), marker="o", label=noise)
        axes.set_xlabel(name if name != "cells" else "cells per term")
        axes.grid(alpha=0.3)
    panels[0].set_ylim(1, None)
    panels[0].set_ylabel("microseconds per row")
    panels[0].legend()
    return figure


def measure_row(noise: Noise, rows: int = 1000, terms: int = 300, levels: int = 100, cells: int = 2) -> float:
    """Microseconds that certifying one row takes, for a random model of this size."""
    rng = np.random.default_rng(0)
    model = draw_model(rng, terms, levels, cells)
    X = rng.uniform(size=(rows, terms))
    certify(model, X[:4], noise, proof="paper")
    seconds, _ = time_best(lambda: certify(model, X, noise, proof="paper"), repeats=3)
    return 1e6 * seconds / rows


def draw_model(rng: np.random.Generator, n_terms: int, levels: int, n_cells: int) -> AdditiveEnsemble:
    """Random step functions whose scores lie in 0 .. levels, half of that on the average."""
    terms = []
    for feature in range(n_terms):
        edges = np.sort(rng.uniform(size=n_cells - 1))
        terms.append(StepFunction(feature, edges, rng.integers(0, levels + 1, size=n_cells)))
    return AdditiveEnsemble(tuple(terms), n_terms * levels // 2, n_terms, levels)
