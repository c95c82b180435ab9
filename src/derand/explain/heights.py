"""Heights of a term: its score at values of its columns, under noise or not, and the band that a change can reach.

Must not know axes or colours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from derand._core.arrays import FloatArray
from derand.model import Axis, Term
from derand.noise import Noise

Reach = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""For values of a column, (n,), the least and the largest one that each may become."""

_FINER = 8
"""Points of the band for each point of the curve."""
_MOST_POINTS = 6_000
_FAR = 10.0


def measure_heights(term: Term, values: FloatArray, noise: Noise | None) -> FloatArray:
    """Scores of a term, (n, n_outputs): their mean under noise, where there is any.

    Parameters
    ----------
    term : Term
    values : array of shape (n,), of several columns (n, n_columns)
    noise : Noise or None

    Examples
    --------
    >>> from derand import StepFunction
    >>> measure_heights(StepFunction(2, [1.0], [-2, 3]), np.array([0.0, 1.0]), None).ravel().tolist()
    [-2.0, 3.0]
    """
    columns = values.reshape(values.shape[0], -1)
    if noise is None or not term.axes or term.slope is not None:  # symmetric noise moves no mean of a line
        asked = columns if len(term.features) > 1 else columns[:, 0]
        return np.asarray(term.evaluate(asked), dtype=np.float64).reshape(values.shape[0], -1)
    rows = np.zeros((values.shape[0], max(term.features) + 1))
    rows[:, list(term.features)] = columns
    known = np.where(np.isnan(rows), 0.0, rows)
    sides = [noise.cell_probabilities(known[:, axis.feature], axis.edges, axis.feature) for axis in term.axes]
    return np.asarray(term.expect(rows, sides)).reshape(values.shape[0], -1)


def measure_band(term: Term, x: FloatArray, noise: Noise | None, reach: Reach) -> tuple[FloatArray, FloatArray]:
    """The least and the largest height that a change of each value can reach, both (n, n_outputs).

    Without noise they are those of all cells that the change can enter; under noise those at places close together.

    `term`: of one numerical column; `x` (n,): increasing.

    Examples
    --------
    >>> from derand import StepFunction
    >>> step = StepFunction(0, [1.0], [-2, 3])
    >>> low, high = measure_band(step, np.array([0.0, 0.9]), None, lambda x: (x - 0.5, x + 0.5))
    >>> low.ravel().tolist(), high.ravel().tolist()
    ([-2.0, -2.0], [-2.0, 3.0])
    """
    least, most = reach(x)
    places = _choose_places(x, least, most, term.axes[0], noise)
    heights = measure_heights(term, places, noise)
    first = np.searchsorted(places, np.maximum(least, places[0]), side="right") - 1
    # beyond the last place nothing changes; a place is taken where the change ends there or enters its cell
    last = np.searchsorted(places, most, side="right") if noise is None else np.searchsorted(places, most) + 1
    spans = [heights[max(low, 0) : max(high, low + 1)] for low, high in zip(first, last, strict=True)]
    return np.stack([span.min(axis=0) for span in spans]), np.stack([span.max(axis=0) for span in spans])


def _choose_places(x: FloatArray, least: FloatArray, most: FloatArray, axis: Axis, noise: Noise | None) -> FloatArray:
    """Where heights are taken, increasing: the beginnings of cells, or places between the farthest ends."""
    ends = np.concatenate([least[np.isfinite(least)], most[np.isfinite(most)], x, axis.edges])
    low, high = float(ends.min()), float(ends.max())
    if noise is None:
        return np.unique(np.append(ends, np.nextafter(low, -np.inf)))
    width = 0.05 * (high - low)
    if not (np.isfinite(least).all() and np.isfinite(most).all()):  # to where noise no longer reaches any edge
        width = max(width, _FAR * float(noise.scales(np.array([axis.feature]))[0]))
    n_places = min(_FINER * x.size, _MOST_POINTS)
    return np.unique(np.concatenate([np.linspace(low - width, high + width, n_places), x]))
