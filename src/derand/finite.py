"""Finiteness of tables: found in one place, and named by whoever knows the names of columns.

Owns counting NaN and infinity, and the error that says where they are. Must not know models or frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_NUMBERS = 2**22


class MissingNumbersError(ValueError):
    """A table has NaN or infinity where numbers are needed.

    Attributes
    ----------
    counts : dict of int to int
        In how many rows, by the number of the column.
    """

    def __init__(self, counts: Mapping[int, int], name: Callable[[int], str | int] = lambda column: column) -> None:
        self.counts = dict(counts)
        listed = [f"column {name(column)!r} ({rows} rows)" for column, rows in self.counts.items()]
        more = f" and {len(listed) - 10} more columns" if len(listed) > 10 else ""
        super().__init__(
            "`X` must hold finite numbers in its numerical columns, got NaN or infinity in "
            f"{', '.join(listed[:10])}{more}: drop those rows or fill the gaps first."
        )


def require_finite(rows: NDArray[Any], columns: Iterable[int]) -> None:
    """Refuse NaN and infinity in some columns of a table of numbers.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
    columns : iterable of int

    Raises
    ------
    MissingNumbersError

    Examples
    --------
    >>> require_finite(np.array([[1.0, np.nan], [2.0, 3.0]]), [0])
    >>> require_finite(np.array([[1.0, np.nan], [2.0, 3.0]]), [0, 1])
    Traceback (most recent call last):
    derand.finite.MissingNumbersError: `X` must hold finite numbers in its numerical columns, got NaN or infinity in ...
    """
    if rows.dtype.kind != "f":
        return
    gaps = np.zeros(rows.shape[1], dtype=np.int64)
    block = max(1, _BLOCK_NUMBERS // max(rows.shape[1], 1))
    for start in range(0, rows.shape[0], block):
        finite = np.isfinite(rows[start : start + block])
        if not finite.all():  # counting by column is slow and rarely needed
            gaps += (~finite).sum(axis=0)
    counts = {column: int(gaps[column]) for column in columns if gaps[column]}
    if counts:
        raise MissingNumbersError(counts)


@contextmanager
def name_gaps(name: Callable[[int], str | int]) -> Iterator[None]:
    """Where the block finds gaps, say so with these names of columns."""
    try:
        yield
    except MissingNumbersError as error:
        raise MissingNumbersError(error.counts, name) from None
