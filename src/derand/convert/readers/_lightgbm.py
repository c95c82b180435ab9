"""LightGBM: its model text, read line by line; `x <= t` in doubles, leaves added up in doubles.

Owns what that text means: rules for missing values, zeros and categories, objectives, averages. Must not know how trees
are summed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.origin import Cell, Fitted
from derand.convert._columns import order_categories, recode_rows, require_fitted
from derand.convert._edges import after
from derand.convert._forests import LEAF
from derand.convert._trees import DOUBLE, Tree, TreeReading, place_values
from derand.tables import Category, Labels, TableEncoding

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
    pandas_categories: Sequence[Sequence[object]]

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


def read(model: Fitted) -> TreeReading:
    """A fitted LGBMClassifier, LGBMRegressor or lightgbm.Booster."""
    wrapped = hasattr(model, "get_params")
    source = f"lightgbm.{type(model).__name__}"
    if not wrapped:
        return _read_text(model.model_to_string(), source, None, model)
    require_fitted(model, model.__sklearn_is_fitted__())
    steering = sorted(key for key, value in model.get_params().items() if key in _STEERING and value)
    if steering:
        raise ValueError(f"`model` predicts with {', '.join(steering)}, which leaves trees out: train it without.")
    return _read_text(model.booster_.model_to_string(), source, getattr(model, "classes_", None), model.booster_)


def load_file(path: Path) -> TreeReading:
    """A model that `Booster.save_model` wrote; LightGBM is asked for raw scores where it is installed."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith("tree"):
        raise ValueError(f"{path} is no model of LightGBM: its text begins with the line 'tree'.")
    try:
        import lightgbm
    except ImportError:
        return _read_text(text, "lightgbm.Booster", None, None)
    return _read_text(text, "lightgbm.Booster", None, lightgbm.Booster(model_str=text))


def _read_text(text: str, source: str, classes: Labels | None, booster: Fitted) -> TreeReading:
    parts = _parse(text)
    encoding, codes = _read_columns(parts)
    objective, n_outputs = parts.objective, parts.n_outputs
    _refuse_objective(parts, source, is_classifier=classes is not None)
    if classes is None and objective in ("binary", "multiclass", "multiclassova"):
        classes = np.arange(max(2, n_outputs))
    if classes is not None and classes.size != max(2, n_outputs):
        raise ValueError(f"{source} has {n_outputs} raw scores for {classes.size} classes, which cannot be read.")
    scale = parts.read_option("sigmoid", 1.0) if objective == "binary" else 1.0
    if "average_output" in parts.header:  # of random forests: `raw_score=True` gives the sum, `predict` divides it
        scale /= max(1, len(parts.trees) // n_outputs)
    trees = [_grow(tree, codes, scale, at % n_outputs, n_outputs) for at, tree in enumerate(parts.trees)]

    def raw_scores(rows: FloatArray) -> FloatArray:
        return np.asarray(booster.predict(recode_rows(rows, codes), raw_score=True), dtype=np.float64) * scale

    return TreeReading(
        trees,
        np.zeros(n_outputs),
        encoding,
        classes,
        "logit" if objective in ("binary", "multiclass") else "none",
        None if booster is None else raw_scores,
        source,
        n_roundings=len(trees) // n_outputs + 4,
        unit=DOUBLE,
        slack=0.0 if classes is None else _bound_link(objective, trees, parts.read_option("sigmoid", 1.0)),
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


def _bound_link(objective: str, trees: Sequence[Tree], slope: float) -> float:
    """How far raw scores may lie beyond a tie before probabilities in doubles tell them apart."""
    if objective != "multiclassova":
        return 2.0**-48
    largest = max(map(math.fsum, zip(*(tree.largest_leaves.tolist() for tree in trees), strict=True)))
    slack = 2.0**-48 * float(np.exp(min(largest * slope, 600.0)))
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
    categories: dict[int, tuple[Category, ...]] = {}
    codes: dict[int, tuple[int, ...]] = {}
    for column, values in _match_pandas(parts, infos, listed).items():
        own = column if names is None else names[column]
        categories[column], codes[column] = order_categories(values, own)
    if not parts.pandas_categories:
        categories, codes = dict(listed), dict(listed)
    return TableEncoding(n_features, names, categories), codes


def _match_pandas(parts: _Text, infos: Sequence[str], listed: Mapping[int, Cell]) -> dict[int, Sequence[Cell]]:
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


def _grow(
    lines: Mapping[str, str], codes: Mapping[int, tuple[int, ...]], scale: float, output: int, n_outputs: int
) -> Tree:
    """One tree of the text: its splits, then its leaves, then what splits by zeros need beside themselves."""
    features, kinds = _numbers(lines, "split_feature", int), _numbers(lines, "decision_type", int)
    thresholds, leaves = _numbers(lines, "threshold", float), _numbers(lines, "leaf_value", float)
    n_splits = len(features)
    feature, edge = [*features, *[LEAF] * len(leaves)], [*_move_edges(np.array(thresholds)), *[0.0] * len(leaves)]
    left, right = (
        [child if child >= 0 else n_splits + ~child for child in _numbers(lines, name, int)] + [0] * len(leaves)
        for name in ("left_child", "right_child")
    )
    missing_left, left_codes = [False] * len(feature), {}
    for node, (kind, threshold) in enumerate(zip(kinds, thresholds, strict=True)):
        default_left = bool(kind & 2)
        if kind & 1:
            left_codes[node] = _list_codes(lines, codes[features[node]], int(threshold))
        elif kind >> 2 & 3 == 2:  # NaN is missing
            missing_left[node] = default_left
        elif kind >> 2 & 3 == 0:  # nothing is: NaN is a zero
            missing_left[node] = threshold >= 0.0
        else:  # numbers next to zero, and missing ones, go where missing ones go: three splits
            beyond, around = len(feature), len(feature) + 1
            feature += [features[node]] * 2
            edge += [edge[node], float(after(_ZERO))]
            left += [left[node], left[node] if default_left else right[node]]
            right += [right[node], beyond]
            missing_left += [True, True]
            edge[node], left[node], right[node] = -_ZERO, beyond, around
    values = np.zeros(len(feature))
    values[n_splits : n_splits + len(leaves)] = scale * np.array(leaves)
    return Tree(
        np.array(feature),
        np.array(edge),
        np.array(left),
        np.array(right),
        place_values(values, output, n_outputs),
        np.array(missing_left),
        left_codes=left_codes,
    )


def _list_codes(lines: Mapping[str, str], codes: Sequence[int], at: int) -> frozenset[int]:
    """Our codes of the categories whose bits are set."""
    bounds, words = _numbers(lines, "cat_boundaries", int), _numbers(lines, "cat_threshold", int)
    own = words[bounds[at] : bounds[at + 1]]
    return frozenset(
        code for code, theirs in enumerate(codes) if theirs // 32 < len(own) and own[theirs // 32] >> (theirs % 32) & 1
    )


def _move_edges(thresholds: FloatArray) -> FloatArray:
    """Edges of `x <= t goes left`, where numbers next to zero are zeros."""
    below = (thresholds >= -_ZERO) & (thresholds < 0)
    above = (thresholds >= 0) & (thresholds <= _ZERO)
    return np.where(below, -_ZERO, np.where(above, after(_ZERO), after(thresholds)))


def _numbers(lines: Mapping[str, str], key: str, kind: type) -> list[Cell]:
    return [kind(word) for word in lines.get(key, "").split()]
