"""derand beside Veritas: the exact linf radius of the same XGBoost stumps, on the same rows, and the time for it.

Owns the task and what counts as agreement. Must not know how figures are printed.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates import certify
from derand.model import AdditiveEnsemble
from derand.threat import Threat
from experiments.datasets import load
from experiments.peers._plain_linf import PlainRadii, find_linf_radii
from experiments.peers._veritas import (
    RELATIVE_TOLERANCE,
    SEARCH_GUARD,
    PeerRadii,
    make_addtree,
    merge_by_feature,
    search_radii,
)
from experiments.peers._xgboost import ROUNDING, convert_stumps

DATASETS = ("breast_cancer", "sklearn_breast_cancer", "adult")
N_TREES = 200


class Task(NamedTuple):
    """A trained classifier, and test rows: as they are, and rounded to single precision as XGBoost rounds them."""

    classifier: Any
    rows: FloatArray
    rounded: FloatArray
    margin: FloatArray


def compare_with_veritas(dataset: str, rows: int) -> dict[str, float | None]:
    """Radii and seconds per row of derand and Veritas for 200 stumps of XGBoost on a dataset's numerical columns.

    Columns are scaled to [0, 1] by the training rows, and rounded to single precision, because Veritas, unlike
    XGBoost, would compare the doubles.

    Parameters
    ----------
    dataset : str
        A key of `experiments.datasets.CATALOG`.
    rows : int
        Test rows to compare, from the first on; fewer where there are fewer.

    Returns
    -------
    dict
        Flat. `ratio` is Veritas' seconds per row to derand's; `merged_ratio` the same with Veritas' trees merged into
        one per feature. Each row is one of three: `rows_equal`, within Veritas' tolerance; `rows_within_score_error`,
        where single precision leaves open which of two radii is the deployed model's, and Veritas' is between them;
        `rows_unexplained`. Single precision leaves two radii open for `rows_of_two_radii`, of which derand gives the
        smaller one; Veritas adds in doubles and does not see them. `unrounded_rows_scored_otherwise` of the rows as
        they were before rounding have another output in Veritas' form of the model than in XGBoost;
        `unrounded_labels_differ` another label.
    """
    task = train_task(dataset, rows)
    model = convert_stumps(task.classifier, task.rows.shape[1])
    addtree = make_addtree(task.classifier)
    label = (task.margin > 0).astype(np.int64)
    certify_radius(model, task.rounded[:8])  # compiles, prepares
    seconds, radius = _time_best(model, task.rounded)
    plain = find_linf_radii(model, task.rounded)
    found = search_radii(addtree, task.rounded, label)
    merged = search_radii(merge_by_feature(addtree), task.rounded, label)
    return {
        "rows": len(label),
        "features": len(model.terms),
        "edges": sum(term.edges.size for term in model.step_functions),
        "score_error_in_margin": model.score_error / model.levels,
        **_list_times(seconds / len(label), found, merged),
        "median_radius": float(np.median(radius)),
        "labels_differ": int((plain.label != label).sum()),
        "gap_to_plain": _measure_gap(radius, plain.radius),
        **count_agreement(radius, plain, found, _tolerate(task.rounded, model)),
        "veritas_forms_differ": int((np.abs(found.upper - merged.upper) > RELATIVE_TOLERANCE * found.upper).sum()),
        **_count_unrounded(task, addtree, model.score_error / model.levels),
    }


def certify_radius(model: AdditiveEnsemble, rows: FloatArray) -> FloatArray:
    """derand's radius of each row, of the model as deployed and without noise."""
    return certify(model, rows, None, rule="mean", threat=Threat(norm=np.inf)).radius


