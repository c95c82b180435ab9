"""The words that calls are written in, and how the same words read at earlier commits.

Owns the two tables below and the translation of names, arguments, attributes, options and keys by them. Everything
else here is written in today's words.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

RENAMED: dict[str, dict[str, str]] = {
    "9f340f3": {"Report": "CertificateReport"},
    "d7dc847": {
        "Report:subgroups": "groups",
        "json in commands/run:subgroups": "groups",
        "json in commands/tune:accuracy_loss": "tolerance",
        "tune:accuracy_loss": "tolerance",
        "--frozen": "--freeze",
        "--ignored": "--ignore",
        "--limits": "--limit",
        "--steps": "--step",
        "--subgroup": "--group",
        "--trusted": "--trust",
        "--units": "--unit",
        "tune:--accuracy-loss": "--tolerance",
        "tune:--radii": "--radius",
    },
}
"""Last commit with the old words -> {word now: word then}.

A word is a public name, an argument, an attribute, an option of a command ("--radius") or a key of JSON. Where it is
renamed in one place alone, the word now has its owner before it: {"certify:rule": "how"} (a function, class, method or
command), {"json:radius": "size"}, or below some names alone {"json in commands/run:radius": "size"}.
"""
LACKING: dict[str, tuple[str, ...]] = {}
"""Last commit without them -> beginnings of names of values that are not compared with it, or with earlier ones."""
HOMES = {"Argmax": "derand.model", "Value": "derand.model"}
"""Names that AdditiveEnsemble takes and the package does not export at its top."""


class Words:
    """The public names of the package, called in the words of the commit that is imported."""

    def __init__(self, then: Mapping[str, str]) -> None:
        self._then = then
        keys = {new.rpartition(":"): old for new, old in then.items() if new.startswith("json")}
        self._keys = [(owner.removeprefix("json").strip(), old, new) for (owner, _, new), old in keys.items()]

    def translate(self, word: str, owner: str = "") -> str:
        """The word as that commit has it."""
        return self._then.get(f"{owner}:{word}", self._then.get(word, word))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        home = importlib.import_module(HOMES.get(name, "derand"))
        return self._bind(getattr(home, self.translate(name)), name)

    def _bind(self, function: Callable[..., Any], owner: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            return function(*given, **{self.translate(key, owner): value for key, value in named.items()})

        return call

    def call(self, thing: Any, method: str, *given: Any, **named: Any) -> Any:
        """Call a method of an object."""
        return self._bind(getattr(thing, self.translate(method)), method)(*given, **named)

    def get(self, thing: Any, field: str) -> Any:
        """An attribute of an object; None where it has none."""
        return getattr(thing, self.translate(field), None)

    def read(self, thing: Any, *fields: str) -> dict[str, Any]:
        """The attributes that an object has, by today's names."""
        found = {name: self.get(thing, name) for name in fields}
        return {name: value for name, value in found.items() if value is not None}

    def write_line(self, line: str) -> list[str]:
        """A command with its options in the words of that commit."""
        command, *rest = line.split()
        return [self.translate(command), *(self.translate(one, command) for one in rest)]

    def rename_key(self, key: str, place: str = "") -> str:
        """A key of JSON as it is called today."""
        for owner, old, new in self._keys:
            if key == old and place.startswith(owner.removeprefix("in ")):
                return new
        return key
