"""Numbers as answers: error, width of certified intervals and attacks on them, on measured and generated data.

Owns the table of `python -m experiments regression` and its plot. Must not know how anything is certified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from derand._core.arrays import FloatArray
from derand.estimators import AdditiveRegressor, CertifiedRegressor, StumpRegressor

RADII = (0.05, 0.1, 0.25, 0.5)
"""In deviations of the columns."""
DATASETS = ("diabetes", "friedman1")
FOLDS = 5
ATTACKED_ROWS = 20
_CURVE = (0.0, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

OURS: Mapping[str, Mapping[str, Any]] = {
    "stumps, median": {"kind": StumpRegressor, "noise": "gaussian:0.5"},
    "stumps, mean": {"kind": StumpRegressor, "noise": "gaussian:0.5", "rule": "mean"},
    "additive, no noise": {"kind": AdditiveRegressor, "radius": 0.0},
    "additive, smoothed": {"kind": AdditiveRegressor, "radius": 0.0, "noise": "gaussian:0.25"},
    "additive, for 0.25": {"kind": AdditiveRegressor, "radius": 0.25},
    "additive, for 0.5": {"kind": AdditiveRegressor, "radius": 0.5},
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: means over folds."""

    dataset: str
    model: str
    rmse: float
    widths: tuple[float, ...]
    """Mean width of intervals at RADII; empty for a model without certificates."""
    attacked: int
    left: int
    """Attacks that left their interval; must be 0."""
    reached: float
    """Which share of their interval attacks spanned, in the median, at a radius of 0.25."""


def compare_regressors(datasets: Sequence[str] = DATASETS, attacked: int = ATTACKED_ROWS) -> Iterator[Line]:
    """The lines of the table, one after the other."""
    for dataset in datasets:
        X, y = load_table(dataset)
        for name, make in (("ridge", _make_ridge), ("boosted trees", HistGradientBoostingRegressor)):
            errors = []
            for train, test in _split(X):
                model = make().fit(X[train], y[train])
                errors.append(np.mean((model.predict(X[test]) - y[test]) ** 2))
            yield Line(dataset, name, float(np.sqrt(np.mean(errors))), (), 0, 0, float("nan"))
        for name in OURS:
            yield measure(dataset, name, X, y, attacked)


def load_table(dataset: str) -> tuple[FloatArray, FloatArray]:
    """Rows and numbers: scikit-learn's diabetes, or the additive and interacting columns of Friedman's first table."""
    if dataset == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    else:
        X, y = make_friedman1(n_samples=1000, n_features=10, noise=1.0, random_state=0)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)


def measure(dataset: str, name: str, X: FloatArray, y: FloatArray, attacked: int = ATTACKED_ROWS) -> Line:
    """Error, widths and attacks of one model, rows left out by cross-validation."""
    errors, widths, shares = [], [], []
    left = tried = 0
    for fold, (train, test) in enumerate(_split(X)):
        reg = make_regressor(name).fit(X[train], y[train])
        found = [reg.certify_interval(X[test], radius) for radius in RADII]
        errors.append(np.mean((found[0].value - y[test]) ** 2))
        widths.append([float(one.width.mean()) for one in found])
        if fold == 0 and attacked:
            some = test[:attacked]
            attacks, own = reg.attack_interval(X[some], 0.25), found[RADII.index(0.25)][:attacked]
            left += int(attacks.find_outside(own).sum())
            tried += some.size
            shares += ((attacks.high - attacks.low) / np.maximum(own.width, 1e-300)).tolist()
    rmse, mean = float(np.sqrt(np.mean(errors))), tuple(np.mean(widths, axis=0).tolist())
    return Line(dataset, name, rmse, mean, tried, left, float(np.median(shares)) if shares else float("nan"))


def make_regressor(name: str) -> CertifiedRegressor:
    """One of OURS, not fitted; radii count in deviations."""
    options = dict(OURS[name])
    regressor: CertifiedRegressor = options.pop("kind")(scaling="standard", **options)
    return regressor


def plot_widths(path: Path, datasets: Sequence[str] = DATASETS) -> None:
    """Draw the mean width over the radius of every model, trained on four fifths of each table, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(datasets), 4), layout="constrained")
    for place, dataset in enumerate(datasets, 1):
        X, y = load_table(dataset)
        train, test = next(_split(X))
        axes = figure.add_subplot(1, len(datasets), place)
        for name in OURS:
            reg = make_regressor(name).fit(X[train], y[train])
            axes.plot(_CURVE, [reg.certify_interval(X[test], radius).width.mean() for radius in _CURVE], label=name)
        axes.axhline(float(y.std()), color="grey", linestyle=":", label="deviation of the target")
        axes.set(title=dataset, xlabel="radius (l2, in deviations)", ylabel="mean width of the interval")
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def _split(X: FloatArray) -> Iterator[tuple[Any, Any]]:
    yield from KFold(FOLDS, shuffle=True, random_state=0).split(X)


def _make_ridge() -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-2, 1e3, 11)))
