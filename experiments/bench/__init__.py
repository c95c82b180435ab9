"""Benchmarks: speed, memory and results side by side, in one run on the same inputs; plain dicts out.

Owns what is measured and how, one file per benchmark. Must not know how it is printed.
"""

from __future__ import annotations

import inspect
import json
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.bench._boost import bench_boost
from experiments.bench._certify import bench_certify
from experiments.bench._core import bench_core
from experiments.bench._gpu import bench_gpu
from experiments.bench._growth import bench_growth, draw_growth
from experiments.bench._joint import bench_joint
from experiments.bench._kernels import bench_kernels
from experiments.bench._quality import bench_quality
from experiments.bench._train import bench_train
from derand.files import PathLike, replace_when_done, require_folder
from derand.threads import count_threads

_PARTS = ("derand", "numpy", "scipy", "scikit-learn", "numba")


def run_bench(name: str) -> dict[str, Any]:
    """Run one benchmark.

    Parameters
    ----------
    name : str
        A key of BENCHES.

    Returns
    -------
    dict
        `bench`, `about` (what is measured, in a line), `results` (flat), `versions` and `machine`.
    """
    if name not in BENCHES:
        raise ValueError(f"`name` must be one of {', '.join(BENCHES)}, got {name!r}.")
    return {
        "bench": name,
        "about": inspect.cleandoc(BENCHES[name].__doc__ or "").partition("\n")[0],
        "results": BENCHES[name](),
        "versions": {"python": platform.python_version()} | {part: version(part) for part in _PARTS},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": count_threads()},
    }


def write_bench(report: dict[str, Any], folder: PathLike) -> list[Path]:
    """Write a report as JSON, and as a plot where there is one.

    Parameters
    ----------
    report : dict
        What `run_bench` returned.
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
    if report["bench"] == "growth":
        paths.append(target / "growth.png")
        with replace_when_done(paths[1]) as draft:
            draw_growth(report["results"]).savefig(draft, format="png", dpi=120)
    return paths


BENCHES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "core": bench_core,
    "train": bench_train,
    "certify": bench_certify,
    "joint": bench_joint,
    "growth": bench_growth,
    "kernels": bench_kernels,
    "boost": bench_boost,
    "quality": bench_quality,
    "gpu": bench_gpu,
}
