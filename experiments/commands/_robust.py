"""`python -m experiments robust` and `convergence`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import (
    ROBUST_MODELS,
    ROBUST_ROWS,
    Progress,
    Robust,
    check_robust,
    compare_robustly,
    follow_fits,
)
from experiments.commands._tables import choose, collect, format_table, print_floors

_DATASETS = tuple(row.dataset for row in ROBUST_ROWS)
_Data = Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_DATASETS)}; may be repeated.")]
_Models = Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(ROBUST_MODELS)}; may be repeated.")]


def robust(data: _Data = None, model: _Models = None, as_json: AsJson = False) -> None:
    """Robust test errors of AdditiveClassifier in norm inf, beside those that were published of stumps and trees."""
    asked = choose("--data", data, _DATASETS), choose("--model", model, ROBUST_MODELS)
    lines = collect(compare_robustly(*asked), "training, certifying, attacking", "models")
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
        "functions of",
        "natural",
        "robust",
        "five folds",
        "Chen 2019, stumps / trees",
        "Andriushchenko & Hein 2019, stumps / trees",
        "penalty, sweeps, gap",
        "seconds to fit, to certify",
    ]
    return format_table(
        head,
        [
            [
                f"{line.dataset}, {line.radius:g}",
                line.model,
                f"{line.natural:.1f}",
                f"{line.robust:.1f}" + (f" ({line.undecided:.1f} undecided)" if line.undecided else ""),
                "" if line.folds is None else f"{line.folds:.1f}",
                f"{line.published.chen_stumps} / {line.published.chen_trees}",
                f"{line.published.stumps} / {line.published.trees}",
                "" if line.penalty is None else f"{line.penalty:.2g}, {line.steps}, {line.gap:.1g}",
                f"{line.seconds:.1f}, {line.certifying:.1f}",
            ]
            for line in lines
        ],
    )


def convergence(data: _Data = None, model: _Models = None, as_json: AsJson = False) -> None:
    """What the classifiers of `robust` are worth after so many sweeps, and after about twice as many as they take."""
    lines = collect(
        follow_fits(choose("--data", data, _DATASETS), choose("--model", model, ROBUST_MODELS)), "training", "fits"
    )
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_progress(lines))


def format_progress(lines: list[Progress]) -> str:
    """The lines as a Markdown table: errors in per cent; sweeps after which a fit ended by itself are marked."""
    return format_table(
        ["data", "functions of", "sweeps", "loss", "gap", "natural", "robust", "seconds"],
        [
            [
                line.dataset,
                line.model,
                f"{line.steps}{' (end)' if line.ended else ''}",
                f"{line.loss:.4f}",
                f"{line.gap:.1g}",
                f"{line.natural:.2f}",
                f"{line.robust:.2f}",
                f"{line.seconds:.1f}",
            ]
            for line in lines
        ],
    )
