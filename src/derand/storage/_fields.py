"""Reading fields of a file: each check raises a ValueError that names the place. Must not know what a model is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
_MAX_WHOLE = 2**63 - 1
_MAX_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Field:
    """A value read from a file and where it stood; what does not hold raises a ValueError that names the place."""

    value: Any
    path: str

    def refuse(self, rule: str) -> NoReturn:
        raise ValueError(f"`{self.path or 'the file'}` must {rule}, got {shorten(self.value)}.")

    def members(self, *names: str, optional: Sequence[str] = ()) -> dict[str, Field]:
        """The fields of an object that has exactly these, and maybe some of the optional ones."""
        if not isinstance(self.value, dict):
            self.refuse(f"be an object with the fields {', '.join(names)}")
        for name in names:
            if name not in self.value:
                raise ValueError(f"`{self._inside(name)}` is missing.")
        for name in self.value:
            if name not in names and name not in optional:
                known = ", ".join([*names, *optional])
                raise ValueError(f"`{self._inside(name)}` is unknown: the fields here are {known}.")
        return {name: Field(self.value[name], self._inside(name)) for name in (*names, *optional) if name in self.value}

    def kind(self, options: Sequence[str]) -> str:
        """The field `kind` of an object, which says what other fields it has."""
        if not isinstance(self.value, dict):
            self.refuse("be an object")
        if "kind" not in self.value:
            raise ValueError(f"`{self._inside('kind')}` is missing.")
        return Field(self.value["kind"], self._inside("kind")).choice(options)

    def items(self) -> list[Field]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.refuse("be a list")
        return [Field(value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def entries(self) -> list[tuple[str, Field]]:
        """Names and fields of an object that may have any."""
        if not isinstance(self.value, dict):
            self.refuse("be an object")
        return [(name, Field(value, self._inside(name))) for name, value in self.value.items()]

    def whole(self) -> int:
        """A whole number of at most 64 bits."""
        if not _is_whole(self.value):
            self.refuse("be a whole number within 64 bits")
        return int(self.value)

    def number(self) -> float:
        """A finite number."""
        if not _is_number(self.value):
            self.refuse("be a finite number")
        return float(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.refuse("be text")
        return str(self.value)

    def choice(self, options: Sequence[str]) -> str:
        if not isinstance(self.value, str) or self.value not in options:
            self.refuse(f"be one of {', '.join(options)}")
        return self.value

    def numbers(self) -> list[float]:
        """A list of finite numbers."""
        if isinstance(self.value, list) and all(map(_is_number, self.value)):
            return [float(value) for value in self.value]
        return [item.number() for item in self.items()]

    def plain_numbers(self, *, uneven: bool = False) -> Any:
        """A finite number, a list of them, or a list of such lists of equal length; whole numbers stay whole.

        `uneven` lists may differ in length.
        """
        if not isinstance(self.value, list):
            if not _is_number(self.value):
                self.refuse("be a finite number, a whole one within 2**53")
            return self.value
        if all(map(_is_number, self.value)):
            return self.value
        first = self.value[0]
        for item in self.items():
            is_like_first = isinstance(item.value, list) == isinstance(first, list)
            if not is_like_first or (not uneven and isinstance(first, list) and len(item.value) != len(first)):
                item.refuse(f"be like the entry before it, {shorten(first)}")
            item.plain_numbers()
        return self.value

    def or_none(self, read: Callable[[Field], T]) -> T | None:
        return None if self.value is None else read(self)

    def _inside(self, name: str) -> str:
        shown = name if re.fullmatch(r"\w{1,40}", name, flags=re.ASCII) else shorten(name)
        return f"{self.path}.{shown}" if self.path else shown


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_WHOLE


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_whole(value) and abs(value) <= _MAX_EXACT


def shorten(value: object) -> str:
    """What was given, in few words: a file may hold anything."""
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"a list of {len(value)} entries"
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def construct(constructor: Callable[..., T], field: Field, **arguments: object) -> T:
    """Call a constructor with values from the fields of the same names; its complaint gets the place in the file."""
    try:
        return constructor(**arguments)
    except (ValueError, TypeError, OverflowError) as error:
        blamed = re.search(r"`(\w+)`", str(error))
        inside = f".{blamed[1]}" if blamed and blamed[1] in arguments else ""
        raise ValueError(f"`{field.path}{inside}`: {error}") from None
