"""What pyarrow is told and asked when tables are read: types of columns, options of its CSV reader, and its errors.

Owns the one line that each way a table can be wrong is told by. Must not know files that were looked at, nor models.
pyarrow is used and not polars: its readers and writers go through a file of any size batch by batch, with column types
fixed beforehand, in both formats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from derand._core.files import PathLike
from derand._core.text import quote_short
from derand.tables._kinds import ColumnKind, kind_of_arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

PARQUET = (".parquet", ".pq")
ARROW_STREAM = "a whole Arrow stream"
DELIMITERS = ",;\t"
STREAM = "-"
"""What stands for standard input or output where a file is named."""
_STRAY_TEXT = re.compile(r"CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to double: invalid value '(.*)'")


def names_stream(path: object) -> bool:
    """Whether a path stands for standard input or output."""
    return str(path) == STREAM


def name_table(path: PathLike) -> str:
    """How messages name a file, or standard input."""
    return "Standard input" if names_stream(path) else str(path)


def is_parquet(path: PathLike) -> bool:
    """Whether a file is Parquet, by its name."""
    return Path(path).suffix.lower() in PARQUET


def list_some(names: Collection[str], *, quote: bool = True) -> str:
    """The first of some names, and how many more there are."""
    shown = [quote_short(name) if quote else name for name in list(names)[:8]]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(shown) + more


def list_booleans(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the columns whose type is boolean."""
    return tuple(field.name for field in schema if kind_of_arrow_type(field.type) is ColumnKind.BOOLEAN)


def check_kinds(path: PathLike, schema: pa.Schema, kinds: Mapping[str, ColumnKind]) -> None:
    """Refuse columns of typed tables that hold something else where numbers or booleans are read."""
    path = name_table(path)
    for name, kind in kinds.items():
        found = schema.field(name).type
        own = kind_of_arrow_type(found)
        if kind is ColumnKind.NUMBER and own is not kind:
            what = own.value if own in (ColumnKind.BOOLEAN, ColumnKind.DATE) else "text"
            raise ValueError(f"{path} has {what} in the number column {quote_short(name)}: its type is {found}.")
        if kind is ColumnKind.BOOLEAN and own is ColumnKind.NUMBER:
            raise ValueError(f"{path} has numbers in the column of booleans {quote_short(name)}: its type is {found}.")


class CsvOptions(TypedDict):
    """What pyarrow's CSV readers are told."""

    read_options: arrow_csv.ReadOptions
    parse_options: arrow_csv.ParseOptions
    convert_options: arrow_csv.ConvertOptions


def make_csv_options(
    delimiter: str, types: Mapping[str, pa.DataType], block_bytes: int, only: Collection[str] = ()
) -> CsvOptions:
    """Options of pyarrow's CSV readers: types fixed for some columns, found for the others; no truth values."""
    import pyarrow.csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(block_size=block_bytes, use_threads=not only),  # one thread counts lines
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict(types),
            include_columns=list(only),
            **({} if only else {"true_values": [], "false_values": []}),  # unless asked for, truth values are text
        ),
    }


def list_csv_types(kinds: Mapping[str, ColumnKind]) -> dict[str, pa.DataType]:
    """Types with which columns of a CSV file are read; dates are text there."""
    import pyarrow as pa

    types = {ColumnKind.NUMBER: pa.float64(), ColumnKind.BOOLEAN: pa.bool_()}
    return {name: types.get(kind, pa.string()) for name, kind in kinds.items()}


def as_kind(column: pa.Array, kind: ColumnKind) -> pa.Array:
    """The cells as text, truth values or doubles."""
    import pyarrow as pa

    if kind is ColumnKind.TEXT:
        return to_text(column)
    return column.cast(pa.bool_() if kind is ColumnKind.BOOLEAN else pa.float64(), safe=False)


def as_plain(column: pa.Array, where: str) -> pa.Array:
    """A column as it is, with a type that can be written: text that is empty is null, categories are their values."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return to_text(column, where)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ValueError(f"{where} holds {kind}, which cannot be copied: leave it out or store it as text.")
    return column


def to_text(column: pa.Array | pa.ChunkedArray, where: str = "A column") -> pa.Array | pa.ChunkedArray:
    """The cells as text, null where a cell is empty; truth values as True and False."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{where} has cells that are no text ({reason}): leave it out or store it as text.") from None
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def count_missing(column: pa.ChunkedArray, may_miss: bool = False) -> int:
    """How many cells are empty, NaN or infinite; infinite ones alone, where cells may be missing."""
    import pyarrow.compute as pc

    count = 0 if may_miss else column.null_count
    if kind_of_arrow_type(column.type) is ColumnKind.NUMBER:
        numbers = column.cast("float64", safe=False)
        count += pc.sum(pc.is_inf(numbers) if may_miss else pc.invert(pc.is_finite(numbers))).as_py() or 0
    return int(count)


@contextmanager
def clear_errors(path: PathLike, names: Collection[str] = (), *, wanted: str | None = None) -> Iterator[None]:
    """Turn what pyarrow says about a file with these columns into one line that names the file, and what it must be."""
    import pyarrow as pa

    wanted = wanted or ("a Parquet file" if is_parquet(path) else "a CSV file with a header line")
    path = name_table(path)
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise type(error)(f"{path} cannot be read: {error.strerror or error}.") from None
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        message = " ".join(str(error).split())
        if "Empty CSV file" in message:
            raise ValueError(f"{path} is empty.") from None
        stray = _STRAY_TEXT.search(message)
        if stray:
            line = f" (line {stray[2]})" if stray[2] else ""
            name, text = list(names)[int(stray[1])], _printable(stray[3])
            raise ValueError(
                f"{path} has text in the number column {quote_short(name)}: {quote_short(text)}{line}."
            ) from None
        shown = message if len(message) <= 200 else message[:197] + "..."
        raise ValueError(f"{path} is not {wanted}, or is damaged: {_printable(shown)}") from None


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in text)
