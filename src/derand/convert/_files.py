"""Models in the files of their own libraries. Owns which file belongs to which; must not know what they hold.

Libraries abort the whole process on files that are damaged. So a file is read in a process of its own, which answers
for raw scores, too: no library is loaded here.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.later import MissingLibraryError
from derand._core.processes import LostProcessError, WorkerProcess
from derand.convert._objects import shorten
from derand.convert._reading import Reading

FILES = {
    ".json": ("_xgboost", "XGBoost"),
    ".ubj": ("_xgboost", "XGBoost"),
    ".txt": ("_lightgbm", "LightGBM"),
    ".cbm": ("_catboost", "CatBoost"),
}
"""Importer and library by the end of a file's name."""
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

    def ask(self, function: Any, *arguments: Any) -> Any:
        try:
            return self._worker.call(function, *arguments)
        except LostProcessError as error:
            library = FILES[self._path.suffix][1]
            raise ValueError(f"{self._path} is damaged: {library} could not read it ({error}).") from None


def load_here(path: str) -> Reading:
    """Read a file in this process; where raw scores can be had, some function stands for them."""
    importer: Any = import_module(f"derand.convert.{FILES[Path(path).suffix][0]}")
    try:
        reading: Reading = importer.load_file(Path(path))
    except (MissingLibraryError, OSError):
        raise
    except Exception as error:  # libraries have errors of their own
        if type(error) in (ValueError, TypeError):
            raise
        raise ValueError(f"{type(error).__name__}: {shorten(error)}") from None
    _read_here[:] = [reading]
    return replace(reading, raw_scores=None if reading.raw_scores is None else score_here)


def score_here(rows: FloatArray) -> FloatArray:
    """Raw scores of the model that this process has read."""
    (reading,) = _read_here
    assert reading.raw_scores is not None
    return reading.raw_scores(rows)
