"""Datasets: `load(name)` for every name in CATALOG, and `make_*` to draw some of any size.

Files are looked for in the folder that $DERAND_DATA names, then in `derand` in the user's cache folder; each is checked
against its sha256 and nothing is downloaded. Must not know models or noise.
"""

from __future__ import annotations

import difflib

from derand.datasets._catalog import CATALOG, FILES
from derand.datasets._dataset import Dataset, Division, Split
from derand.datasets._files import find
from derand.datasets._generated import make_clusters, make_loans

__all__ = ["CATALOG", "Dataset", "Division", "Split", "is_available", "load", "make_clusters", "make_loans"]


def load(name: str) -> Dataset:
    """Load a dataset.

    Parameters
    ----------
    name : str
        A key of CATALOG; `derand datasets` lists them.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> data = load("sklearn_breast_cancer")
    >>> data.X.shape, data.target_names
    ((569, 30), ('malignant', 'benign'))
    """
    if name not in CATALOG:
        close = difflib.get_close_matches(str(name), CATALOG, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"`name` must be one of {', '.join(CATALOG)}, got {name!r}.{hint}")
    return CATALOG[name].read()


def is_available(name: str) -> bool:
    """Whether the file that a dataset needs lies on this computer.

    Examples
    --------
    >>> is_available("sklearn_breast_cancer")
    True
    """
    file = CATALOG[name].file
    if file is None:
        return True
    try:
        find(FILES[file])
    except FileNotFoundError:
        return False
    return True
