"""CatBoost: its model as JSON; `float32(x) > border` goes right, leaves are added up in doubles, scaled and shifted.

Owns what that JSON means: symmetric and other trees, missing values, losses. Must not know how trees are
summed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.later import import_extra
from derand._core.origin import Cell, Fitted
from derand.convert._columns import require_fitted
from derand.convert._edges import after_single
from derand.convert._forests import LEAF
from derand.convert._trees import DOUBLE, Tree, TreeReading
from derand.tables import TableEncoding

_OWN = "PythonUserDefinedPerObject"
NUMBERS = ("RMSE", "MAE", "Quantile", "Expectile", "MAPE", "Huber", "Lq", "LogCosh", _OWN)
"""Losses whose raw score is the answer."""
LOGITS = ("Logloss", "CrossEntropy", "MultiClass")
CLASSES = (*LOGITS, "MultiClassOneVsAll")


def read(model: Fitted) -> TreeReading:
    """A fitted CatBoostClassifier, CatBoostRegressor or CatBoost."""
    source = f"catboost.{type(model).__name__}"
    require_fitted(model, model.is_fitted())
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

    return TreeReading(
        trees,
        base,
        encoding,
        classes,
        "logit" if loss in LOGITS else "none",
        raw_scores,
        source,
        n_roundings=len(trees) + 4,
        unit=DOUBLE,
    )


def load_file(path: Path) -> TreeReading:
    """A model that `save_model` wrote as .cbm."""
    catboost = import_extra("catboost", "catboost", str(path))
    model = catboost.CatBoost()
    try:
        model.load_model(str(path))
    except catboost.CatBoostError as error:
        raise ValueError(f"{path} is no model that this version of CatBoost can read: {error}") from error
    return read(model)


def _write_json(model: Fitted) -> Fitted:
    import catboost

    with tempfile.TemporaryDirectory(prefix="derand-") as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except catboost.CatBoostError as error:
            raise ValueError(f"CatBoost cannot write this model as JSON, by which it is read: {error}.") from error
        return json.loads(path.read_text(encoding="utf-8"))


def _refuse(parts: Mapping[str, Cell], loss: str, source: str, *, is_classifier: bool) -> None:
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
            f"{source} separates its classes at a probability of {threshold}, and can be read where that is 0.5: "
            "call `set_probability_threshold(0.5)`."
        )
    if loss not in ((*CLASSES, _OWN) if is_classifier else (*NUMBERS, *CLASSES)):
        raise ValueError(
            f"{source} was trained for {loss!r}, whose answer is not its raw score but a function of it, several "
            "numbers, or a rank; only raw scores can be certified: train it for another loss."
        )
    if not is_classifier and source.endswith("Regressor") and loss in CLASSES:
        raise ValueError(f"{source} was trained for {loss!r}, which is for classes: use CatBoostClassifier.")


def _read_columns(model: Fitted) -> TableEncoding:
    names = tuple(map(str, model.feature_names_))
    is_named = names != tuple(map(str, range(len(names))))
    return TableEncoding(len(names), names if is_named else None, {})


_Split = tuple[int, float, bool]
"""Column, edge, and whether missing values go left."""
_LEAF: _Split = (LEAF, 0.0, False)


class _Columns:
    """Columns of numbers by CatBoost's own count of them."""

    def __init__(self, features: Sequence[Mapping[str, Cell]]) -> None:
        self._features = {int(one["feature_index"]): one for one in features}
        borders = sorted({float(border) for one in features for border in one.get("borders") or ()})
        self._edges = dict(zip(borders, after_single(borders).tolist(), strict=True))

    def grow_symmetric(self, tree: Mapping[str, Cell], scale: float, n_outputs: int) -> Tree:
        """A tree that asks the same at every node of a level; bit k of a leaf's number is the answer to split k."""
        asked = [self._read_split(split) for split in reversed(tree.get("splits") or ())]
        leaves = np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, n_outputs) * scale
        splits = [split for level, split in enumerate(asked) for _ in range(2**level)]
        nodes = np.arange(len(splits) + len(leaves))
        value = np.concatenate([np.zeros((len(splits), n_outputs)), leaves])
        return _make_tree([*splits, *[_LEAF] * len(leaves)], 2 * nodes + 1, 2 * nodes + 2, value)

    def grow(self, tree: Mapping[str, Cell], scale: float, n_outputs: int) -> Tree:
        """A tree of nodes."""
        splits: list[_Split] = []
        children: list[list[int]] = []
        values: list[FloatArray] = []

        def add(node: Mapping[str, Cell]) -> int:
            at = len(splits)
            is_leaf = "split" not in node
            splits.append(_LEAF if is_leaf else self._read_split(node["split"]))
            value = np.array(node["value"], dtype=np.float64).reshape(n_outputs) * scale if is_leaf else None
            values.append(np.zeros(n_outputs) if value is None else value)
            children.append([0, 0])
            if not is_leaf:
                children[at] = [add(node[end]) for end in ("left", "right")]
            return at

        add(tree)
        left, right = np.array(children).T
        return _make_tree(splits, left, right, np.array(values))

    def _read_split(self, split: Mapping[str, Cell]) -> _Split:
        if split["split_type"] != "FloatFeature":
            raise ValueError(f"A tree splits by {split['split_type']}, which cannot be read: train on numbers only.")
        feature = self._features[int(split["float_feature_index"])]
        missing_left = feature["nan_value_treatment"] != "AsTrue"
        return int(feature["flat_feature_index"]), self._edges[float(split["border"])], missing_left


def _make_tree(splits: Sequence[_Split], left: IntArray, right: IntArray, value: FloatArray) -> Tree:
    feature, edge, missing_left = map(np.array, zip(*splits, strict=True))
    return Tree(feature, edge, left, right, value, missing_left)
