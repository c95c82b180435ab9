"""The parts of a table: partitions of a Dask dataframe, row groups of Parquet files, or a table in memory as one part.

Owns what a part is, how its rows are read batch by batch, and how work on all parts is reduced to one result. Must not
know what is computed.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from derand._core.later import import_extra
from derand._core.origin import Cell, Frame
from derand.tables import is_frame

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BATCH_ROWS = 2**18
_PART_ROWS = 2**21
_FAN_IN = 8
_PARQUET = (".parquet", ".pq")


Result = TypeVar("Result")
Combine = Callable[[list[Result]], Result]
"""Makes one result of two or more."""


class Part(Protocol):
    """Some rows of a table, read batch by batch."""

    def read_batches(self) -> Iterator[object]: ...


@dataclass(frozen=True, slots=True)
class FramePart:
    """A table in memory."""

    table: object

    def read_batches(self) -> Iterator[object]:
        yield self.table


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...] | None = None

    def read_batches(self) -> Iterator[object]:
        """Tables of at most so many rows that memory does not grow with the part."""
        import pyarrow as pa

        with _open_parquet(self.path) as file:
            known = file.schema_arrow.names
            wanted = None if self.columns is None else [name for name in self.columns if name in known]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=list(self.groups), columns=wanted):
                batch.validate(full=True)
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])


@contextmanager
def _open_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file; what is wrong with it is said in one line, while it is read, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {reason}") from None


def list_files(data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that a path, a folder, a pattern such as "data/*.parquet" or a sequence of these names, each once."""
    entries = [data] if isinstance(data, str | os.PathLike) else list(data)
    found: dict[str, None] = {}
    for entry in [os.fspath(entry) for entry in entries]:
        if os.path.isdir(entry):
            inside = sorted(str(file) for file in Path(entry).iterdir() if file.suffix.lower() in _PARQUET)
        elif glob.has_magic(entry) and not os.path.exists(entry):
            inside = sorted(file for file in glob.glob(entry, recursive=True) if os.path.isfile(file))
        else:
            inside = [entry]
        if not inside:
            raise FileNotFoundError(f"{entry} names no file: a folder must hold .parquet files, a pattern must match.")
        found.update(dict.fromkeys(inside))
    if not found:
        raise ValueError("No files are given: name a file, a folder, or a pattern such as 'data/*.parquet'.")
    return list(found)


def _cut_file(path: str, columns: tuple[str, ...] | None) -> list[FilePart]:
    """Row groups of a file, in parts of a size that a worker can hold as codes."""
    with _open_parquet(path) as file:
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
        names = file.schema_arrow.names
    for column in columns or ():
        if column not in names:
            raise ValueError(f"{path} has no column {column!r}: it has {', '.join(names)}.")
    parts: list[list[int]] = []
    n_rows = _PART_ROWS
    for at, size in enumerate(sizes):
        if size and n_rows + size > _PART_ROWS:
            parts.append([])
            n_rows = 0
        if size:  # files without rows are common among many
            parts[-1].append(at)
        n_rows += size
    return [FilePart(path, tuple(groups), columns) for groups in parts]


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a table, and the work on them.

    Attributes
    ----------
    parts : sequence of Part, or of delayed tables
    names : sequence of str
        What each is called where something is wrong with it.
    on_workers : bool
        Whether Dask does the work.
    """

    parts: Sequence[Cell]
    names: Sequence[str]
    on_workers: bool

    @classmethod
    def open(cls, data: Frame, columns: tuple[str, ...] | None = None) -> Parts:
        """The parts of a Dask dataframe, of Parquet files, or of a table in memory; all columns, or some."""
        if hasattr(data, "to_delayed"):
            delayed = list((data if columns is None else data[list(columns)]).to_delayed())
            return cls(delayed, [f"partition {at}" for at in range(len(delayed))], on_workers=True)
        if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and not is_frame(data)):
            files = [part for path in list_files(data) for part in _cut_file(path, columns)]
            if not files:
                raise ValueError("The files hold no rows.")
            return cls(files, [part.path for part in files], on_workers=True)
        if is_frame(data):
            if columns is not None:
                data = data.select(list(columns)) if hasattr(data, "select") else data[list(columns)]
            return cls([FramePart(data)], ["the table"], on_workers=False)
        raise TypeError(
            "`data` must be a Dask dataframe, Parquet files (paths, a folder, or a pattern), or a pandas, polars or "
            f"pyarrow table, got a {type(data).__name__}."
        )

    def map(
        self, work: Callable[..., Result], combine: Combine[Result], *arguments: object, with_names: bool = False
    ) -> list[Cell]:
        """What each part gives, as `reduce` has it; where Dask does the work, these are handles of results."""
        run, shared = _work_on, arguments
        if self.on_workers:
            delayed = import_extra("dask", "dask", "Training on files").delayed
            shared = delayed(arguments, traverse=False) if arguments else ()
            run = delayed(_work_on, pure=False)
        pairs = zip(self.parts, self.names, strict=True)
        return [run(part, work, combine, shared, name, with_names) for part, name in pairs]

    def reduce(
        self, work: Callable[..., Result], combine: Combine[Result], *arguments: object, with_names: bool = False
    ) -> Result | None:
        """One result of all parts: `combine` of what `work(table, *arguments)` gives for each batch of rows.

        With `with_names` the name of the part is the last argument of `work`. None where there are no rows.
        """
        found = self.map(work, combine, *arguments, with_names=with_names)
        return reduce_tree(found, combine) if self.on_workers else combine_some(combine, found)


def reduce_tree(found: Sequence[object], combine: Combine[Result]) -> Result | None:
    """One result from delayed ones, a few at a time, where they are."""
    import dask

    join = dask.delayed(combine_some, pure=False)
    while len(found) > 1:
        found = [join(combine, list(found[at : at + _FAN_IN])) for at in range(0, len(found), _FAN_IN)]
    result: Result | None
    (result,) = dask.compute(found[0])
    return result


def combine_some(combine: Combine[Result], found: Sequence[Result | None]) -> Result | None:
    """One result of those of parts that have rows; None where none has."""
    known = drop_empty(found)
    return combine(known) if len(known) > 1 else next(iter(known), None)


def _work_on(
    part: Part | object,
    work: Callable[..., Result],
    combine: Combine[Result],
    arguments: tuple[object, ...],
    name: str,
    with_names: bool,
) -> Result | None:
    """What a part gives, batch by batch; None where it has no rows. An error names the part."""
    total: Result | None = None
    batches: Iterator[Cell] = part.read_batches() if hasattr(part, "read_batches") else iter([part])
    try:
        for table in batches:
            if len(table):
                found = work(table, *arguments, name) if with_names else work(table, *arguments)
                total = found if total is None else combine([total, found])
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None
    return total


def drop_empty(found: Sequence[Result | None]) -> list[Result]:
    """Results of parts that have rows."""
    return [one for one in found if one is not None]
