"""Columns of the data beside results: an id first, others last, in every file that certifying writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derand import StumpClassifier, Threat, save
from derand.app.jobs import CertifySettings, audit_file, certify_file
from derand.tables import _files
from tests.app.jobs.tables import make_frame, make_prices

N = 40
CODES = [f"{row:03d}" for row in range(N)]
LIMITS = Threat(norm=None, limits={"x": 1.0}, l0=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = make_frame()
    clf = StumpClassifier(noise=0.25, rule="mean").fit(frame[["x", "job"]], frame["label"])
    path = tmp_path_factory.mktemp("model") / "model.json"
    save(clf, path)
    return path


def write(tmp_path: Path, suffix: str = "csv", **columns: Any) -> Path:
    path = tmp_path / f"new.{suffix}"
    frame = make_frame(N).drop(columns=["label"]).assign(code=CODES, **columns)
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    return path


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"code": str}) if path.suffix == ".csv" else pd.read_parquet(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_id_stands_first_and_other_columns_last(
    suffix: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 512)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 16)
    data, out = write(tmp_path, suffix), tmp_path / f"out.{suffix}"
    summary = certify_file(model, data, out, CertifySettings(identity="code", keep=["day", "x", "day", "code"]))
    written, frame = read(out), make_frame(N)
    assert list(written.columns) == ["code", "row", "label", "failure", "radius", "proof", "day", "x"]
    assert written["code"].tolist() == CODES
    assert written["day"].tolist() == frame["day"].tolist()
    assert written["x"].tolist() == pytest.approx(frame["x"].tolist(), rel=1e-15)
    assert summary["columns_copied"] == ["code", "day", "x"]
    assert {"code", "day"}.isdisjoint(summary["columns_not_used"])
    assert audit_file(model, data, out, rows=3)["passed"]


def test_verdicts_and_witnesses_have_the_id_too(model: Path, tmp_path: Path) -> None:
    data, out, flips = write(tmp_path), tmp_path / "out.csv", tmp_path / "flips.csv"
    certify_file(model, data, out, CertifySettings(identity="code", keep=["day", "job"], threat=LIMITS, witness=flips))
    verdicts, witnesses = read(out), read(flips).sort_values("row")
    assert list(verdicts.columns) == ["code", "row", "label", "failure", "verdict", "proof", "day", "job"]
    assert list(witnesses.columns) == ["code", "row", "label", "new_label", "change", "x", "job", "day"]
    assert witnesses["code"].tolist() == verdicts["code"][verdicts["verdict"] == "flips"].tolist()
    assert witnesses["day"].tolist() == verdicts["day"][verdicts["verdict"] == "flips"].tolist()
    assert audit_file(model, data, out, rows=3)["passed"]


def test_an_id_that_is_a_column_of_the_model_stands_beside_its_changed_value(model: Path, tmp_path: Path) -> None:
    data, flips = write(tmp_path), tmp_path / "flips.csv"
    certify_file(model, data, tmp_path / "out.csv", CertifySettings(identity="x", threat=LIMITS, witness=flips))
    witnesses = read(flips)
    assert list(witnesses.columns) == ["_x", "row", "label", "new_label", "change", "x", "job"]
    assert witnesses["_x"].tolist() == pytest.approx(make_frame(N)["x"][witnesses["row"] - 1].tolist())


def test_a_file_without_witnesses_has_a_header_with_the_id(model: Path, tmp_path: Path) -> None:
    threat = Threat(norm=None, limits={"x": 0.0})
    certify_file(
        model,
        write(tmp_path),
        tmp_path / "o.csv",
        CertifySettings(identity="code", threat=threat, witness=tmp_path / "w.csv"),
    )
    assert list(read(tmp_path / "w.csv").columns) == ["code", "row", "label", "new_label", "change", "x", "job"]


@pytest.mark.parametrize("asked", [{"tolerance": 5.0}, {"radius": 0.1}])
def test_numbers_have_the_id_too(asked: dict[str, float], regressor: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "new.csv", tmp_path / "out.csv"
    make_prices(N).assign(code=[f"={code}" for code in CODES]).to_csv(data, index=False)
    certify_file(regressor, data, out, CertifySettings(identity="code", keep=["price"], safe_csv=True, **asked))  # type: ignore[arg-type]
    written = read(out)
    results = ["row", "value", "radius"] if "tolerance" in asked else ["row", "value", "low", "high"]
    assert list(written.columns) == ["code", *results, "price"]
    assert written["code"].tolist() == [f"'={code}" for code in CODES]
    assert written["price"].tolist() == make_prices(N)["price"].tolist()
    assert audit_file(regressor, data, out, rows=3)["passed"]


def test_a_model_without_names_knows_its_columns_beside_an_id(tmp_path: Path) -> None:
    frame = make_frame(N)
    save(StumpClassifier(noise=0.25).fit(frame[["x"]].to_numpy(), frame["label"]), tmp_path / "model.json")
    frame[["name", "x", "day"]].to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    certify_file(tmp_path / "model.json", tmp_path / "new.csv", out, CertifySettings(identity="name", keep=["day"]))
    assert read(out)["name"].tolist() == frame["name"].tolist()
    assert audit_file(tmp_path / "model.json", tmp_path / "new.csv", out, rows=3)["passed"]


@pytest.mark.parametrize("name", ["label", "row", "verdict", "runner_up"])
def test_a_column_that_is_called_like_a_result_is_refused(name: str, model: Path, tmp_path: Path) -> None:
    for asked in ({"identity": name}, {"keep": [name]}):
        with pytest.raises(ValueError, match=rf"'{name}' cannot be copied, because the output has .*: rename it"):
            certify_file(model, write(tmp_path, **{name: 1}), tmp_path / "out.csv", CertifySettings(**asked))  # type: ignore[arg-type]


def test_a_column_that_is_not_there_is_refused_with_the_nearest(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no column 'cod'. Did you mean 'code'\?"):
        certify_file(model, write(tmp_path), tmp_path / "out.csv", CertifySettings(identity="cod"))


def test_types_of_parquet_are_kept_and_lists_are_refused(model: Path, tmp_path: Path) -> None:
    frame = make_frame(N)
    columns = {"x": frame["x"], "job": frame["job"], "big": [2**60 + row for row in range(N)]}
    dates = pa.array(pd.date_range("2026-01-01", periods=N).date)
    table = pa.table({**columns, "when": dates, "list": [[1]] * N})
    pq.write_table(table, tmp_path / "new.parquet")
    certify_file(
        model, tmp_path / "new.parquet", tmp_path / "out.parquet", CertifySettings(identity="big", keep=["when"])
    )
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column("big").to_pylist() == table.column("big").to_pylist()
    assert written.column("when").type == dates.type
    certify_file(model, tmp_path / "new.parquet", tmp_path / "out.csv", CertifySettings(identity="big", keep=["when"]))
    assert read(tmp_path / "out.csv")["when"].tolist()[0] == "2026-01-01"
    with pytest.raises(ValueError, match=r"column 'list', holds list.* which cannot be copied"):
        certify_file(model, tmp_path / "new.parquet", tmp_path / "out.parquet", CertifySettings(keep=["list"]))
