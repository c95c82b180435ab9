"""XGBoost: its model as JSON; `float32(x) < t` goes left, leaves are added up in single precision.

Owns what that JSON means: base scores, DART's weights, categories, objectives. Must not know how trees are
summed.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.later import import_extra
from derand._core.origin import Cell, Fitted
from derand.convert._columns import order_categories, recode_rows, require_fitted
from derand.convert._edges import from_single
from derand.convert._forests import LEAF, UNSEEN
from derand.convert._trees import SINGLE, Tree, TreeReading, place_values
from derand.tables import Category, Labels, TableEncoding

NUMBERS = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:linear",
)
"""Objectives whose raw score is the answer."""
LOGITS = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")
CLASSES = (*LOGITS, "binary:hinge")
_TIE = 2.0**-20
"""Of several classes labels are read off probabilities in single precision: raw scores as close as that are equal."""


def read(model: Fitted) -> TreeReading:
    """A fitted XGBClassifier, XGBRegressor, one of their random forests, or xgboost.Booster."""
    source = f"xgboost.{type(model).__name__}"
    if not hasattr(model, "get_booster"):
        return _Model(model, source, None).read()
    require_fitted(model, model.__sklearn_is_fitted__())
    missing = model.missing
    if missing is not None and not math.isnan(missing):
        raise ValueError(
            f"`model` takes {missing!r} for a missing value; only NaN can be certified as one: replace it in the "
            "table and train with missing=np.nan."
        )
    try:
        n_rounds = int(model.best_iteration) + 1
    except AttributeError:  # it did not stop early
        n_rounds = None
    return _Model(
        model.get_booster(), source, getattr(model, "classes_", None), n_rounds, is_custom=callable(model.objective)
    ).read()


def load_file(path: Path) -> TreeReading:
    """A model that `save_model` wrote, as JSON or UBJSON."""
    xgboost = import_extra("xgboost", "xgboost", str(path))
    booster = xgboost.Booster()
    try:
        booster.load_model(path)
    except xgboost.core.XGBoostError as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{path} is no model that this version of XGBoost can read: {first}") from error
    return _Model(booster, "xgboost.Booster", None).read()


class _Model:
    """A booster as JSON, and how it is read."""

    def __init__(
        self,
        booster: Fitted,
        source: str,
        classes: Labels | None,
        n_rounds: int | None = None,
        *,
        is_custom: bool = False,
    ) -> None:
        self._booster, self._source, self._classes, self._is_custom = booster, source, classes, is_custom
        self._json = _write_json(booster)
        learner = self._json["learner"]
        self._objective = str(learner["objective"]["name"])
        self._param = learner["learner_model_param"]
        self._names = tuple(learner.get("feature_names") or ()) or None
        self._types = list(learner.get("feature_types") or ())
        own = learner["gradient_booster"]
        self._is_dart = own["name"] == "dart"
        self._weights = own["weight_drop"] if self._is_dart else None
        self._body = (own["gbtree"] if self._is_dart else own)["model"]
        self._refuse(own["name"])
        self._n_outputs = max(1, int(self._param["num_class"]))
        self._n_trees, self._n_rounds = self._count_trees(n_rounds)

    def read(self) -> TreeReading:
        """The whole model."""
        encoding, codes = self._read_columns()
        trees = self._grow(codes)
        empty = self._empty_trees()
        base = self._predict(empty, np.zeros((1, encoding.n_features))).reshape(-1)
        classes = self._classes
        if classes is None and self._objective in CLASSES:
            classes = np.arange(max(2, self._n_outputs))

        def raw_scores(rows: FloatArray) -> FloatArray:
            return self._predict(self._booster, recode_rows(rows, codes))

        def respond(scores: FloatArray) -> FloatArray:
            return self._ask_link(empty, scores)

        has_link = classes is not None and self._objective == "binary:logistic"
        return TreeReading(
            trees,
            base,
            encoding,
            classes,
            "logit" if self._objective in LOGITS and not self._is_custom else "none",
            raw_scores,
            self._source,
            n_roundings=len(trees) // base.size + 4,
            unit=SINGLE,
            slack=self._bound_weighing(trees, base) + (_TIE if base.size > 1 else 0.0),
            weighing=0.0 if self._weights is None else 4 * SINGLE * self._largest_weight,
            respond=respond if has_link else None,
            # of values that it keeps, XGBoost takes one that it does not know for its first one, or fails
            refused=[(column, False) for column in _read_categories(self._body.get("cats"))],
        )

    def _refuse(self, kind: str) -> None:
        """Refuse what is no sum of trees whose raw score decides."""
        source, objective = self._source, self._objective
        if kind not in ("gbtree", "dart"):
            raise ValueError(f"{source} is a {kind!r} model without trees: use booster='gbtree', or a linear model.")
        if int(self._param.get("num_target", 1)) > 1 or any(
            int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 for tree in self._body["trees"]
        ):
            raise ValueError(f"{source} answers several targets at once (multi-output): train one model per target.")
        if objective not in (*NUMBERS, *CLASSES):
            raise ValueError(
                f"{source} was trained for {objective!r}, whose answer is not its raw score but a function of it, or a "
                "rank; only raw scores can be certified: train a regressor on the transformed target."
            )
        if self._classes is not None and objective not in ("binary:logistic", "multi:softprob", "multi:softmax"):
            raise ValueError(
                f"{source} is a classifier trained for {objective!r}, whose labels the library reads off raw scores at "
                "1/2: train it for 'binary:logistic'."
            )
        if self._classes is None and objective in CLASSES and source.endswith("Regressor"):
            raise ValueError(f"{source} answers probabilities ({objective}): use the classifier of the same name.")

    def _count_trees(self, n_rounds: int | None) -> tuple[int, int]:
        """How many trees, and rounds, predictions use."""
        n_trees = len(self._body["trees"])
        ends = self._body.get("iteration_indptr")
        if ends is None:  # before 2.0
            step = self._n_outputs * int(self._body["gbtree_model_param"]["num_parallel_tree"])
            ends = list(range(0, n_trees + 1, step))
        if n_rounds is None or n_rounds >= len(ends) - 1:
            return n_trees, 0
        return int(ends[n_rounds]), n_rounds

    def _predict(self, booster: Fitted, rows: FloatArray) -> FloatArray:
        import xgboost

        table = xgboost.DMatrix(rows, feature_names=self._names, feature_types=self._types or None)
        return np.asarray(
            booster.predict(table, output_margin=True, iteration_range=(0, self._n_rounds)), dtype=np.float64
        )

    def _empty_trees(self) -> Fitted:
        """A booster with the same trees, all of whose leaves are zero.

        It is asked what raw scores begin with, since versions differ in what they store, and how they become
        probabilities.
        """
        import xgboost

        kept = [tree["split_conditions"] for tree in self._body["trees"]]
        for tree in self._body["trees"]:
            tree["split_conditions"] = [
                0.0 if child == -1 else value
                for child, value in zip(tree["left_children"], tree["split_conditions"], strict=True)
            ]
        empty = xgboost.Booster()
        empty.load_model(bytearray(json.dumps(self._json).encode()))
        for tree, values in zip(self._body["trees"], kept, strict=True):
            tree["split_conditions"] = values
        return empty

    def _ask_link(self, empty: Fitted, scores: FloatArray) -> FloatArray:
        """Probabilities of both classes, in the library's own arithmetic."""
        import xgboost

        rows = np.zeros((scores.size, int(self._param["num_feature"])))
        table = xgboost.DMatrix(
            rows, feature_names=self._names, feature_types=self._types or None, base_margin=scores.astype(np.float32)
        )
        second = empty.predict(table)
        return np.stack([1.0 - second, second], axis=1)

    @property
    def _largest_weight(self) -> float:
        return float(max([1.0, *map(abs, self._weights or ())]))

    def _bound_weighing(self, trees: Sequence[Tree], base: FloatArray) -> float:
        """What DART may lose beside additions of leaves, whose base it may take off again for each tree."""
        start = 0.0 if self._weights is None else float(np.abs(base).max())
        return float(4 * SINGLE * self._largest_weight * (len(trees) + 1) * start)

    def _grow(self, codes: Mapping[int, tuple[int, ...]]) -> list[Tree]:
        weights = self._weights if self._weights is not None else [1.0] * self._n_trees
        parts = zip(self._body["trees"], weights, self._body["tree_info"], strict=False)
        return [
            _grow_tree(tree, float(np.float32(weight)), int(output), self._n_outputs, codes)
            for tree, weight, output in itertools.islice(parts, self._n_trees)
        ]

    def _read_columns(self) -> tuple[TableEncoding, dict[int, tuple[int, ...]]]:
        """The encoding, and XGBoost's code of each category."""
        columns = [column for column, kind in enumerate(self._types) if kind == "c"]
        kept = _read_categories(self._body.get("cats"))
        categories: dict[int, tuple[Category, ...]] = {}
        codes: dict[int, tuple[int, ...]] = {}
        for column in columns:
            name = column if self._names is None else self._names[column]
            values = kept.get(column)
            if values is None:
                if self._names is not None:
                    raise ValueError(
                        f"Column {name!r} is a category, and this version of XGBoost did not keep its values in the "
                        "model: train with xgboost 3.1 or later, or on an array of whole-number codes."
                    )
                values = list(range(self._count_codes(column)))
            categories[column], codes[column] = order_categories(values, name)
        return TableEncoding(int(self._param["num_feature"]), self._names, categories), codes

    def _count_codes(self, column: int) -> int:
        """One more than the largest code that a split names; larger ones are like unseen ones in every split."""
        largest = 0
        for tree in self._body["trees"]:
            for node, listed in _list_categories(tree).items():
                if tree["split_indices"][node] == column:
                    largest = max(largest, *listed)
        return largest + 1


