"""Worst cases that are kept: within a budget of memory, whoever makes them at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from derand import Gaussian, certify
from derand.certificates.bounds import worst_case as _worst
from tests.certificates.test_duels import draw_model, draw_rows


def test_tables_stay_within_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that certify several models side by side, with room for few tables, say what one thread says."""
    rng = np.random.default_rng(1)
    models, rows = [draw_model(rng, 4) for _ in range(4)], draw_rows(rng, 20)
    expected = [certify(model, rows, Gaussian(0.4), rule="mean").radius for model in models]
    monkeypatch.setattr(_worst, "_MOST_BYTES", 200_000)
    monkeypatch.setattr(_worst, "_KEPT", 2)
    fresh = [type(model)(model.terms, model.decision, model.n_features) for model in models] * 3
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: certify(one, rows, Gaussian(0.4), rule="mean", n_jobs=2).radius, fresh))
    for at, radius in enumerate(found):
        assert np.array_equal(radius, expected[at % 4])
    kept = [owner().kept[key] for (_, key), owner in _worst._shelf.items() if owner() and key in owner().kept]  # type: ignore[union-attr]
    sizes = {id(array): array.nbytes for case in kept for array in case.list_arrays()}
    assert sum(sizes.values()) < 2_000_000  # what the last ones made since they were last counted comes on top
