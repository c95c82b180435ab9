"""`derand certify` of many files and of streams."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from derand import StumpClassifier, save
from derand.cli import main
from tests.distributed.conftest import make_table


@pytest.fixture
def model(tmp_path: Path) -> Path:
    frame = make_table(500)
    save(StumpClassifier().fit(frame.drop(columns="bad"), frame["bad"]), tmp_path / "model.json")
    return tmp_path / "model.json"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def test_a_pattern_goes_into_a_folder(model: Path, folder: Path, tmp_path: Path, cluster: Any, capsys: Any) -> None:
    options = ["-o", tmp_path / "out", "--scheduler", cluster.scheduler.address]
    assert run("certify", model, folder / "*.parquet", *options) == 0
    assert "1,200" in capsys.readouterr().out
    assert run("certify", model, folder / "*.parquet", *options, "--resume", "--json") == 0
    assert json.loads(capsys.readouterr().out)["done_before"] == 3
    (folder / "part-1.parquet").write_bytes(b"damaged")
    (tmp_path / "out" / "part-1.parquet").unlink()
    assert run("certify", model, folder / "*.parquet", *options, "--resume") == 2
    assert "part-1.parquet is not a Parquet file" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--target", "bad"], ["--witness", "flips.csv"], ["--radius", "0.1"]])
def test_options_of_one_file(model: Path, folder: Path, tmp_path: Path, option: list[str], capsys: Any) -> None:
    assert run("certify", model, folder, "-o", tmp_path / "out", *option) == 2
    assert option[0] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_stream_gives_what_a_file_gives(model: Path, tmp_path: Path, monkeypatch: Any, capfdbinary: Any) -> None:
    frame = make_table(300, seed=3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert run("certify", model, tmp_path / "rows.csv", "-o", tmp_path / "out.csv", "--id", "job") == 0
    capfdbinary.readouterr()
    out = io.BytesIO()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "rows.csv").read_bytes())))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out))
    assert run("certify", model, "-", "-o", "-", "--id", "job") == 0
    assert out.getvalue() == (tmp_path / "out.csv").read_bytes()
    assert run("certify", model, "-", "-o", "-", "--json") == 2
