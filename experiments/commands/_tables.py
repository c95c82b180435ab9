"""What commands share that print a table with floors: Markdown, and which floors are met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import typer

from derand.app.commands import require_choice, show_progress

Line = TypeVar("Line")


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as a Markdown table.

    Examples
    --------
    >>> print(format_table(["data", "share"], [["toy", "80.0"]]))
    | data | share |
    |---|---|
    | toy | 80.0 |
    """
    lines = [head, *rows]
    texts = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([texts[0], "|---" * len(head) + "|", *texts[1:]])


def print_floors(floors: Iterable[tuple[str, bool]]) -> None:
    """How many floors are met, and each that is not, in words."""
    found = list(floors)
    if not found:
        return
    missed = [text for text, is_met in found if not is_met]
    typer.echo(f"\n{len(found) - len(missed)} of {len(found)} floors are met.")
    for text, is_met in found:
        typer.echo(f"{'met' if is_met else 'MISSED'}: {text}")


def choose(option: str, given: Sequence[str] | None, choices: Sequence[str]) -> list[str]:
    """The values of an option that may be repeated, each one of the choices; all of them where none is given."""
    for value in given or ():
        require_choice(option, value, choices)
    return list(given or choices)


def collect(lines: Iterable[Line], what: str, unit: str) -> list[Line]:
    """All lines of a table, counted on stderr while they are made."""
    found = []
    with show_progress(what, unit) as tell:
        for line in lines:
            found.append(line)
            tell(1)
    return found
