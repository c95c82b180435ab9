"""derand beside Veritas on trees of any depth: whether each row holds within limits, and the time for it.

Owns the task and what counts as agreement. Must not know how figures are printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derand import Threat, from_model
from derand._core.arrays import FloatArray
from derand.certificates.bounds.trees import FLIPS, HOLDS, decide_within
from derand.model import Contrast
from derand.perturbation import Perturbation, resolve
from experiments.datasets import load
from experiments.importing.frames import split_rows
from experiments.peers._veritas import make_addtree, search_signs

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "deep": {"max_depth": 8, "n_estimators": 500, "learning_rate": 0.1},
}
"""Of XGBoost: as it is, and 500 trees of depth 8."""
_BUDGET, _REPEATS, _TIMES = 20_000, 3, 64


def compare_limits(dataset: str, settings: str, limit: float, rows: int) -> dict[str, float | None]:
    """Verdicts of derand and of Veritas for the same trees within limits of numbers, and microseconds per row.

    Categories are codes in columns that do not change. Rows and limits are rounded to single precision for Veritas, as
    XGBoost rounds them. `rows_differ` of the rows that both decide. Times are of one thread: of the search alone the
    mean of all rows at once, and the median of rows by themselves, 64 times each; of `predict` and of the public call
    means; of Veritas medians, of its search as it is called and of trees cut down to each box first. Ratios are of
    medians.
    """
    try:
        import xgboost
    except ImportError as error:
        raise ValueError("This needs xgboost, which is not installed: pip install --group peers.") from error
    data = load(dataset)
    train, test = split_rows(data.y)
    X = _encode(data.X, data.categorical)
    fitted = xgboost.XGBClassifier(n_jobs=1, **SETTINGS[settings]).fit(X[train], data.y[train])
    few, model = X[test][:rows], from_model(fitted, n_jobs=1)
    threat = Threat(norm=None, limits={"*": f"{100 * limit:g}%"}, frozen=tuple(data.categorical))
    asked, (contrast,) = resolve(threat, model.ensemble_, None), model.ensemble_.contrasts()
    label = fitted.predict(few).astype(np.int64)
    found, seconds = _time(lambda: decide_within(contrast, few, label == 1, asked, _BUDGET, 1))
    _, whole = _time(lambda: model.certify(few, threat=threat))
    _, predicting = _time(lambda: fitted.predict(few))
    low, high = (end.astype(np.float32).astype(np.float64) for end in asked.box(few))
    addtree = make_addtree(fitted)
    theirs, pruned = (search_signs(addtree, low, high, label, is_pruned=one) for one in (False, True))
    holds, flips = found.status == HOLDS, found.status == FLIPS
    both = (holds | flips) & (theirs.holds | theirs.flips)
    alone = [_time_row(contrast, few[at], label[at] == 1, asked) for at in range(len(few))]
    cost = 1e6 * float(np.median(alone))
    median, median_pruned = (1e6 * float(np.median(one.seconds)) for one in (theirs, pruned))
    return {
        "rows": len(few),
        "rows_hold": int(holds.sum()),
        "rows_flip": int(flips.sum()),
        "rows_undecided": int((~holds & ~flips).sum()),
        "rows_veritas_undecided": int((~theirs.holds & ~theirs.flips).sum()),
        "rows_differ": int((holds != theirs.holds)[both].sum()),
        "rows_veritas_forms_differ": int((theirs.holds != pruned.holds).sum()),
        "derand_microseconds": cost,
        "derand_microseconds_mean": 1e6 * seconds / len(few),
        "derand_microseconds_certify": 1e6 * whole / len(few),
        "xgboost_microseconds_predict": 1e6 * predicting / len(few),
        "veritas_microseconds": median,
        "veritas_microseconds_pruned": median_pruned,
        "ratio": median / cost,
        "ratio_pruned": median_pruned / cost,
    }


def _time_row(contrast: Contrast, row: FloatArray, is_one: bool, asked: Perturbation) -> float:
    """Processor time of a row, of many equal ones at once."""
    rows, labels = np.tile(row, (_TIMES, 1)), np.full(_TIMES, is_one)
    started = time.process_time()
    decide_within(contrast, rows, labels, asked, _BUDGET, 1)
    return (time.process_time() - started) / _TIMES


def _time(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the processor time of the fastest of several runs after a first one."""
    found, seconds = work(), []
    for _ in range(_REPEATS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return found, min(seconds)


def _encode(X: Any, categorical: tuple[int, ...]) -> FloatArray:
    """Categories as codes; all numbers in single precision."""
    columns = [
        np.unique(X[:, at].astype(str), return_inverse=True)[1] if at in categorical else X[:, at]
        for at in range(X.shape[1])
    ]
    return np.stack([np.asarray(one, dtype=np.float32) for one in columns], axis=1).astype(np.float64)
