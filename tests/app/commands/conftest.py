"""A table and a model for the commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer

from derand.app.run import _starting
from tests.app.commands.running import run
from tests.app.jobs.tables import make_loans, make_prices


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, tables of prices, and a model of each, for copies: most tests only read them."""
    folder = tmp_path_factory.mktemp("made")
    bundle: Any = load_breast_cancer(as_frame=True)
    frame = bundle.data.iloc[:, :6].assign(
        size=bundle.data["mean area"].gt(600).map({True: "large", False: "small"}),
        constant=1,
        label=bundle.target.map({0: "malignant", 1: "benign"}),
    )
    frame.to_csv(folder / "data.csv", index=False)
    make_prices().to_csv(folder / "prices.csv", index=False)
    labels = ("--target", "label", "-o", folder / "model.json", "--model", "stumps")
    assert run("train", folder / "data.csv", *labels).exit_code == 0
    numbers = ("--target", "price", "-o", folder / "regressor.json", "--regularization", "1", "--radius", "0.1")
    assert run("train", folder / "prices.csv", *numbers).exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def quick_init(monkeypatch: pytest.MonkeyPatch) -> None:
    """`derand init` tunes nothing, which takes seconds; tests of `_starting` see to that."""
    monkeypatch.setattr(_starting, "propose_radius", lambda read: _starting.Proposal(0.25, "not tried"))


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "data.csv", tmp_path))


@pytest.fixture
def model(data: Path, made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "model.json", tmp_path))


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    make_loans().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


@pytest.fixture
def prices(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "prices.csv", tmp_path))


@pytest.fixture
def regressor(prices: Path, made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "regressor.json", tmp_path))
