"""The paper's datasets beside those of `derand.datasets`: `load(name)` for every name in CATALOG.

Files are looked for in the folder that $DERAND_DATA names, then in `derand` in the user's cache folder; each is checked
against its sha256 and nothing is downloaded. A new dataset is a row of CATALOG, and one of FILES where it needs a file
of its own. Must not know models or noise.
"""

from __future__ import annotations

from pathlib import Path

from derand.datasets import Dataset, Division, Split, find_entry
from experiments.datasets._catalog import CATALOG, FILES
from experiments.datasets._files import ENVIRONMENT, find

__all__ = [
    "CATALOG",
    "ENVIRONMENT",
    "Dataset",
    "Division",
    "Split",
    "find_file",
    "is_available",
    "load",
    "name_checksum",
]


def load(name: str) -> Dataset:
    """Load a dataset.

    Parameters
    ----------
    name : str
        A key of CATALOG; `python -m experiments datasets` lists them.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("sklearn_wine").X.shape
    (130, 13)
    """
    return find_entry(name, CATALOG).read()


def find_file(name: str) -> Path | None:
    """Where the file that a dataset needs lies; None where it needs none.

    The error for a missing one says where to get it and where to put it.

    Examples
    --------
    >>> find_file("sklearn_wine") is None
    True
    """
    file = find_entry(name, CATALOG).file
    return None if file is None else find(FILES[file])


def name_checksum(name: str) -> str | None:
    """The sha256 that the file of a dataset must have; None where it needs none.

    Examples
    --------
    >>> name_checksum("diabetes")[:8]
    'bf81d06e'
    """
    file = find_entry(name, CATALOG).file
    return None if file is None else FILES[file].sha256


def is_available(name: str) -> bool:
    """Whether the file that a dataset needs lies on this computer.

    Examples
    --------
    >>> is_available("sklearn_breast_cancer")
    True
    """
    try:
        find_file(name)
    except FileNotFoundError:
        return False
    return True
