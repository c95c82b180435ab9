"""All benchmarks in one file, and what changed between two such files.

Owns repeats, what counts as noise, and the commit that figures come from. Must not know what is measured.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from derand._core.files import PathLike
from experiments._machine import LIBRARIES, Surroundings, describe_machine
from experiments.bench._measure import Figures

NOISE = 0.1
"""Medians that differ by less than this share are not told apart, even where the runs do not overlap."""


class AllFigures(Surroundings):
    """Every figure of every benchmark, once per repeat, and the commit, the versions and the machine."""

    commit: str | None
    figures: dict[str, dict[str, list[float]]]
    left_out: dict[str, str]


class Change(NamedTuple):
    """A figure whose runs do not overlap: its medians before and after, and their ratio."""

    bench: str
    figure: str
    before: float
    after: float
    ratio: float


def run_all(benches: Mapping[str, Callable[[], Figures]], repeats: int) -> AllFigures:
    """Run every benchmark several times; those that cannot run here are left out, with the reason.

    Parameters
    ----------
    benches : mapping of str to callable
    repeats : int
        At least one. One alone tells nothing of noise.

    Returns
    -------
    AllFigures
    """
    if repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, got {repeats}.")
    figures: dict[str, dict[str, list[float]]] = {}
    left_out: dict[str, str] = {}
    for _ in range(repeats):
        for name in [name for name in benches if name not in left_out]:
            try:
                measured = benches[name]()
            except (ImportError, OSError, RuntimeError, ValueError) as problem:
                left_out[name] = str(problem)
                continue
            for figure, value in measured.items():
                if value is not None:
                    figures.setdefault(name, {}).setdefault(figure, []).append(value)
    return {
        "commit": _read_commit(),
        "figures": figures,
        "left_out": left_out,
        **describe_machine(("derand", *LIBRARIES)),
    }


def compare_figures(before: PathLike, after: PathLike) -> list[Change]:
    """The figures of two files of `bench all` that changed beyond noise, the largest changes first.

    A figure changed where no run of one file lies within the range of the other's, and the medians differ by more than
    NOISE.

    Parameters
    ----------
    before, after : path-like

    Returns
    -------
    list of Change
    """
    changes = [
        Change(bench, figure, old, new, new / old if old else float("inf"))
        for bench, figure, old, new in _pair_medians(_read_figures(before), _read_figures(after))
    ]
    return sorted(changes, key=lambda change: -max(change.ratio, 1 / change.ratio if change.ratio else float("inf")))


def _pair_medians(before: AllFigures, after: AllFigures) -> Iterator[tuple[str, str, float, float]]:
    for bench, figures in before["figures"].items():
        for figure, olds in figures.items():
            news = after["figures"].get(bench, {}).get(figure)
            if not news or min(max(olds), max(news)) >= max(min(olds), min(news)):
                continue
            old, new = statistics.median(olds), statistics.median(news)
            if abs(new - old) > NOISE * min(abs(old), abs(new)):
                yield bench, figure, old, new


def _read_figures(path: PathLike) -> AllFigures:
    try:
        read: AllFigures = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path} is not JSON: {problem}.") from None
    if not isinstance(read, dict) or "figures" not in read:
        raise ValueError(f"{path} is not a file of `bench all --json`: it has no figures.")
    return read


def _read_commit() -> str | None:
    """The commit of this clone; None where it is not one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
