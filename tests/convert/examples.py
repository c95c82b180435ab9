"""What tests of boosters share: a category table as libraries take it, and certificates of imported models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from derand import Threat, from_model
from derand.storage import load, save
from experiments.importing import compare_examples

SINGLE_ERROR = 1e-3
"""What a few dozen additions in single precision may lose at most."""


def as_categories(like: Any) -> Any:
    """A function that gives a decoded table the category types of another; what these do not have becomes missing."""
    values = {name: set(like[name].cat.categories) for name, kind in like.dtypes.items() if kind.name == "category"}

    def cast(table: Any) -> Any:
        known = {
            name: table[name].where(table[name].isin(own)).astype(like[name].dtype) for name, own in values.items()
        }
        return table.assign(**known)

    return cast


def require_example(name: str) -> None:
    """The example model of a library stands draws, attacks and audits."""
    (found,) = compare_examples([name], probes=1_000, rows=5, draws=2_000)
    assert found.difference <= found.allowed
    assert found.wrong == 0
    assert found.flips == 0
    assert found.proven
    assert found.deviation < 5


def require_limits(model: Any, X: Any, column: str, folder: Path) -> None:
    """A certificate under limits in the user's own frame, which a file keeps."""
    imported = from_model(model)
    threat = Threat(norm=None, limits={column: "5%"})
    certificates = imported.certify(X, threat=threat)
    np.testing.assert_array_equal(certificates.label, np.asarray(model.predict(X)).ravel())
    save(imported, folder / "kept.json")
    again = load(folder / "kept.json").certify(X, threat=threat)
    np.testing.assert_array_equal(again.radius, certificates.radius)
