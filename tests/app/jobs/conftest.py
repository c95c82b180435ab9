"""A table and a model for the jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from derand.app.jobs import train_file
from tests.app.jobs.tables import make_frame, make_prices


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    make_frame().to_csv(path)  # with pandas' nameless index column
    return path


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    train_file(data, "label", tmp_path / "model.json", model="stumps", categorical=["floor"])
    return tmp_path / "model.json"


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    make_prices().to_csv(path, index=False)
    return path


@pytest.fixture
def regressor(prices: Path, tmp_path: Path) -> Path:
    train_file(prices, "price", tmp_path / "regressor.json", regularization=1.0, radius=0.1)
    return tmp_path / "regressor.json"
