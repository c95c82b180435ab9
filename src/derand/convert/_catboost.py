"""CatBoost: its model as JSON; `float32(x) > border` goes right, leaves are added up in doubles, scaled and shifted.

Owns what that JSON means: symmetric and other trees, missing values, losses. Must not know how sums become shapes
(`_trees`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.later import import_extra
from derand.convert._additions import DOUBLE, bound_additions, read_sum
from derand.convert._edges import after_single
from derand.convert._reading import Reading
from derand.convert._trees import Node, Split
from derand.tables import TableEncoding

CURE = "train it with depth=1"
_OWN = "PythonUserDefinedPerObject"
NUMBERS = ("RMSE", "MAE", "Quantile", "Expectile", "MAPE", "Huber", "Lq", "LogCosh", _OWN)
"""Losses whose raw score is the answer."""
LOGITS = ("Logloss", "CrossEntropy", "MultiClass")
CLASSES = (*LOGITS, "MultiClassOneVsAll")


def read(model: Any) -> Reading:
    """A fitted CatBoostClassifier, CatBoostRegressor or CatBoost."""
    source = f"catboost.{type(model).__name__}"
    if not model.is_fitted():
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    parts = _write_json(model)
    is_classifier = hasattr(model, "predict_proba")
    loss = str(parts["model_info"]["params"]["loss_function"]["type"])
    _refuse(parts, loss, source, is_classifier=is_classifier)
    encoding = _read_columns(model)
    scale, bias = parts["scale_and_bias"]
    base = np.array(bias, dtype=np.float64)
    columns = _Columns(parts["features_info"].get("float_features", ()))
    trees = [columns.grow_symmetric(tree, scale, base.size) for tree in parts.get("oblivious_trees", ())]
    trees += [columns.grow(tree, scale, base.size) for tree in parts.get("trees", ())]
    classes = np.asarray(model.classes_) if is_classifier or loss in CLASSES else None
    if classes is not None and classes.size != max(2, base.size):
        raise ValueError(f"{source} has {base.size} raw scores for {classes.size} classes, which cannot be read.")

    def raw_scores(rows: FloatArray) -> FloatArray:
        return np.asarray(model.predict(rows, prediction_type="RawFormulaVal"), dtype=np.float64)

    return read_sum(
        trees,
        base,
        encoding,
        classes=classes,
        arithmetic_error=bound_additions(trees, base, len(trees) + 4, DOUBLE),
        link="logit" if loss in LOGITS else "none",
        raw_scores=raw_scores,
        source=source,
        cure=CURE,
    )


def load_file(path: Path) -> Reading:
    """A model that `save_model` wrote as .cbm."""
    catboost = import_extra("catboost", "catboost", str(path))
    model = catboost.CatBoost()
    try:
        model.load_model(str(path))
    except catboost.CatBoostError as error:
        raise ValueError(f"{path} is no model that this version of CatBoost can read: {error}") from error
    return read(model)


def _write_json(model: Any) -> Any:
    import catboost

    with tempfile.TemporaryDirectory(prefix="derand-") as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except catboost.CatBoostError as error:
            raise ValueError(f"CatBoost cannot write this model as JSON, by which it is read: {error}.") from error
        return json.loads(path.read_text(encoding="utf-8"))


def _refuse(parts: Mapping[str, Any], loss: str, source: str, *, is_classifier: bool) -> None:
    """Refuse what is no sum of trees of numbers whose raw score decides."""
    features = parts["features_info"]
    if features.get("categorical_features") or features.get("ctrs"):
        raise ValueError(
            f"{source} was trained with `cat_features`, of which CatBoost keeps hashes and statistics of the target "
            "but not the values: encode categories as numbers, or train XGBoost or LightGBM, which keep them."
        )
    other = sorted(key for key in ("text_features", "embedding_features") if features.get(key))
    if other:
        raise ValueError(
            f"{source} was trained with {' and '.join(other)}, which are no columns of numbers: drop them."
        )
    threshold = float(parts["model_info"].get("binclass_probability_threshold", 0.5))
    if threshold != 0.5:
        raise ValueError(
            f"{source} tells its classes apart at a probability of {threshold}, and can be read where that is 0.5: "
            "call `set_probability_threshold(0.5)`."
        )
    if loss not in ((*CLASSES, _OWN) if is_classifier else (*NUMBERS, *CLASSES)):
        raise ValueError(
            f"{source} was trained for {loss!r}, whose answer is not its raw score but a function of it, several "
            "numbers, or a rank; only raw scores can be certified: train it for another loss."
        )
    if not is_classifier and source.endswith("Regressor") and loss in CLASSES:
        raise ValueError(f"{source} was trained for {loss!r}, which is for classes: use CatBoostClassifier.")


def _read_columns(model: Any) -> TableEncoding:
    names = tuple(map(str, model.feature_names_))
    is_named = names != tuple(map(str, range(len(names))))
    return TableEncoding(len(names), names if is_named else None, {})


class _Columns:
    """Columns of numbers by CatBoost's own count of them."""

    def __init__(self, features: Sequence[Mapping[str, Any]]) -> None:
        self._features = {int(one["feature_index"]): one for one in features}
        borders = sorted({float(border) for one in features for border in one.get("borders") or ()})
        self._edges = dict(zip(borders, after_single(borders).tolist(), strict=True))

    def grow_symmetric(self, tree: Mapping[str, Any], scale: float, n_outputs: int) -> Node:
        """A tree that asks the same at every node of a level; bit k of a leaf's number is the answer to split k."""
        splits = tree.get("splits") or ()
        leaves = np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, n_outputs) * scale

        def descend(level: int, place: int) -> Node:
            if level < 0:
                return _make_leaf(leaves[place])
            return self._split(splits[level], descend(level - 1, place), descend(level - 1, place | 1 << level))

        return descend(len(splits) - 1, 0)

    def grow(self, tree: Mapping[str, Any], scale: float, n_outputs: int) -> Node:
        """A tree of nodes."""
        if "split" not in tree:
            return _make_leaf(np.array(tree["value"], dtype=np.float64).reshape(n_outputs) * scale)
        left, right = (self.grow(tree[side], scale, n_outputs) for side in ("left", "right"))
        return self._split(tree["split"], left, right)

    def _split(self, split: Mapping[str, Any], left: Node, right: Node) -> Split:
        if split["split_type"] != "FloatFeature":
            raise ValueError(f"A tree splits by {split['split_type']}, which cannot be read: train on numbers alone.")
        feature = self._features[int(split["float_feature_index"])]
        missing_left = feature["nan_value_treatment"] != "AsTrue"
        edge = self._edges[float(split["border"])]
        return Split(int(feature["flat_feature_index"]), left, right, edge, missing_left=missing_left)


def _make_leaf(values: FloatArray) -> float | FloatArray:
    return float(values[0]) if values.size == 1 else values