def _write_json(booster: Fitted) -> Fitted:
    import xgboost

    try:
        return json.loads(bytes(booster.save_raw("json")))
    except xgboost.core.XGBoostError as error:
        raise ValueError(f"`model` must be fitted, got a {type(booster).__name__} that is not.") from error


def _read_categories(kept: Mapping[str, Cell] | None) -> dict[int, list[Cell]]:
    """Values of categories by column, as versions since 3.1 keep them."""
    found: dict[int, list[Cell]] = {}
    for column, one in enumerate((kept or {}).get("enc", ())):
        values = one["values"]
        if "offsets" in one:
            if any(not 0 <= value < 128 for value in values):
                raise ValueError(
                    f"XGBoost counts letters of categories where it keeps bytes, and lost some of those of column "
                    f"{column}, which has other letters than ASCII: rename its categories and train again."
                )
            text, ends = bytes(values).decode("ascii"), one["offsets"]
            values = [text[start:end] for start, end in itertools.pairwise(ends)]
        if values:
            found[column] = list(values)
    return found


def _list_categories(tree: Mapping[str, Cell]) -> dict[int, set[int]]:
    """The categories that go right, by node."""
    starts, sizes = tree["categories_segments"], tree["categories_sizes"]
    return {
        int(node): set(tree["categories"][start : start + size])
        for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True)
    }


def _grow_tree(
    tree: Mapping[str, Cell], weight: float, output: int, n_outputs: int, codes: Mapping[int, tuple[int, ...]]
) -> Tree:
    """A tree with leaves times a weight."""
    values = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    left, right = (np.array(tree[name], dtype=np.int64) for name in ("left_children", "right_children"))
    feature = np.where(left == -1, LEAF, np.array(tree["split_indices"], dtype=np.int64))
    left_codes = {
        node: frozenset(
            {UNSEEN, *(own for own, theirs in enumerate(codes[int(feature[node])]) if theirs not in listed)}
        )
        for node, listed in _list_categories(tree).items()
        if feature[node] != LEAF
    }
    return Tree(
        feature,
        from_single(values),
        left,
        right,
        place_values(weight * values, output, n_outputs),
        np.array(tree["default_left"], dtype=bool),
        left_codes=left_codes,
    )
