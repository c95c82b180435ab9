"""The rows of the page's table, in columns: few numbers per row, so that a page can list a hundred thousand of them.

Owns which rows are listed, and which of them have their law and their pushes in the report as well (`_rows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derand._core.arrays import IntArray
from derand.report._inputs import Inputs
from derand.report._types import ListedRows

_SHARE_OF_WEAKEST = 4


def list_rows(inputs: Inputs, limit: int, n_explained: int, seed: int) -> tuple[IntArray, int]:
    """Rows for the table, the weakest first, and how many of them are there because they are the weakest.

    All rows are, where there are no more than the limit; else the weakest and a random sample of the others.
    """
    by_budget = [certificates.radius for certificates in inputs.certificates]
    if inputs.plain.flips is not None:  # what can be flipped comes before what is undecided
        by_budget.insert(0, np.where(inputs.plain.flips, -1.0, inputs.plain.radius))
    order = np.lexsort((-np.nan_to_num(inputs.plain.log_failure), *reversed(by_budget)))  # the last key counts first
    places, n_weakest = choose_places(inputs.n_rows, limit, n_explained, seed)
    return order[places], n_weakest


def choose_places(n_rows: int, limit: int, at_least: int, seed: int) -> tuple[IntArray, int]:
    """Places among rows that are sorted, the weakest first, and how many of them are the weakest.

    Examples
    --------
    >>> places, n_weakest = choose_places(100, 8, 1, seed=0)
    >>> places[:2].tolist(), places.size, n_weakest
    ([0, 1], 8, 2)
    """
    if n_rows <= limit:
        return np.arange(n_rows), n_rows
    n_weakest = max(at_least, limit // _SHARE_OF_WEAKEST)
    drawn = np.random.default_rng(seed).choice(n_rows - n_weakest, size=limit - n_weakest, replace=False)
    return np.concatenate([np.arange(n_weakest), n_weakest + np.sort(drawn)]), n_weakest


def summarize_listing(inputs: Inputs, rows: IntArray, detailed: IntArray) -> ListedRows:
    """What the table says of each row; classes by their places."""
    plain, labels = inputs.plain, inputs.labels
    verdicts = plain[rows].verdict
    rivals = None if plain.classes.size == 2 or plain.runner_up is None else plain.runner_up
    return {
        "row": (rows + 1).tolist(),
        "name": None if inputs.row_names is None else [inputs.row_names[row] for row in rows.tolist()],
        "label": _place_classes(inputs, plain.label[rows]),
        "runner_up": None if rivals is None else _place_classes(inputs, rivals[rows]),
        "truth": None if labels is None else _place_classes(inputs, labels[rows]),
        "radius": [one.radius[rows].tolist() for one in inputs.certificates],
        "verdict": None if verdicts is None else [str(one) for one in verdicts],
        "detailed": detailed.tolist(),
    }


def _place_classes(inputs: Inputs, labels: np.ndarray[Any, np.dtype[Any]]) -> list[int]:
    places = {name: at for at, name in enumerate(inputs.subject.classes.tolist())}
    return [places[label] for label in labels.tolist()]
