"""How far rows may be moved while their answers move by a tolerance at most: which tolerance, and the weakest rows."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from derand._core.text import format_count, format_exactly, format_short, format_short_down, format_short_up, plural
from derand.report._facts import NumberFacts
from derand.report._inputs import IntervalInputs
from derand.report._markup import make_pipe_table, mark_text, name_row, render
from derand.report.sections import Section
from derand.report.sections.errors import Errors
from derand.report.sections.interval_rows import IntervalRows, ToleranceFacts
from derand.report.sections.intervals import Spread


class Parts(NumberFacts):
    """What this section reads."""

    rows: IntervalRows
    tolerance: ToleranceFacts | None


_SMALLEST = 10
_HEAD = ["row", "answer", "radius"]


def compute(
    inputs: IntervalInputs, given: float | None, moves: Spread, errors: Errors | None, rows: IntervalRows
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


def html(summary: Parts) -> Markup:
    """What is known of the tolerance, and the rows with the smallest radius."""
    return render("tolerance", summary, told=_say_tolerance(summary), lines=_list_smallest(summary))


def markdown(summary: Parts) -> list[str]:
    """Markdown of the part on the tolerance."""
    found = summary["tolerance"]
    if found is None:
        return []
    head = f"## Within which radius answers move by {format_exactly(found['tolerance'])} at most"
    return [head, mark_text(_say_tolerance(summary)), make_pipe_table(_HEAD, _list_smallest(summary))]


def _list_smallest(summary: Parts) -> list[list[str]]:
    """Rows whose answers move by the tolerance soonest: their names, answers and radii."""
    rows = [] if summary["tolerance"] is None else summary["tolerance"]["smallest"]
    return [
        [name_row(row), format_short(row["value"], 6), format_short_down(float(row["radius"] or 0.0))] for row in rows
    ]


def _say_tolerance(summary: Parts) -> str:
    """What is known of the tolerance, in sentences."""
    found = summary["tolerance"]
    if found is None:
        return ""
    half, nine = (format_short_down(float(found[key])) for key in ("half_of_rows", "nine_in_ten"))
    rows = plural(found["n_rows"], "row")
    whose = rows if found["n_rows"] == summary["rows"]["n_rows"] else f"{rows} drawn at random"
    below = ""
    if summary["radius"]:
        count = (
            f"{format_count(found['below'])} {'has' if found['below'] == 1 else 'have'}"
            if found["below"]
            else "None has"
        )
        below = f" {count} less than the radius of this report."
    return (
        f"How far a row may change while its answer is proven to move by {format_exactly(found['tolerance'])} at most "
        f"({found['reason']}). Of {whose}, half have a radius of {half} or more, nine in ten of {nine} or more.{below}"
    )


SECTION = Section("tolerance", lambda s: "Tolerance" if s["tolerance"] else "", html, markdown)
