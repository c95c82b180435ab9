"""The table of attacks: every setting is measured, nothing flips inside, and a flip inside is an exit code."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from experiments.attacks import THREATS, Line, compare_attacks
from experiments.commands import _attacks
from experiments.commands._attacks import format_lines

LINE = Line("stumps", "vote", "l2", 30, 28, 1.1, 1.01, 0, 0.05)


def test_lines_become_a_table() -> None:
    """One line each, under a head, and a sum."""
    text = format_lines([LINE, Line("stumps", "mean", "limits alone", 10, 4, float("nan"), float("nan"), 0, 0.001)])
    assert [cell.strip() for cell in text.splitlines()[2].split("|")[1:5]] == ["stumps", "vote", "l2", "30"]
    assert text.splitlines()[3] == "| stumps | mean | limits alone | 10 | 4 |  |  | 0 | 1.0 |"
    assert text.splitlines()[-1] == "40 rows, 32 flips, 0 of them inside."


@pytest.mark.parametrize(("inside", "code"), [(0, None), (1, 1)])
def test_a_flip_inside_ends_the_command_with_an_error(
    inside: int, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build fails by its exit code."""
    line: Any = Line("stumps", "vote", "l2", 30, 28, 1.1, 0.9, inside, 0.05)
    monkeypatch.setattr(_attacks, "compare_attacks", lambda rows: [line])
    if code is None:
        _attacks.attacks(rows=1)
        return
    with pytest.raises(typer.Exit) as caught:
        _attacks.attacks(rows=1)
    assert caught.value.exit_code == code


def test_every_setting_is_attacked_and_none_flips_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bundled table with gaps, two trainers, a few threats."""
    monkeypatch.setattr("experiments.attacks.TRAINERS", {"stumps": _attacks_trainers()["stumps"]})
    chosen = {name: THREATS[name] for name in ("l2", "linf", "columns", "limits alone", "missing, l2")}
    monkeypatch.setattr("experiments.attacks.THREATS", chosen)
    lines = list(compare_attacks(30, ("sklearn_breast_cancer",)))
    assert len(lines) == 3 * len(chosen)
    assert sum(line.rows for line in lines) >= 30
    assert not any(line.inside for line in lines)
    assert all(not line.least < 1 for line in lines)


def _attacks_trainers() -> dict[str, Any]:
    from derand.estimators import TRAINERS

    return dict(TRAINERS)
