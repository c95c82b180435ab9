"""Terms of many cells under the vote: tilted laws beside Fourier inversion, on one thread, in CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates import pack_terms
from derand.kernels import INVERTED, load_backend
from derand.model import StepFunction
from derand.noise import Gaussian
from experiments.bench._measure import Figures, prefix

SHAPES = {
    "ebm": (14, 250, 2000),
    "few_cells": (14, 16, 1000),
    "medium_8": (60, 8, 1000),
    "medium_16": (60, 16, 1000),
    "table": (60, 64, 1000),
    "wide": (300, 256, 100),
}
"""Terms, cells of each, and levels that each spans."""


def bench_cells(shapes: dict[str, tuple[int, int, int]] | None = None, n_rows: int = 64, repeats: int = 3) -> Figures:
    """Microseconds of CPU per row for the table of cells, for laws alone and with inversion, for terms of many cells.

    Parameters
    ----------
    shapes : dict of tuples, or None
        Terms, cells and levels of random models; None is SHAPES.
    n_rows, repeats : int
        Rows, and how often both ways take turns; the best counts.

    Returns
    -------
    dict
        For each shape the three figures, the ratio of laws to inversion, and the share of rows that are inverted.
    """
    results: Figures = {}
    for name, sizes in (SHAPES if shapes is None else shapes).items():
        results |= prefix(name, _measure(*sizes, n_rows=n_rows, repeats=repeats))
    return results


def _measure(n_terms: int, n_cells: int, levels: int, *, n_rows: int, repeats: int) -> Figures:
    terms, rows = draw_walks(n_terms, n_cells, levels, n_rows)
    packed, noise, kernels = pack_terms(terms), Gaussian(0.25), load_backend("numba")
    scores = np.sum([term.score_rows(rows) for term in terms], axis=0)
    cuts = np.full(n_rows, (int(np.median(scores)) - packed.base) // packed.step)
    plans = [kernels.prepare(packed.starts, packed.scores, invert=invert) for invert in (False, True)]
    table = packed.table(rows, noise)
    path = [kernels.failures(plan, table, cuts).path for plan in plans][1]  # compiles
    ways: list[Callable[[], Any]] = [
        lambda: packed.table(rows, noise),
        lambda: kernels.failures(plans[0], table, cuts),
        lambda: kernels.failures(plans[1], table, cuts),
    ]
    spent = np.array([[_time_cpu(way) for way in ways] for _ in range(repeats)]).min(axis=0) * 1e6 / n_rows
    return {
        "table": float(spent[0]),
        "laws": float(spent[1]),
        "with_inversion": float(spent[2]),
        "ratio": float(spent[1] / spent[2]),
        "share_inverted": float((path == INVERTED).mean()),
    }


def _time_cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def draw_walks(n_terms: int, n_cells: int, levels: int, n_rows: int) -> tuple[list[StepFunction], FloatArray]:
    """Terms whose scores are random walks over normal quantiles and span 0 .. levels, and normal rows."""
    rng = np.random.default_rng(0)
    terms = []
    for feature in range(n_terms):
        walk = rng.normal(size=n_cells).cumsum()
        heights = np.rint(levels * (walk - walk.min()) / np.ptp(walk))
        terms.append(StepFunction(feature, np.sort(rng.normal(size=n_cells - 1)), heights))
    return terms, rng.normal(size=(n_rows, n_terms))
