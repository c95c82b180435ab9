"""A table and a model for the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer

from tests.cli.running import run
from tests.jobs.tables import make_loans, make_prices


@pytest.fixture
def data(tmp_path: Path) -> Path:
    bundle: Any = load_breast_cancer(as_frame=True)
    frame = bundle.data.iloc[:, :6].assign(
        size=bundle.data["mean area"].gt(600).map({True: "large", False: "small"}),
        constant=1,
        label=bundle.target.map({0: "malignant", 1: "benign"}),
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    assert run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--model", "stumps").exit_code == 0
    return tmp_path / "model.json"


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    make_loans().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    make_prices().to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path / "prices.csv"


@pytest.fixture
def regressor(prices: Path, tmp_path: Path) -> Path:
    path = tmp_path / "regressor.json"
    options = ("--regularization", "1", "--radius", "0.1")
    assert run("train", prices, "--target", "price", "-o", path, *options).exit_code == 0
    return path
