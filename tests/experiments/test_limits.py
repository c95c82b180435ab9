"""The table of decisions that can flip: shares add up, witnesses are told in words."""

from __future__ import annotations

import pytest

from experiments.commands._limits import format_lines
from experiments.limits import compare_limits


@pytest.mark.usefixtures("data")
def test_credit_within_limits() -> None:
    """Every row holds, flips or is undecided; without noise none is undecided."""
    lines = list(compare_limits(("credit",)))
    for line in lines:
        assert line.holds + line.flips + line.undecided == pytest.approx(100)
        assert line.held_and_right <= line.holds
        assert len(line.witnesses) == 10
        assert "->" in line.witnesses[0]
        if line.way == "unsmoothed":
            assert line.undecided == 0
    assert len(format_lines(lines).splitlines()) == len(lines) + 2
