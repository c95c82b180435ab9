"""Names of a package that are imported on first use, so that whoever needs one of them does not wait for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def import_later(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """What a package calls `__getattr__`: imports the module in which a name is at home.

    `homes`: the module of each name, within the package.

    Examples
    --------
    >>> import_later("derand", {"Threat": "threat"})("Threat").__name__
    'Threat'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
