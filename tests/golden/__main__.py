"""Trains the models of the golden set and finds their values by the exact oracle: `python -m tests.golden`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, Noise, RobAdaBoostClassifier, RobTreeBoostClassifier, StumpClassifier
from derand.datasets import load, make_loans
from derand.noise import NOISES
from tests.certificates.test_golden import apply_published_rule, build_joint, build_stumps
from tests.golden import FOLDER
from tests.oracle import find_truth

N_ROWS = 12
SCALES = {"l1": ("uniform", 0.3), "l2": ("gaussian", 0.12), "laplace": ("laplace", 0.1)}
"""Noise and scale by the end of a name."""
BUDGETS = [0, 1, 2, 3]

Numbers = dict[str, Any]


def make_all() -> Iterator[tuple[str, dict[str, Any], Numbers]]:
    """Every model with its numbers, one after the other."""
    for data in ("breast_cancer", "wine", "iris"):
        for end, (kind, scale) in SCALES.items():
            X, y, rows, labels = _divide(data)
            noise = NOISES[kind](scale)
            fitted = StumpClassifier(noise=noise, class_weight="balanced").fit(X, y)
            stumps = _list_stumps(fitted.ensemble_)
            yield _finish(f"own_independent_{data}_{end}", stumps, rows, labels, noise)
            if end != "laplace" and data != "iris":
                boosted = RobTreeBoostClassifier(noise=noise, n_estimators=8, class_weight="balanced").fit(X, y)
                found = boosted.stump_features_, boosted.stump_thresholds_, boosted.stump_left_, boosted.stump_right_
                yield _finish(f"own_boosted_{data}_{end}", _round_stumps(*found), rows, labels, noise)
    for end in ("l1", "l2"):
        yield _make_vote(end)
        yield _make_joint(end)


def _divide(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and some test rows, in ranges of the training rows."""
    parts = load(f"sklearn_{data}").divide(scaling="range")
    some = np.linspace(0, len(parts.X_test) - 1, N_ROWS).astype(int)
    return parts.X_train, parts.y_train, parts.X_test[some], parts.y_test[some]


def _round_stumps(*columns: Any) -> list[list[float]]:
    """Feature, threshold and leaves in hundredths of each stump."""
    return [
        [int(feature), float(threshold), round(100 * float(left)), round(100 * float(right))]
        for feature, threshold, left, right in zip(*columns, strict=True)
    ]


def _list_stumps(model: AdditiveEnsemble) -> list[list[float]]:
    """The stumps of a model with one for each feature."""
    terms = [(term.feature, float(term.edges[0]), *term.scores[:, 0].tolist()) for term in model.step_functions]
    return [[feature, edge, left, right] for feature, edge, left, right in terms]


def _finish(
    name: str, stumps: list[list[float]], rows: np.ndarray, labels: np.ndarray, noise: Noise
) -> tuple[str, dict[str, Any], Numbers]:
    """The numbers of a model of stumps alone."""
    ensemble = build_stumps(stumps, rows.shape[1])
    found = [find_truth(ensemble, row, noise, [0])[0] for row in rows.tolist()]
    numbers = {
        "rows": rows.tolist(),
        "label": labels.tolist(),
        "pred": [truth.label for truth in found],
        "q_acc": [float(truth.failure) for truth in found],
        "radius_acc": [float(truth.radius(noise)) for truth in found],
    }
    return name, {"stumps": stumps, "noise": noise.name, "scale": noise.magnitude}, numbers


def _make_vote(end: str) -> tuple[str, dict[str, Any], Numbers]:
    """A vote, with the radius of the published rule: members that miss the true label count as 0."""
    X, y, rows, labels = _divide("breast_cancer")
    noise = NOISES[SCALES[end][0]](SCALES[end][1])
    fitted = RobAdaBoostClassifier(noise=noise, n_estimators=5, class_weight="balanced").fit(X, y).ensemble_
    members = [_finish("", _list_stumps(member), rows, labels, noise) for member in fitted.members]
    radii = np.array([numbers["radius_acc"] for _, _, numbers in members])
    right = np.array([numbers["pred"] for _, _, numbers in members]) == labels
    held, weights = np.where(right, radii, 0.0), fitted.weights
    model = {"noise": noise.name, "scale": noise.magnitude}
    model["members"] = [
        {"stumps": member["stumps"], "weight": weight}
        for (_, member, _), weight in zip(members, weights.tolist(), strict=True)
    ]
    numbers = {
        "rows": rows.tolist(),
        "label": labels.tolist(),
        "weights": weights.tolist(),
        "q_acc": [numbers["q_acc"] for _, _, numbers in members],
        "member_radius": held.tolist(),
        "radius": apply_published_rule(held, weights).tolist(),
    }
    return f"own_adaboost_breast_cancer_{end}", model, numbers


def _make_joint(end: str) -> tuple[str, dict[str, Any], Numbers]:
    """A model with categories on a grid of 1/200, and the masses of true labels for every budget of changes."""
    data = make_loans(600)
    X = np.empty(data.X.shape)
    for at in range(X.shape[1]):
        is_text = at in data.categorical
        values = np.unique(data.X[:, at].astype(str), return_inverse=True)[1] if is_text else data.X[:, at]
        numbers = np.asarray(values, dtype=np.float64)
        X[:, at] = numbers if is_text else ((numbers - numbers.mean()) / numbers.std()).round(6)
    noise = NOISES[SCALES[end][0]](SCALES[end][1])
    fitted = StumpClassifier(noise=noise, levels=200, categorical_features=list(data.categorical))
    ensemble = fitted.fit(X[:500], data.y[:500]).ensemble_
    columns = zip(*_list_stumps(ensemble), strict=True)
    features, edges, left, right = (np.array(column) for column in columns)
    model: dict[str, Any] = {
        "noise": noise.name,
        "scale": noise.magnitude,
        "stumps": _round_stumps(features, edges, left / ensemble.levels, right / ensemble.levels),
        "tables": {
            str(table.feature): {
                str(int(code)): score / ensemble.levels
                for code, score in zip(table.categories.tolist(), table.scores[:, 0].tolist(), strict=True)
            }
            for table in ensemble.category_tables
        },
        "unseen": 0.5,
    }
    rows, labels = X[500 : 500 + 3 * N_ROWS], data.y[500 : 500 + 3 * N_ROWS]
    built = build_joint(model, rows.shape[1])
    found = [find_truth(built, row, noise, BUDGETS, unseen=False) for row in rows.tolist()]
    masses = [[float(truth.failures[label]) for truth in row] for row, label in zip(found, labels, strict=True)]
    numbers = {"rows": rows.tolist(), "label": labels.tolist(), "l0": BUDGETS, "fail_exact": masses}
    return f"own_joint_loans_{end}", model, numbers


def main() -> None:
    """Write one file per model."""
    for name, model, numbers in make_all():
        text = json.dumps({"model": model, "numbers": numbers}, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {len(numbers['rows'])} rows, {len(text):,} characters", flush=True)


if __name__ == "__main__":
    sys.exit(main())
