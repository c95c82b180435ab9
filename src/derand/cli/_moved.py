"""`derand bench` and `derand reproduce`: where they went."""

from __future__ import annotations

import typer

from derand.cli._app import app, complain

_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(hidden=True, context_settings=_ANYTHING)
def bench() -> None:
    """Moved: `python -m experiments bench` in a clone of the repository."""
    _point_to_experiments("bench")


@app.command(hidden=True, context_settings=_ANYTHING)
def reproduce() -> None:
    """Moved: `python -m experiments reproduce` in a clone of the repository."""
    _point_to_experiments("reproduce")


def _point_to_experiments(name: str) -> None:
    raise typer.Exit(
        complain(
            f"`derand {name}` is no part of the installed package: run `python -m experiments {name} ...` from a clone "
            "of the repository."
        )
    )
