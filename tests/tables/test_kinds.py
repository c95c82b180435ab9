"""One vocabulary of kinds: types, cells and values are judged alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from derand.tables import ColumnKind, kind_of_arrow_type, kind_of_values


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.int8(), ColumnKind.NUMBER),
        (pa.float32(), ColumnKind.NUMBER),
        (pa.decimal128(5, 2), ColumnKind.NUMBER),
        (pa.string(), ColumnKind.TEXT),
        (pa.large_string(), ColumnKind.TEXT),
        (pa.dictionary(pa.int8(), pa.string()), ColumnKind.CATEGORY),
        (pa.bool_(), ColumnKind.BOOLEAN),
        (pa.null(), ColumnKind.EMPTY),
        (pa.date32(), ColumnKind.DATE),
        (pa.timestamp("ns", "UTC"), ColumnKind.DATE),
        (pa.time32("s"), ColumnKind.OTHER),
        (pa.list_(pa.int8()), ColumnKind.OTHER),
    ],
    ids=str,
)
def test_types_of_pyarrow_have_a_kind(found: Any, kind: ColumnKind) -> None:
    """Files and frames are judged by the same function."""
    assert kind_of_arrow_type(found) is kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], ColumnKind.TEXT),
        ([False, True], ColumnKind.BOOLEAN),
        (np.array([0, 1]).tolist(), ColumnKind.NUMBER),
        ([0.5], ColumnKind.NUMBER),
        ([], ColumnKind.NUMBER),
    ],
)
def test_values_say_what_their_column_holds(values: Any, kind: ColumnKind) -> None:
    """The kind of labels and categories is that of the first; a column without categories holds numbers."""
    assert kind_of_values(values) is kind


def test_text_booleans_and_categories_are_categorical() -> None:
    """Which kinds are categorical unless it is said otherwise stands in one place."""
    assert {kind for kind in ColumnKind if kind.is_categorical} == {
        ColumnKind.TEXT,
        ColumnKind.BOOLEAN,
        ColumnKind.CATEGORY,
    }
