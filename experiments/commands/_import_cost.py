"""`python -m experiments import-cost`."""

from __future__ import annotations

from dataclasses import asdict

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import format_table
from experiments.importing import Cost, measure_cost


def import_cost(as_json: AsJson = False) -> None:
    """What certificates of an EBM of 14 terms cost, by vote and by mean, and the slack of the vote's own grid."""
    found = measure_cost()
    if as_json:
        print_json(asdict(found) | {"slack": found.slack})
        return
    typer.echo(format_cost(found))


def format_cost(cost: Cost) -> str:
    """The costs as a Markdown table, and the slack in a line."""
    lines = [
        ["mean, as deployed", f"{cost.microseconds_deployed:.0f}", ""],
        ["mean", f"{cost.microseconds_by_mean:.0f}", f"{cost.radius_by_mean:.4f}"],
        ["vote", f"{cost.microseconds_by_vote:.0f}", f"{cost.radius_by_vote:.4f}"],
        ["vote, the paper's proof alone", f"{cost.microseconds_by_law:.0f}", f"{cost.radius_by_law:.4f}"],
    ]
    table = format_table(["rule", "microseconds a row and core", "mean radius"], lines)
    return (
        f"An EBM of {cost.terms} terms, {cost.cells} cells in all, Gaussian noise of sigma 0.25:\n\n{table}"
        f"\n\nThe vote's own grid takes {100 * cost.slack:.3f} % off the mean radius."
    )
