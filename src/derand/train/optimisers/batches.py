"""Fitting weights of large tables by batches of rows.

Owns the steps (Adam, the radius raised over the first half of them, the rate falling to nothing). Must not know how
losses are computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.optimisers.descent import Objective

_FIRST, _SECOND = 0.9, 0.99  # how much of the mean and of the mean square of slopes is kept


class Schedule(NamedTuple):
    """How a fit goes on: rows of a batch, steps, the first rate, and in which share of all steps the radius grows."""

    batch: int = 3_000
    steps: int = 400
    rate: float = 0.005
    growing: float = 0.5


def fit_by_batches(
    objective: Objective, start: FloatArray, order: IntArray, generator: np.random.Generator, schedule: Schedule
) -> FloatArray:
    """Weights of about least penalised loss.

    `order` (n_rows,): an order of the rows that does not depend on how they were given; `generator`: draws the batches.
    """
    loss, change, n_batch, n_steps = objective.loss, objective.change, schedule.batch, schedule.steps
    point = start if change is None else change.to_point(start)
    mean, square = np.zeros(point.size), np.zeros(point.size)
    waiting = np.empty(0, dtype=np.int64)
    for step in range(n_steps):
        if waiting.size < min(n_batch, order.size):
            waiting = order[generator.permutation(order.size)]
        batch, waiting = waiting[:n_batch], waiting[n_batch:]
        loss.take(np.sort(batch), share_of_radius=min(1.0, (step + 1) / (schedule.growing * n_steps)))
        weights = point if change is None else change.to_weights(point)
        slopes = loss.evaluate(weights, 0.0)[1] + objective.penalties * weights
        moved = slopes if change is None else change.to_slopes(slopes)
        mean = _FIRST * mean + (1 - _FIRST) * moved
        square = _SECOND * square + (1 - _SECOND) * moved**2
        size = np.sqrt(square / (1 - _SECOND ** (step + 1))) + 1e-8
        rate = schedule.rate * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        point = point - rate * mean / (1 - _FIRST ** (step + 1)) / size
    loss.take(None)
    objective.n_steps += n_steps
    return point if change is None else change.to_weights(point)
