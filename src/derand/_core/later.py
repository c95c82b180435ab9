"""What is imported on first use: names of a package, so that nobody waits for all, and libraries of extras."""

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


class MissingLibraryError(ImportError):
    """A library that is not installed by itself: the message says what needs it, and how to get it."""


def import_extra(module: str, extra: str | None, what: str) -> Any:
    """A module of a library that comes with an extra; where it is not there, one line says how to get it.

    `extra`: None for libraries that are installed by their own name; `what` needs it, and begins the sentence.

    Examples
    --------
    >>> import_extra("no_library", "audit", "This")
    Traceback (most recent call last):
        ...
    derand._core.later.MissingLibraryError: This needs no_library, which is not installed: pip install 'derand[audit]'.
    """
    library = module.partition(".")[0]
    try:
        import_module(library)
        return import_module(module)
    except ImportError as error:
        name, cure = _NAMES.get(library, library), library if extra is None else f"'derand[{extra}]'"
        is_missing = error.name is not None and error.name.partition(".")[0] == library
        reason = "is not installed" if is_missing else f"cannot be imported ({error})"
        raise MissingLibraryError(f"{what} needs {name}, which {reason}: pip install {cure}.") from None


_NAMES = {"flint": "python-flint"}
"""Libraries that are not called as their modules are."""
