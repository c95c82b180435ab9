"""What holds for every dataset, wherever it comes from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand.datasets import Dataset


class Known(NamedTuple):
    """Counts that are known of a dataset, and the name of class 1."""

    rows: int
    features: int
    categorical: int
    rows_of_class_1: int
    training_rows: int
    test_rows: int
    class_1: str


def check_dataset(data: Dataset, known: Known) -> None:
    """Rows, columns, classes and the split are those that are known, and every cell has its type."""
    assert data.X.shape == (known.rows, known.features) == (len(data.y), len(data.feature_names))
    assert len(data.categorical) == known.categorical
    assert set(data.y) == set(range(len(data.target_names)))
    assert (data.y == 1).sum() == known.rows_of_class_1
    assert data.target_names[1] == known.class_1
    assert (len(data.split.train), len(data.split.test)) == (known.training_rows, known.test_rows)
    assert not np.intersect1d(*data.split).size
    assert np.isfinite(data.X[:, list(data.numerical)].astype(float)).all()
    assert {type(value) for value in data.X[:, list(data.categorical)].ravel()} <= {str}
    assert len(data.provenance) > 20
