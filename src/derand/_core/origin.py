"""Where rows came from: the library of their table and its index; and results as tables of the same kind.

Owns what differs between pandas, polars and pyarrow where tables are recognised, cut and made. Must not know what
columns mean. No library is imported here unless a table of it was given or is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from derand._core.arrays import Cells, IntArray
from derand._core.later import import_extra

Cell = Any
"""What stands in a cell of a table: a number, text, a date, a boolean or None."""
Fitted = Any
"""A fitted estimator, model or step, ours or of another library, or a part of one."""
Frame = Any
"""A table of pandas, polars or pyarrow, or an array: a type that depends on what users gave."""
Columns = Mapping[str, Cells]
"""Arrays of one length, by name."""


def find_library(X: object) -> str | None:
    """Whose frame X is: "pandas", "polars" or "pyarrow"; None for anything else."""
    for library, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        module = sys.modules.get(library)
        if module is not None and isinstance(X, getattr(module, kind, ())):
            return library
    return None


def take_rows(X: Frame, rows: object) -> Frame:
    """Some rows of a frame or an array, by an array of their numbers."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The table that rows came from, without its cells.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow"}
        Whose tables results become again; pandas for arrays.
    index : pandas Index or None
        The names of the rows, where the table was a pandas frame.
    """

    library: str = "pandas"
    index: Any = None

    @classmethod
    def find(cls, X: object) -> Origin:
        """The origin of the rows of a table or an array; that of results is their own."""
        if isinstance(X, Tabular):
            return X.origin or cls()
        library = find_library(X) or "pandas"
        return cls(library, getattr(X, "index", None) if hasattr(X, "iloc") else None)

    def take(self, rows: object) -> Origin:
        """The same for some of the rows, by an array of their numbers."""
        return self if self.index is None else replace(self, index=self.index.take(rows))

    def make_table(self, columns: Columns) -> Frame:
        """A table of this library with these columns; NaN is null where the library has both."""
        return {"pandas": self._make_pandas, "polars": _make_polars, "pyarrow": _make_pyarrow}[self.library](columns)

    def _make_pandas(self, columns: Columns) -> object:
        pd = import_extra("pandas", None, "A pandas frame of results")
        return pd.DataFrame(dict(columns), index=self.index)


class Tabular:
    """A base of frozen dataclasses with one entry per row and a field `origin`: results as tables that join back."""

    __slots__ = ()

    origin: Origin | None

    def __len__(self) -> int:
        raise NotImplementedError

    def list_columns(self) -> dict[str, Cells]:
        """What stands in tables, by name."""
        raise NotImplementedError

    @property
    def index(self) -> Any:
        """The index of the pandas frame that the rows came from; None where there was none."""
        return None if self.origin is None else self.origin.index

    def locate(self, rows: Any) -> tuple[IntArray, Origin | None]:
        """The numbers of the rows that an index, a slice or a mask takes, and their origin."""
        at = np.atleast_1d(np.arange(len(self))[rows])
        return at, None if self.origin is None else self.origin.take(at)

    def with_origin(self, X: object) -> Self:
        """The same, as results about the rows of this table: its index and its library are kept."""
        return replace(self, origin=Origin.find(X))  # type: ignore[type-var]

    def to_pandas(self) -> object:
        """A pandas frame, one line per row; it has the index of the pandas frame that the rows came from."""
        return Origin("pandas", self.index).make_table(self.list_columns())

    def to_polars(self) -> object:
        """A polars frame, one line per row; NaN is null."""
        return Origin("polars").make_table(self.list_columns())

    def to_frame(self) -> Frame:
        """A table of the library that the rows came in: pandas (with its index), polars or pyarrow; pandas for arrays.

        Examples
        --------
        >>> import pandas as pd
        >>> from derand import StumpClassifier
        >>> loans = pd.DataFrame({"income": [10.0, 20.0, 60.0, 70.0]}, index=["ann", "bob", "cy", "dee"])
        >>> certificates = StumpClassifier(noise="gaussian:5").fit(loans, [0, 0, 1, 1]).certify(loans)
        >>> loans.join(certificates.to_frame())["label"].to_dict()
        {'ann': 0, 'bob': 0, 'cy': 1, 'dee': 1}
        """
        return (self.origin or Origin()).make_table(self.list_columns())


def refuse_other_rows(given: object, results: object, name: str) -> None:
    """Refuse what is about other rows than results are, or about the same in another order, by its pandas index.

    Nothing is said where either has no index or names rows twice, nor where one has the numbers that pandas gives
    by itself and the other has not: such names were lost on the way, not changed.

    `name`: what it is called.
    """
    own = results.index if isinstance(results, Tabular) else None
    index = getattr(given, "index", None) if hasattr(given, "iloc") else None
    if own is None or index is None or len(index) != len(own) or index.equals(own):
        return
    if not (index.is_unique and own.is_unique):
        return
    is_same = len(own.intersection(index)) == len(own)
    if not is_same and any(_is_plain(one) for one in (index, own)):
        return
    raise ValueError(
        f"`{name}` must hold the rows that were certified, in their order, got "
        f"{'the same rows in another order' if is_same else 'other rows'} by its index: give `{name}.loc[c.index]`, "
        f"where c are the certificates; or `{name}.to_numpy()`, if the rows do match and the index alone differs."
    )


def _is_plain(index: Any) -> bool:
    """Whether an index is 0, 1, 2, ..., as pandas gives it where none is given."""
    return bool(type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1))


def _make_polars(columns: Columns) -> object:
    import polars as pl

    return pl.DataFrame(
        [
            pl.Series(name, values if values.dtype.kind in "biuf" else values.tolist(), nan_to_null=True)
            for name, values in columns.items()
        ]
    )


def _make_pyarrow(columns: Columns) -> object:
    import pyarrow as pa

    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
