"""`derand certify` of many files and of streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from derand import StumpClassifier, save
from derand.app.commands import app
from tests.app.commands.running import MAIN, RUNNER, run
from tests.distributed.conftest import make_table


@pytest.fixture
def model(tmp_path: Path) -> Path:
    frame = make_table(500)
    save(StumpClassifier().fit(frame.drop(columns="bad"), frame["bad"]), tmp_path / "model.json")
    return tmp_path / "model.json"


def test_a_pattern_goes_into_a_folder(model: Path, folder: Path, tmp_path: Path, cluster: Any) -> None:
    asked = ["certify", model, folder / "*.parquet", "-o", tmp_path / "out", "--scheduler", cluster.scheduler.address]
    first = run(*asked)
    assert first.exit_code == 0
    assert "1,200" in first.output
    assert json.loads(run(*asked, "--resume", "--json").stdout)["done_before"] == 3
    (folder / "part-1.parquet").write_bytes(b"damaged")
    (tmp_path / "out" / "part-1.parquet").unlink()
    again = run(*asked, "--resume")
    assert again.exit_code == 2
    assert "part-1.parquet is not a Parquet file" in again.stderr


@pytest.mark.parametrize("option", [["--witness", "flips.csv"], ["--radius", "0.1"]])
def test_options_of_one_file(model: Path, folder: Path, tmp_path: Path, option: list[str]) -> None:
    result = run("certify", model, folder, "-o", tmp_path / "out", *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr
    assert not (tmp_path / "out").exists()


def test_many_files_with_a_target_are_summed_up(model: Path, folder: Path, tmp_path: Path) -> None:
    done = run("certify", model, folder, "-o", tmp_path / "out", "--target", "bad", "--workers", "1", "--json")
    found = json.loads(done.stdout)
    whole = pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
    whole.to_csv(tmp_path / "whole.csv", index=False)
    alone = json.loads(
        run("certify", model, tmp_path / "whole.csv", "-o", tmp_path / "a.csv", "--target", "bad", "--json").stdout
    )
    assert found["scores"]["accuracy"] == alone["accuracy"]
    for one in alone["certified_accuracy"]:
        assert found["scores"][f"certified_accuracy_at_{one['radius']:g}"] == one["share"]
    shown = run("certify", model, folder, "-o", tmp_path / "again", "--target", "bad", "--workers", "1")
    assert " right and certified at 0.25" in shown.output


def test_a_stream_gives_what_a_file_gives(model: Path, tmp_path: Path) -> None:
    make_table(300, seed=3).to_csv(tmp_path / "rows.csv", index=False)
    assert run("certify", model, tmp_path / "rows.csv", "-o", tmp_path / "out.csv", "--id", "job").exit_code == 0
    asked = ["certify", str(model), "-", "-o", "-"]
    found = RUNNER.invoke(app, [*asked, "--id", "job"], input=(tmp_path / "rows.csv").read_bytes())
    assert found.stdout_bytes == (tmp_path / "out.csv").read_bytes()
    refused = RUNNER.invoke(app, [*asked, "--json"], input=b"age\n1\n")
    assert refused.exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_stopped_can_be_gone_on_with(model: Path, tmp_path: Path, stop: signal.Signals, code: int) -> None:
    """As Ctrl-C does, the signal goes to all processes, after one of many files; no process and no draft stays."""
    table = make_table(100, seed=0).to_csv(index=False)
    for at in range(120):
        (tmp_path / f"rows-{at}.csv").write_text(table)
    out = tmp_path / "out"
    asked = ["certify", str(model), str(tmp_path / "rows-*.csv"), "-o", str(out), "--workers", "2"]
    with subprocess.Popen([*MAIN, *asked], stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        while job.poll() is None and not list(out.glob("rows-*.json")):
            time.sleep(0.01)
        os.killpg(job.pid, stop)
        errors = job.communicate()[1]  # to its end: no process that could write to it is left
    assert job.returncode == code, errors
    assert len(errors.splitlines()) == 1
    assert not list(out.glob(".*"))
    done = len(list(out.glob("rows-*.json")))
    assert done < 120
    again = json.loads(run(*asked, "--resume", "--json").stdout)
    assert (again["files"], again["done_before"], again["failed"]) == (120, done, {})


def test_a_scheduler_that_is_not_there_leaves_no_folder(model: Path, folder: Path, tmp_path: Path) -> None:
    """The same command works once the scheduler does; no workers at all are refused."""
    out = tmp_path / "out"
    assert run("certify", model, folder, "-o", out, "--scheduler", "nowhere").exit_code == 2
    assert not out.exists()
    assert run("certify", model, folder, "-o", out, "--workers", "0").exit_code == 2
    assert not out.exists()
