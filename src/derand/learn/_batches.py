"""Fitting weights of large tables by batches of rows.

Owns the steps (Adam, the radius raised over the first half of them, the rate falling to nothing). Must not know how
losses are computed.
"""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray, IntArray
from derand.learn._margin import Change
from derand.learn._softmax import SoftmaxLoss

_BATCH = 3_000
_STEPS = 400
_RATE = 0.005
_FIRST, _SECOND = 0.9, 0.99  # how much of the mean and of the mean square of slopes is kept


def fit_by_batches(
    loss: SoftmaxLoss,
    penalties: FloatArray,
    change: Change,
    start: FloatArray,
    order: IntArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Weights of about least penalised loss.

    Parameters
    ----------
    loss : SoftmaxLoss
        Of all rows.
    penalties : array of shape (n_weights,)
    change : Change
    start : array of shape (n_weights,)
    order : array of shape (n_rows,)
        An order of the rows that does not depend on how they were given.
    generator : Generator
        Draws the batches.
    """
    point = change.to_point(start)
    mean, square = np.zeros(point.size), np.zeros(point.size)
    waiting = np.empty(0, dtype=np.int64)
    for step in range(_STEPS):
        if waiting.size < min(_BATCH, order.size):
            waiting = order[generator.permutation(order.size)]
        batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
        loss.take(np.sort(batch), share_of_radius=min(1.0, 2 * (step + 1) / _STEPS))
        weights = change.to_weights(point)
        _, slopes = loss.evaluate(weights, 0.0)
        moved = change.to_slopes(slopes + penalties * weights)
        mean = _FIRST * mean + (1 - _FIRST) * moved
        square = _SECOND * square + (1 - _SECOND) * moved**2
        size = np.sqrt(square / (1 - _SECOND ** (step + 1))) + 1e-8
        rate = _RATE * 0.5 * (1 + np.cos(np.pi * step / _STEPS))
        point = point - rate * mean / (1 - _FIRST ** (step + 1)) / size
    return change.to_weights(point)
