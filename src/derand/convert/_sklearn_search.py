"""Searches of scikit-learn for the best settings: the model that was fitted with them is read."""

from __future__ import annotations

from typing import Any

from derand.convert._reading import Reading


def read(model: Any) -> Reading:
    """A fitted GridSearchCV or RandomizedSearchCV with `refit`."""
    from derand.convert import read_model

    if not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"`model` must be fitted, got a {type(model).__name__} that is not, or that did not fit its best settings "
            "anew: call `fit`, with refit=True."
        )
    return read_model(model.best_estimator_)
