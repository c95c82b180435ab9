"""Columns of many numbers as short text for a page: base64, exact to the last bit; static/common.js reads them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray

_AS_THEY_ARE = frozenset({"name", "verdict", "detailed"})
_CODES = (np.dtype("<u1"), np.dtype("<u2"))


class Packed(TypedDict):
    """A column: its numbers, or the places of its numbers among a few that differ. A missing number is NaN."""

    type: str
    """"u1", "u2" or "u4" for whole numbers of so many bytes, "f8" for doubles."""
    bytes: str
    values: NotRequired[str]
    """The numbers that differ, as doubles; what `bytes` holds are then places among them."""


def pack(numbers: Sequence[float | str | None] | FloatArray) -> Packed:
    """A column of numbers, None for a missing one, infinity also as the text "inf".

    Examples
    --------
    >>> pack([1.5, None, 1.5])
    {'type': 'u1', 'bytes': 'AAEA', 'values': 'AAAAAAAA+D8AAAAAAAD4fw=='}
    """
    column = np.array([np.nan if one is None else float(one) for one in numbers], dtype=np.float64)
    distinct, codes = np.unique(column, return_inverse=True)
    for kind in _CODES:
        if (
            distinct.size <= 1 + np.iinfo(kind).max
            and 8 * distinct.size + kind.itemsize * column.size < 8 * column.size
        ):
            return {"type": kind.str[1:], "bytes": _encode(codes.astype(kind)), "values": _encode(distinct)}
    if column.size and column.min() >= 0 and column.max() < 2**32 and bool((column == np.floor(column)).all()):
        return {"type": "u4", "bytes": _encode(column.astype("<u4"))}
    return {"type": "f8", "bytes": _encode(column)}


def pack_listed(listed: Mapping[str, Any]) -> dict[str, object]:
    """The columns of a row table, those of numbers packed; text, and places of rows with details, as they are."""
    return {name: column if name in _AS_THEY_ARE else _pack_column(column) for name, column in listed.items()}


def _pack_column(column: Sequence[Any] | None) -> object:
    if column is None:
        return None
    return [pack(one) for one in column] if column and isinstance(column[0], list) else pack(column)


def count_bytes(packed: Packed) -> int:
    """How many characters of a page a column takes."""
    return len(packed["bytes"]) + len(packed.get("values", ""))


def _encode(numbers: ArrayLike) -> str:
    array = np.asarray(numbers)
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")
