"""Files with empty cells: trained on, certified with witnesses, reported; infinity is named with its rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from derand import Threat
from derand.app.jobs import CertifySettings, certify_file, report_file, train_file
from tests.app.jobs.tables import make_frame


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_with_empty_cells_is_trained_on_and_certified(suffix: str, tmp_path: Path) -> None:
    """Empty cells of number columns are missing values; witnesses have empty cells where a number goes missing."""
    frame = make_frame()
    frame["x"] = frame["x"].where(frame.index % 6 > 0)
    data = tmp_path / f"gaps.{suffix}"
    frame.to_csv(data, index=False) if suffix == "csv" else frame.to_parquet(data)
    trained = train_file(data, "label", tmp_path / "model.json", categorical=["floor"])
    assert {one["name"]: one["use"] for one in trained["columns"]}["x"] == "numerical"
    found = certify_file(tmp_path / "model.json", data, tmp_path / "out.csv", CertifySettings(target="label"))
    assert found["rows"] == 300
    assert found["threat"]["missing"] == 0
    threat = Threat(norm=None, limits={"x": 0.1}, missing=1)
    out, witness = tmp_path / f"verdicts.{suffix}", tmp_path / f"witness.{suffix}"
    found = certify_file(
        tmp_path / "model.json", data, out, CertifySettings(threat=threat, rule="mean", witness=witness)
    )
    assert found["threat"]["missing"] == 1
    assert found["verdicts"]["flips"] > 0
    flips = pd.read_csv(witness) if suffix == "csv" else pd.read_parquet(witness)
    before = frame["x"].to_numpy()[flips["row"].to_numpy() - 1]
    assert (flips["x"].isna() != np.isnan(before)).any()
    again = certify_file(tmp_path / "model.json", witness, tmp_path / "again.csv", CertifySettings(rule="mean"))
    assert again["rows"] == found["verdicts"]["flips"]
    labels = pd.read_csv(tmp_path / "again.csv")["label"].tolist()
    assert labels == flips["new_label"].tolist()
    report = report_file(tmp_path / "model.json", data, tmp_path / "report.html", target="label", train=data)
    assert report["rows"] == 300


def test_infinity_beside_empty_cells_is_named_with_its_rows(tmp_path: Path) -> None:
    """A model that takes missing values refuses infinity, by file and rows."""
    frame = make_frame()
    frame["x"] = frame["x"].where(frame.index % 6 > 0)
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    train_file(tmp_path / "gaps.csv", "label", tmp_path / "model.json")
    frame.loc[7, "x"] = np.inf
    frame.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match=r"bad\.csv has infinite cells in 'x' \(1 of 300 cells\) in rows 1 to 300"):
        certify_file(tmp_path / "model.json", tmp_path / "bad.csv", tmp_path / "out.csv")
    with pytest.raises(ValueError, match=r"bad\.csv has infinite cells in 'x' \(1 of 300 cells\)"):
        report_file(
            tmp_path / "model.json",
            tmp_path / "gaps.csv",
            tmp_path / "report.md",
            target="label",
            train=tmp_path / "bad.csv",
        )
