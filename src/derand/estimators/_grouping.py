"""Groups of columns as people write them, checked against a table. Must not know how they are trained."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from derand._core.text import quote_short
from derand.threat import find_column
from derand.train import MOST_COLUMNS, TrainingTable

_WORDS = "None, 'auto' or a list of lists of columns such as [['age', 'income'], [3, 4]]"


def find_groups(groups: Any, table: TrainingTable, monotone: Collection[int]) -> tuple[tuple[int, ...], ...] | None:
    """The groups by column numbers; None to look for them. Groups of one column are no groups.

    `monotone`: columns that must not be in a group.
    """
    if groups is None:
        return ()
    if isinstance(groups, str) and groups == "auto":
        return None
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise ValueError(f"`groups` must be {_WORDS}, got {groups!r}.")
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise ValueError(f"`groups` must be {_WORDS}, got the group {group!r}.")
        if len(group) > MOST_COLUMNS:
            raise ValueError(
                f"`groups` must have at most {MOST_COLUMNS} columns each, got {len(group)} in {list(group)!r}: joint "
                "cells multiply with every column. Split it."
            )
        numbers = tuple(find_column(column, table.names, table.n_features, "`groups`") for column in group)
        for column, number in zip(group, numbers, strict=True):
            if number in seen or numbers.count(number) > 1:
                raise ValueError(
                    f"`groups` must name each column once, got {column!r} twice: a column is in one group, because "
                    "certificates need terms that share no column. Join the groups, or leave it out of one."
                )
            _check_column(column, number, table, monotone, len(numbers))
        seen.update(numbers)
        if len(numbers) > 1:
            found.append(numbers)
    return tuple(found)


def name_groups(groups: Sequence[Sequence[int]], table: TrainingTable) -> tuple[tuple[str | int, ...], ...]:
    """Groups of columns by name, or by number where the table has no names."""
    return tuple(tuple(table.name(column) for column in group) for group in groups)


def warn_of_gaps(groups: Any, table: TrainingTable) -> tuple[str, ...]:
    """Say which columns were not looked at where groups are to be found."""
    asked = isinstance(groups, str) and groups == "auto"
    gaps = [quote_short(table.name(column)) for column in table.list_missing()] if asked else []
    if not gaps:
        return ()
    more = ", ..." if len(gaps) > 5 else ""
    return (
        f"groups='auto' looks at columns without missing values alone, and so not at {', '.join(gaps[:5])}{more}: "
        "fill the gaps for these to be grouped.",
    )


def _check_column(column: Any, number: int, table: TrainingTable, monotone: Collection[int], size: int) -> None:
    """Refuse what a function of several columns cannot be trained on."""
    if size < 2:
        return
    if number in table.n_categories:
        raise ValueError(f"`groups` must name numerical columns, got {column!r}, which is categorical.")
    if number in monotone:
        raise ValueError(f"`groups` must not name columns of `monotone`, got {column!r}: leave it out of one of both.")
    if np.isnan(table.X[:, number]).any():
        raise ValueError(
            f"`groups` must name columns without missing values, got {column!r}, which has some: fill them, or leave "
            "the column out of its group."
        )
