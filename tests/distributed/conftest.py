"""A table in parts, and a cluster of two worker processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'derand[dask]'")
pytest.importorskip("distributed", reason="Dask's scheduler is not installed: pip install 'derand[dask]'")


def make_table(n_rows: int, seed: int = 0) -> Any:
    """Mixed columns with gaps, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(size=n_rows).round(3),
            "count": rng.integers(0, 9, n_rows).astype(float),
            "job": rng.choice(["clerk", "cook", "none"], n_rows),
            "age": rng.exponential(size=n_rows).round(2),
        }
    )
    score = frame["amount"] + (frame["job"] == "cook") + 0.5 * np.minimum(frame["age"], 2)
    frame["bad"] = np.where(score + rng.normal(size=n_rows) * 0.5 > 1, "yes", "no")
    frame.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n_rows) < 0.05, "job"] = None
    return frame


@pytest.fixture(scope="session")
def frame() -> Any:
    return make_table(2_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three Parquet files of rows."""
    place = tmp_path / "data"
    place.mkdir()
    for at in range(3):
        make_table(400, seed=at).to_parquet(place / f"part-{at}.parquet", row_group_size=150)
    return place


@pytest.fixture(scope="package")  # not longer: idle workers keep a core busy beside all other tests
def cluster() -> Iterator[Any]:
    pytest.importorskip("cryptography", reason="Keys of TLS need cryptography: pip install 'derand[dask]'")
    from derand.distributed import connect

    with connect(workers=2) as client:
        yield client
