"""Running: which plans the wanted tables, figures and claims need, carrying out those not yet kept, and reporting.

Owns the order of work. Must not know the command line: progress is told to a callback.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from derand._core.files import PathLike
from experiments._machine import Surroundings, describe_machine
from experiments.reproduce._cells import Cell, CellRecord, make_cells, make_settings_cells
from experiments.reproduce._claims import Sources, list_lines, make_claim_cells
from experiments.reproduce._figures import draw_figure, list_curves
from experiments.reproduce._outcomes import Outcome, carry_out
from experiments.reproduce._plans import Plan, make_plan, shorten
from experiments.reproduce._render import render_json, render_latex, render_markdown
from experiments.reproduce._specification import HOW_TO_LIST, Item, Line, TomlTable, find_item, read_items
from experiments.reproduce._store import Store, require_data

QUICK_ROWS = 200
"""Test rows of each plan in a quick run."""
Progress = Callable[[int, int, str], None]
"""Told how many plans are done, of how many, and which one is next."""


class Provenance(Surroundings):
    """Where a report comes from: versions, machine, seconds in all and by the key of a plan, seed, data checksums."""

    seconds: float
    seconds_by_outcome: dict[str, float]
    seed: int
    data_sha256: dict[str, str | None]


class ReportRecord(TypedDict):
    """A report in JSON."""

    name: str
    title: str
    quick: bool
    ok: bool
    cells: list[CellRecord]
    files: list[str]
    provenance: Provenance


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A table, figure or the claims, carried out.

    Attributes
    ----------
    item : Item
    cells : tuple of Cell
        Empty for a figure.
    files : tuple of Path
        What was written about it.
    provenance : Provenance
    quick : bool
        Whether only a part of the rows was used.
    """

    item: Item
    cells: tuple[Cell, ...]
    files: tuple[Path, ...]
    provenance: Provenance
    quick: bool

    @property
    def ok(self) -> bool:
        """Whether every cell agrees with the paper or is explained."""
        return all(cell.ok is not False or cell.reason is not None for cell in self.cells)

    def as_dict(self) -> ReportRecord:
        """Plain values for JSON."""
        return {
            "name": self.item.name,
            "title": self.item.title,
            "quick": self.quick,
            "ok": self.ok,
            "cells": [cell.as_dict() for cell in self.cells],
            "files": [str(path) for path in self.files],
            "provenance": self.provenance,
        }


def list_names() -> list[str]:
    """Names of all tables and figures, and "claims", in the order of the paper.

    Examples
    --------
    >>> list_names()[0], list_names()[-1]
    ('tab:baseline-both', 'claims')
    """
    return list(read_items())


