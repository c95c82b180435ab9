"""docs/reproduction.md, a summary of all reports, and the list of every cell that differs, by its reason.

Generated, never typed; must not know how reports are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from derand import __version__
from derand._core.files import PathLike, replace_when_done
from experiments.reproduce._cells import Cell
from experiments.reproduce._render import draw_markdown, list_rows, show_difference, show_number
from experiments.reproduce._specification import describe, read_reasons

if TYPE_CHECKING:
    from experiments.reproduce._run import Report

_OPENING = """# Reproduction

Every table and figure of "(De-)Randomized Smoothing for Decision Stump Ensembles" (Horváth, Müller, Fischer, Vechev;
NeurIPS 2022), computed by `derand` and compared with the printed numbers. This file is generated:

    python -m experiments reproduce --all --document docs/reproduction.md --cells experiments/reproduce/cells.md

The second file lists every cell that differs, every claim of the text and our own baselines. To reproduce one table,
name it: `python -m experiments reproduce tab:baseline-both`; `--list` prints all names. The results folder holds each
table, cell by cell, as Markdown, LaTeX and JSON, and each figure as SVG and PNG. `python -m experiments datasets` says
which data files are needed and where they are looked for.

A cell agrees if it is within 0.3 points, or 0.01 of radius, of the printed number for results of one split, and within
0.6 points or one published deviation for results of five folds and of sampling. Tolerances are wider for RobTreeBoost
(three test rows below), RobAdaBoost (0.5 points below) and joint certificates on credit (2 points) and bank (1 point).
A time agrees if it is no longer than the printed one.

All rows are counted by the rule of `derand.certified_accuracy`; no table needs another one to match the paper."""

_CELLS = """# Cells of the reproduction

Generated together with `docs/reproduction.md`, which says what is compared and why cells differ.

"As published" is the number that the same models give with what the published runs did besides: radii rounded to three
digits, probabilities capped at 1 - 1e-15, sides of a split below weight 1 counted as pure. It shows that the printed
numbers follow; it is never counted as ours."""

_BASELINES = """The columns `standard` and `wang2020` of the main comparison are quoted as published. Beside them stand
scikit-learn's boosted stumps, certified without noise by the knapsack programme: a baseline, not a reproduction, so
that no tolerance applies."""

_HEADER = ["table", "line", "cells: paper / ours / as published"]


def render_document(reports: Sequence[Report]) -> str:
    """The summary as Markdown."""
    parts = [_OPENING, *_describe_runs(reports), "## Tables and figures", *_list_reports(reports)]
    parts += ["## Cells that differ, and why", *_explain_cells(reports)]
    return "\n\n".join(parts) + "\n"


def render_cells(reports: Sequence[Report]) -> str:
    """Every cell that differs, claims and baselines, as Markdown."""
    parts = [_CELLS]
    for name, title, _ in _list_reasons(reports):
        parts += [f"## {title}", "\n".join(draw_markdown(_HEADER, _list_outside(reports, name)))]
    parts += ["## Claims of the text", *_list_claims(reports)]
    parts += ["## Baselines of our own", _BASELINES, *_list_baselines(reports)]
    return "\n\n".join(parts) + "\n"


def write_document(path: PathLike, text: str) -> None:
    """Write one of them to a file, whole or not at all."""
    with replace_when_done(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _describe_runs(reports: Sequence[Report]) -> list[str]:
    seconds = {key: value for report in reports for key, value in report.provenance["seconds_by_outcome"].items()}
    provenance = reports[0].provenance
    versions = ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())
    machine = provenance["machine"]
    cells = [cell for report in reports for cell in report.cells if cell.as_published is not None]
    equal = [cell for cell in cells if round(cell.as_published or 0.0, cell.decimals) == cell.paper]
    restored = (
        f'Of {len(cells)} cells with an "as published" number, {len(equal)} equal the printed number to the last digit.'
    )
    return [
        f"derand {__version__}, {versions}; {machine['system']}, {machine['processor']}, {machine['cores']} cores. "
        f"All models, trained and certified: {sum(seconds.values()) / 60:.0f} minutes. {restored}"
    ]


def _list_reports(reports: Sequence[Report]) -> list[str]:
    rows = []
    for report in reports:
        judged = [cell for cell in report.cells if cell.ok is not None]
        outside = [cell for cell in judged if not cell.ok]
        counts = [len(judged), len(outside), sum(cell.reason is not None for cell in outside)]
        shown = [str(count) for count in counts] if report.cells else ["", "", ""]
        seconds = f"{report.provenance['seconds']:.0f}"
        title = report.item.title.partition(": ")[0]  # the rest stands beside the table itself
        rows.append([f"`{report.item.name}`", title, *shown, seconds])
    header = ["name", "what it shows", "cells", "outside", "explained", "seconds"]
    return ["\n".join(draw_markdown(header, rows)), "Lines that share a model share its time."]


def _list_reasons(reports: Sequence[Report]) -> list[tuple[str | None, str, str]]:
    """Name, title and text of each reason for which some cell differs; the last one, None, is no reason."""
    known: list[tuple[str | None, str, str]] = [
        (name, reason["title"], reason["text"].strip()) for name, reason in read_reasons().items()
    ]
    return [reason for reason in [*known, (None, "Not explained", "")] if _list_outside(reports, reason[0])]


def _explain_cells(reports: Sequence[Report]) -> list[str]:
    parts = []
    for name, title, text in _list_reasons(reports):
        counts = [(report.item.name, sum(_is_outside(cell, name) for cell in report.cells)) for report in reports]
        where = ", ".join(f"`{table}` {count}" for table, count in counts if count)
        parts += [f"### {title}", *([text] if text else []), f"Cells: {where}."]
    return parts or ["None."]


def _is_outside(cell: Cell, reason: str | None) -> bool:
    return cell.reason == reason and (cell.ok is False or reason is not None)


def _list_outside(reports: Iterable[Report], reason: str | None) -> list[list[str]]:
    lines: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        for cell in report.cells:
            if _is_outside(cell, reason):
                lines.setdefault((f"`{report.item.name}`", describe(cell.fields)), []).append(_show_pair(cell))
    return [[*line, "; ".join(cells)] for line, cells in lines.items()]


def _show_pair(cell: Cell) -> str:
    place = "" if cell.metric == "claim" else cell.metric if cell.radius is None else f"{cell.metric} {cell.radius}"
    numbers = [cell.printed or show_number(cell.paper, cell), show_number(cell.ours, cell)]
    if cell.as_published is not None:
        numbers.append(show_number(cell.as_published, cell))
    return f"{place}: {' / '.join(numbers)}" if place else " / ".join(numbers)


def _list_claims(reports: Iterable[Report]) -> list[str]:
    cells = [cell for report in reports if report.item.kind == "claims" for cell in report.cells]
    header, rows = list_rows(cells)
    return ["\n".join(draw_markdown(header, rows))] if cells else ["Not part of this run."]


def _list_baselines(reports: Iterable[Report]) -> list[str]:
    rows = [
        [
            describe({name: value for name, value in cell.fields.items() if name != "setting_radius"}),
            cell.metric if cell.metric == "nac" else f"{cell.metric} {cell.radius}",
            show_number(cell.paper, cell),
            show_number(cell.ours, cell),
            show_difference(cell),
        ]
        for report in reports
        for cell in report.cells
        if cell.ok is None
    ]
    return ["\n".join(draw_markdown(["line", "cell", "quoted", "our baseline", "difference"], rows))]
