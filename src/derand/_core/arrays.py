"""Array types, what counts as a number, read-only arrays, and the constants of double precision, for all rooms.

Must not know anything else.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Numbers = NDArray[Any]
"""Numbers of any type: doubles, whole numbers of 1 to 8 bytes, booleans."""
Entries = Any
"""One number or an array of them: what is written with operators works on both."""
Labels = NDArray[Any]
"""Labels of classes: whole numbers, texts or booleans."""
Targets = NDArray[Any]
"""What a model learns to predict: labels or numbers."""
Cells = NDArray[Any]
"""What stands in one or several columns of a table: numbers, texts, dates or objects."""
PlotAxes = NDArray[np.object_]
"""The axes of a figure, as matplotlib gives them."""

EPSILON = 2.0**-52
TINY = 2.0**-1022
"""Smallest normal double: what stands in for a positive probability that is too small to be represented."""

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, of Python or NumPy; a boolean is none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number by its type; a boolean is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def freeze(array: AnyArray) -> AnyArray:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array


class Frozen:
    """A base of frozen dataclasses with read-only arrays: copies and pickles go through the constructor, which freezes.

    Without it NumPy would bring the arrays of a copy back writable.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
