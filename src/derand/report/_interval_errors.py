"""Whether answers that are numbers are any good, whatever is proven of them: their errors beside a constant answer's.

Owns the banner at the top of a report on numbers. Must not know how it is shown.
"""

from __future__ import annotations

import numpy as np

from derand._core.text import format_short
from derand.report._interval_inputs import NumberInputs
from derand.report._interval_types import Errors
from derand.report._text import percent
from derand.report._types import Banner

_FEWEST = 20
"""Rows below which no verdict is spoken: their own mean fits few rows too well."""


def measure_errors(inputs: NumberInputs) -> Errors | None:
    """How far answers are from the truth, and how far the mean of the truth is; None without it."""
    found, targets = inputs.intervals, inputs.targets
    if targets is None:
        return None
    missed, spread = found.value - targets, targets - targets.mean()
    squares = float(np.mean(spread**2))
    return {
        "rmse": float(np.sqrt(np.mean(missed**2))),
        "mean_absolute": float(np.abs(missed).mean()),
        "inside": int(((found.low <= targets) & (targets <= found.high)).sum()),
        "constant": float(targets.mean()),
        "constant_rmse": float(np.sqrt(squares)),
        "constant_absolute": float(np.abs(spread).mean()),
        "explained": 1.0 - float(np.mean(missed**2)) / squares if squares > 0 else None,
    }


def find_number_banner(errors: Errors | None, n_rows: int) -> Banner | None:
    """What a reader must know before anything else: that the answers are no better than a constant."""
    if errors is None or errors["explained"] is None or errors["explained"] > 0 or n_rows < _FEWEST:
        return None
    own, constant = (format_short(errors[key]) for key in ("rmse", "constant_rmse"))
    return {
        "level": "warning",
        "title": "The answers are no better than a constant",
        "text": (
            f"Always answering {format_short(errors['constant'])}, the mean of the truth of these rows, has an error "
            f"of {constant} (root of the mean square), and no change could move it. This model has {own}. Its "
            "intervals say where such answers stay, and nothing of their worth."
        ),
    }


def list_errors(errors: Errors) -> list[list[str]]:
    """Lines of the table: what, this model's, that of the constant answer."""
    lines = [
        ["Root of the mean square error", format_short(errors["rmse"]), format_short(errors["constant_rmse"])],
        ["Mean absolute error", format_short(errors["mean_absolute"]), format_short(errors["constant_absolute"])],
    ]
    explained = errors["explained"]
    if explained is not None:
        text = percent(explained, "down" if explained >= 0 else "up")
        lines.append(["Share of the variance that is explained", text, percent(0.0)])
    return lines
