"""Threats as people write them: texts such as COLUMN=VALUE, and TOML files.

Owns how text becomes a Threat, and one line for each way in which it cannot. Must not know models, tables or the
command line: names of columns are checked by whoever knows them.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from derand._core.files import PathLike, open_plain
from derand._core.text import quote_short
from derand._core.units import NamedUnits, as_units
from derand.threat import Limit, Threat

NORMS: dict[str, float | str | None] = {"auto": "auto", "0": 0, "1": 1, "2": 2, "inf": math.inf, "none": None}
"""Norms as text."""
KEYS = (
    "norm",
    "units",
    "l0",
    "unseen",
    "frozen",
    "limits",
    "domain",
    "steps",
    "whole",
    "may_become",
    "missing",
    "linked",
)
"""What a file may say of a threat: the fields of Threat."""

_MAX_BYTES = 2**24
_LARGEST_WHOLE = 2**63 - 1  # of TOML

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ThreatSection:
    """A threat that is a section of a larger TOML file: to be given wherever a file of a threat is.

    Attributes
    ----------
    path : path-like
        The file, which is also what this is a path of.
    section : str
    """

    path: PathLike
    section: str = "threat"

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return f"{os.fspath(self.path)}, [{self.section}]"


def parse_changes(
    *,
    norm: str | None = None,
    l0: int | None = None,
    unseen: bool | None = None,
    limits: Iterable[str] = (),
    domain: Iterable[str] = (),
    steps: Iterable[str] = (),
    frozen: Iterable[str] = (),
    missing: int | None = None,
    units: Iterable[str] = (),
    whole: bool = False,
    linked: Iterable[str] = (),
) -> dict[str, object]:
    """Fields of Threat from texts; what is not given is left out.

    `norm`: one of NORMS; `limits`: COLUMN=VALUE each, where VALUE is "5%", "500" or "down:up"; `domain`:
    COLUMN=LOW:HIGH; `steps`: COLUMN=NUMBER; `frozen`: names of columns; `unseen`: whether
    a category may become a value that training did not see; `missing`: how many numbers may go missing or
    appear; None is "fixed"; `units`: COLUMN=NUMBER: what counts as a change of 1; `whole`: whether columns that are
    known to hold whole numbers stay whole; False says nothing; `linked`: COLUMN=COLUMN/COLUMN or COLUMN=COLUMN-COLUMN,
    with "+-NUMBER" behind it where the column is rounded.

    Examples
    --------
    >>> parse_changes(norm="none", limits=["income=5%", "score=0:30"])
    {'limits': {'income': '5%', 'score': (0.0, 30.0)}, 'norm': None}
    """
    given: dict[str, object] = {
        "frozen": list(frozen),
        "limits": parse_pairs(limits, "limit", "COLUMN=VALUE", _parse_limit),
        "domain": parse_pairs(domain, "domain", "COLUMN=LOW:HIGH", _parse_domain),
        "steps": parse_pairs(steps, "step", "COLUMN=NUMBER", _parse_step),
        "units": parse_pairs(units, "unit", "COLUMN=NUMBER", partial(_parse_step, what="unit")),
        "linked": parse_pairs(linked, "link", "COLUMN=COLUMN/COLUMN", _parse_link),
    }
    found = {name: value for name, value in given.items() if value}
    if norm is not None:
        found["norm"] = _parse_norm(norm)
    if whole:
        found["whole"] = True
    return found | {
        name: value for name, value in (("l0", l0), ("unseen", unseen), ("missing", missing)) if value is not None
    }


def change_threat(threat: Threat, changes: Mapping[str, object]) -> Threat:
    """A threat with some fields changed; values that make no sense are bad input.

    Examples
    --------
    >>> change_threat(Threat(norm=2, l0=1), {"l0": 0}).l0
    0
    """
    return _make_threat(partial(replace, threat), changes)


def read_threat(path: PathLike, names: Sequence[str] | None = None, units: Sequence[float] | None = None) -> Threat:
    """A threat from a TOML file whose keys are the fields of Threat.

    `path`: of the file; a `ThreatSection` where the threat is only a part of it; `names`: names of the columns, for a
    file that gives units by name; `units`: the units of columns that such a file does not name; None is 1 for all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "threat.toml"
    ...     _ = file.write_text('norm = "none"\\nfrozen = ["age"]\\n[limits]\\nincome = "5%"\\n')
    ...     read_threat(file).limits
    {'income': '5%'}
    """
    given = read_toml(path)
    if isinstance(path, ThreatSection):
        given = dict(_require_table(given.get(path.section, {}), path.section))
    for key in given:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else "."
            known = ", ".join(KEYS)
            raise ValueError(f"{path} has the unknown key {quote_short(key)}{meant} A threat has the keys {known}.")
    try:
        if "norm" in given:
            given["norm"] = _parse_norm(given["norm"])
        for key, read in _READERS:
            if key in given:
                given[key] = {name: read(value, name) for name, value in _require_table(given[key], key).items()}
        if "units" in given:
            given["units"] = _read_units(given["units"], names, units)
        return _make_threat(Threat, {name: value for name, value in given.items() if value not in ([], {})})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _parse_limit(value: object, column: str) -> Limit:
    """A limit from text ("5%", "500", "down:up"), a number, or a list of two."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return value.strip()  # Threat reads percentages itself
    if isinstance(value, str) and ":" not in value:
        return _read_number(value, f"The limit of {column!r} must be such as 5%, 500 or 0:30")
    if isinstance(value, str | list):
        return _read_pair(value, f"The limit of {column!r} must be such as 5%, 500 or 0:30 (down:up)")
    return _read_number(value, f"The limit of {column!r} must be such as 5%, 500 or 0:30")


