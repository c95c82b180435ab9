"""The parts of a table: partitions of a Dask dataframe, row groups of Parquet files, or a table in memory as one part.

Owns what a part is, how its rows are read batch by batch, and how work on all parts is reduced to one result. Must not
know what is computed.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derand._core.later import import_extra
from derand.tables import is_frame

_BATCH_ROWS = 2**18
_PART_ROWS = 2**21
_FAN_IN = 8
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class FramePart:
    """A table in memory."""

    table: Any
    name: str = "the table"

    def read_batches(self) -> Iterator[Any]:
        yield self.table


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return self.path

    def read_batches(self) -> Iterator[Any]:
        """Tables of at most so many rows that memory does not grow with the part."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path, pre_buffer=False) as file:
                wanted = (
                    None if self.columns is None else [name for name in self.columns if name in file.schema_arrow.names]
                )
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=list(self.groups), columns=wanted):
                    batch.validate(full=True)
                    if batch.num_rows:
                        yield pa.Table.from_batches([batch])
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} does not exist.") from None
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{self.path} is not a Parquet file, or is damaged: {reason}") from None


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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            names = file.schema_arrow.names
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {reason}") from None
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


class Parts:
    """All parts of a table, and the work on them.

    Parameters
    ----------
    parts : sequence of FramePart, FilePart or delayed tables
    names : sequence of str
        What each is called where something is wrong with it.
    on_workers : bool
        Whether Dask does the work.
    """

    def __init__(self, parts: Sequence[Any], names: Sequence[str], *, on_workers: bool) -> None:
        self._parts, self._names, self._on_workers = list(parts), list(names), on_workers

    @classmethod
    def open(cls, data: Any, columns: tuple[str, ...] | None = None) -> Parts:
        """The parts of a Dask dataframe, of Parquet files, or of a table in memory; all columns, or some."""
        if hasattr(data, "to_delayed"):
            delayed = list((data if columns is None else data[list(columns)]).to_delayed())
            return cls(delayed, [f"partition {at}" for at in range(len(delayed))], on_workers=True)
        if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and not is_frame(data)):
            files = [part for path in list_files(data) for part in _cut_file(path, columns)]
            if not files:
                raise ValueError("The files hold no rows.")
            return cls(files, [part.name for part in files], on_workers=True)
        if is_frame(data):
            some = data if columns is None else _select(data, columns)
            return cls([FramePart(some)], ["the table"], on_workers=False)
        raise TypeError(
            "`data` must be a Dask dataframe, Parquet files (paths, a folder, or a pattern), or a pandas, polars or "
            f"pyarrow table, got a {type(data).__name__}."
        )

    def __len__(self) -> int:
        return len(self._parts)

    def reduce(
        self,
        work: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        *arguments: Any,
        keep_parts: bool = False,
        with_names: bool = False,
    ) -> Any:
        """One result of all parts: `combine` of what `work(table, *arguments)` gives for each batch of rows.

        With `keep_parts` a list of one result for each part, which stays with the workers, as handles. With
        `with_names` the name of the part is the last argument of `work`.
        """
        if not self._on_workers:
            found = [_work_on(part, work, combine, arguments, name, with_names) for part, name in self._pairs()]
            return found if keep_parts else combine(found)
        delayed = import_extra("dask", "dask", "Training on files").delayed
        shared = delayed(tuple(arguments), traverse=False) if arguments else ()
        run = delayed(_work_on, pure=False)
        found = [run(part, work, combine, shared, name, with_names) for part, name in self._pairs()]
        return found if keep_parts else reduce_tree(found, combine)

    def _pairs(self) -> Iterator[tuple[Any, str]]:
        return zip(self._parts, self._names, strict=True)

    @property
    def on_workers(self) -> bool:
        return self._on_workers


def _select(table: Any, columns: tuple[str, ...]) -> Any:
    """Some columns of a pandas, polars or pyarrow table."""
    return table.select(list(columns)) if hasattr(table, "select") else table[list(columns)]


def reduce_tree(found: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """One result from delayed ones, a few at a time, where they are."""
    import dask

    join = dask.delayed(combine, pure=False)
    while len(found) > 1:
        found = [join(list(found[at : at + _FAN_IN])) for at in range(0, len(found), _FAN_IN)]
    (result,) = dask.compute(found[0])
    return result


def _work_on(
    part: Any,
    work: Callable[..., Any],
    combine: Callable[[list[Any]], Any],
    arguments: Any,
    name: str,
    with_names: bool,
) -> Any:
    """What a part gives, batch by batch; None where it has no rows. An error names the part."""
    total = None
    batches = part.read_batches() if hasattr(part, "read_batches") else iter([part])
    try:
        for table in batches:
            if not len(table):
                continue
            found = work(table, *arguments, name) if with_names else work(table, *arguments)
            total = found if total is None else combine([total, found])
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None
    return total


def drop_empty(found: Sequence[Any]) -> list[Any]:
    """Results of parts that have rows."""
    return [one for one in found if one is not None]
