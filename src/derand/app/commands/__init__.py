"""The command line: one file per command, each a thin function that calls the library and prints what it returns.

Heavy libraries are imported inside the functions, so that `--help` and `--version` answer at once (but for
`train --help` and `tune --help`, which list registries). To add a command,
write a file `_name.py` with a function `name` under `@add_command`, and add its name to COMMANDS.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from derand import __version__
from derand.app.commands._app import (
    AsJson,
    add_command,
    app,
    clear_errors,
    complain,
    make_app,
    make_console,
    make_table,
    print_facts,
    print_json,
    run_app,
    show_progress,
    show_steps,
)
from derand.app.values import require_choice

__all__ = [
    "COMMANDS",
    "AsJson",
    "add_command",
    "app",
    "clear_errors",
    "complain",
    "main",
    "make_app",
    "make_console",
    "make_table",
    "print_facts",
    "print_json",
    "require_choice",
    "run_app",
    "show_progress",
    "show_steps",
]

COMMANDS = (
    "init", "run", "train", "tune", "import", "certify", "audit", "prove", "report", "monitor", "export", "datasets",
    "demo", "warm_up",
)  # fmt: skip
"""Files of commands, in the order in which help lists them."""


def main() -> None:
    """Run the command line; bad input gives one line on stderr and exit code 2."""
    run_app(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"derand {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


for _name in COMMANDS:
    import_module(f"derand.app.commands._{_name}")
