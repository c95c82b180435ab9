"""Models of every kind drawn at random, rows near their edges, and every kind of threat."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scripts.snapshot.words import Words

DECISIONS = {"labels": 1, "classes": 3, "regression": 1}
"""How scores become a prediction, and how many outputs that takes."""
TERMS = ("steps", "categories", "grids", "lines", "missing", "stumps", "cells")
"""Kinds of terms: few cells, tables, several columns, slopes, cells of missing values; many terms, many cells."""
NUMBERS = {"steps": 4, "categories": 3, "grids": 5, "lines": 4, "missing": 4, "stumps": 90, "cells": 10}
"""Numerical columns of each kind."""


@dataclass(frozen=True)
class Case:
    """A model, rows for it, and what may change of them."""

    name: str
    decision: str
    model: Any
    rows: np.ndarray
    threats: dict[str, dict[str, Any]]


def draw_cases(words: Words, seed: int) -> Iterator[Case]:
    """One case of every kind of terms and decision, and one of a vote."""
    for number, (kind, decision) in enumerate(itertools.product(TERMS, DECISIONS)):
        rng = np.random.default_rng([seed, number])
        model, tables = _draw_model(words, rng, kind, decision)
        yield _make_case(rng, f"{decision}-{kind}-{seed}", decision, model, (NUMBERS[kind], tables, kind == "missing"))
    for kind in ("categories", "grids", "missing"):
        rng = np.random.default_rng([seed, 1000 + len(kind)])
        members, tables = zip(*(_draw_model(words, rng, kind, "labels") for _ in range(4)), strict=True)
        vote = words.WeightedVote(members, rng.normal(0.5, 1.0, 4))
        yield _make_case(rng, f"vote-{kind}-{seed}", "labels", vote, (NUMBERS[kind], tables[0], kind == "missing"))


def _draw_model(words: Words, rng: np.random.Generator, kind: str, decision: str) -> tuple[Any, int]:
    """A model of one kind, and how many columns of categories it has after its numbers."""
    n_numbers, n_outputs = NUMBERS[kind], DECISIONS[decision]
    n_tables = {"categories": 2, "lines": 1, "missing": 1, "grids": 1}.get(kind, 0)
    reach = int(rng.choice([5, 40, 1000]))

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-reach, reach + 1, (*shape, n_outputs) if n_outputs > 1 else shape)

    def draw_one() -> Any:
        return tuple(draw(1)[0].tolist()) if n_outputs > 1 else int(draw(1)[0])

    missing = draw_one() if kind == "missing" else None
    terms: list[Any] = []
    if kind == "lines":
        terms = [words.LinearTerm(at, rng.normal(0, reach, n_outputs)) for at in range(n_numbers)]
    elif kind == "grids":
        for first, size in ((0, 2), (2, 1), (3, 2)):
            edges = [np.sort(rng.normal(size=int(rng.integers(1, 4)))) for _ in range(size)]
            columns, cells = tuple(range(first, first + size)), [len(one) + 1 for one in edges]
            grid = size > 1
            terms.append(
                words.GridTerm(columns, tuple(edges), draw(*cells))
                if grid
                else words.StepFunction(first, edges[0], draw(*cells))
            )
    else:
        for at in range(n_numbers):
            count = {"stumps": 1, "cells": 30}.get(kind) or int(rng.integers(1, 5))
            terms.append(words.StepFunction(at, np.sort(rng.normal(size=count)), draw(count + 1), missing))
    for at in range(n_numbers, n_numbers + n_tables):
        terms.append(words.CategoryTable(at, [0.0, 1.0, 3.0], draw(3), draw_one(), missing))
    chosen: Any = words.Argmax(rng.integers(-reach, reach + 1, n_outputs).tolist()) if n_outputs > 1 else None
    if decision == "labels":
        chosen = int(rng.integers(-reach, reach + 1))
    elif decision == "regression":
        chosen = words.Value(int(rng.integers(-500, 500)))
    error = float(rng.choice([0.0, 0.0, 0.5]))
    return words.AdditiveEnsemble(terms, chosen, n_numbers + n_tables, score_error=error), n_tables


def _make_case(
    rng: np.random.Generator, name: str, decision: str, model: Any, columns: tuple[int, int, bool], n_rows: int = 6
) -> Case:
    n_numbers, n_tables, takes_missing = columns
    rows = np.hstack([rng.normal(0, 1.2, (n_rows, n_numbers)), rng.integers(0, 5, (n_rows, n_tables))])
    if takes_missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    units = rng.uniform(0.3, 3.0, n_numbers + n_tables)
    return Case(name, decision, model, rows, _list_threats(rows, units, n_numbers, n_tables, takes_missing))


def _list_threats(
    rows: np.ndarray, units: np.ndarray, n_numbers: int, n_tables: int, takes_missing: bool
) -> dict[str, dict[str, Any]]:
    """Arguments of `Threat` by what they show: norms, limits, domains, steps, frozen columns, categories, missing."""
    with np.errstate(all="ignore"):
        ends = [(float(np.nanmin(rows[:, at]) - 0.4), float(np.nanmax(rows[:, at]) + 0.1)) for at in range(2)]
    found: dict[str, dict[str, Any]] = {
        "own": {},
        **{f"norm {norm}": {"norm": norm} for norm in (0, 1, 2, np.inf)},
        "units": {"norm": 2, "units": units.tolist()},
        "units 1": {"norm": 1, "units": units.tolist()},
        "frozen": {"frozen": [0, n_numbers + n_tables - 1]},
        "ball in box": {"norm": 2, "limits": {"*": 0.3}},
        "cube in box": {"norm": np.inf, "limits": {0: (0.1, 0.5), 1: "30%"}, "domain": {1: ends[1]}},
        "few in box": {"norm": 0, "limits": {"*": 0.7}},
        "steps in ball": {"norm": 1, "steps": {0: 0.25, 1: 0.5}},
        "percent": {"norm": None, "limits": {"*": "20%"}},
        "limits": {"norm": None, "limits": {0: 0.5, 1: (0.2, 1.0), 2: "50%"}, "frozen": [n_numbers + n_tables - 1]},
        "domain": {"norm": None, "limits": {0: 2.0}, "domain": {0: ends[0], 1: ends[1]}},
        "steps": {"norm": None, "limits": {"*": 1.5}, "steps": {0: 0.5, 1: 0.25}},
    }
    if n_tables:
        found |= {
            "l0 1": {"l0": 1},
            "l0 2 seen": {"l0": 2, "unseen": False, "norm": 2},
            "categories": {"norm": None, "limits": {0: 0.4}, "l0": 1, "may_become": {n_numbers: (0.0, 3.0)}},
            "become": {"l0": n_tables, "may_become": {n_numbers: (1.0,)}},
        }
    if takes_missing:
        found |= {
            "missing 1": {"missing": 1},
            "missing 2": {"norm": None, "limits": {0: 0.5}, "missing": 2, "l0": 1},
            "missing few": {"norm": 0, "missing": 1},
        }
    return found
