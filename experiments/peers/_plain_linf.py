"""The linf radius of a sum of step functions without noise, in plain NumPy: the baseline to compare with.

Within distance r every feature moves on its own, so that the lowest (highest) score in reach is the sum of each term's
lowest (highest) cell in reach. Both change only where a new cell comes into reach: sort these events of all terms by
distance, add up what they change, and take the first at which the label falls. Must not know noise or peers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.model import AdditiveEnsemble, StepFunction


class PlainRadii(NamedTuple):
    """Where labels fall, for all models within `score_error`.

    Attributes
    ----------
    label : array of integers, shape (n_rows,)
    radius : array of shape (n_rows,)
        No change smaller than this flips the label of any such model; 0 where their labels differ, `inf` where
        nothing flips it.
    flipped : array of shape (n_rows,)
        Some change of this size, or larger by as little as one likes, flips the label of every such model. The radius
        of each of them lies between the two, which are equal for most rows, and for all where `score_error` is 0.
    """

    label: IntArray
    radius: FloatArray
    flipped: FloatArray


def find_linf_radii(model: AdditiveEnsemble, X: ArrayLike) -> PlainRadii:
    """The largest linf ball around each row in which the label without noise stays the same.

    Parameters
    ----------
    model : AdditiveEnsemble
        Of step functions, with a threshold.
    X : array-like of shape (n_rows, n_features)

    Returns
    -------
    PlainRadii

    Examples
    --------
    >>> from derand import AdditiveEnsemble, StepFunction
    >>> model = AdditiveEnsemble([StepFunction(0, [1.0, 3.0], [0, 2, 1]), StepFunction(1, [5.0], [0, 1])], 0, 2)
    >>> find_linf_radii(model, [[2.5, 6.0], [0.5, 4.0], [9.0, 4.5]]).radius.tolist()
    [1.5, 0.5, 8.0]
    """
    if model.threshold is None:
        raise ValueError("`model` has no threshold and so makes no decision: give AdditiveEnsemble a `threshold`.")
    rows = np.asarray(X, dtype=np.float64)
    scores = model.score(rows)
    is_one = scores > model.threshold
    signs = np.where(is_one, -1, 1)
    events = [list_events(term, rows[:, term.feature], signs) for term in model.step_functions]
    distances = np.concatenate([np.zeros((len(rows), 1)), *(distance for distance, _ in events)], axis=1)
    gains = np.concatenate([(signs * scores)[:, None], *(gain for _, gain in events)], axis=1)
    order = np.argsort(distances, axis=1, kind="stable")
    distances = np.take_along_axis(distances, order, axis=1)
    totals = np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1)
    needed = np.where(is_one, -model.threshold, model.threshold + 1)  # class 1 falls at score <= threshold
    width = math.ceil(model.score_error)
    return PlainRadii(
        is_one.astype(np.int64),
        find_first(distances, totals >= (needed - width)[:, None]),
        find_first(distances, totals >= (needed + width)[:, None]),
    )


def list_events(term: StepFunction, values: FloatArray, signs: IntArray) -> tuple[FloatArray, IntArray]:
    """Distance to each cell of a term, ascending, and by how much the best signed score in reach grows there.

    Both of shape (n_rows, n_cells); a cell is as far away as its closure.
    """
    lower, upper = np.append(-np.inf, term.edges), np.append(term.edges, np.inf)
    distances = np.maximum(np.maximum(lower - values[:, None], values[:, None] - upper), 0.0)
    order = np.argsort(distances, axis=1, kind="stable")
    start = (signs * term.evaluate(values))[:, None]
    best = np.maximum.accumulate(np.maximum(signs[:, None] * term.cell_scores[order], start), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.diff(best, prepend=start, axis=1)


def find_first(distances: FloatArray, flipped: NDArray[np.bool_]) -> FloatArray:
    """Distance of the first event at which the label has fallen; `inf` where it never does."""
    found: FloatArray = distances[np.arange(len(distances)), flipped.argmax(axis=1)]
    return np.where(flipped.any(axis=1), found, np.inf)
