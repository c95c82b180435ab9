"""Files that hold Python objects: pickles, which run code when they are opened, and skops, which checks types first.

Must not know any library of models. Nothing here is opened unless it was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from derand._core.files import PathLike
from derand._core.later import import_extra

PICKLES = (".pkl", ".pickle", ".joblib")
"""How names of pickles end."""
SKOPS = ".skops"


def load_pickle(path: PathLike) -> Any:
    """The object of a pickle, of pickle or joblib: whatever code it holds is run. Only for files that one trusts."""
    import joblib

    _require_file(path)
    try:
        return joblib.load(path)
    except ImportError as error:
        raise ValueError(
            f"{os.fspath(path)} cannot be opened without the library that it comes from: {error}. Install it, in the "
            "version that wrote the file."
        ) from None
    except Exception as error:  # code of others ran: anything may go wrong
        raise ValueError(
            f"{os.fspath(path)} cannot be opened as a pickle ({type(error).__name__}: {shorten(error)}): it is "
            "damaged, none, or was written by other versions of its libraries."
        ) from None


def load_skops(path: PathLike, trusted: Collection[str] = ()) -> Any:
    """The object of a skops file, if all its types are known to be harmless or trusted by name.

    `trusted`: full names of types.
    """
    io = import_extra("skops.io", "skops", os.fspath(path))
    _require_file(path)
    try:
        unknown = [name for name in io.get_untrusted_types(file=path) if name not in trusted]
        if not unknown:
            return io.load(path, trusted=list(trusted))
    except Exception as error:  # the file is a zip of anything
        raise ValueError(
            f"{os.fspath(path)} cannot be opened as a skops file ({type(error).__name__}: {shorten(error)}): it is "
            "damaged, none, or was written by other versions of its libraries."
        ) from None
    raise ValueError(
        f"{os.fspath(path)} holds types that are not known to be harmless: {', '.join(unknown[:8])}"
        f"{', ...' if len(unknown) > 8 else ''}. If you trust them, name each one: --trusted {unknown[0]}."
    )


def shorten(error: BaseException) -> str:
    """What an error of another library says, on one line, and not at length."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."


def _require_file(path: PathLike) -> None:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{os.fspath(path)} does not exist, or is no file.")
