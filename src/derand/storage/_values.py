"""Values of parameters and of fitted attributes as JSON: plain ones as they are, all others with their kind.

Numbers, text, lists, dicts, arrays, noises and threats are written; anything else is refused. Arrays of text are as
wide as their longest text asks for, whatever type a file states, and of text so uneven that most of an array would be
padding they are arrays of objects: what is allocated stays in proportion to the file.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import Cells
from derand._core.origin import Cell
from derand._core.units import NamedUnits
from derand.noise import Noise
from derand.storage._fields import Field, construct
from derand.storage._models import build_noise, describe_noise
from derand.threat import Threat

_ARRAY_TYPE = re.compile(r"[<|](U[1-9]\d{0,3}|[iu][1248]|f[248]|b1|O)")
_STRANGE_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def describe_value(value: object, name: str) -> object:
    """A value as JSON; `name` is that of the parameter or attribute, for errors."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [describe_value(item, name) for item in value]
    for own in KINDS:
        if isinstance(value, own.type):
            return {own.tag: own.describe(value, name)}
    raise ValueError(
        f"`{name}` cannot be saved: a {type(value).__name__} is no number, text, list, dict, array or noise."
    )


def build_value(field: Field) -> Any:
    """A value from its JSON."""
    if field.value is None or isinstance(field.value, bool | str):
        return field.value
    if isinstance(field.value, list):
        return [build_value(item) for item in field.items()]
    if isinstance(field.value, dict):
        builders = {own.tag: own.build for own in KINDS}
        if len(field.value) != 1 or next(iter(field.value)) not in builders:
            field.refuse(f"have one field, of {', '.join(builders)}")
        ((name, inside),) = field.entries()
        return builders[name](inside)
    return field.whole() if isinstance(field.value, int) else field.number()


def _describe_dict(value: Mapping[object, object], name: str) -> list[list[object]]:
    return [[describe_value(key, name), describe_value(item, name)] for key, item in value.items()]


def _build_dict(field: Field) -> dict[Any, object]:
    result = {}
    for item in field.items():
        pair = [build_value(part) for part in item.items()]
        if len(pair) != 2 or not isinstance(pair[0], str | bool | int | float):
            item.refuse("be a key, plain, and a value")
        result[pair[0]] = pair[1]
    return result


def describe_array(array: Cells, name: str) -> dict[str, object]:
    """A flat array by its type and its values."""
    type_name = array.dtype.newbyteorder("<").str
    if array.ndim != 1 or not _ARRAY_TYPE.fullmatch(type_name):
        raise ValueError(f"`{name}` cannot be saved: it is an array of type {array.dtype} and shape {array.shape}.")
    values = array.tolist()
    if array.dtype.kind == "U":
        type_name = "|O" if _is_uneven(values) else f"<U{_measure_width(values)}"
    return {"type": type_name, "values": [describe_value(value, name) for value in values]}


def build_array(field: Field) -> Cells:
    """A flat array; values that its type does not hold exactly are refused."""
    fields = field.members("type", "values")
    type_name = fields["type"].text()
    if not _ARRAY_TYPE.fullmatch(type_name):
        fields["type"].refuse("be the type of an array")
    values = [build_value(item) for item in fields["values"].items()]
    if any(isinstance(value, list | tuple | dict | np.ndarray | Noise) for value in values):
        fields["values"].refuse("hold plain values")
    held = _narrow_type(type_name, values, fields["values"])
    try:
        array = np.array(values, dtype=held)
    except (ValueError, TypeError, OverflowError):
        fields["values"].refuse(f"be of the type {type_name}")
    back = array.tolist()
    if [(type(value), repr(value)) for value in back] != [(type(value), repr(value)) for value in values]:
        fields["values"].refuse(f"be of the type {type_name}")
    return array


def _narrow_type(type_name: str, values: Sequence[Cell], field: Field) -> str:
    """The type to allocate for values: of text the narrowest, which the stated one must cover."""
    if type_name[1] != "U":
        return type_name
    if not all(isinstance(value, str) and len(value) <= int(type_name[2:]) for value in values):
        field.refuse(f"be of the type {type_name}")
    if _is_uneven(values):
        field.refuse("hold text of similar lengths: uneven text has the type |O")
    return f"<U{_measure_width(values)}"


def _measure_width(values: Sequence[str]) -> int:
    return max(map(len, values), default=1) or 1


def _is_uneven(values: Sequence[str]) -> bool:
    """Whether an array as wide as its longest text would be far larger than its text; never of four values or less."""
    return len(values) * _measure_width(values) > 4 * sum(len(value) + 16 for value in values)


def describe_threat(threat: Threat, name: str) -> dict[str, object]:
    """A threat by its fields."""
    told = {one.name: describe_value(getattr(threat, one.name), name) for one in dataclasses.fields(threat)}
    return told if threat.linked else {key: value for key, value in told.items() if key != "linked"}


def build_threat(field: Field) -> Threat:
    """A threat by its fields."""
    names = [one.name for one in dataclasses.fields(Threat) if one.name != "linked"]
    fields = field.members(*names, optional=("linked",))  # which older files lack
    return construct(partial(Threat, **{name: build_value(one) for name, one in fields.items()}), field)


def _build_float(field: Field) -> float:
    return _STRANGE_FLOATS[field.choice(list(_STRANGE_FLOATS))]


class Kind(NamedTuple):
    """How values of a type are written and read: as an object with one field, the tag."""

    tag: str
    type: type
    describe: Callable[[Any, str], object]
    build: Callable[[Field], Any]


KINDS = (
    Kind(
        "float", float, lambda value, _: str(value), lambda field: _STRANGE_FLOATS[field.choice(list(_STRANGE_FLOATS))]
    ),
    Kind(
        "dict", NamedUnits, lambda value, name: _describe_dict(value.by_name, name), _build_dict
    ),  # it is a tuple, too
    Kind(
        "tuple",
        tuple,
        lambda value, name: [describe_value(item, name) for item in value],
        lambda field: tuple(build_value(item) for item in field.items()),
    ),
    Kind("dict", dict, _describe_dict, _build_dict),
    Kind("array", np.ndarray, describe_array, build_array),
    Kind("noise", Noise, lambda value, _: describe_noise(value), build_noise),
    Kind("threat", Threat, describe_threat, build_threat),
)
"""The first one whose type fits writes a value."""
