"""How far rows may be moved while their answers move by a tolerance at most: which tolerance, and the weakest rows.

Must not know how it is shown.
"""

from __future__ import annotations

import math

import numpy as np

from derand._core.text import format_short, format_short_up
from derand.report._interval_inputs import NumberInputs
from derand.report._interval_types import Errors, IntervalRows, Spread, ToleranceFacts

_SMALLEST = 10


def measure_tolerance(
    inputs: NumberInputs, given: float | None, moves: Spread, errors: Errors | None, rows: IntervalRows
) -> ToleranceFacts | None:
    """Radii of the rows of the table, which are written there; None where there is no ball, or nothing moves in it."""
    if inputs.threat.norm is None or not inputs.moving:
        return None
    tolerance, reason = _choose_tolerance(given, moves, errors)
    if tolerance is None:
        return None
    table, listed = rows["table"], rows["listed"]
    places = np.array([row["row"] - 1 for row in table])
    radius = inputs.certify_tolerance(inputs.matrix[places], tolerance).radius
    for row, size in zip(table, radius.tolist(), strict=True):
        row["radius"] = size
    known = dict(zip(listed["detailed"], radius.tolist(), strict=True))
    listed["tolerance"] = [known.get(at) for at in range(len(listed["row"]))]
    half, nine = (float(np.quantile(radius, share, method="lower")) for share in (0.5, 0.1))
    order = np.argsort(radius, kind="stable")[:_SMALLEST]
    return {
        "tolerance": tolerance,
        "reason": reason,
        "n_rows": len(table),
        "half_of_rows": half,
        "nine_in_ten": nine,
        "below": int((radius < (inputs.intervals.radius or 0.0)).sum()),
        "smallest": [table[at] for at in order.tolist()],
    }


def _choose_tolerance(given: float | None, moves: Spread, errors: Errors | None) -> tuple[float | None, str]:
    """The tolerance that was asked for, or a round number up to the error, or to what half of the rows move by."""
    if given is not None:
        return float(given), "as asked for"
    if errors is not None and errors["mean_absolute"] > 0:
        missed = errors["mean_absolute"]
        return round_one(
            missed
        ), f"a round number up to what answers miss the truth by on average, {format_short(missed, 3)}"
    half = float(moves["half_of_rows"])
    if 0 < half < math.inf:
        what = "what half of the rows can move by, at most, at the report's radius"
        return round_one(half), f"a round number up to {what}, {format_short_up(half)}"
    return None, ""


def round_one(value: float) -> float:
    """A positive number to 1, 2 or 5 times a power of ten, the next one below.

    Examples
    --------
    >>> [round_one(value) for value in (43.0, 0.7, 9.99, 1e-3)]
    [20.0, 0.5, 5.0, 0.001]
    """
    power = math.floor(math.log10(value))
    size = max((one for one in (1, 2, 5) if one * 10.0**power <= value), default=1)
    return float(f"{size}e{power}")
