"""Cells: outcomes compared with printed numbers, and the reasons why they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.reproduce._cells import Cell, make_cells, round_radii
from tests.experiments.reproduce.examples import make_line, make_outcome


def compare(radius: list[float], metric: dict[str, Any], **recipe: Any) -> Cell:
    item, line, plan = make_line(metric, **recipe)
    (cell,) = make_cells(item, line, plan, [make_outcome(radius)], [])
    return cell


def test_a_near_number_is_within_tolerance() -> None:
    """0.3 points are allowed, from the number as printed."""
    radii = [1.0] * 899 + [0.1] * 101
    assert compare(radii, {"ca": {"1.0": 90.2}}).ok
    assert compare(radii, {"ca": {"1.0": 90.3}}).ok is False


def test_rounded_radii_are_recognised() -> None:
    """Where three digits restore the printed number, that is the reason; ours stays exact."""
    cell = compare([0.9999] * 50 + [2.0] * 50, {"ca": {"1.0": 100.0}})
    assert (cell.ours, cell.ok, cell.reason, cell.as_published) == (50.0, False, "rounding", 100.0)


def test_the_cap_is_recognised() -> None:
    """Radii beyond 7.94 sigma are beyond the published cap."""
    cell = compare([9.0] * 100, {"ca": {"8.0": 0.0}})
    assert (cell.ours, cell.reason) == (100.0, "cap")


def test_constant_models_are_recognised() -> None:
    """An infinite average radius against the cap."""
    cell = compare([np.inf] * 100, {"acr": 7.941})
    assert (cell.ours, cell.ok, cell.reason) == (np.inf, False, "constant")
    assert cell.as_dict()["ours"] == "inf"


def test_what_nothing_restores_has_no_reason() -> None:
    """A difference without an explanation is not explained away."""
    cell = compare([0.5] * 100, {"ca": {"1.0": 50.0}})
    assert (cell.ok, cell.reason) == (False, None)


def test_larger_is_welcome_where_the_side_says_so() -> None:
    """A wider tolerance forgives any rise and a small fall, and says why there is a difference."""
    tolerance = {"wider": {"rows": 3, "side": "below", "reason": "slip"}}
    better = compare([1.0] * 100, {"ca": {"1.0": 50.0}}, tolerance=tolerance)
    assert (better.ok, better.reason) == (True, "slip")
    near = compare([1.0] * 47 + [0.5] * 53, {"ca": {"1.0": 50.0}}, tolerance=tolerance)
    assert (near.ok, near.tolerance) == (True, 3.0)
    assert not compare([1.0] * 46 + [0.5] * 54, {"ca": {"1.0": 50.0}}, tolerance=tolerance).ok


@pytest.mark.parametrize("published_rounding", [False, True])
def test_a_radius_of_exactly_r_counts_in_every_table(published_rounding: bool) -> None:
    """One rule, that of `certified_accuracy`; at r = 0 a radius of 0 does not count."""
    options = {"published_rounding": published_rounding}
    assert compare([1.0] * 100, {"ca": {"1.0": 100.0}}, **options).ours == 100.0
    assert compare([0.0] * 100, {"ca": {"0.0": 0.0}}, **options).ours == 0.0


def test_ties_are_recognised() -> None:
    """Where radii are r but for rounding, the printed number may lie anywhere between."""
    joint = compare([1.0 - 1e-12] * 100, {"ca": {"1.0": 60.0}}, published_rounding=False)
    assert (joint.ours, joint.ok, joint.reason) == (0.0, False, "ties")


def test_deviations_widen_the_tolerance() -> None:
    """With folds one published deviation is allowed."""
    item, line, plan = make_line({"ca": {"0.0": [97.0, 3.5]}}, evaluation="folds")
    outcomes = [make_outcome([1.0] * 10, [True] * 10), make_outcome([1.0] * 10, [True] * 9 + [False])]
    (cell,) = make_cells(item, line, plan, outcomes, [])
    assert (cell.ours, cell.deviation, cell.tolerance, cell.ok) == (95.0, 5.0, 3.5, True)


def test_wrong_rows_count_nothing() -> None:
    """A wrong row counts 0 in the average radius and in certified accuracy; balanced accuracy weighs classes."""
    item, line, plan = make_line({"acr": 0.5, "ca": {"0.0": 50.0}, "bca": {"0.0": 50.0}})
    cells = make_cells(item, line, plan, [make_outcome([1.0] * 4, [True, True, False, False])], [])
    assert [cell.ours for cell in cells] == [0.5, 50.0, 50.0]


def test_variants_restore_numbers() -> None:
    """A number that another way of training restores has that way as its reason; seeds give a range."""
    item, line, plan = make_line({"ca": {"1.0": 50.0}})
    line = replace(line, reason="seed")
    variants = [[make_outcome([1.0] * count + [0.5] * (100 - count))] for count in (40, 60)]
    (cell,) = make_cells(item, line, plan, [make_outcome([0.5] * 100)], variants)
    assert cell.reason == "seed"


def test_radii_are_rounded_to_three_digits() -> None:
    """As the published runs printed them."""
    assert round_radii(np.array([0.0, 3.9951, 12.345, 0.0012345, np.inf])).tolist() == [
        0.0,
        4.0,
        12.3,
        0.00123,
        np.inf,
    ]
