"""Trees of scikit-learn: single ones, forests, AdaBoost, GradientBoosting and HistGradientBoosting.

Owns how such a tree compares, and what these models make of its leaves. Histogram trees compare doubles and have
categories that a preprocessor renumbered; all others compare in single precision. Must not know how trees are summed.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.origin import Fitted
from derand.convert._columns import clean_categories, decode_rows, read_encoding, require_fitted
from derand.convert._edges import after, after_single
from derand.convert._forests import LEAF, UNSEEN
from derand.convert._trees import DOUBLE, Tree, TreeReading, place_values
from derand.tables import Category, Labels, TableEncoding

_LOSSES_WITH_A_LINK = ("poisson", "gamma")


def read(model: Fitted) -> TreeReading:
    """A fitted tree, forest or boosted model."""
    if hasattr(model, "_predictors"):
        return _read_histogram(model)
    encoding = read_encoding(model)
    if hasattr(model, "init_"):
        return _read_boosting(model, encoding)
    _refuse_odd_outputs(model)
    if hasattr(model, "estimator_weights_"):
        return _read_ada_boost(model, encoding)
    require_fitted(model, hasattr(model, "tree_") or hasattr(model, "estimators_"))
    return _read_forest(model, encoding, [model] if hasattr(model, "tree_") else list(model.estimators_))


def _refuse_odd_outputs(model: Fitted) -> None:
    """Refuse a model that answers with several labels or numbers for a row."""
    if getattr(model, "n_outputs_", 1) != 1:
        raise ValueError(
            f"`model` answers with {model.n_outputs_} outputs for each row; certificates are for one: train one model "
            "for each."
        )


def _sum_trees(
    model: Fitted,
    encoding: TableEncoding,
    trees: list[Tree],
    base: FloatArray,
    link: str,
    n_roundings: int,
    divisor: int = 1,
) -> TreeReading:
    """A model whose raw score is its decision function, or what it predicts where it has no classes."""
    classes: Labels | None = getattr(model, "classes_", None)

    def raw_scores(rows: FloatArray) -> FloatArray:
        table = decode_rows(encoding, rows)
        if classes is None:
            return np.asarray(model.predict(table))
        if link != "share":
            return np.asarray(model.decision_function(table))
        shares = np.asarray(model.predict_proba(table))
        return shares if base.size > 1 else shares[:, -1] - 0.5

    source = f"sklearn.{type(model).__name__}"
    return TreeReading(trees, base, encoding, classes, link, raw_scores, source, n_roundings, DOUBLE, divisor=divisor)


def _grow(tree: Fitted, value: FloatArray, takes_missing: bool = False) -> Tree:
    """A tree that compares in single precision, with values for its nodes.

    `takes_missing`: whether missing values go the way that each node has learnt; the model refuses them otherwise.
    """
    feature = np.where(tree.children_left == -1, LEAF, tree.feature)
    edges, goes_left = after_single(tree.threshold), np.asarray(tree.missing_go_to_left, dtype=bool)
    return Tree(feature, edges, tree.children_left, tree.children_right, value, goes_left, takes_missing)


def _read_forest(model: Fitted, encoding: TableEncoding, members: list[Fitted]) -> TreeReading:
    """The mean of trees: of their probabilities, or of their numbers."""
    classes = getattr(model, "classes_", None)
    n_outputs = 1 if classes is None or classes.size <= 2 else classes.size
    takes_missing = bool(model.__sklearn_tags__().input_tags.allow_nan)
    count = len(members)
    trees = [_grow(one.tree_, one.tree_.value[:, 0, -n_outputs:], takes_missing) for one in members]
    base = np.zeros(n_outputs) if classes is None or n_outputs > 1 else np.array([-0.5])
    return _sum_trees(model, encoding, trees, base, "none" if classes is None else "share", 2 * count + 4, count)


def _read_ada_boost(model: Fitted, encoding: TableEncoding) -> TreeReading:
    """SAMME: a weighted vote of trees, each for the label of its largest share.

    The decision function of two classes adds the votes for the one to those against the other: every tree counts twice.
    """
    if not hasattr(model, "classes_"):
        raise TypeError("AdaBoostRegressor answers with a weighted median of its trees, which is no sum of functions.")
    classes = model.classes_
    weights = np.asarray(model.estimator_weights_, dtype=np.float64)[: len(model.estimators_)]
    whole = float(model.estimator_weights_.sum())
    trees = []
    for member, weight in zip(model.estimators_, weights.tolist(), strict=True):
        if not hasattr(member, "tree_"):
            raise TypeError(
                f"AdaBoost of {type(member).__name__} cannot be read, only that of decision trees: leave `estimator` "
                "out, which is a tree of depth 1."
            )
        chosen = member.classes_[member.tree_.value[:, 0, :].argmax(axis=1)]
        trees.append(_grow(member.tree_, _vote(chosen, classes, weight / whole)))
    base = np.zeros(1 if classes.size <= 2 else classes.size)
    return _sum_trees(model, encoding, trees, base, "logit" if base.size == 1 else "none", 4 * len(trees) + 16)


def _vote(chosen: Labels, classes: Labels, share: float) -> FloatArray:
    """What the nodes of a tree add, by the label that each chooses."""
    is_chosen = chosen[:, None] == classes[None, :]
    if classes.size == 2:
        return np.where(is_chosen[:, 1:], 2 * share, -2 * share)
    return np.where(is_chosen, share, -share / (classes.size - 1))


def _read_boosting(model: Fitted, encoding: TableEncoding) -> TreeReading:
    """GradientBoosting: a start and trees times the learning rate."""
    require_fitted(model, hasattr(model, "estimators_"))
    n_outputs = model.estimators_.shape[1]
    if type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
        raise ValueError("`init` of the model is an estimator of its own, whose score is not read: use init=None.")
    if getattr(model.init_, "strategy", None) == "stratified":
        raise ValueError("`init` of the model draws its answers at random (strategy='stratified'): use init=None.")
    base = np.asarray(model._raw_predict_init(np.zeros((1, encoding.n_features))), dtype=np.float64)[0]
    rate = float(model.learning_rate)
    trees = [
        _grow(one.tree_, place_values(rate * one.tree_.value[:, 0, 0], output, n_outputs))
        for stage in model.estimators_
        for output, one in enumerate(stage)
    ]
    link = "logit" if hasattr(model, "classes_") and model.loss == "log_loss" else "none"
    return _sum_trees(model, encoding, trees, base, link, 2 * len(trees) + 2)


def _read_histogram(model: Fitted) -> TreeReading:
    """HistGradientBoosting: a start and trees of doubles."""
    columns, categories = _read_columns(model)
    encoding = read_encoding(model, categories)
    is_classifier = hasattr(model, "classes_")
    if not is_classifier and model.loss in _LOSSES_WITH_A_LINK:
        raise ValueError(
            f"`loss` of the model is {model.loss!r}: it answers with the exponential of its sum of trees, which is no "
            "sum of functions. Use loss='squared_error', perhaps on the logarithm of the target."
        )
    sizes = {column: len(values) for column, values in categories.items()}
    trees = [
        _grow_histogram(predictor, columns, sizes, output, int(model.n_trees_per_iteration_))
        for stage in model._predictors
        for output, predictor in enumerate(stage)
    ]
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    link = "logit" if is_classifier else "none"
    return _sum_trees(model, encoding, trees, base, link, len(trees) + 3)


def _read_columns(model: Fitted) -> tuple[IntArray, dict[int, tuple[Category, ...]]]:
    """The user's column of each column that trees split, and the user's categories."""
    name = read_encoding(model).name
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        return np.arange(model.n_features_in_), {}
    is_category = np.asarray(model.is_categorical_, dtype=bool)
    categorical = np.flatnonzero(is_category)
    columns = np.empty(is_category.size, dtype=np.int64)
    columns[preprocessor.output_indices_["encoder"]] = categorical
    columns[preprocessor.output_indices_["numerical"]] = np.flatnonzero(~is_category)
    lists = preprocessor.named_transformers_["encoder"].categories_
    return columns, {
        column: clean_categories(values, name(column))
        for column, values in zip(categorical.tolist(), lists, strict=True)
    }


def _grow_histogram(predictor: Fitted, columns: IntArray, sizes: dict[int, int], output: int, n_outputs: int) -> Tree:
    """A tree, for one of several outputs, in the user's columns; `sizes` counts the categories of a column."""
    nodes = predictor.nodes
    is_leaf, missing_left = nodes["is_leaf"].astype(bool), nodes["missing_go_to_left"].astype(bool)
    feature = np.where(is_leaf, LEAF, columns[np.where(is_leaf, 0, nodes["feature_idx"])])
    codes = {}
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf).tolist():
        words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]].tolist()
        own = {code for code in range(sizes[int(feature[node])]) if words[code // 32] >> (code % 32) & 1}
        # the encoder makes NaN of a category that it does not know
        codes[node] = frozenset(own | ({UNSEEN} if missing_left[node] else set()))
    return Tree(
        feature,
        after(nodes["num_threshold"]),
        nodes["left"].astype(np.int64),
        nodes["right"].astype(np.int64),
        place_values(nodes["value"], output, n_outputs),
        missing_left,
        left_codes=codes,
    )
