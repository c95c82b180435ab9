"""Datasets without files: `load(name)` for every name in CATALOG, and `make_*` to draw some of any size.

A new dataset is a row of CATALOG. Must not know models or noise.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from derand.datasets._bundled import CATALOG, Entry
from derand.datasets._dataset import Dataset, Division, Split, draw_folds
from derand.datasets._generated import make_applications, make_clusters, make_loans

__all__ = [
    "CATALOG",
    "Dataset",
    "Division",
    "Entry",
    "Split",
    "draw_folds",
    "find_entry",
    "is_available",
    "load",
    "make_applications",
    "make_clusters",
    "make_loans",
]

_MOVED = {
    "breast_cancer",
    "breast_cancer_with_id",
    "diabetes",
    "spambase",
    "mnist_1v5",
    "mnist_2v6",
    "fmnist_shoes",
    "adult",
    "credit",
    "mammographic",
    "bank",
    "mushroom",
}
"""The paper's datasets, which were loaded from here once."""


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
    if name in _MOVED:
        raise ValueError(
            f"`name` must be one of {', '.join(CATALOG)}, got {name!r}, a dataset of the paper. These moved to "
            f"`experiments.datasets`: in a clone of the repository, `from experiments.datasets import load`."
        )
    return find_entry(name, CATALOG).read()


def find_entry(name: str, catalog: Mapping[str, Entry]) -> Entry:
    """The row of a catalog; the error for an unknown name suggests the nearest.

    Examples
    --------
    >>> find_entry("sklearn_iris", CATALOG).summary
    'versicolor and virginica, four measurements; bundled with scikit-learn'
    """
    if name not in catalog:
        close = difflib.get_close_matches(str(name), catalog, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"`name` must be one of {', '.join(catalog)}, got {name!r}.{hint}")
    return catalog[name]


def is_available(name: str) -> bool:
    """Whether a dataset can be loaded on this computer: it can, where it needs no file.

    Examples
    --------
    >>> is_available("sklearn_breast_cancer")
    True
    """
    return find_entry(name, CATALOG).file is None
