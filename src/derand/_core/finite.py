"""Numbers that can be computed with: finite, and the same as doubles; whoever knows the names of columns adds them.

Owns counting NaN and infinity, casting to doubles without a change, and the errors that say where they fail. Must not
know models or frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import Cells, FloatArray
from derand._core.threads import share_out

_BLOCK_NUMBERS = 2**17
_MAX_EXACT = 2**53
"""Every whole number up to here is a double."""


def _name_by_number(column: int) -> str | int:
    return column


class MissingNumbersError(ValueError):
    """A table has NaN or infinity where numbers are needed.

    Attributes
    ----------
    counts : dict of int to int
        In how many rows, by the number of the column.
    may_miss : bool
        Whether all those columns may hold NaN: what is wrong is then infinity.
    """

    def __init__(
        self, counts: Mapping[int, int], name: Callable[[int], str | int] = _name_by_number, may_miss: bool = False
    ) -> None:
        self.counts, self.may_miss = dict(counts), may_miss
        listed = [f"column {name(column)!r} ({rows} rows)" for column, rows in self.counts.items()]
        more = f" and {len(listed) - 10} more columns" if len(listed) > 10 else ""
        found, cure = "infinity", "replace it by a finite number, or by NaN where it stands for a missing one."
        if not may_miss:
            found = "NaN or infinity"
            cure = (
                "drop those rows, or fill them with finite numbers. A model that was trained with missing values takes "
                "NaN."
            )
        super().__init__(
            f"`X` must hold finite numbers in its numerical columns, got {found} in "
            f"{', '.join(listed[:10])}{more}: {cure}"
        )


def require_finite(rows: Cells, columns: Iterable[int], may_miss: Iterable[int] = (), jobs: int = 1) -> None:
    """Refuse NaN and infinity in some columns of a table of numbers.

    `may_miss`: those of them that may hold NaN, a missing value; infinity is refused there, too; `jobs`: threads.

    Examples
    --------
    >>> require_finite(np.array([[1.0, np.nan], [2.0, 3.0]]), [0])
    >>> require_finite(np.array([[1.0, np.nan], [2.0, 3.0]]), [0, 1])
    Traceback (most recent call last):
    derand._core.finite.MissingNumbersError: `X` must hold finite numbers in its numerical columns, got NaN ...
    """
    if rows.dtype.kind != "f":
        return
    gaps = np.zeros(rows.shape[1], dtype=np.int64)
    allowed = list(may_miss)
    block = max(1, _BLOCK_NUMBERS // max(rows.shape[1], 1))
    lock = Lock()

    def look(part: slice) -> None:
        for start in range(part.start, part.stop, block):
            some = rows[start : min(start + block, part.stop)]
            finite = np.isfinite(some)
            if not finite.all():  # counting by column is slow and rarely needed
                finite[:, allowed] |= np.isnan(some[:, allowed])
                with lock:
                    np.add(gaps, (~finite).sum(axis=0), out=gaps)

    share_out(look, rows.shape[0], rows.nbytes, jobs)
    counts = {column: int(gaps[column]) for column in columns if gaps[column]} if gaps.any() else {}
    if counts:
        raise MissingNumbersError(counts, may_miss=set(counts) <= set(allowed))


@contextmanager
def name_gaps(name: Callable[[int], str | int]) -> Iterator[None]:
    """Where the block finds gaps, say so with these names of columns."""
    try:
        yield
    except MissingNumbersError as error:
        raise MissingNumbersError(error.counts, name, error.may_miss) from None


def refuse_masked(X: object) -> None:
    """Refuse a masked array, whose mask every cast would drop."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError(
            "`X` must be an ordinary array, got a masked one: fill the masked values first (`X.filled(...)`)."
        )


def cast_exactly(values: Cells, name: Callable[[int], str | int] = _name_by_number) -> FloatArray:
    """Numbers as doubles; a number that no double equals is an error.

    `values` (n_rows,): of booleans, integers or floats of any size; `name`: name of a column, by its number; 0 for a
    flat array.

    Examples
    --------
    >>> cast_exactly(np.array([1, 2**60])).tolist()
    [1.0, 1.152921504606847e+18]
    >>> cast_exactly(np.array([1, 2**60 + 1]))
    Traceback (most recent call last):
    ValueError: `X` must hold numbers that doubles can hold, got 1152921504606846977 in column 0: round it first, ...
    """
    with np.errstate(over="ignore"):  # a long double may be larger than any double
        doubles = np.asarray(values, dtype=np.float64)
    require_unchanged(values, doubles, name)
    return doubles


def require_unchanged(values: Cells, doubles: FloatArray, name: Callable[[int], str | int] = _name_by_number) -> None:
    """Refuse doubles that differ from the numbers they were cast from; parameters as for `cast_exactly`."""
    changed = _find_changed(values, doubles)
    if changed is not None and changed.any():
        at = np.argwhere(changed)[0]
        raise ValueError(
            f"`X` must hold numbers that doubles can hold, got {values[tuple(at)]!s} in column "
            f"{name(int(at[1]) if at.size > 1 else 0)!r}: round it first, or declare the column as categorical."
        )


def _find_changed(values: Cells, doubles: FloatArray) -> NDArray[np.bool_] | None:
    """Where the cast changed a number; None where the type leaves no room for that."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "O":  # cells of text may be numbers, too: those were rounded on purpose
        cells = zip(values.ravel().tolist(), doubles.ravel().tolist(), strict=True)
        return np.array([isinstance(cell, int) and cell != double for cell, double in cells]).reshape(values.shape)
    if kind == "f" and size > 8:
        return np.asarray((doubles != values) & ~np.isnan(values))
    if kind in "iu" and size == 8 and values.size and max(int(values.max()), -int(values.min())) > _MAX_EXACT:
        return np.asarray(doubles.astype(object) != values.astype(object), dtype=bool)  # exact, and rarely needed
    return None
