"""`python -m experiments natural`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import (
    NATURAL_DATASETS,
    NO_PEER,
    Natural,
    Price,
    check_floors,
    compare_naturally,
    has_peer,
    measure_price,
)
from experiments.commands._tables import choose, collect, format_table, print_floors


def natural(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(NATURAL_DATASETS)}; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """AdditiveClassifier without a radius beside an EBM, gradient boosting and a linear model, all with defaults."""
    lines = collect(compare_naturally(choose("--data", data, NATURAL_DATASETS)), "training", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))
    if not has_peer():
        typer.echo(f"\n{NO_PEER}")
    print_floors(check_floors(lines))


def price(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(NATURAL_DATASETS)}; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """What training for a radius costs AdditiveClassifier, in l2, on one split of each dataset."""
    lines = collect(measure_price(choose("--data", data, NATURAL_DATASETS)), "training, certifying", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_prices(lines))


def format_prices(lines: list[Price]) -> str:
    """A line per dataset as a Markdown table: accuracy / AUC / certified accuracy at each radius."""
    radii = sorted({line.radius for line in lines})
    found = {(line.dataset, line.radius): line for line in lines}
    return format_table(
        ["data", "constant answer", *(f"r = {radius:g}" for radius in radii)],
        [
            [
                name,
                f"{found[name, radii[0]].constant:.1f}",
                *(
                    f"{one.accuracy:.1f} / {one.auc:.3f}" + (f" / {one.certified:.1f}" if radius else "")
                    for radius in radii
                    for one in [found[name, radius]]
                ),
            ]
            for name in dict.fromkeys(line.dataset for line in lines)
        ],
    )


def format_lines(lines: list[Natural]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "model", "splits", "accuracy", "AUC", "log-loss", "seconds"]
    return format_table(
        head,
        [
            [
                line.dataset,
                line.model,
                str(line.splits),
                f"{line.accuracy:.2f}",
                f"{line.auc:.4f}",
                f"{line.log_loss:.4f}",
                f"{line.seconds:.2f}",
            ]
            for line in lines
        ],
    )
