"""`python -m experiments robust`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import ROBUST_ROWS, Robust, check_robust, compare_robustly
from experiments.commands._tables import choose, collect, format_table, print_floors

_DATASETS = tuple(row.dataset for row in ROBUST_ROWS)


def robust(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_DATASETS)}; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Robust test errors of AdditiveClassifier in norm inf, beside those that were published of stumps and trees."""
    lines = collect(compare_robustly(choose("--data", data, _DATASETS)), "training, certifying, attacking", "rows")
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
        print_floors(check_robust(lines))
    if any(line.inside for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Robust]) -> str:
    """The lines as a Markdown table: errors in per cent."""
    head = [
        "data, radius (linf)",
        "natural",
        "robust",
        "robust, five folds",
        "Chen 2019, stumps / trees",
        "Andriushchenko & Hein 2019, stumps / trees",
        "penalty, sweeps, gap",
        "seconds",
    ]
    return format_table(
        head,
        [
            [
                f"{line.dataset}, {line.radius:g}",
                f"{line.natural:.1f}",
                f"{line.robust:.1f}",
                "" if line.folds is None else f"{line.folds:.1f}",
                f"{line.published.chen_stumps} / {line.published.chen_trees}",
                f"{line.published.stumps} / {line.published.trees}",
                f"{line.penalty:.2g}, {line.steps}, {line.gap:.1g}",
                f"{line.seconds:.1f}",
            ]
            for line in lines
        ],
    )
