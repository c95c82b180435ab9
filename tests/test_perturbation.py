"""Threats resolved for a model: boxes of rows, and what does not fit a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import AdditiveEnsemble, Gaussian, StepFunction, Threat
from derand.perturbation import Perturbation, resolve


def find_box(threat: Threat, rows: Any, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return Perturbation.of(threat.resolve(None), len(rows[0]), columns).box(rows)


def test_boxes_are_closed_and_percent_is_of_the_absolute_value() -> None:
    """Of 0 it is 0; a column that is named nowhere stays without a ball and moves freely within one."""
    rows = [[-200.0, 0.0, 3.0]]
    low, high = find_box(Threat(norm=None, limits={0: "5%", 1: "5%"}), rows, [0, 1, 2])
    assert (low.tolist(), high.tolist()) == ([[-210.0, 0.0, 3.0]], [[-190.0, 0.0, 3.0]])
    low, high = find_box(Threat(domain={0: (-300, 0)}, limits={0: 150, 1: (0, 2)}), rows, [0, 1, 2])
    assert (low.tolist(), high.tolist()) == ([[-300.0, 0.0, -float("inf")]], [[-50.0, 2.0, float("inf")]])
    low, high = find_box(Threat(norm=None, limits={"*": 1}, domain={1: (0, 9)}), rows, [1])
    assert (low[0, 1], high[0, 1]) == (0.0, 1.0)  # both hold
    low, high = find_box(Threat(norm=None, limits={"*": 1}, frozen=[2]), rows, [0, 1, 2])
    assert (low.tolist(), high.tolist()) == ([[-201.0, -1.0, 3.0]], [[-199.0, 1.0, 3.0]])


@given(
    st.sampled_from([1.0, 0.1, 0.3, 2.5]),
    st.sampled_from([0.0, 12.0, -7.5, 1e6 + 0.1, 1e17]),
    st.floats(0, 40),
    st.floats(0, 40),
)
def test_boxes_of_steps_end_at_the_outermost_step(step: float, own: float, down: float, up: float) -> None:
    """No step that lies within the limits lies outside of the box, whose ends are steps."""
    wide = find_box(Threat(norm=None, limits={0: (down, up)}), [[own]], [0])
    low, high = find_box(Threat(norm=None, limits={0: (down, up)}, steps={0: step}), [[own]], [0])
    places = own + np.arange(-500, 501) * step
    inside = places[(places >= wide[0][0, 0]) & (places <= wide[1][0, 0])]
    assert (low[0, 0], high[0, 0]) == (inside.min(), inside.max())


def test_boxes_of_steps_leave_open_ends_and_gaps_alone() -> None:
    """No limit, a limit too far to count steps to, and a missing number."""
    threat = Threat(steps={0: 1, 1: 1, 2: 1}, limits={1: 1e300}, domain={2: (0, 5.5)})
    low, high = find_box(threat, [[3.0, 4.0, np.nan], [3.0, 4.0, 1.5]], [0, 1, 2])
    assert low.tolist() == [[-np.inf, -1e300, 0.0], [-np.inf, -1e300, 0.5]]
    assert high.tolist() == [[np.inf, 1e300, 5.5], [np.inf, 1e300, 5.5]]


def test_what_does_not_fit_the_model_is_refused() -> None:
    """A budget of missing numbers, and rows outside of their domain; a missing value lies in every domain."""
    plain = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 1, n_features=1)
    with_gap = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2], missing=1)], 1, n_features=1)
    with pytest.raises(ValueError, match="takes no missing numbers, got 2"):
        resolve(Threat(missing=2), plain, None)
    assert resolve(Threat(missing=2), with_gap, None).missing_budget == 2
    domain = resolve(Threat(domain={0: (0, 1)}), with_gap, None)
    domain.check_rows(np.array([[0.5], [np.nan]]))
    with pytest.raises(ValueError, match=r"got \[0.0, 1.0\] for column 0 and 2.0 in row 0"):
        domain.check_rows(np.array([[2.0]]))


def test_norm_and_units_come_from_the_noise() -> None:
    """Unless the threat has its own; several budgets are resolved together."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 1, n_features=1)
    found = resolve([Threat(l0=0), Threat(l0=2)], model, Gaussian(0.5, units=(3.0,)))
    assert (found.norm, found.units.tolist(), found.budgets, found.has_box) == (2, [3.0], (0, 2), False)
    assert [one.norm for one in found.threats] == [2, 2]
    assert resolve(Threat(norm=1, units=(2.0,)), model, Gaussian(0.5, units=(3.0,))).units.tolist() == [2.0]


def test_frozen_columns_keep_their_values() -> None:
    """Also those that were frozen later."""
    model = AdditiveEnsemble([StepFunction(k, [0.0], [0, 2]) for k in range(2)], 1, n_features=2)
    asked = resolve(Threat(norm=None, limits={"*": 1.0}, steps={1: 0.5}), model, None)
    low, high = asked.freeze([1]).box([[3.0, 4.0]])
    assert (low.tolist(), high.tolist()) == ([[2.0, 4.0]], [[4.0, 4.0]])
    low, high = asked.within(1, 3.2, 9.0).box([[3.0, 4.0]])
    assert (low.tolist(), high.tolist()) == ([[3.0, 3.5]], [[3.0, 9.0]])
