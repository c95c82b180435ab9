"""Printing for the commands: errors, facts, tables, JSON and a progress bar. Must not know what is printed."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for other programs.")]


def run(app: typer.Typer) -> None:
    """Run a command line; bad input gives one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        code = 130
    except BrokenPipeError:  # whoever read our output has had enough
        sys.stdout = None
        code = 0
    except (ValueError, OSError) as error:
        code = _complain(str(error))
    except Exception as error:
        explain = getattr(error, "format_message", None)  # what typer raises for wrong usage
        if explain is None:
            raise
        code = _complain(explain()) if explain() else 0  # empty: no command was given, and help was printed
    sys.exit(code)


def _complain(message: str) -> int:
    """One line on stderr; the exit code for bad input."""
    sys.stderr.write(f"Error: {' '.join(message.split())}\n")
    return 2


def open_console() -> Console:
    """Standard output for people; lines are not broken for a pipe."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of text."""
    table = Table(title=title, box=box.SIMPLE, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """One line per fact: its name and its value."""
    for name, value in facts.items():
        console.print(f"{name}: {value}", markup=False)


def print_json(value: object) -> None:
    """Indented JSON; an infinite number becomes text, because JSON has none."""
    typer.echo(json.dumps(_as_plain(value), indent=2, allow_nan=False))


def _as_plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _as_plain(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [_as_plain(inside) for inside in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def show_progress(what: str, unit: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr while the block runs, if it runs for more than a second and someone is looking.

    The block gets a function to tell how many steps are done, of how many, and what is next.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, text: None
        return
    count = TextColumn(f"{{task.completed:,.0f}} {unit}" if unit else "")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=None)
    timer = threading.Timer(_PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda done, total, text: progress.update(task, completed=done, total=total, description=text)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
