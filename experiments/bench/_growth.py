"""How the cost of a certificate grows with rows, terms, levels, cells per term, classes and members of a vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from derand.certificates import certify
from derand.kernels import has_gpu
from derand.model import AdditiveEnsemble, Argmax, Model, StepFunction, WeightedVote
from derand.noise import Gaussian, Noise, Uniform
from experiments.bench._measure import Figures, time_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROWTH = {
    "rows": (250, 1000, 4000, 16000),
    "terms": (14, 30, 75, 150, 300, 600, 1200),
    "levels": (100, 300, 1000, 3000, 10000),
    "cells": (2, 4, 16, 64, 256),
    "classes": (2, 3, 5, 10),
    "members": (1, 4, 16),
}
"""What grows, and how far. Otherwise: 1,000 rows of 300 terms of two cells on a grid of 100 levels, two classes."""


class Series(NamedTuple):
    """One curve of the picture: a device, a rule and a noise."""

    device: str
    rule: str
    noise: Noise

    @property
    def name(self) -> str:
        return f"{self.device}-{self.rule}-{self.noise.name}"


def list_series() -> list[Series]:
    """The vote under two noises and the mean, on the CPU and, where there is one, on a GPU."""
    found = [
        Series("cpu", "vote", Gaussian(0.25)),
        Series("cpu", "vote", Uniform(0.5)),
        Series("cpu", "mean", Gaussian(0.25)),
    ]
    if has_gpu():
        found += [Series("gpu", one.rule, one.noise) for one in found]
    return found


def bench_growth(growth: dict[str, tuple[int, ...]] | None = None) -> Figures:
    """Microseconds per row while one size grows and the others stay.

    Parameters
    ----------
    growth : dict of tuples, or None
        Sizes to measure; None is GROWTH.

    Returns
    -------
    dict
        `<device>-<rule>-<noise>_<what>_<size>`: microseconds per row; figures of several machines can be drawn as one.
    """
    results: Figures = {}
    for series in list_series():
        for name, sizes in (GROWTH if growth is None else growth).items():
            for size in sizes:
                results[f"{series.name}_{name}_{size}"] = measure_row(series, **{name: size})
    return results


def draw_growth(results: Figures) -> Figure:
    """Microseconds per row over each size that grows, both axes logarithmic; a colour per rule and noise.

    Parameters
    ----------
    results : dict
        What `bench_growth` returned, of one machine or several, joined.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for key, microseconds in results.items():
        series, name, size = key.split("_")
        assert microseconds is not None
        curves.setdefault(name, {}).setdefault(series, []).append((int(size), microseconds))
    colours = {key.split("_")[0].partition("-")[2] for key in results}
    columns = min(len(curves), 3)
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(3.4 * columns, 3.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, (name, by_series) in zip(panels.flat, curves.items(), strict=False):
        for series, points in by_series.items():
            device, _, work = series.partition("-")
            line = {"color": f"C{sorted(colours).index(work)}", "linestyle": "-" if device == "cpu" else "--"}
            label = f"{device.upper()}, {work.replace('-', ', ')}"
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=label, **line)
        sizes = sorted({size for points in by_series.values() for size, _ in points})
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize="small")
        axes.minorticks_off()
        axes.set_xlabel(name if name != "cells" else "cells per term")
        axes.grid(alpha=0.3)
    for axes in panels[:, 0]:
        axes.set_ylabel("microseconds per row")
    panels[0, 0].set_ylim(0.5, None)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return figure


def measure_row(
    series: Series,
    rows: int = 1000,
    terms: int = 300,
    levels: int = 100,
    cells: int = 2,
    classes: int = 2,
    members: int = 1,
) -> float:
    """Microseconds that certifying one row takes, for a random model of this size."""
    rng = np.random.default_rng(0)
    model: Model = draw_model(rng, terms, levels, cells, classes)
    if members > 1:
        model = WeightedVote(tuple(draw_model(rng, terms, levels, cells) for _ in range(members)), np.ones(members))
    X = rng.uniform(size=(rows, terms))
    backend = "cuda" if series.device == "gpu" else "numba"
    proof = "paper" if series.rule == "vote" else "best"
    certify(model, X[:4], series.noise, rule=series.rule, proof=proof, backend=backend)
    seconds, _ = time_best(
        lambda: certify(model, X, series.noise, rule=series.rule, proof=proof, backend=backend), repeats=3
    )
    return 1e6 * seconds / rows


def draw_model(
    rng: np.random.Generator, n_terms: int, levels: int, n_cells: int, n_classes: int = 2
) -> AdditiveEnsemble:
    """Random step functions whose scores lie in 0 .. levels, half of that on the average."""
    terms = []
    for feature in range(n_terms):
        edges = np.sort(rng.uniform(size=n_cells - 1))
        size = n_cells if n_classes == 2 else (n_cells, n_classes)
        terms.append(StepFunction(feature, edges, rng.integers(0, levels + 1, size=size)))
    decision = n_terms * levels // 2 if n_classes == 2 else Argmax((0,) * n_classes)
    return AdditiveEnsemble(tuple(terms), decision, n_terms, levels)
