"""From fitted functions to a model on a grid. Must not know how they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble
from derand.train.design.columns import Functions

_SUPPORT = 2**16  # whole scores between the lowest and the highest sum
_PAIR_SUPPORT = 2**13  # the same of two of several classes: there are many pmfs to add up


def build_model(functions: Functions, intercept: FloatArray, n_features: int) -> AdditiveEnsemble:
    """The model of two classes, or of several, on a grid on which its pmfs can be afforded.

    `intercept` has shape () or (n_classes,); functions of two classes are those of the logarithm of odds.
    """
    shapes, tables, grids = functions
    if intercept.ndim:
        support, ranges = _PAIR_SUPPORT, np.zeros((intercept.size, intercept.size))
        for values in _list_values(functions, intercept.size):
            for label in range(intercept.size):
                ranges[label] += np.ptp(values - values[:, label : label + 1], axis=0)
        total = float(ranges.max())
    else:
        support, total = _SUPPORT, sum(measure_spans(functions))
    levels = max(1, int(support / total)) if total > support / 2**40 else 1000
    own: Any = intercept if intercept.ndim else float(intercept)
    return AdditiveEnsemble.from_shapes(
        shapes, tables, intercept=own, n_features=n_features, levels=levels, grids=grids
    )


def measure_spans(functions: Functions) -> list[float]:
    """Of each function of one output the largest value less the smallest."""
    return [float(np.ptp(values)) for values in _list_values(functions, 1)]


def _list_values(functions: Functions, n_outputs: int) -> list[FloatArray]:
    """All values of each function, (n_values, n_outputs): those of missing and unseen ones among them."""
    found: list[list[Any]] = [[one.values, one.missing] for one in functions.shapes]
    found += [[one.values, one.other, one.missing] for one in functions.tables]
    found += [[one.values] for one in functions.grids]
    return [
        np.concatenate([np.reshape(part, (-1, n_outputs)) for part in parts if part is not None]) for parts in found
    ]
