"""LightGBM: its model text, read line by line; `x <= t` in doubles, leaves added up in doubles.

Owns what that text means: rules for missing values, zeros and categories, objectives, averages. Must not know how sums
become shapes (`_trees`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand.convert._additions import (
    DOUBLE,
    bound_additions,
    measure_total,
    order_categories,
    place_leaf,
    read_sum,
    recode_rows,
)
from derand.convert._edges import after
from derand.convert._reading import Reading
from derand.convert._trees import Node, Split
from derand.tables import TableEncoding

CURE = "train it with max_depth=1, or with interaction_constraints that keep columns apart"
NUMBERS = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
"""Objectives whose raw score is the answer."""
LINKED = {
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "cross_entropy": "a sigmoid",
    "cross_entropy_lambda": "log1p(exp)",
}
_ZERO = float(np.float32(1e-35))
"""What LightGBM takes for zero, on both sides of it: such numbers are zeros before they are compared."""
_STEERING = {"pred_early_stop", "start_iteration_predict", "num_iteration_predict"}
_MOST_SATURATED = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """The parts of a model's text: its first lines, one mapping per tree, and values of categories of pandas."""

    header: Mapping[str, str]
    trees: Sequence[Mapping[str, str]]
    pandas_categories: Sequence[Sequence[Any]]

    @property
    def n_outputs(self) -> int:
        return int(self.header["num_tree_per_iteration"])

    @property
    def objective(self) -> str:
        return self.header.get("objective", "custom").split(" ")[0]

    def read_option(self, name: str, default: float) -> float:
        """A number after the objective, such as `sigmoid:1`."""
        for word in self.header.get("objective", "").split(" ")[1:]:
            key, _, value = word.partition(":")
            if key == name:
                return float(value)
        return default


def read(model: Any) -> Reading:
    """A fitted LGBMClassifier, LGBMRegressor or lightgbm.Booster."""
    wrapped = hasattr(model, "get_params")
    source = f"lightgbm.{type(model).__name__}"
    if not wrapped:
        return _read_text(model.model_to_string(), source, None, model)
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    steering = sorted(key for key, value in model.get_params().items() if key in _STEERING and value)
    if steering:
        raise ValueError(f"`model` predicts with {', '.join(steering)}, which leaves trees out: train it without.")
    return _read_text(model.booster_.model_to_string(), source, getattr(model, "classes_", None), model.booster_)


