"""The table of regressors: errors, widths that grow with the radius, attacks that stay inside, a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import regression
from experiments.commands._regression import format_lines


@pytest.mark.long
def test_measures_and_attacks_stay_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a part of a table: widths grow, no attack leaves its interval, and the mean's comes near its ends."""
    monkeypatch.setattr(regression, "FOLDS", 2)
    X, y = (part[:200] for part in regression.load_table("diabetes"))
    lines = [
        regression.measure("diabetes", name, X, y, attacked=3) for name in ("stumps, median", "additive, for 0.25")
    ]
    for line in lines:
        assert line.rmse < 65
        assert (np.diff(line.widths) > 0).all()
        assert line.left == 0
        assert line.attacked == 3
    assert lines[1].reached > 0.8
    assert len(format_lines(lines).splitlines()) == 4


def test_generated_data_and_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Friedman's table has numbers, and the picture is drawn for what is asked."""
    X, y = regression.load_table("friedman1")
    assert X.shape == (1000, 10)
    monkeypatch.setattr(regression, "OURS", {"stumps, mean": regression.OURS["stumps, mean"]})
    monkeypatch.setattr(regression, "load_table", lambda _: (X[:120], y[:120]))
    monkeypatch.setattr(regression, "_CURVE", (0.0, 0.2))
    regression.plot_widths(tmp_path / "widths.png", ["friedman1"])
    assert (tmp_path / "widths.png").read_bytes()[:4] == b"\x89PNG"
