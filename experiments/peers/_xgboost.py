"""XGBoost's stumps as an AdditiveEnsemble that stands for the model as it is deployed, single precision included.

Owns what XGBoost does with a number: it rounds a row to single precision, compares `x < threshold`, adds leaves in
single precision, and answers class 1 where the probability is above 1/2. Must not know rows, noise or certificates.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from derand.model import AdditiveEnsemble, StepFunction

ROUNDING = 2.0**-24
"""Largest relative error of one operation in single precision."""
_FLOAT32_END = 2.0**128
"""Where doubles stand that round to infinity: one step above the largest number in single precision."""


class Stump(NamedTuple):
    """A tree of depth 1: `left` where the rounded value is below `threshold`, all three in single precision."""

    feature: int
    threshold: np.float32
    left: float
    right: float


class Stumps(NamedTuple):
    """What a model consists of: its stumps, the leaves of trees without a split, and the probability it starts at."""

    stumps: list[Stump]
    constants: list[float]
    base_score: float


def convert_stumps(model: Any, n_features: int, levels: int = 2**20) -> AdditiveEnsemble:
    """The sum of an XGBoost model's stumps, one step function per feature, class 1 where XGBoost says so.

    Parameters
    ----------
    model : xgboost.Booster or xgboost.XGBClassifier
        Trees of depth 1 or 0 on numerical features, trained for `binary:logistic`.
    n_features : int
        Columns of the rows.
    levels : int
        Grid step is 1 / levels. Leaves are added up exactly, and each cell of a feature is rounded once.

    Returns
    -------
    AdditiveEnsemble
        Its score lies within `score_error` of XGBoost's margin (less what the model starts at, which is part of the
        threshold), for every row of doubles without NaN: rounding of the cells, XGBoost's additions in single
        precision, and the rounding of its start and of its probability are covered.

    Examples
    --------
    >>> import pytest
    >>> xgboost = pytest.importorskip("xgboost")
    >>> classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=1, base_score=0.5)
    >>> model = convert_stumps(classifier.fit([[0.0], [1.0]] * 20, [0, 1] * 20), n_features=1)
    >>> model.threshold, model.terms[0].edges.tolist(), (model.score([[0.0], [1.0]]) > model.threshold).tolist()
    (0, [0.9999999701976776], [False, True])
    """
    found = read_stumps(model, n_features)
    start = -math.log(1 / found.base_score - 1)
    by_feature: dict[int, list[Stump]] = defaultdict(list)
    for stump in found.stumps:
        by_feature[stump.feature].append(stump)
    terms = [_add_up(feature, by_feature[feature], levels) for feature in sorted(by_feature)]
    offset = Fraction(start) + sum(map(Fraction, found.constants))
    return AdditiveEnsemble(
        terms,
        math.floor(-offset * levels),
        n_features,
        levels,
        score_error=levels * bound_rounding(found, start) + len(terms) / 2,
    )


def find_edge(threshold: np.float32) -> float:
    """The smallest double that XGBoost does not send below a threshold.

    XGBoost compares `float32(x) < threshold`. The doubles that round to the threshold begin in the middle between it
    and its predecessor; the middle itself goes to the one of the two whose last bit is 0.

    Parameters
    ----------
    threshold : numpy.float32
        Finite.

    Returns
    -------
    float

    Examples
    --------
    >>> edge = find_edge(np.float32(0.1))
    >>> edge, [bool(np.float32(x) < np.float32(0.1)) for x in (edge, np.nextafter(edge, 0))]
    (0.09999999776482583, [False, True])
    """
    with np.errstate(over="ignore"):  # below the smallest number is -inf
        below = float(np.nextafter(threshold, np.float32(-np.inf)))
    middle = (max(below, -_FLOAT32_END) + float(threshold)) / 2  # exact: 25 bits
    is_even = not int(threshold.view(np.uint32)) & 1
    return middle if is_even else math.nextafter(middle, math.inf)


def bound_rounding(found: Stumps, start: float) -> float:
    """How far XGBoost's margin may lie from the exact sum, and its answer from the margin's sign."""
    leaves = [max(abs(stump.left), abs(stump.right)) for stump in found.stumps] + [
        abs(leaf) for leaf in found.constants
    ]
    additions = (len(leaves) + 1) * ROUNDING
    adding = additions / (1 - additions) * (math.fsum(leaves) + abs(start))
    starting = 4 * ROUNDING * (1 / (1 - found.base_score) + 1 + abs(start))  # the logarithm of 1 / p - 1
    answering = 4 * ROUNDING  # a margin this small may have the probability 1/2
    return adding + starting + answering


def read_stumps(model: Any, n_features: int) -> Stumps:
    """The stumps of an XGBoost model; what is not a model of stumps is an error that says why.

    Parameters
    ----------
    model : xgboost.Booster or xgboost.XGBClassifier
    n_features : int

    Returns
    -------
    Stumps
    """
    learner = json.loads(bytes(_find_booster(model).save_raw("json")))["learner"]
    _check_learner(learner, n_features)
    trees = learner["gradient_booster"]["model"]["trees"]
    stumps, constants = [], []
    for number, tree in enumerate(trees):
        read = _read_tree(tree, number)
        if isinstance(read, Stump):
            stumps.append(read)
        else:
            constants.append(read)
    base_score = float(np.float32(np.ravel(json.loads(learner["learner_model_param"]["base_score"]))[0]))
    if not 0 < base_score < 1:
        raise ValueError(f"`model` must start at a probability between 0 and 1, got base_score {base_score}.")
    return Stumps(stumps, constants, base_score)


def _find_booster(model: Any) -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise ValueError("This needs xgboost, which is not installed: pip install --group peers.") from error
    if isinstance(model, xgboost.XGBModel):
        if getattr(model, "early_stopping_rounds", None) is not None:
            raise ValueError(
                "`model` stopped early and predicts with its best rounds alone: give "
                "`model.get_booster()[: model.best_iteration + 1]`."
            )
        return model.get_booster()
    if isinstance(model, xgboost.Booster):
        return model
    raise TypeError(f"`model` must be an xgboost.Booster or an xgboost.XGBClassifier, got {type(model).__name__}.")


def _check_learner(learner: Mapping[str, Any], n_features: int) -> None:
    booster, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    parameters = learner["learner_model_param"]
    if booster != "gbtree":
        raise ValueError(f'`model` must have the booster "gbtree", got "{booster}".')
    if objective != "binary:logistic":
        raise ValueError(f'`model` must have the objective "binary:logistic", got "{objective}".')
    if int(parameters["num_target"]) != 1:
        raise ValueError(f"`model` must have one output, got {parameters['num_target']}: convert one model for each.")
    if int(parameters["num_feature"]) != n_features:
        raise ValueError(f"`n_features` must be the model's {parameters['num_feature']}, got {n_features}.")


def _read_tree(tree: Mapping[str, Any], number: int) -> Stump | float:
    """A stump, or the one leaf of a tree without a split."""
    left, right = tree["left_children"][0], tree["right_children"][0]
    values = tree["split_conditions"]  # of a leaf: its value
    if left == -1:
        return float(np.float32(values[0]))
    if tree["split_type"][0] != 0:
        raise ValueError(f"Trees must split numerical features, but tree {number} splits a categorical one.")
    if tree["left_children"][left] != -1 or tree["left_children"][right] != -1:
        raise ValueError(f"Trees must have depth 1 or 0, but tree {number} is deeper: train with max_depth=1.")
    threshold = np.float32(values[0])
    if not np.isfinite(threshold):
        raise ValueError(f"Thresholds must be finite, but tree {number} splits at {threshold}.")
    return Stump(tree["split_indices"][0], threshold, float(np.float32(values[left])), float(np.float32(values[right])))


def _add_up(feature: int, stumps: Iterable[Stump], levels: int) -> StepFunction:
    """The exact sum of stumps on one feature, each cell rounded once to the grid."""
    jumps: dict[np.float32, Fraction] = defaultdict(Fraction)
    sums = [Fraction(0)]
    for stump in stumps:
        sums[0] += Fraction(stump.left)
        jumps[stump.threshold] += Fraction(stump.right) - Fraction(stump.left)
    thresholds = sorted(jumps)
    for threshold in thresholds:
        sums.append(sums[-1] + jumps[threshold])
    edges = np.array([find_edge(threshold) for threshold in thresholds])
    return StepFunction(feature, edges, np.array([round(value * levels) for value in sums]))
