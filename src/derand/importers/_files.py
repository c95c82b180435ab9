"""Models in the files of their own libraries. Owns which file belongs to which; must not know what they hold."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from derand.importers._reading import Reading

FILES = {
    ".json": ("_xgboost", "xgboost"),
    ".ubj": ("_xgboost", "xgboost"),
    ".txt": ("_lightgbm", "lightgbm"),
    ".cbm": ("_catboost", "catboost"),
}
"""Importer and library by the end of a file's name."""


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
    module, library = FILES[path.suffix]
    importer: Any = import_module(f"derand.importers.{module}")
    try:
        reading: Reading = importer.load_file(path)
    except ImportError as error:
        raise ImportError(
            f"{path} needs {library}, which is not installed: pip install 'derand[{library}]'."
        ) from error
    return reading