def _parse_domain(value: object, column: str) -> tuple[float, float]:
    """A domain from text ("0:1") or a list of two."""
    return _read_pair(value, f"The domain of {column!r} must be such as 0:1 (lowest:highest)")


def _parse_step(value: object, column: str, what: str = "step") -> float:
    """A step, or a unit, from text or a number."""
    what = f"The {what} of {column!r} must be a positive number"
    step = _read_number(value, what)
    if not (step > 0 and math.isfinite(step)):
        raise ValueError(f"{what}, got {value!r}.")
    return step


def _parse_link(value: object, column: str) -> tuple[str, str, str, float]:
    """A ratio or a difference of two columns from text ("debt/income", "debt/income+-0.005") or a list."""
    what = f"The link of {column!r} must be such as debt/income or debt-paid, +-0.005 behind it where it is rounded"
    if isinstance(value, list) and len(value) in (3, 4) and all(isinstance(one, str) for one in value[:3]):
        return value[0], value[1], value[2], _read_number(value[3], what) if len(value) == 4 else 0.0
    if not isinstance(value, str):
        raise ValueError(f"{what}, got {quote_short(value)}.")
    formula, rounded, tolerance = value.partition("+-")
    spaced = [sign for sign in ("/", "-") if f" {sign} " in formula]
    signs = [f" {sign} " for sign in spaced] or [sign for sign in ("/", "-") if sign in formula]
    if len(signs) != 1 or formula.count(signs[0]) != 1:
        hint = "; write spaces around the sign where names hold one" if len(signs) > 1 or signs else ""
        raise ValueError(f"{what}{hint}, got {quote_short(value)}.")
    left, right = (one.strip() for one in formula.split(signs[0]))
    if not (left and right):
        raise ValueError(f"{what}, got {quote_short(value)}.")
    return left, signs[0].strip(), right, _read_number(tolerance, what) if rounded else 0.0


_READERS: tuple[tuple[str, Callable[[object, str], object]], ...] = (
    ("limits", _parse_limit),
    ("domain", _parse_domain),
    ("steps", _parse_step),
    ("linked", _parse_link),
)


def _parse_norm(norm: object) -> float | str | None:
    if isinstance(norm, str):
        if norm not in NORMS:
            raise ValueError(f"The norm must be one of {', '.join(NORMS)}, got {quote_short(norm)}.")
        return NORMS[norm]
    return norm  # type: ignore[return-value] # whatever else a file holds, Threat looks at it


def parse_pairs(texts: Iterable[str], what: str, form: str, read: Callable[[str, str], Value]) -> dict[str, Value]:
    """Texts such as COLUMN=VALUE as a dict.

    `what`, `form`: what each one is, and how it is written: for errors; `read`: reads a value; also told its column.

    Examples
    --------
    >>> parse_pairs(["a=b=1"], "number", "COLUMN=NUMBER", lambda value, column: int(value))
    {'a=b': 1}
    """
    found: dict[str, Value] = {}
    for text in texts:
        column, equals, value = text.rpartition("=")  # a name may hold the sign, a value does not
        if not (equals and column and value):
            raise ValueError(f"A {what} must be written {form}, got {quote_short(text)}.")
        if column in found:
            raise ValueError(f"The {what} of {column!r} is given twice: once is enough.")
        found[column] = read(value, column)
    return found


def _read_number(value: object, what: str) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what}, got {quote_short(value)}.") from None
    if math.isnan(number):
        raise ValueError(f"{what}, got {quote_short(value)}.")
    return number


def _read_pair(value: object, what: str) -> tuple[float, float]:
    ends = value.split(":") if isinstance(value, str) else value
    if not isinstance(ends, list) or len(ends) != 2:
        raise ValueError(f"{what}, got {quote_short(value)}.")
    low, high = (_read_number(end, what) for end in ends)
    return low, high


def read_toml(path: PathLike) -> dict[str, object]:
    """What a TOML file holds; where it cannot be read, one line says so."""
    try:
        with open_plain(path) as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes.")
        found = tomllib.loads(content.decode("utf-8"), parse_float=_read_toml_float)
        _refuse_huge(found)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or not TOML
        raise ValueError(f"{path} is not a TOML file, or is damaged: {error}") from None
    return found


def _read_toml_float(text: str) -> float:
    """A number; one that is too large for a double is not the infinity that `inf` stands for."""
    number = float(text)
    if math.isinf(number) and "inf" not in text:
        raise ValueError(f"the number {quote_short(text)} is too large.")
    return number


def _refuse_huge(value: object) -> None:
    """Refuse whole numbers that TOML does not have."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _refuse_huge(one)
    elif isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise ValueError(f"the number {quote_short(str(value))} is too large.")


def _require_table(value: object, key: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"`{key}` must be a table by column name, got {quote_short(value)}.")
    return value


def _read_units(given: object, names: Sequence[str] | None, units: Sequence[float] | None) -> list[object]:
    """One unit per column, from a list or a table by name."""
    if isinstance(given, list):
        return given
    try:
        named = as_units(_require_table(given, "units"), "`units`")
    except TypeError as error:
        raise ValueError(str(error)) from None
    assert isinstance(named, NamedUnits)
    return list(named.resolve(names, units, "`units`"))


def _make_threat(make: Callable[..., Threat], given: Mapping[str, object]) -> Threat:
    """The threat, where a wrong type is bad input and no fault of a program."""
    try:
        return make(**given)
    except TypeError as error:
        raise ValueError(str(error)) from None
