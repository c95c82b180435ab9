"""Veritas: the linf robustness of a tree ensemble by search, and how long it takes.

Veritas (Devos, Meert and Davis, 2021) bounds the output of an ensemble in a box by heuristic search and bisects the
size of the box. Owns how it is asked: its settings, its form of the model, its tolerance. Must not know derand's
models.

Its comparison is `x < threshold` in doubles. XGBoost rounds x to single precision first, so that the two disagree on
doubles within half a unit in the last place below a threshold: give it rows that are rounded already.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray

RELATIVE_TOLERANCE = 1e-5
"""Veritas stops bisecting where the bounds are this close, relative to the upper one; it cannot be told otherwise."""
SEARCH_GUARD = 1e-9
"""How far into a cell the examples lie that Veritas makes; its default of 1e-4 is the error of the upper bound."""
_STEPS = 100
"""Of the bisection, at most; some twenty are needed."""
_SECONDS = 100.0
"""For a row, at most: in a step that runs out of its share of time Veritas would guess."""


class PeerRadii(NamedTuple):
    """What Veritas found, one entry per row.

    Attributes
    ----------
    lower, upper : arrays of shape (n_rows,)
        Proven, and reached by an example; both `inf` where no change flips the label.
    seconds : array of shape (n_rows,)
    """

    lower: FloatArray
    upper: FloatArray
    seconds: FloatArray

    @property
    def is_finished(self) -> NDArray[np.bool_]:
        """Whether the bounds are as close as Veritas brings them; where not, it ran out of time."""
        with np.errstate(invalid="ignore"):  # inf - inf
            is_close = self.upper - self.lower <= 1.01 * RELATIVE_TOLERANCE * self.upper
        is_empty = self.upper <= 1e-7  # what it takes for 0
        return np.asarray(is_close | is_empty | (self.upper == self.lower))


def make_addtree(model: Any) -> Any:
    """An XGBoost model in Veritas' form, by its own converter.

    Parameters
    ----------
    model : xgboost.Booster or xgboost.XGBClassifier

    Returns
    -------
    veritas.AddTree
    """
    return _import_veritas().get_addtree(model, silent=True)


def merge_by_feature(addtree: Any) -> Any:
    """The same sum of stumps with one tree per feature: the form that is kindest to Veritas.

    Its heuristic adds up the best leaf of every tree, which is exact where no two trees share a feature.

    Parameters
    ----------
    addtree : veritas.AddTree
        Of trees of depth 1 or 0, one output.

    Returns
    -------
    veritas.AddTree
    """
    base = addtree.get_base_score(0)
    stumps: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for tree in addtree:
        root = tree.root()
        if tree.is_leaf(root):
            base += tree.get_leaf_value(root, 0)
            continue
        split, leaves = tree.get_split(root), (tree.left(root), tree.right(root))
        if not all(tree.is_leaf(leaf) for leaf in leaves):
            raise ValueError("`addtree` must consist of trees of depth 1 or 0, got a deeper one.")
        left, right = (tree.get_leaf_value(leaf, 0) for leaf in leaves)
        stumps[split.feat_id].append((split.split_value, left, right))
    merged = _import_veritas().AddTree(1, addtree.get_type())
    merged.set_base_score(0, base)
    for feature, group in stumps.items():
        splits = sorted({split for split, _, _ in group})
        cells = [
            math.fsum(left if split > low else right for split, left, right in group) for low in [-np.inf, *splits]
        ]
        tree = merged.add_tree()
        _grow(tree, tree.root(), feature, splits, cells)
    return merged


def _grow(tree: Any, node: int, feature: int, splits: list[float], leaves: list[float]) -> None:
    """Split a node until each leaf is a cell; balanced."""
    if not splits:
        tree.set_leaf_value(node, 0, leaves[0])
        return
    middle = len(splits) // 2
    tree.split(node, feature, splits[middle])
    _grow(tree, tree.left(node), feature, splits[:middle], leaves[: middle + 1])
    _grow(tree, tree.right(node), feature, splits[middle + 1 :], leaves[middle + 1 :])


def search_radii(addtree: Any, rows: FloatArray, label: IntArray) -> PeerRadii:
    """Bounds of each row's linf radius by Veritas' bisection, one row after the other.

    Parameters
    ----------
    addtree : veritas.AddTree
    rows : array of shape (n_rows, n_features)
    label : array of integers, shape (n_rows,)
        1 where the output is above 0.

    Returns
    -------
    PeerRadii
    """
    search = _import_veritas().VeritasRobustnessSearch
    targets = {0: addtree, 1: addtree.negate_leaf_values()}  # negated once, not for each row
    splits = addtree.get_splits()
    reach = 1.01 * max(float(np.abs(rows[:, [at]] - np.array(splits[at])).max()) for at in splits) + SEARCH_GUARD
    bounds, seconds = np.empty((len(rows), 2)), np.empty(len(rows))
    settings = {"num_steps": _STEPS, "max_time": _SECONDS, "search_guard": SEARCH_GUARD, "silent": True}
    for number, row in enumerate(rows):
        started = time.perf_counter()
        _, *bounds[number] = search(row, reach, None, targets[int(label[number])], **settings).search()
        seconds[number] = time.perf_counter() - started
    bounds[bounds[:, 0] >= reach] = np.inf  # all splits are within reach
    return PeerRadii(bounds[:, 0], bounds[:, 1], seconds)


class PeerSigns(NamedTuple):
    """What Veritas found of the least and the largest output in a box of each row; neither where it ran out of time."""

    holds: BoolArray
    flips: BoolArray
    seconds: FloatArray


def search_signs(
    addtree: Any, low: FloatArray, high: FloatArray, label: IntArray, *, is_pruned: bool = False
) -> PeerSigns:
    """Whether the output of each row keeps its sign in a box, by the search within Veritas' robustness search.

    `low`, `high`: in single precision, both inside; `label`: 1 where the output is above 0; `is_pruned`: whether trees
    are cut down to each box first, as that search does, and a search that is called directly does not.
    """
    veritas = _import_veritas()
    config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
    config.stop_when_optimal, config.stop_when_num_solutions_exceeds = True, 1
    config.ignore_state_when_worse_than, config.max_focal_size, config.focal_eps = 0.0, 1000, 0.2
    config.max_memory = 2**30
    targets = {0: addtree, 1: addtree.negate_leaf_values()}
    found = PeerSigns(np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool), np.empty(len(low)))
    for row, (first, last) in enumerate(zip(low.tolist(), np.nextafter(high, np.inf).tolist(), strict=True)):
        started = time.process_time()
        box = [veritas.Interval(*ends) for ends in zip(first, last, strict=True)]
        target = targets[int(label[row])]
        search = config.get_search(target.prune(box) if is_pruned else target, box)
        search.step_for(_SECONDS, 100)
        if search.num_solutions() and search.get_solution(0).output > 0.0:
            found.flips[row] = True
        else:
            found.holds[row] = search.current_bounds().best < 0.0
        found.seconds[row] = time.process_time() - started
    return found


def _import_veritas() -> Any:
    try:
        import veritas
    except ImportError as error:
        raise ValueError("This needs veritas, which is not installed: pip install --group peers.") from error
    return veritas
