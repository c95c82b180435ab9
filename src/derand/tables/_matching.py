"""A file of rows for a model that exists: its columns are matched with those of the encoding.

Owns by what columns are matched, and the labels and categories that training did not see. Must not know models.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import Cells, FloatArray, Labels
from derand._core.files import PathLike
from derand._core.origin import Cell
from derand._core.text import format_exactly, quote_short
from derand.tables._encoding import TableEncoding
from derand.tables._files import TableFile, inspect_file
from derand.tables._kinds import ColumnKind, kind_of_values

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class MatchedFile:
    """The columns of a file that a classifier reads; `match_file` makes it.

    Attributes
    ----------
    file : TableFile
    encoding : TableEncoding
    names : tuple of str
        Names of the features in this file.
    kinds : mapping of str to ColumnKind
        What is read: the features, and the target where there is one.
    target : str or None
    classes : array of shape (n_classes,), or None
        The labels that the target may hold; None where it holds numbers.
    copied : tuple of str
        Other columns that are read along, as they are.
    """

    file: TableFile
    encoding: TableEncoding
    names: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    target: str | None
    classes: Labels | None
    copied: tuple[str, ...] = ()

    def read_batches(self) -> Generator[pa.Table, None, None]:
        """The columns of the classifier and those to copy, batch by batch; never without rows."""
        return self._read(self.kinds, self.copied)

    def _read(self, kinds: Mapping[str, ColumnKind], copied: Collection[str] = ()) -> Generator[pa.Table, None, None]:
        """Batches of the file; where labels are of another type than the model's, the error lists the model's."""
        try:
            yield from self.file.read_batches(kinds, copied)
        except ValueError as error:
            if self.classes is None or not str(error).split(": ")[0].endswith(f"column {quote_short(self.target)}"):
                raise
            raise ValueError(f"{error} It is the target, of which the model knows {self._listed_classes}.") from None

    @property
    def _listed_classes(self) -> str:
        """The labels that the model knows, in words."""
        return ", ".join(quote_short(name) for name in ([] if self.classes is None else self.classes.tolist()))

    @property
    def not_used(self) -> list[str]:
        """Columns of the file that are not read."""
        return [name for name in self.file.names if name not in self.kinds and name not in self.copied]

    def read_all(self, others: Collection[str] = ()) -> pa.Table:
        """The whole file, with other columns as text beside those of the classifier."""
        import pyarrow as pa

        self.file.require_columns(others)
        kinds = {**dict.fromkeys(others, ColumnKind.TEXT), **self.kinds}
        batches = list(self._read(kinds))
        self.file.require_rows(len(batches))
        return pa.concat_tables(batches)

    def split(self, table: pa.Table, first_row: int) -> tuple[pa.Table | Cells, Labels | None]:
        """Rows as the model takes them, and their labels or numbers where there is a target.

        Missing numbers are left to whoever computes with them, within `name_gaps`; those of the target are refused.
        `first_row`: number of the table's first row in the file.
        """
        rows = table.select(list(self.names))
        if self.encoding.names is None:
            rows = np.array([column.to_pylist() for column in rows.columns], dtype=object).T
        return rows, None if self.target is None else self._read_labels(table, self.target, first_row)

    def require_finite(self, table: pa.Table) -> None:
        """Refuse infinity in the numbers of a whole file, for rows that are to be trained on."""
        names = [self.names[feature] for feature in self.encoding.numerical]
        self.file.require_complete(table, names, may_miss=True)

    def name_gaps(self, table: pa.Table, first_row: int) -> AbstractContextManager[None]:
        """Where the block finds gaps in these rows, say so with the file, its columns and the rows."""
        return self.file.name_gaps(self.names, table.num_rows, first_row)

    def count_unseen(self, table: pa.Table) -> dict[str, int]:
        """How many cells of each categorical column hold a value that training did not see, where any do."""
        import pyarrow as pa
        import pyarrow.compute as pc

        counts = {}
        for feature, values in self.encoding.categories.items():
            present = table.column(self.names[feature]).drop_null()
            known = pc.sum(pc.is_in(present, value_set=pa.array(values, type=present.type))).as_py() or 0
            if known < len(present):
                counts[self.names[feature]] = len(present) - known
        return counts

    def find_empty(self, table: pa.Table) -> set[str]:
        """The categorical columns that hold no value at all: to the model each cell is like one never seen."""
        names = (self.names[feature] for feature in self.encoding.categories)
        return {name for name in names if table.column(name).null_count == table.num_rows}

    def require_between(self, table: pa.Table, column: int, ends: tuple[float, float], first_row: int) -> None:
        """Refuse a number outside of the ends of its column; missing ones are left to whoever computes with them."""
        values = table.column(self.names[column]).cast("float64").to_numpy()
        outside = np.flatnonzero((values < ends[0]) | (values > ends[1]))
        if outside.size:
            own, low, high = (format_exactly(value) for value in (values[outside[0]], *ends))
            raise ValueError(
                f"{self.file.label} has {own} in row {first_row + int(outside[0])} of the column "
                f"{quote_short(self.names[column])}, outside of its domain from {low} to {high}, which must hold every "
                "row's own value."
            )

    def decode(self, table: pa.Table, rows: FloatArray) -> dict[str, pa.Array]:
        """Rows as the model reads them, in the columns of this file: categories by name, NaN as an empty cell.

        `table`: what they were before. Where a category is -1, a value that training did not see stays as it was, and
        any other becomes such a value.
        """
        import pyarrow as pa

        columns = {}
        for feature, name in enumerate(self.names):
            values = rows[:, feature]
            if feature in self.encoding.categories:
                known = self.encoding.categories[feature]
                learnt, before, new = set(known), table.column(name).to_pylist(), make_unseen(known)
                unseen = [new if own is None or own in learnt else own for own in before]
                cells = [
                    None if np.isnan(code) else known[int(code)] if code >= 0 else other
                    for code, other in zip(values.tolist(), unseen, strict=True)
                ]
                columns[name] = pa.array(cells, type=table.schema.field(name).type)
            else:
                columns[name] = pa.array(values, from_pandas=True)
        return columns

    def _read_labels(self, table: pa.Table, target: str, first_row: int) -> Labels:
        self.file.require_complete(table, [target], first_row)
        if self.classes is None:
            return np.asarray(table.column(target).to_numpy(), dtype=np.float64)
        codes = {label: code for code, label in enumerate(self.classes.tolist())}
        values = table.column(target).to_pylist()
        for row, value in enumerate(values, start=first_row):
            if value not in codes:
                raise ValueError(
                    f"{self.file.label} has the label {quote_short(value)} in row {row} of the column {target!r}: "
                    f"the model knows {self._listed_classes}."
                )
        return np.asarray(self.classes[[codes[value] for value in values]])


def make_unseen(known: tuple[Cell, ...]) -> object:
    """Some value that is not among the categories; None where there is no other."""
    kind = kind_of_values(known)
    if kind is ColumnKind.TEXT:
        return max(known, default="") + "?"
    return max(known) + 1 if known and kind is ColumnKind.NUMBER else None


def match_file(
    path: PathLike,
    encoding: TableEncoding,
    *,
    target: str | None = None,
    classes: Labels | None,
    copied: Collection[str] = (),
) -> MatchedFile:
    """Look at a file and find the columns of an encoding in it: by name, or by position where that has no names.

    Parameters
    ----------
    path : path-like
        CSV or Parquet.
    encoding : TableEncoding
        Of the training table.
    target : str or None
        Column with the true labels, or numbers.
    classes : array of shape (n_classes,), or None
        The labels that it may hold; None where it holds numbers.
    copied : collection of str
        Columns to read along, as they are; they need not be features.

    Returns
    -------
    MatchedFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> encoding = TableEncoding(1, ("age",), {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "new.csv"
    ...     _ = file.write_text("job,age,y\\ncook,31,1\\nclerk,45,0\\n")
    ...     found = match_file(file, encoding, target="y", classes=np.array([0, 1]))
    ...     rows, labels = found.split(found.read_all(), first_row=1)
    >>> rows.to_pydict(), labels.tolist()
    ({'age': [31.0, 45.0]}, [1, 0])
    """
    file, names = inspect_file(path), encoding.names
    if names is None:
        names = tuple(name for name in file.names if name != target)
        if len(names) > encoding.n_features:
            names = tuple(name for name in names if name not in copied)
        if len(names) != encoding.n_features:
            raise ValueError(
                f"{path} has {len(names)} columns of features, but the model was trained on "
                f"{encoding.n_features}, without names: give only these, in the same order."
            )
    if target is not None and target in names:
        raise ValueError(f"The column {target!r} is a feature of the model: it cannot be the target.")
    file.require_columns([*names, *([] if target is None else [target]), *copied])
    kinds = {name: encoding.kind(feature) for feature, name in enumerate(names)}
    kinds |= {names[feature]: ColumnKind.DATE for feature in encoding.dates}
    taken = {names[feature] for feature in encoding.numerical if encoding.takes_booleans(feature)}
    kinds |= dict.fromkeys(taken & set(file.booleans), ColumnKind.BOOLEAN)
    if target is not None:
        kinds[target] = ColumnKind.NUMBER if classes is None else kind_of_values(classes.tolist())
    return MatchedFile(file, encoding, names, kinds, target, classes, tuple(copied))
