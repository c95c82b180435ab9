"""Certifying a file by a regressor: what is written, what is told in short, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import Threat, load
from derand.app.jobs import CertifySettings, certify_file, train_file
from derand.tables import _files
from tests.app.jobs.tables import make_prices


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_intervals_in_batches_equal_those_at_once(
    suffix: str, regressor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, ends and the summary are those of one call at the training radius; columns go by name."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2048)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 64)
    frame = make_prices(500, seed=1)
    shuffled, new, out = frame[["price", "job", "same", "x"]], tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}"
    shuffled.to_csv(new, index=False) if suffix == "csv" else shuffled.to_parquet(new)
    batches: list[int] = []
    summary = certify_file(regressor, new, out, CertifySettings(target="price"), advance=batches.append)
    expected = load(regressor).certify_interval(frame[["x", "job"]], 0.1)
    written = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    assert list(written.columns) == ["row", "value", "low", "high"]
    assert written["row"].tolist() == list(range(1, 501))
    for name in ("value", "low", "high"):
        assert written[name].to_numpy() == pytest.approx(getattr(expected, name), rel=1e-15)
    assert len(batches) > 3
    assert sum(batches) == summary["rows"] == 500
    assert (summary["radius"], summary["tolerance"], summary["norm"]) == (0.1, None, 2)
    assert summary["mean_width"] == pytest.approx(expected.width.mean())
    assert summary["largest_width"] == expected.width.max()
    assert summary["rmse"] == pytest.approx(math.sqrt(np.mean((expected.value - frame["price"]) ** 2)))
    inside = (expected.low <= frame["price"]) & (frame["price"] <= expected.high)
    assert summary["targets_inside"] == inside.sum() > 0
    assert summary["columns_not_used"] == ["same"]


def test_a_tolerance_gives_radii(regressor: Path, prices: Path, tmp_path: Path) -> None:
    """One per row, within which the value moves by no more than that."""
    summary = certify_file(regressor, prices, tmp_path / "out.csv", CertifySettings(target="price", tolerance=5.0))
    frame = make_prices()
    expected = load(regressor).certify_radius(frame[["x", "job"]], 5.0)
    written = pd.read_csv(tmp_path / "out.csv")
    assert list(written.columns) == ["row", "value", "radius"]
    assert written["radius"].tolist() == pytest.approx(expected.radius.tolist(), rel=1e-15)
    assert (summary["radius"], summary["tolerance"]) == (None, 5.0)
    assert summary["certified_rows"] == (expected.radius > 0).sum()
    assert summary["rows_of_infinite_radius"] == np.isinf(expected.radius).sum()
    assert summary["targets_inside"] == (abs(expected.value - frame["price"]) <= 5.0).sum()


def test_another_threat(regressor: Path, prices: Path, tmp_path: Path) -> None:
    """A field of it, a whole one and its units, categories by name; within limits there is no radius."""
    out = tmp_path / "out.csv"
    wide = certify_file(regressor, prices, out, CertifySettings(changes={"norm": np.inf, "l0": 1}))
    assert (wide["norm"], wide["threat"]["l0"], wide["radius"]) == (np.inf, 1, 0.1)
    frozen = certify_file(regressor, prices, out, CertifySettings(threat=Threat(norm=2, frozen=("x",)), radius=0.5))
    assert frozen["largest_width"] < 0.01 < wide["mean_width"]
    limits = certify_file(regressor, prices, out, CertifySettings(threat=Threat(norm=None, limits={"x": 0.1})))
    assert (limits["norm"], limits["radius"]) == (None, None)
    assert 0 < limits["mean_width"] < 20


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both": ({"radius": 0.1, "tolerance": 1.0}, "Give `radius` or `tolerance`, got both, 0.1 and 1.0"),
    "no radius": ({"radius": -1.0}, "`radius` must be a number, 0 or larger, got -1.0"),
    "no tolerance": ({"tolerance": -1.0}, "`tolerance` must be"),
    "norm 0": ({"changes": {"norm": 0}}, "`radius` must be given in norm 0"),
    "a feature as the target": ({"target": "x"}, "'x' is a feature of the model"),
    "text as the target": ({"target": "word"}, "word"),
    "no column": ({"changes": {"frozen": ("y",)}}, "'y'"),
    "outside": ({"changes": {"domain": {"x": (0.0, 1.0)}}}, "outside of its domain"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str, regressor: Path, tmp_path: Path) -> None:
    """One clear error, and nothing is written."""
    make_prices().assign(word="one").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match=message):
        certify_file(regressor, tmp_path / "new.csv", tmp_path / "out.csv", CertifySettings(**options))
    assert not (tmp_path / "out.csv").exists()


def test_a_model_that_was_not_trained_for_a_radius_needs_one(prices: Path, tmp_path: Path) -> None:
    """Stumps have none, and it says so."""
    model = tmp_path / "stumps.json"
    train_file(prices, "price", model, model="stumps", regularization=1.0)
    with pytest.raises(ValueError, match="this StumpRegressor was not trained for one"):
        certify_file(model, prices, tmp_path / "out.csv")
    assert certify_file(model, prices, tmp_path / "out.csv", CertifySettings(radius=0.1))["mean_width"] > 0


def test_settings_of_the_other_kind_are_refused(
    model: Path, regressor: Path, data: Path, prices: Path, tmp_path: Path
) -> None:
    """By name, with what the model answers."""
    out = tmp_path / "out.csv"
    for settings in (CertifySettings(radii=[0.1]), CertifySettings(witness=tmp_path / "flips.csv")):
        with pytest.raises(ValueError, match=r"`(radii|witness)` is for classification, and .* is a regressor"):
            certify_file(regressor, prices, out, settings)
    for settings in (CertifySettings(radius=0.1), CertifySettings(tolerance=1.0)):
        with pytest.raises(ValueError, match=r"`(radius|tolerance)` is for regression, and .* is a classifier"):
            certify_file(model, data, out, settings)
    assert not out.exists()
