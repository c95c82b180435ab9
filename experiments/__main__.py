"""`python -m experiments`: one command per file of `experiments.commands`."""

from __future__ import annotations

import typer

from experiments._console import run
from experiments.commands import COMMANDS

app = typer.Typer(
    help="Benchmarks of derand, and the paper's tables and figures beside our numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command()(command)

if __name__ == "__main__":
    run(app)
