"""One table as two files: rows to train on, and rows that are held out to be certified.

Owns which rows are held out. Must not know what is done with either part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import IntArray
from derand._core.files import PathLike
from derand.app.settings import CLASSES
from derand.tables import Labels, inspect_file, write_batches

if TYPE_CHECKING:
    import pyarrow as pa


def choose_held_out(labels: Labels, task: str, share: float, seed: int) -> IntArray:
    """The rows to hold out, in order; of every class the same share, as far as that can be.

    `task`: CLASSES or NUMBER; `share`: of the rows, above 0 and below 1; `seed`: the same seed chooses the same rows;
    `labels` has shape (n_rows,). The result: numbers of rows, from 0; at least one is held out, and one of every class
    is not.

    Examples
    --------
    >>> choose_held_out(np.array(["no", "no", "no", "no", "yes", "yes"]), CLASSES, 0.5, seed=0).size
    3
    """
    random = np.random.default_rng(seed)
    kinds = np.unique(labels, return_inverse=True)[1] if task == CLASSES else np.zeros(len(labels), dtype=np.int64)
    held = []
    for kind in range(int(kinds.max()) + 1):
        rows = random.permutation(np.flatnonzero(kinds == kind))
        held.append(rows[: min(round(share * rows.size), rows.size - 1)])
    chosen = np.sort(np.concatenate(held))
    if not chosen.size:
        raise ValueError(
            f"The share {share:g} of {len(labels):,} rows to hold out leaves none to certify: give a larger one."
        )
    return chosen


def split_file(data: PathLike, held: IntArray, train: PathLike, test: PathLike) -> IntArray:
    """Write the rows that are held out of a table to one file and the others to another, cells as they are.

    Where all gaps of a column would be held out, one of these rows is trained on: a model takes only gaps such as it
    was trained with.

    Parameters
    ----------
    data : path-like
        CSV or Parquet.
    held : array of int
        Numbers of rows, from 0, in order.
    train, test : path-like
        .csv for a table that is CSV, else .parquet.

    Returns
    -------
    array of int
        The rows that were held out.
    """
    file = inspect_file(data)
    table = file.read()
    is_held = np.zeros(table.num_rows, dtype=bool)
    is_held[held] = True
    for column in table.columns:
        gaps = np.flatnonzero(column.is_null(nan_is_null=True).to_numpy())
        if gaps.size and is_held[gaps].all():
            is_held[gaps[0]] = False
    cells = table if file.delimiter is None else file.read(as_text=file.names)
    for path, rows in ((train, ~is_held), (test, is_held)):
        _write_table(cells.take(np.flatnonzero(rows)), path)
    return np.flatnonzero(is_held)


def _write_table(table: pa.Table, path: PathLike) -> None:
    with write_batches(path) as write:
        for batch in table.combine_chunks().to_batches():
            write(dict(zip(batch.schema.names, batch.columns, strict=True)))
