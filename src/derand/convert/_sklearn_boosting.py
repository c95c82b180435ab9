"""GradientBoosting of scikit-learn: trees that compare in single precision, added up in doubles.

Owns what these models mean. Must not know how sums become shapes (`_trees`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.convert._additions import DOUBLE, bound_additions, read_sum
from derand.convert._columns import decode_rows, read_encoding
from derand.convert._reading import Reading
from derand.convert._sklearn_trees import CURE, grow
from derand.convert._trees import Node
from derand.tables import TableEncoding


def read(model: Any) -> Reading:
    """A fitted GradientBoostingClassifier or GradientBoostingRegressor."""
    encoding = read_encoding(model)
    if not hasattr(model, "estimators_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    classes = getattr(model, "classes_", None)
    n_outputs = model.estimators_.shape[1]
    if type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
        raise ValueError("`init` of the model is an estimator of its own, whose score is not read: use init=None.")
    if getattr(model.init_, "strategy", None) == "stratified":
        raise ValueError("`init` of the model draws its answers at random (strategy='stratified'): use init=None.")
    zero = np.zeros((1, encoding.n_features))
    base = np.asarray(model._raw_predict_init(zero), dtype=np.float64)[0]
    trees = [
        grow(tree.tree_, _weigh(float(model.learning_rate), output, n_outputs))
        for stage in model.estimators_
        for output, tree in enumerate(stage)
    ]
    link = "logit" if classes is not None and model.loss == "log_loss" else "none"
    return add_up(model, encoding, trees, base, link=link, n_additions=2 * len(trees) + 2, cure=CURE)


def add_up(
    model: Any,
    encoding: TableEncoding,
    trees: Sequence[Node],
    base: FloatArray,
    *,
    link: str,
    n_additions: int,
    cure: str,
) -> Reading:
    """A boosted model whose raw score is a start and the sum of trees, in doubles.

    `model`: its decision function, or what it predicts where it has no classes, is the raw score; `base` (n_outputs,):
    the scores that it starts from; `link`, `cure`: as of Reading and of `sum_trees`; `n_additions`: how many times the
    library rounds.
    """
    classes = getattr(model, "classes_", None)

    def raw_scores(rows: FloatArray) -> FloatArray:
        table = decode_rows(encoding, rows)
        return np.asarray(model.predict(table) if classes is None else model.decision_function(table))

    return read_sum(
        trees,
        base,
        encoding,
        classes=classes,
        arithmetic_error=bound_additions(trees, base, n_additions, DOUBLE),
        link=link,
        raw_scores=raw_scores,
        source=f"sklearn.{type(model).__name__}",
        cure=cure,
    )


def _weigh(weight: float, output: int, n_outputs: int) -> Callable[[FloatArray], float | FloatArray]:
    """Leaves times a weight, for one of several outputs."""

    def make_leaf(values: FloatArray) -> float | FloatArray:
        value = weight * float(values[0])
        return value if n_outputs == 1 else np.eye(n_outputs)[output] * value

    return make_leaf
