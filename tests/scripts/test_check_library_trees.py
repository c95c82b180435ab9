"""The check of libraries' small models at every cell: all is well, and a fault is found."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from scripts import check_library_trees

LIBRARIES = ("xgboost", "lightgbm", "catboost", "sklearn", "interpret")


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_claim_is_wrong(library: str) -> None:
    """The share of the usual tests; the whole is the script."""
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    seen: Counter[str] = Counter()
    assert check_library_trees.check_many(library, range(8), seen) == []
    assert seen["models"] == 8
    assert seen["trees"] > 2
    assert seen["witnesses"] > 0


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables in which a number is another one."""
    decode = check_library_trees.decode

    def decode_wrongly(points: np.ndarray, model: object) -> pd.DataFrame:
        table = decode(points, model)
        return table.assign(whole=-table["whole"])

    monkeypatch.setattr(check_library_trees, "decode", decode_wrongly)
    assert check_library_trees.check_many("sklearn", range(12), Counter())
