"""Columns of the data that are copied beside results: an id, which stands first, and others, which stand last.

Owns where they stand and which names they cannot have. Must not know what results are, nor how files are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

from derand._core.text import Facts, quote_short

if TYPE_CHECKING:
    import pyarrow as pa

RESULT_COLUMNS = ("row", "label", "runner_up", "failure", "radius", "attacked", "verdict", "proof")
"""What may be written of classes."""
NUMBER_COLUMNS = ("row", "value", "low", "high", "radius")
"""What may be written of numbers."""


class Copies(NamedTuple):
    """Which columns of the data are copied.

    Attributes
    ----------
    identity : str or None
        The column that says which row is which.
    kept : tuple of str
    """

    identity: str | None
    kept: tuple[str, ...]

    @classmethod
    def choose(cls, identity: str | None, keep: Collection[str], taken: Collection[str]) -> Self:
        """The columns that are asked for, each once; one that is called like a column of results is refused.

        `taken`: names of the columns of results.
        """
        found = cls(identity, tuple(name for name in dict.fromkeys(keep) if name != identity))
        for name in found.names:
            if name in taken:
                raise ValueError(
                    f"The column {quote_short(name)} cannot be copied, because the output has a column of that name "
                    f"({', '.join(taken)}): rename it in the data."
                )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return self.kept if self.identity is None else (self.identity, *self.kept)

    def join(self, batch: pa.Table, results: Mapping[str, object]) -> Facts:
        """What is written of a batch: the id, the results, and the other columns."""
        first = {} if self.identity is None else {self.identity: _copy(batch, self.identity)}
        return {**first, **results, **{name: _copy(batch, name) for name in self.kept}}

    def join_changed(
        self, batch: pa.Table, own: Mapping[str, object], changed: Mapping[str, object]
    ) -> dict[str, object]:
        """What is written of changed rows: the id, our columns, the columns of the model, and others.

        Ours, and an id that is a column of the model, get an underscore where a column of the data has their name;
        other columns of the model stand there as they were changed alone.
        """
        last = {name: _copy(batch, name) for name in self.kept if name not in changed}
        first = {} if self.identity is None else {self.identity: _copy(batch, self.identity)}
        found: dict[str, object] = {}
        for name, values in {**first, **own}.items():
            free = name
            while free in changed or free in last or free in found:
                free = f"_{free}"
            found[free] = values
        return {**found, **changed, **last}


def find_copies(written: Collection[str], data: Collection[str], taken: Collection[str]) -> tuple[str, ...]:
    """The columns of a file of results that were copied from the data."""
    return tuple(name for name in written if name in set(data) and name not in taken)


def _copy(batch: pa.Table, name: str) -> pa.Array:
    return batch.column(name).combine_chunks()
