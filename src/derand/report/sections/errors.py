"""Whether answers that are numbers are any good, whatever is proven of them: their errors beside a constant answer's.

Owns the banner at the top of a report on a regressor.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.text import format_short
from derand.report._facts import Banner, NumberFacts
from derand.report._inputs import IntervalInputs
from derand.report._markup import make_pipe_table, render
from derand.report._text import percent
from derand.report.sections import Section


class Errors(TypedDict):
    """How far answers are from the truth, without any change."""

    rmse: float
    mean_absolute: float
    inside: int
    """How many true numbers lie in the interval of their row."""
    constant: float
    """The mean of the truth: the constant answer that the model is compared with."""
    constant_rmse: float
    constant_absolute: float
    explained: float | None
    """The share of the variance of the truth that answers explain; null where the truth has none."""


class Parts(NumberFacts):
    """What this section reads."""

    errors: Errors | None


_FEWEST = 20
"""Rows below which no verdict is spoken: their own mean fits few rows too well."""
_HEAD = ["without any change", "this model", "constant"]


def compute(inputs: IntervalInputs) -> Errors | None:
    """How far answers are from the truth, and how far the mean of the truth is; None without it."""
    found, targets = inputs.intervals, inputs.truth
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


def find_banner(errors: Errors | None, n_rows: int) -> Banner | None:
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


def _list_lines(errors: Errors) -> list[list[str]]:
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


def html(summary: Parts) -> Markup:
    """The table of errors."""
    lines = [] if summary["errors"] is None else _list_lines(summary["errors"])
    return render("errors", summary, lines=lines)


def markdown(summary: Parts) -> list[str]:
    """The same."""
    if summary["errors"] is None:
        return []
    return ["## Are the answers any good?", make_pipe_table(_HEAD, _list_lines(summary["errors"]))]


SECTION = Section("errors", lambda s: "Any good?" if s["errors"] else "", html, markdown)
