"""Default models of other libraries: what is proven about them holds of the library's own predictions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from derand import Certificates, Threat, audit, from_model
from derand.app.commands import app
from derand.auditing.trees import proofs
from derand.storage import save

xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
N_ROWS = 12
FEW = 500
"""Regions in which each of these claims is decided."""


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


def fit(table: tuple[np.ndarray, np.ndarray], **options: Any) -> Any:
    return xgboost.XGBClassifier(n_jobs=1, **options).fit(*table)


def draw_points(
    rng: np.random.Generator, low: np.ndarray, high: np.ndarray, edges: dict[int, np.ndarray]
) -> np.ndarray:
    """Points of a box, half of their numbers on edges or one double beside."""
    points = rng.uniform(low, high, (300, low.size))
    for at, own in edges.items():
        near = np.concatenate([own, np.nextafter(own, -np.inf), [low[at], high[at]]])
        near = near[(near >= low[at]) & (near <= high[at])]
        points[:150, at] = rng.choice(near, 150)
    return np.clip(points, low, high)


@pytest.mark.parametrize("limit", [0.01, 0.05])
def test_what_is_proven_of_a_default_xgboost_holds_of_its_predictions(
    limit: float, table: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is decided in few regions."""
    monkeypatch.setattr(proofs, "MOST_REGIONS", FEW)
    library = fit(table)
    clf, rows = from_model(library), table[0][:: len(table[0]) // N_ROWS]
    assert clf.ensemble_.has_trees
    threat = Threat(norm=None, limits={"*": f"{100 * limit:g}%"})
    n_rows, labels = len(rows), library.predict(rows)
    blank = np.full(n_rows, np.nan)
    claimed = Certificates(
        labels, blank, blank, np.full(n_rows, np.inf), threat, rule="mean", _proof=np.full(n_rows, 3, dtype=np.uint8)
    )
    found = audit(clf.ensemble_, rows, claimed)
    assert set(found.verdict) <= {"proven", "not proven"}
    assert (found.verdict == "proven").sum() > n_rows / 2
    rng = np.random.default_rng(0)
    edges = {axis.feature: axis.edges for term in clf.ensemble_.terms for axis in term.axes}
    for at in np.flatnonzero(found.verdict == "proven"):
        size = limit * np.abs(rows[at])
        points = draw_points(rng, rows[at] - size, rows[at] + size, edges)
        assert (library.predict(points) == labels[at]).all()


def test_certificates_of_a_small_xgboost_are_proven_in_python_and_from_files(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Verdicts and radii, and a radius that is too large."""
    X, y = table[0][::8, :6], table[1][::8]
    clf = from_model(fit((X, y), n_estimators=5, max_depth=2))
    assert clf.ensemble_.has_trees
    for threat in (Threat(norm=np.inf), Threat(norm=2), Threat(norm=None, limits={"*": "10%"})):
        certified = clf.certify(X, noise="none", rule="mean", threat=threat)
        assert (certified.radius > 0).any()
        assert clf.audit(X, certified, rows=None).passed
        if threat.norm is not None:
            at = np.flatnonzero(np.isfinite(certified.radius) & certified.is_exact)
            forged = replace(certified, radius=certified.radius * 1.001)[at]
            assert (clf.audit(X[at], forged, rows=None).claim == "radius").all()

    model, data, out = (str(tmp_path / name) for name in ("model.json", "data.csv", "certified.csv"))
    save(clf, model)
    pd.DataFrame(X, columns=[str(name) for name in clf.encoding_.names or range(6)]).to_csv(data, index=False)
    run = CliRunner().invoke
    made = run(app, ["certify", model, data, "-o", out, "--noise", "none", "--rule", "mean", "--norm", "inf"])
    assert made.exit_code == 0, made.output
    told = run(app, ["audit", model, data, out, "--rows", "0", "--json"])
    assert told.exit_code == 0, told.output
    summary = json.loads(told.output)
    assert summary["proven"] == len(X)
    assert "radius" in summary["checked"]
