"""Benchmarks: speed, memory and results side by side, in one run on the same inputs; plain dicts out.

Owns what is measured and how, one file per benchmark. Must not know how it is printed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from derand._core.files import PathLike, replace_when_done, require_folder
from experiments._machine import LIBRARIES, Surroundings, describe_machine
from experiments.bench._boost import bench_boost
from experiments.bench._cells import bench_cells
from experiments.bench._certify import bench_certify
from experiments.bench._compare import AllFigures as AllFigures
from experiments.bench._compare import Change as Change
from experiments.bench._compare import compare_figures as compare_figures
from experiments.bench._compare import run_all as run_all
from experiments.bench._core import bench_core
from experiments.bench._first import bench_first
from experiments.bench._gpu import bench_gpu
from experiments.bench._growth import bench_growth, draw_growth
from experiments.bench._joint import bench_joint
from experiments.bench._kernels import bench_kernels
from experiments.bench._mean import bench_mean
from experiments.bench._measure import Figures
from experiments.bench._measure import measure_peak_memory as measure_peak_memory
from experiments.bench._measure import time_best as time_best
from experiments.bench._memory import bench_memory
from experiments.bench._page import bench_page
from experiments.bench._peer import bench_peer
from experiments.bench._quality import bench_quality
from experiments.bench._reasons import bench_reasons
from experiments.bench._sets import bench_sets
from experiments.bench._tables import bench_tables
from experiments.bench._train import bench_train
from experiments.bench._wide import bench_wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class BenchReport(Surroundings):
    """A benchmark's figures with what is measured, in a line, and the versions and the machine they come from."""

    bench: str
    about: str
    results: Figures


def run_bench(name: str) -> BenchReport:
    """Run one benchmark.

    Parameters
    ----------
    name : str
        A key of BENCHES.

    Returns
    -------
    BenchReport
    """
    if name not in BENCHES:
        raise ValueError(f"`name` must be one of {', '.join(BENCHES)}, got {name!r}.")
    return {
        "bench": name,
        "about": inspect.cleandoc(BENCHES[name].__doc__ or "").partition("\n")[0],
        "results": BENCHES[name](),
        **describe_machine(("derand", *LIBRARIES)),
    }


def write_bench(report: BenchReport, folder: PathLike) -> list[Path]:
    """Write a report as JSON, and as a plot where there is one.

    Parameters
    ----------
    report : BenchReport
    folder : path-like
        Created where it is missing.

    Returns
    -------
    list of Path
        The files written.
    """
    target = Path(folder)
    require_folder(target)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{report['bench']}.json"]
    with replace_when_done(paths[0]) as draft:
        draft.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if report["bench"] in PLOTS:
        paths.append(target / f"{report['bench']}.png")
        with replace_when_done(paths[1]) as draft:
            PLOTS[report["bench"]](report["results"]).savefig(draft, format="png", dpi=120)
    return paths


BENCHES: Mapping[str, Callable[[], Figures]] = {
    "core": bench_core,
    "train": bench_train,
    "certify": bench_certify,
    "joint": bench_joint,
    "growth": bench_growth,
    "kernels": bench_kernels,
    "cells": bench_cells,
    "boost": bench_boost,
    "quality": bench_quality,
    "gpu": bench_gpu,
    "mean": bench_mean,
    "memory": bench_memory,
    "tables": bench_tables,
    "wide": bench_wide,
    "page": bench_page,
    "peer": bench_peer,
    "first": bench_first,
    "reasons": bench_reasons,
    "sets": bench_sets,
}

PLOTS: Mapping[str, Callable[[Figures], Figure]] = {"growth": draw_growth}
"""Benchmarks whose figures are also drawn."""
