"""The service on loopback: it answers as the model does, refuses bad input with 422, and takes threads. No clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from measure import start, stop

import derand

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income = rng.lognormal(8, 0.5, 400).round()
    income[::7] = np.nan
    return pd.DataFrame({"income": income, "age": rng.integers(20, 70, 400), "job": rng.choice(["cook", "clerk"], 400)})


@pytest.fixture(scope="module")
def model(rows: pd.DataFrame) -> Any:
    truth = np.where(rows.income.fillna(3000) / 100 + (rows.job == "cook") * 10 > 38, "repaid", "default")
    return derand.AdditiveClassifier(noise="none").fit(rows, truth)


@pytest.fixture(scope="module")
def client(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("service")
    derand.save(model, folder / "model.json")
    (folder / "threat.toml").write_text('norm = "none"\n[limits]\nincome = "10%"\nage = 2\n')
    process, url = start(folder / "model.json", folder / "threat.toml")
    with httpx.Client(base_url=url, timeout=120) as found:
        yield found
    stop(process)


def as_row(rows: pd.DataFrame, at: int) -> dict[str, Any]:
    """A row as JSON has it: null for what is missing."""
    return {
        name: None if pd.isna(value) else getattr(value, "item", lambda value=value: value)()
        for name, value in rows.iloc[at].items()
    }


def test_answers_are_those_of_the_model(client: httpx.Client, model: Any, rows: pd.DataFrame) -> None:
    threat = derand.Threat(norm=None, limits={"income": "10%", "age": 2})
    certified = model.certify(rows, threat=threat)
    probabilities = model.predict_proba(rows)

    def ask(at: int) -> tuple[dict[str, Any], dict[str, Any]]:
        body = {"row": as_row(rows, at)}
        return client.post("/predict", json=body).json(), client.post("/certify", json=body).json()

    chosen = list(range(0, 40))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, chosen))
    for at, (predicted, answer) in zip(chosen, found, strict=True):
        assert predicted["label"] == certified.label[at]
        assert list(predicted["probabilities"].values()) == probabilities[at].tolist()
        assert answer["verdict"] == certified.verdict[at]
        if answer["changed_row"] is not None:
            assert client.post("/predict", json={"row": answer["changed_row"]}).json()["label"] == answer["other_label"]


def test_a_row_is_explained(client: httpx.Client, model: Any, rows: pd.DataFrame) -> None:
    body = {"row": as_row(rows, 1)}
    assert client.post("/explain", json=body).json()["text"] == str(model.explain(rows.iloc[1]))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"row": {"income": 1, "age": 30}}, "'job'"),
        ({"row": {"income": "a lot", "age": 30, "job": "cook"}}, "'income'"),
        ({"row": {"income": 1e400, "age": 30, "job": "cook"}}, ""),
        ({"row": {"income": 1, "age": None, "job": "cook"}}, "'age'"),
        ({"rows": []}, "Field required"),
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/certify", "/explain"])
def test_bad_input_is_refused(client: httpx.Client, path: str, body: dict[str, Any], said: str) -> None:
    text = str(body).replace("'", '"').replace("None", "null").replace("inf", "1e400")
    answer = client.post(path, content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert said in answer.text


def test_measures_are_printed(model: Any, rows: pd.DataFrame, tmp_path: Path) -> None:
    """The script that measures latencies runs, on few calls."""
    derand.save(model, tmp_path / "model.json")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = [sys.executable, HERE / "measure.py", tmp_path / "model.json", tmp_path / "rows.csv", "--calls", "20"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert found.returncode == 0, found.stderr
    assert "first call" in found.stdout
