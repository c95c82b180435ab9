"""The benchmark of a page opens a real one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from experiments._browser import CHROMIUM
from experiments.bench import BENCHES
from experiments.bench._page import bench_page


def test_figures_are_those_of_a_page_with_all_rows() -> None:
    pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.is_file():
        pytest.skip(f"{CHROMIUM} is missing")
    assert BENCHES["page"] is bench_page
    with ThreadPoolExecutor(1) as pool:  # a browser of other tests may be open in this thread
        found = pool.submit(bench_page, n_rows=2_100, n_columns=2, n_loads=1).result()
    assert found["rows"] == 2_100
    assert found["page_bytes"] > 100_000
    assert found["load_seconds"] == found["slowest_load_seconds"] > 0
    assert found["heap_bytes"] > 100_000