def load_file(path: Path) -> Reading:
    """A model that `Booster.save_model` wrote; LightGBM is asked for raw scores where it is installed."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith("tree"):
        raise ValueError(f"{path} is no model of LightGBM: its text begins with the line 'tree'.")
    try:
        import lightgbm
    except ImportError:
        return _read_text(text, "lightgbm.Booster", None, None)
    return _read_text(text, "lightgbm.Booster", None, lightgbm.Booster(model_str=text))


def _read_text(text: str, source: str, classes: NDArray[Any] | None, booster: Any) -> Reading:
    parts = _parse(text)
    encoding, codes = _read_columns(parts)
    objective, n_outputs = parts.objective, parts.n_outputs
    _refuse_objective(parts, source, is_classifier=classes is not None)
    if classes is None and objective in ("binary", "multiclass", "multiclassova"):
        classes = np.arange(max(2, n_outputs))
    if classes is not None and classes.size != max(2, n_outputs):
        raise ValueError(f"{source} has {n_outputs} raw scores for {classes.size} classes, which cannot be read.")
    scale = parts.read_option("sigmoid", 1.0) if objective == "binary" else 1.0
    if (
        "average_output" in parts.header
    ):  # of random forests; `raw_score=True` gives the sum there, `predict` divides it
        scale /= max(1, len(parts.trees) // n_outputs)
    trees = [
        _Tree(tree, codes).grow(lambda value, output=i % n_outputs: place_leaf(scale * value, output, n_outputs))  # type: ignore[misc]
        for i, tree in enumerate(parts.trees)
    ]
    base = np.zeros(n_outputs)
    by_output = [trees[output::n_outputs] for output in range(n_outputs)]
    slack = 0.0
    if classes is not None:
        magnitude = max(measure_total(own, 0.0) for own in by_output)
        slack = _bound_link(objective, magnitude * parts.read_option("sigmoid", 1.0))

    def raw_scores(rows: FloatArray) -> FloatArray:
        return np.asarray(booster.predict(recode_rows(rows, codes), raw_score=True), dtype=np.float64) * scale

    return read_sum(
        trees,
        base,
        encoding,
        classes=classes,
        arithmetic_error=bound_additions(trees, base, len(trees) // n_outputs + 4, DOUBLE) + slack,
        link="logit" if objective in ("binary", "multiclass") else "none",
        raw_scores=None if booster is None else raw_scores,
        source=source,
        cure=CURE,
    )


def _parse(text: str) -> _Text:
    head, *rest = text.split("\nTree=")
    blocks = [head, *rest]
    blocks[-1], _, tail = blocks[-1].partition("\nend of trees")
    header, *trees = (_parse_lines(block) for block in blocks)
    found = [line for line in tail.splitlines() if line.startswith("pandas_categorical:")]
    values = json.loads(found[-1].partition(":")[2]) if found else None
    return _Text(header, trees, values or [])


def _parse_lines(block: str) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in block.splitlines())}


def _refuse_objective(parts: _Text, source: str, *, is_classifier: bool) -> None:
    objective = parts.objective
    if any(tree.get("is_linear", "0") != "0" for tree in parts.trees):
        raise ValueError(f"{source} has linear models in its leaves (linear_tree), which are no steps: train without.")
    if objective in LINKED:
        raise ValueError(
            f"{source} was trained for {objective!r} and answers {LINKED[objective]} of its raw score; only answers "
            "that are the raw score itself can be certified: train it on the transformed target."
        )
    if "sqrt" in parts.header.get("objective", "").split(" "):
        raise ValueError(f"{source} was trained with reg_sqrt and answers the square of its raw score: train without.")
    known = (*NUMBERS, "binary", "multiclass", "multiclassova", "custom", "none")
    if objective not in known:
        raise ValueError(f"{source} was trained for {objective!r}, a ranking or another task that cannot be read.")
    if not is_classifier and parts.n_outputs > 1 and objective not in ("multiclass", "multiclassova"):
        raise ValueError(f"{source} answers {parts.n_outputs} numbers at once, which cannot be certified.")
    if is_classifier and objective in NUMBERS:
        raise ValueError(f"{source} is a classifier trained for {objective!r}, whose labels cannot be read.")


def _bound_link(objective: str, magnitude: float) -> float:
    """How far raw scores may lie beyond a tie before probabilities in doubles tell them apart."""
    if objective != "multiclassova":
        return 2.0**-48
    slack = 2.0**-48 * float(np.exp(min(magnitude, 600.0)))
    if slack > _MOST_SATURATED:
        raise ValueError(
            "A model trained for 'multiclassova' with raw scores this large has probabilities that round to 1, so that "
            "its labels are no longer those of the largest score: train it for 'multiclass'."
        )
    return slack


def _read_columns(parts: _Text) -> tuple[TableEncoding, dict[int, tuple[int, ...]]]:
    """The encoding, and LightGBM's code of each category."""
    names = tuple(parts.header["feature_names"].split(" "))
    n_features = int(parts.header["max_feature_idx"]) + 1
    if names == tuple(f"Column_{column}" for column in range(n_features)):
        names = None  # type: ignore[assignment]
    infos = parts.header["feature_infos"].split(" ")
    listed = {
        column: tuple(sorted(code for code in map(int, info.split(":")) if code >= 0))
        for column, info in enumerate(infos)
        if info != "none" and not info.startswith("[")
    }
    categories: dict[int, tuple[Any, ...]] = {}
    codes: dict[int, tuple[int, ...]] = {}
    for column, values in _match_pandas(parts, infos, listed).items():
        own = column if names is None else names[column]
        categories[column], codes[column] = order_categories(values, own)
    if not parts.pandas_categories:
        categories, codes = dict(listed), dict(listed)
    return TableEncoding(n_features, names, categories), codes


