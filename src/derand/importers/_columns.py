"""What libraries of scikit-learn's habits say of the columns of their tables. Must not know any library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from derand.frames import TableEncoding


def read_encoding(model: Any, categories: Mapping[int, tuple[Any, ...]] | None = None) -> TableEncoding:
    """Number and names of the columns that a fitted model of scikit-learn's habits was trained on."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    names = getattr(model, "feature_names_in_", None)
    return TableEncoding(
        int(model.n_features_in_), None if names is None else tuple(map(str, names)), dict(categories or {})
    )
