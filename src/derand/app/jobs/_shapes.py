"""What a model makes of a column of numbers, in one line: where it splits, whether it rises or falls, where it jumps.

Must not know how columns are chosen or trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derand._core.origin import Fitted
from derand._core.text import format_readable, plural, quote_short
from derand.explain.heights import measure_heights
from derand.tables import format_days

_DIGITS = 6
_MOSTLY = 0.5


def describe_shape(estimator: Fitted, feature: int, edges: Sequence[float]) -> str:
    """Range, direction and strongest jump of what the model adds for a number; `edges` are all its split points."""
    write: Callable[[float], str] = format_days if feature in estimator.encoding_.dates else _write
    parts = [f"{plural(len(edges), 'split')} from {write(edges[0])} to {write(edges[-1])}"]
    points = np.array([np.nextafter(edges[0], -np.inf), *edges])
    model = estimator.ensemble_
    weights = np.ones(len(model.members)) if model.weights is None else model.weights
    heights = [
        weight * measure_heights(term, points, None)
        for member, weight in zip(model.members, weights.tolist(), strict=True)
        for term in member.terms
        if term.features == (feature,)
    ]
    if heights and np.ptp(sum(heights), axis=0).any():
        jumps = np.diff(sum(heights), axis=0)
        if jumps.shape[1] == 1:
            parts.append(_describe_direction(estimator, jumps[:, 0]))
        parts.append(f"strongest jump at {write(edges[int(np.abs(jumps).max(axis=1).argmax())])}")
    else:
        parts.append("together with other columns alone")
    return ", ".join(parts)


def _describe_direction(estimator: Fitted, jumps: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """Where larger numbers lead."""
    classes = getattr(estimator, "classes_", None)
    towards = "" if classes is None else f" towards {quote_short(classes.tolist()[1])}"
    net, total = float(jumps.sum()), float(np.abs(jumps).sum())
    if abs(net) < _MOSTLY * total:
        return "rises and falls"
    mostly = "" if abs(net) == total else "mostly "
    return f"{mostly}rises{towards}" if net > 0 else f"{mostly}falls{towards.replace('towards', 'away from')}"


def _write(value: float) -> str:
    return format_readable(value, _DIGITS)
