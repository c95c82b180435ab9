"""`python -m experiments beyond`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import ATTACKED, Beyond, ByRule, check_rows, compare_rows, list_rows
from experiments.commands._tables import choose, collect, format_table, print_floors

_ROWS = tuple(list_rows())


def beyond(
    row: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_ROWS)}; may be repeated.")] = None,
    attacked: Annotated[int, typer.Option(help="Rows of each from which a flip is searched for.")] = ATTACKED,
    as_json: AsJson = False,
) -> None:
    """AdditiveClassifier on the rows of the paper's main table, beside its best and a linear rule."""
    lines = collect(compare_rows(choose("--row", row, _ROWS), attacked), "choosing settings, training", "rows")
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
        print_floors(check_rows(lines))
    if any(line.mean.inside or line.vote.inside for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Beyond]) -> str:
    """The lines as a Markdown table: natural / certified, then how the rules were set and attacked."""
    head = [
        "norm",
        "data",
        "radius",
        "paper's best",
        "mean",
        "vote",
        "linear rule",
        "mean: how",
        "vote: how",
        "seconds",
    ]
    return format_table(
        head,
        [
            [
                line.norm,
                line.dataset,
                f"{line.radius:g}",
                f"{line.paper_natural:.1f} / {line.paper_certified:.1f}",
                *(f"{one.shares.natural:.1f} / {one.shares.certified:.1f}" for one in (line.mean, line.vote)),
                f"{line.linear_natural:.1f} / {line.linear_certified:.1f}",
                _tell_how(line.mean),
                _tell_how(line.vote),
                f"{line.seconds:.0f}",
            ]
            for line in lines
        ],
    )


def _tell_how(one: ByRule) -> str:
    return (
        f"{one.settings}; fit {one.seconds:.1f} s; {one.inside} of {one.attacked} flipped inside, "
        f"certified / attacked {one.ratio:.3f}"
    )
