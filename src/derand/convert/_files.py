"""Models in files: those of other libraries, pickles, which run code when opened, and skops, which checks types first.

Owns which file belongs to which reader; must not know what they hold. Libraries abort the whole process on files that
are damaged. So a file of a library is read in a process of its own, which answers for raw scores, too: no library is
loaded here. A pickle is opened only where that was asked for.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.files import PathLike
from derand._core.later import MissingLibraryError, import_extra
from derand._core.processes import LostProcessError, WorkerProcess
from derand.convert._reading import Reading
from derand.convert._registry import load_model

FILES = {
    ".json": ("readers._xgboost", "XGBoost"),
    ".ubj": ("readers._xgboost", "XGBoost"),
    ".txt": ("readers._lightgbm", "LightGBM"),
    ".cbm": ("readers._catboost", "CatBoost"),
}
"""Reader and library by the end of a file's name."""
PICKLES = (".pkl", ".pickle", ".joblib")
"""How names of pickles end."""
SKOPS = ".skops"
_read_here: list[Reading] = []
"""What this process has read, where it is one that reads a file."""


def read_file(path: Path) -> Reading:
    """A model in a file of its own library: XGBoost's .json and .ubj, LightGBM's .txt, CatBoost's .cbm.

    The result: of two classes labels are 0 and 1, of more 0, 1, 2, ..., where the file keeps no others.
    """
    path = Path(path)
    if path.suffix not in FILES:
        raise ValueError(
            f"{path} must end with one of {', '.join(FILES)}, which XGBoost, LightGBM and CatBoost write: save the "
            "model with `save_model` of its own library."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    scores = _RawScores(path)
    reading: Reading = scores.ask(load_here, os.fspath(path))
    return replace(reading, raw_scores=None if reading.raw_scores is None else scores)


class _RawScores:
    """Raw scores of the model in a file, computed by the process that has read it; both end together."""

    def __init__(self, path: Path) -> None:
        self._path, self._worker = path, WorkerProcess(silent=True)
        weakref.finalize(self, self._worker.stop)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.ask(score_here, rows))

    def ask(self, function: Callable[..., object], *arguments: object) -> Any:
        try:
            return self._worker.call(function, *arguments)
        except LostProcessError as error:
            library = FILES[self._path.suffix][1]
            raise ValueError(f"{self._path} is damaged: {library} could not read it ({error}).") from None


def load_here(path: str) -> Reading:
    """Read a file in this process; where raw scores can be had, some function stands for them."""
    try:
        reading = load_model(FILES[Path(path).suffix][0], Path(path))
    except (MissingLibraryError, OSError):
        raise
    except Exception as error:  # libraries have errors of their own
        if type(error) in (ValueError, TypeError):
            raise
        raise ValueError(f"{type(error).__name__}: {shorten(error)}") from None
    _read_here[:] = [reading]
    return replace(reading, raw_scores=None if reading.raw_scores is None else score_here, respond=None)


def score_here(rows: FloatArray) -> FloatArray:
    """Raw scores of the model that this process has read."""
    (reading,) = _read_here
    assert reading.raw_scores is not None
    return reading.raw_scores(rows)


def load_pickle(path: PathLike) -> object:
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
