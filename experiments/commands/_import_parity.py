"""`python -m experiments import-parity`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.importing import Parity, compare_examples, list_examples


def import_parity(
    model: Annotated[list[str] | None, typer.Option(help="A model of the table; may be repeated.")] = None,
    probes: Annotated[int, typer.Option(help="Rows on which raw scores are compared.")] = 5_000,
    rows: Annotated[int, typer.Option(help="Rows that are certified, drawn from, attacked and audited.")] = 50,
    draws: Annotated[int, typer.Option(help="Noisy copies of each of them.")] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Models of other libraries beside what stands for them: raw scores, draws of noise, attacks and audits."""
    chosen = choose("--model", model, list_examples())
    lines = collect(compare_examples(chosen, probes=probes, rows=rows, draws=draws), "comparing", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_parity(lines))


def format_parity(lines: list[Parity]) -> str:
    """The lines as a Markdown table."""
    head = ["model", "raw scores differ by", "allowed", "wrong labels", "draws deviate by", "flips inside", "audit"]
    return format_table(
        head,
        [
            [
                line.model,
                f"{line.difference:.1e}",
                f"{line.allowed:.1e}",
                str(line.wrong),
                f"{line.deviation:.1f} sigma",
                str(line.flips),
                "proven" if line.proven else "not proven",
            ]
            for line in lines
        ],
    )
