"""HistGradientBoosting of scikit-learn: trees that compare doubles, and categories that a preprocessor renumbered.

Owns what these models mean. Must not know how sums become shapes (`_trees`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derand._core.arrays import IntArray
from derand.convert._columns import clean_categories, read_encoding
from derand.convert._edges import after
from derand.convert._reading import Reading
from derand.convert._sklearn_boosting import add_up
from derand.convert._trees import Node, Split

CURE = 'train it with max_depth=1, or with interaction_cst="no_interactions" or small groups of columns'
_LOSSES_WITH_A_LINK = ("poisson", "gamma")


def read(model: Any) -> Reading:
    """A fitted HistGradientBoostingClassifier or HistGradientBoostingRegressor."""
    columns, categories = _read_columns(model)
    encoding = read_encoding(model, categories)
    classes = getattr(model, "classes_", None)
    if classes is None and model.loss in _LOSSES_WITH_A_LINK:
        raise ValueError(
            f"`loss` of the model is {model.loss!r}: it answers with the exponential of its sum of trees, which is no "
            "sum of functions. Use loss='squared_error', perhaps on the logarithm of the target."
        )
    n_outputs = int(model.n_trees_per_iteration_)
    sizes = {column: len(values) for column, values in categories.items()}
    trees = [
        grow(predictor, columns, sizes, output, n_outputs)
        for stage in model._predictors
        for output, predictor in enumerate(stage)
    ]
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    link = "none" if classes is None else "logit"
    return add_up(model, encoding, trees, base, link=link, n_additions=len(trees) + 3, cure=CURE)


def _read_columns(model: Any) -> tuple[IntArray, dict[int, tuple[Any, ...]]]:
    """The user's column of each column that trees split, and the user's categories."""
    read_encoding(model)
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        return np.arange(model.n_features_in_), {}
    is_category = np.asarray(model.is_categorical_, dtype=bool)
    categorical = np.flatnonzero(is_category)
    columns = np.empty(is_category.size, dtype=np.int64)
    columns[preprocessor.output_indices_["encoder"]] = categorical
    columns[preprocessor.output_indices_["numerical"]] = np.flatnonzero(~is_category)
    lists = preprocessor.named_transformers_["encoder"].categories_
    name = read_encoding(model).name
    return columns, {
        int(column): clean_categories(values, name(int(column)))
        for column, values in zip(categorical, lists, strict=True)
    }


def grow(predictor: Any, columns: IntArray, sizes: dict[int, int], output: int, n_outputs: int) -> Node:
    """A tree, for one of several outputs, in the user's columns; `sizes` counts the categories of a column."""
    nodes = predictor.nodes
    edges = after(nodes["num_threshold"])

    def descend(at: int) -> Node:
        node = nodes[at]
        if node["is_leaf"]:
            value = float(node["value"])
            return value if n_outputs == 1 else np.eye(n_outputs)[output] * value
        column = int(columns[node["feature_idx"]])
        missing_left = bool(node["missing_go_to_left"])
        codes = None
        if node["is_categorical"]:
            words = predictor.raw_left_cat_bitsets[node["bitset_idx"]].tolist()
            codes = frozenset(code for code in range(sizes[column]) if words[code // 32] >> (code % 32) & 1)
        return Split(
            column,
            descend(int(node["left"])),
            descend(int(node["right"])),
            float(edges[at]),
            left_codes=codes,
            unseen_left=missing_left,  # the encoder makes NaN of a category that it does not know
            missing_left=missing_left,
        )

    return descend(0)
