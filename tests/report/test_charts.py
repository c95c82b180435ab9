"""Pictures never show more than the numbers beneath."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from derand.report import Report, _charts
from derand.report.sections import accuracy, radii
from derand.report.sections.rows import draw_law, law_paths
from derand.report.sections.shapes import _choose_span
from tests.report.samples import report_on_words


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 17.0), (0.0, 1e-7), (1e9, 1.5e9)])
def test_ticks_are_round_numbers_within_the_range(low: float, high: float) -> None:
    """A few, evenly spaced, none outside."""
    ticks = _charts.choose_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert low - 1e-9 * abs(low) <= ticks[0] <= ticks[-1] <= high * (1 + 1e-9)
    steps = [after - before for before, after in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert _charts.choose_ticks(high, high) == [high]


def test_curves_are_drawn_below_the_truth_between_known_radii(numbers: Any) -> None:
    """From one known radius to the next the curve lies at the lower share."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    picture = accuracy.draw_curves(summary, ["all"])
    assert picture is not None
    path = re.search(r'class="line-main" d="([^"]+)"', picture)
    assert path is not None
    (values,) = [one["values"] for one in summary["accuracy"]["series"] if one["role"] == "all"]
    frame = _charts.Frame(420, 250, (0.0, summary["scale"]["radii"][-1]), (0.0, 1.0))
    drawn = [float(height) for height in re.findall(r"V([\d.]+)H", path.group(1))]
    assert drawn == [frame.y(share) for share in values[1:]]


def test_the_parts_of_a_law_lie_on_their_sides_of_the_threshold(numbers: Any) -> None:
    """What fails is drawn on the other side of the threshold than what holds."""
    clf, X, y = numbers
    rows = Report(clf, X, y).to_dict()["rows"]
    axis = rows["law_axis"]
    for row in rows["table"][:20]:
        paths = law_paths(row["law"], axis, row["is_one"])
        picture = draw_law(row, row["law"], axis, 0)
        threshold = float(re.search(r'law-threshold" x1="([\d.]+)"', picture).group(1))
        for part, is_above in (("held", row["is_one"]), ("failing", not row["is_one"])):
            places = [float(place) for place in re.findall(r"[MH]([\d.]+)", paths[part])]
            assert all(place >= threshold if is_above else place <= threshold for place in places)


def test_what_has_no_curve_has_no_picture(numbers: Any) -> None:
    """A model without a radius has bars for its categories instead, and one with a radius has no such bars."""
    words = report_on_words(subgroups="job").to_dict()
    assert accuracy.draw_curves(words, ["all"]) is None
    assert radii.draw_histogram(words) is None
    assert accuracy.draw_budgets(words) is not None
    clf, X, y = numbers
    assert accuracy.draw_budgets(Report(clf, X, y).to_dict()) is None


def test_all_shapes_fit_on_one_scale(mixed: Any) -> None:
    """The common scale holds every push, of numbers and of categories, and zero."""
    clf, X, y = mixed
    shapes = Report(clf, X, y).to_dict()["shapes"]
    low, high = _choose_span(shapes)
    assert low < 0 < high
    for shape in shapes:
        entries = shape["pushes"] if shape["kind"] == "numerical" else [one["push"] for one in shape["categories"]]
        assert low < min(entries) <= max(entries) < high