def train_task(dataset: str, rows: int) -> Task:
    """200 stumps of XGBoost on the scaled numerical columns of the training part, and the first test rows.

    Parameters
    ----------
    dataset : str
    rows : int

    Returns
    -------
    Task
    """
    try:
        import xgboost
    except ImportError as error:
        raise ValueError("This needs xgboost, which is not installed: pip install --group peers.") from error
    data = load(dataset)
    parts = data.divide(scaling="range")
    columns = list(data.numerical)
    classifier = xgboost.XGBClassifier(n_estimators=N_TREES, max_depth=1, n_jobs=1, random_state=0)
    classifier.fit(parts.X_train[:, columns].astype(np.float64), parts.y_train)
    few = parts.X_test[:rows, columns].astype(np.float64)
    margin = classifier.get_booster().predict(xgboost.DMatrix(few), output_margin=True)
    return Task(classifier, few, few.astype(np.float32).astype(np.float64), margin.astype(np.float64))


def count_agreement(
    radius: FloatArray, plain: PlainRadii, found: PeerRadii, tolerance: float
) -> dict[str, float | None]:
    """How many rows have equal radii, how many differ because of single precision, and how many for no known reason.

    Parameters
    ----------
    radius : array of shape (n_rows,)
        derand's.
    plain : PlainRadii
        Between which radii the deployed model's lies.
    found : PeerRadii
    tolerance : float
        Absolute; Veritas' relative one comes on top, because its bounds are compared.

    Returns
    -------
    dict
    """
    is_equal = (found.lower <= radius + tolerance) & (radius <= found.upper + tolerance)
    is_open = (plain.radius <= found.upper + tolerance) & (found.lower <= plain.flipped + tolerance) & ~is_equal
    return {
        "rows_equal": int(is_equal.sum()),
        "rows_within_score_error": int(is_open.sum()),
        "rows_unexplained": int((~is_equal & ~is_open).sum()),
        "rows_of_two_radii": int((plain.radius != plain.flipped).sum()),
        "largest_gap_of_equal_rows": _measure_gap(radius[is_equal], found.upper[is_equal]),
        "rows_veritas_left_unfinished": int((~found.is_finished).sum()),
    }


def _list_times(seconds: float, found: PeerRadii, merged: PeerRadii) -> dict[str, float | None]:
    """Seconds per row, and how many times faster derand is."""
    return {
        "derand_seconds_per_row": seconds,
        "veritas_seconds_per_row": float(found.seconds.mean()),
        "veritas_seconds_of_slowest_row": float(found.seconds.max()),
        "ratio": float(found.seconds.mean()) / seconds,
        "veritas_merged_seconds_per_row": float(merged.seconds.mean()),
        "merged_ratio": float(merged.seconds.mean()) / seconds,
    }


def _tolerate(rows: FloatArray, model: AdditiveEnsemble) -> float:
    """An edge of the deployed model lies half a unit of single precision below XGBoost's threshold; and the guard."""
    largest = max(float(np.abs(term.edges).max()) for term in model.step_functions)
    return 2 * SEARCH_GUARD + ROUNDING * max(largest, float(np.abs(rows).max()))


def _count_unrounded(task: Task, addtree: Any, error: float) -> dict[str, float | None]:
    """Rows on which Veritas' form of the model is another one than XGBoost's, as long as nobody rounds them."""
    output = addtree.eval(task.rows)[:, 0]
    return {
        "unrounded_rows_scored_otherwise": int((np.abs(output - task.margin) > error).sum()),
        "unrounded_labels_differ": int(((output > 0) != (task.margin > 0)).sum()),
    }


def _measure_gap(first: FloatArray, second: FloatArray) -> float:
    """Largest difference; two infinities are equal."""
    is_different = first != second
    return float(np.abs(first[is_different] - second[is_different]).max(initial=0.0))


def _time_best(model: AdditiveEnsemble, rows: FloatArray, repeats: int = 5) -> tuple[float, FloatArray]:
    """Seconds of the fastest of several runs, and the radii."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        radius = certify_radius(model, rows)
        seconds.append(time.perf_counter() - started)
    return min(seconds), radius