def _match_pandas(parts: _Text, infos: Sequence[str], listed: Mapping[int, Any]) -> dict[int, Sequence[Any]]:
    """Values of categories by column: LightGBM keeps them in the order of columns, without saying which."""
    kept = parts.pandas_categories
    for columns in (list(listed), sorted([*listed, *(i for i, info in enumerate(infos) if info == "none")])):
        found = dict(zip(columns, kept, strict=False))
        if len(columns) == len(kept) and all(max(listed.get(at, ()), default=0) < len(found[at]) for at in columns):
            return found
    if not kept:
        return {}
    raise ValueError(
        f"The model was trained on a frame with {len(kept)} columns of a category type, and splits {len(listed)} "
        "columns by categories; LightGBM does not keep which are which. Give it ordered categories as numbers, and "
        "columns in `categorical_feature` as a category type."
    )


class _Tree:
    """One tree of the text."""

    def __init__(self, lines: Mapping[str, str], codes: Mapping[int, tuple[int, ...]]) -> None:
        self._codes = codes
        self._leaves = _numbers(lines, "leaf_value", float)
        self._features = _numbers(lines, "split_feature", int)
        self._thresholds = _numbers(lines, "threshold", float)
        self._edges = _find_edges(np.array(self._thresholds))
        self._kinds = _numbers(lines, "decision_type", int)
        self._children = (_numbers(lines, "left_child", int), _numbers(lines, "right_child", int))
        self._bounds = _numbers(lines, "cat_boundaries", int)
        self._words = _numbers(lines, "cat_threshold", int)

    def grow(self, place: Callable[[float], Node]) -> Node:
        """The tree as splits, with leaves as `place` makes them."""

        def descend(node: int) -> Node:
            if node < 0:
                return place(self._leaves[~node])
            left, right = (descend(child[node]) for child in self._children)
            return self._split(node, left, right)

        return descend(0) if self._features else place(self._leaves[0])

    def _split(self, node: int, left: Node, right: Node) -> Split:
        feature, kind, threshold = self._features[node], self._kinds[node], self._thresholds[node]
        if kind & 1:
            return Split(feature, left, right, left_codes=self._list_codes(feature, int(threshold)), missing_left=False)
        default_left, missing = bool(kind & 2), ("none", "zero", "nan")[(kind >> 2) & 3]
        edge = float(self._edges[node])
        if missing == "nan":
            return Split(feature, left, right, edge, missing_left=default_left)
        if missing == "none":
            return Split(feature, left, right, edge, missing_left=threshold >= 0.0)
        return _split_zero(feature, left, right, edge, default_left=default_left)

    def _list_codes(self, feature: int, place: int) -> frozenset[int]:
        """Our codes of the categories whose bits are set."""
        words = self._words[self._bounds[place] : self._bounds[place + 1]]
        return frozenset(
            code
            for code, own in enumerate(self._codes[feature])
            if own // 32 < len(words) and words[own // 32] >> (own % 32) & 1
        )


def _find_edges(thresholds: FloatArray) -> FloatArray:
    """Edges of `x <= t goes left`, where numbers next to zero are zeros."""
    below = (thresholds >= -_ZERO) & (thresholds < 0)
    above = (thresholds >= 0) & (thresholds <= _ZERO)
    return np.where(below, -_ZERO, np.where(above, after(_ZERO), after(thresholds)))


def _split_zero(feature: int, left: Node, right: Node, edge: float, *, default_left: bool) -> Split:
    """A split in which numbers next to zero, and missing ones, go where missing ones go."""
    own = left if default_left else right
    beyond = Split(feature, left, right, edge, missing_left=True)
    around = Split(feature, own, beyond, float(after(_ZERO)), missing_left=True)
    return Split(feature, beyond, around, -_ZERO, missing_left=False)


def _numbers(lines: Mapping[str, str], key: str, kind: type) -> list[Any]:
    return [kind(word) for word in lines.get(key, "").split()]
