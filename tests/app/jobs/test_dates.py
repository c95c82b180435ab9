"""Dates in files: learnt from where that is asked for, and read alike by every later command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import load
from derand.app.jobs import CertifySettings, audit_file, certify_file, report_file, train_file
from tests.storage.models import write_changed

OPTIONS: dict[str, Any] = {"model": "stumps", "noise": "gaussian:0.25"}


def make_loans(n_rows: int = 200) -> pd.DataFrame:
    """Loans that fail the more often the later they were opened."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 1000, n_rows)
    label = np.where(days + 200 * rng.normal(size=n_rows) > 500, "bad", "good")
    opened = (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d")
    return pd.DataFrame({"loan_id": np.arange(n_rows), "opened": opened, "x": rng.normal(size=n_rows), "label": label})


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    make_loans().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(loans: Path) -> Path:
    path = loans.parent / "model.json"
    train_file(loans, "label", path, dates=["opened"], **OPTIONS)
    return path


def test_dates_are_ignored_unless_asked_for(loans: Path, tmp_path: Path) -> None:
    """With what to do; the number of the row is ignored as well, and kept where that is asked for."""
    uses = {
        column["name"]: (column["use"], column["detail"])
        for column in train_file(loans, "label", tmp_path / "a.json", **OPTIONS)["columns"]
    }
    assert uses["opened"] == (
        "ignored",
        "holds dates: turn it into days (--dates on the command line, derand.dates_to_numbers in Python), or leave it "
        "out",
    )
    assert uses["loan_id"][0] == "ignored"
    assert "to keep it: --numerical" in uses["loan_id"][1]
    summary = train_file(loans, "label", tmp_path / "b.json", numerical=["loan_id"], dates=["opened"], **OPTIONS)
    assert load(tmp_path / "b.json").encoding_.names == ("loan_id", "opened", "x")
    details = {column["name"]: column["detail"] for column in summary["columns"]}
    assert details["opened"].startswith("split at 202")


def test_later_files_are_read_alike(loans: Path, model: Path, tmp_path: Path) -> None:
    """CSV with dates or days and Parquet with a type of dates get the same certificates, which can be audited."""
    frame = make_loans()
    typed, days = tmp_path / "typed.parquet", tmp_path / "days.csv"
    when = pd.to_datetime(frame["opened"])
    frame.assign(opened=when).to_parquet(typed)
    frame.assign(opened=(when - pd.Timestamp("1970-01-01")).dt.days).to_csv(days, index=False)
    found = []
    for at, path in enumerate((loans, typed, days)):
        certify_file(model, path, tmp_path / f"{at}.csv", CertifySettings(target="label"))
        found.append(pd.read_csv(tmp_path / f"{at}.csv"))
    for other in found[1:]:
        pd.testing.assert_frame_equal(other, found[0])
    assert audit_file(model, loans, tmp_path / "0.csv", target="label", rows=5)["passed"]
    assert report_file(model, loans, tmp_path / "report.md", target="label")["rows"] == len(frame)


def test_frames_with_dates_are_read_by_such_a_model(model: Path) -> None:
    """In Python, too: as dates, as text and as days."""
    loaded, frame = load(model), make_loans()[["opened", "x"]]
    typed = frame.assign(opened=pd.to_datetime(frame["opened"]))
    np.testing.assert_array_equal(loaded.certify(frame).radius, loaded.certify(typed).radius)
    assert loaded.encoding_.dates == (0,)


def test_a_word_that_is_no_date_is_named(loans: Path, model: Path, tmp_path: Path) -> None:
    """By training and by later commands, with the file."""
    bad = tmp_path / "bad.csv"
    make_loans().assign(opened="31/12/2024").to_csv(bad, index=False)
    for call in (
        lambda: train_file(bad, "label", tmp_path / "m.json", dates=["opened"], **OPTIONS),
        lambda: certify_file(model, bad, tmp_path / "out.csv"),
    ):
        with pytest.raises(ValueError, match=r"bad\.csv: .* column 'opened' holds '31/12/2024': write dates as"):
            call()


def test_a_column_has_one_use(loans: Path, tmp_path: Path) -> None:
    """Two of them are refused, and so are columns that are not there."""
    with pytest.raises(ValueError, match="The column 'opened' is ignored: it cannot be a date as well"):
        train_file(loans, "label", tmp_path / "m.json", dates=["opened"], ignored=["opened"])
    with pytest.raises(ValueError, match="The column 'label' is the target: it cannot be a date as well"):
        train_file(loans, "label", tmp_path / "m.json", dates=["label"])
    with pytest.raises(ValueError, match="has no column 'open'"):
        train_file(loans, "label", tmp_path / "m.json", dates=["open"])


def test_damaged_dates_in_a_file_are_refused_by_name(model: Path, tmp_path: Path) -> None:
    """Features that are none, or twice, or no numbers."""
    loaded, copy = load(model), tmp_path / "copy.json"
    for damage in ([7], [-1], [0, 0], ["opened"], 0):
        write_changed(copy, loaded, lambda document, damage=damage: document["model"].update(dates=damage))
        with pytest.raises(ValueError, match=r"model\.dates"):
            load(copy)


def test_doubts_are_told_once(loans: Path, tmp_path: Path) -> None:
    """Of columns that are used, in the words that `fit` has; columns that were declared are meant."""
    path = tmp_path / "loans.csv"
    frame = make_loans().assign(paid=[f"{row % 9} %" for row in range(200)])
    frame["state"] = np.where(frame["label"] == "bad", "lost", "fine")
    frame.to_csv(path, index=False)
    told = train_file(path, "label", tmp_path / "a.json", **OPTIONS)["warnings"]
    (text,) = [one for one in told if one.startswith("Columns to look at")]
    assert "'paid' is text that reads as numbers, such as '0 %'" in text
    assert "'state' predicts the target almost alone" in text
    told = train_file(path, "label", tmp_path / "b.json", categorical=["paid"], ignored=["state"], **OPTIONS)
    assert not [one for one in told["warnings"] if one.startswith("Columns to look at")]