def reproduce(
    names: Iterable[str],
    results: PathLike = "derand-results",
    *,
    quick: bool = False,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> list[Report]:
    """Carry out tables, figures and claims of the paper.

    Parameters
    ----------
    names : iterable of str
        As `list_names` gives them; "tab:" and "fig:" may be left out.
    results : path-like
        Folder for what comes out: outcomes (an interrupted run goes on where it stopped), tables as Markdown, LaTeX
        and JSON, figures as SVG and PNG.
    quick : bool
        Use only a part of the test rows, of one split; tolerances are widened by three standard errors.
    n_jobs : int or None
        Threads; None is all cores.
    on_progress : callable or None
        Called with (done, total, what is next) before each plan that has to be carried out, and once at the end.

    Returns
    -------
    list of Report
    """
    items = [find_item(name) for name in names]
    run = _Run(Store.open(results), quick)
    plans = sorted({plan.key: plan for item in items for plan in run.list_plans(item)}.values(), key=_by_dataset)
    missing = [plan for plan in plans if run.store.read(plan) is None]
    require_data(missing)
    tell = on_progress or (lambda done, total, text: None)
    for done, plan in enumerate(missing):
        tell(done, len(missing), str(plan))
        started = time.perf_counter()
        outcomes = carry_out(plan, n_jobs)
        run.store.write(plan, outcomes, time.perf_counter() - started)
    tell(len(missing), len(missing), "done")
    return [run.report(item) for item in items]


def _by_dataset(plan: Plan) -> tuple[str, str]:
    """Plans on the same data one after the other, so that it is read once."""
    return plan.dataset, plan.key


class _Run:
    """Plans, outcomes and reports of one run; outcomes are read from the store when they are needed."""

    def __init__(self, store: Store, quick: bool) -> None:
        self.store = store
        self._quick = quick
        self._read = functools.lru_cache(maxsize=64)(self._read_stored)

    def list_plans(self, item: Item) -> list[Plan]:
        """Everything that has to be carried out for an item."""
        if item.kind == "claims":
            pairs = list_lines(item)
        elif item.kind == "fig":
            pairs = [(item, line) for line in list_curves(item)]
        else:
            pairs = [] if item.is_settings else [(item, line) for line in item.lines]
        return [plan for _, line in pairs for plan in self._plans_of(line)]

    def report(self, item: Item) -> Report:
        """Compare, draw and write what belongs to an item."""
        folder = self.store.folder / ("figures" if item.kind == "fig" else "tables")
        provenance = self._describe(item)
        bare = item.name.partition(":")[2] or item.name
        if item.kind == "fig":
            folder.mkdir(parents=True, exist_ok=True)
            files = draw_figure(item, self.outcomes, folder / bare)
            return Report(item, (), tuple(files), provenance, self._quick)
        cells = tuple(self._cells_of(item))
        files = [folder / f"{bare}{ending}" for ending in (".md", ".tex", ".json")]
        report = Report(item, cells, tuple(files), provenance, self._quick)
        for path, render in zip(files, (render_markdown, render_latex, render_json), strict=True):
            self.store.write_text(path, render(report))
        return report

    def outcomes(self, line: Line) -> Sequence[Outcome]:
        """Outcomes of a line's plan, one per split."""
        return self._read(self._plan(line.recipe))

    def cells(self, item: Item, line: Line) -> list[Cell]:
        """Cells of a line."""
        variants = [self._read(self._plan(recipe)) for recipe in line.variants]
        return make_cells(item, line, self._plan(line.recipe), self.outcomes(line), variants)

    def _cells_of(self, item: Item) -> list[Cell]:
        cells = self._compare(item)
        if not self._quick:
            return cells
        return [replace(cell, reason="part") if cell.ok is False and not cell.reason else cell for cell in cells]

    def _compare(self, item: Item) -> list[Cell]:
        if item.kind == "claims":
            return make_claim_cells(item, Sources(self.cells, self.outcomes))
        if item.is_settings:
            return [cell for line in item.lines for cell in make_settings_cells(line)]
        return [cell for line in item.lines for cell in self.cells(item, line)]

    def _plan(self, recipe: TomlTable) -> Plan:
        plan = make_plan(recipe)
        return shorten(plan, QUICK_ROWS) if self._quick else plan

    def _plans_of(self, line: Line) -> list[Plan]:
        return [self._plan(recipe) for recipe in (line.recipe, *line.variants)]

    def _read_stored(self, plan: Plan) -> Sequence[Outcome]:
        outcomes = self.store.read(plan)
        if outcomes is None:
            raise OSError(f"The outcome of {plan} has vanished from {self.store.folder}: run again.")
        return outcomes

    def _describe(self, item: Item) -> Provenance:
        notes = {plan.key: self.store.read_note(plan) for plan in self.list_plans(item)}
        return {
            **describe_machine(),
            "seconds": round(sum(note["seconds"] for note in notes.values()), 1),
            "seconds_by_outcome": {key: note["seconds"] for key, note in sorted(notes.items())},
            "seed": 0,
            "data_sha256": {
                note["data_file"]: note["data_sha256"] for note in notes.values() if note["data_file"] is not None
            },
        }


def choose_names(wanted: Sequence[str], *, everything: bool) -> list[str]:
    """The names to carry out, for the command line: those given, or all of them.

    Examples
    --------
    >>> choose_names(["claims"], everything=False)
    ['claims']
    """
    if everything and wanted:
        raise ValueError("Give names or --all, not both.")
    if not everything and not wanted:
        raise ValueError(f"Name a table or figure, or give --all. {HOW_TO_LIST}")
    return list_names() if everything else [find_item(name).name for name in wanted]
