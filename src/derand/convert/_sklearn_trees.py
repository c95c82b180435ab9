"""Decision trees, forests and AdaBoost of scikit-learn: trees that compare in single precision.

Owns how such a tree compares and what these models make of its leaves. Must not know how sums become shapes (`_trees`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.convert._additions import DOUBLE, bound_additions, read_sum
from derand.convert._columns import decode_rows, read_encoding, refuse_odd_outputs
from derand.convert._edges import after_single
from derand.convert._reading import Reading
from derand.convert._trees import Node, Split

CURE = "train it with max_depth=1, or keep columns that may interact to few"


def read(model: Any) -> Reading:
    """A fitted tree, forest or AdaBoostClassifier."""
    read_encoding(model)
    refuse_odd_outputs(model)
    if hasattr(model, "estimator_weights_"):
        return _read_ada_boost(model)
    return _read_forest(model, [model] if hasattr(model, "tree_") else list(model.estimators_))


def grow(tree: Any, make_leaf: Callable[[FloatArray], float | FloatArray], takes_missing: bool = False) -> Node:
    """A tree of scikit-learn, with leaves made of the numbers that it keeps for each.

    `takes_missing`: whether missing values go the way that each node has learnt; the model refuses them otherwise.
    """
    edges = after_single(tree.threshold)
    left_child, right_child, feature = tree.children_left, tree.children_right, tree.feature
    values, goes_left = tree.value[:, 0, :], tree.missing_go_to_left

    def descend(node: int) -> Node:
        if left_child[node] == -1:
            return make_leaf(values[node])
        return Split(
            int(feature[node]),
            descend(int(left_child[node])),
            descend(int(right_child[node])),
            float(edges[node]),
            missing_left=bool(goes_left[node]) if takes_missing else None,
        )

    return descend(0)


def _read_forest(model: Any, members: list[Any]) -> Reading:
    """The mean of trees: of their probabilities, or of their numbers."""
    encoding = read_encoding(model)
    classes = getattr(model, "classes_", None)
    n_outputs = 1 if classes is None or classes.size <= 2 else classes.size
    count = len(members)

    def make_leaf(values: FloatArray) -> float | FloatArray:
        if n_outputs > 1:
            return np.asarray(values / count, dtype=np.float64)
        return float(values[-1]) / count

    takes_missing = bool(model.__sklearn_tags__().input_tags.allow_nan)
    trees = [grow(member.tree_, make_leaf, takes_missing) for member in members]
    base = np.array([-0.5]) if classes is not None and n_outputs == 1 else np.zeros(n_outputs)

    def raw_scores(rows: FloatArray) -> FloatArray:
        if classes is None:
            return np.asarray(model.predict(decode_rows(encoding, rows)))
        shares = np.asarray(model.predict_proba(decode_rows(encoding, rows)))
        return shares if n_outputs > 1 else shares[:, -1] - 0.5

    return read_sum(
        trees,
        base,
        encoding,
        classes=classes,
        arithmetic_error=bound_additions(trees, base, 2 * count + 4, DOUBLE),
        link="none" if classes is None else "share",
        raw_scores=raw_scores,
        source=f"sklearn.{type(model).__name__}",
        cure=CURE,
    )


def _read_ada_boost(model: Any) -> Reading:
    """SAMME: a weighted vote of trees, each for the label of its largest share.

    The decision function of two classes adds the votes for the one to those against the other: every tree counts twice.
    """
    encoding = read_encoding(model)
    if not hasattr(model, "classes_"):
        raise TypeError("AdaBoostRegressor answers with a weighted median of its trees, which is no sum of functions.")
    classes = model.classes_
    n_outputs = 1 if classes.size <= 2 else classes.size
    weights = np.asarray(model.estimator_weights_, dtype=np.float64)[: len(model.estimators_)]
    whole = float(model.estimator_weights_.sum())
    trees = []
    for member, weight in zip(model.estimators_, weights.tolist(), strict=True):
        if not hasattr(member, "tree_"):
            raise TypeError(
                f"AdaBoost of {type(member).__name__} cannot be read, only that of decision trees: leave `estimator` "
                "out, which is a tree of depth 1."
            )
        trees.append(grow(member.tree_, _vote(member.classes_, classes, weight / whole)))
    base = np.zeros(n_outputs)

    def raw_scores(rows: FloatArray) -> FloatArray:
        return np.asarray(model.decision_function(decode_rows(encoding, rows)))

    return read_sum(
        trees,
        base,
        encoding,
        classes=classes,
        arithmetic_error=bound_additions(trees, base, 4 * len(trees) + 16, DOUBLE),
        link="logit" if n_outputs == 1 else "none",
        raw_scores=raw_scores,
        source=f"sklearn.{type(model).__name__}",
        cure=CURE,
    )


def _vote(own: Any, classes: Any, share: float) -> Callable[[FloatArray], float | FloatArray]:
    def make_leaf(values: FloatArray) -> float | FloatArray:
        is_chosen = classes == own[int(np.argmax(values))]
        if classes.size == 2:
            return 2 * share if is_chosen[1] else -2 * share
        return np.where(is_chosen, share, -share / (classes.size - 1))

    return make_leaf
