"""Sums of trees as functions: the same as walking every tree, in exact fractions; what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble
from derand.convert._cells import CellFunctions
from derand.convert._forests import LEAF, UNSEEN, join_forests, shape_forest
from derand.convert._reading import Reading
from derand.convert._trees import Tree, TreeReading, bound_sum_error, part_trees, sum_trees
from derand.tables import TableEncoding


@dataclass
class Split:
    """A split as it is written here; numbers and lists are leaves."""

    feature: int
    left: Node
    right: Node
    edge: float = 0.0
    left_codes: frozenset[int] | None = None
    missing_left: bool = False


Node = Split | float | list[float]


def make_tree(node: Node, *, takes_missing: bool = True) -> Tree:
    """A nested tree as arrays."""
    rows: list[tuple[int, float, int, int, bool]] = []
    values: list[list[float]] = []
    codes: dict[int, frozenset[int]] = {}
    first = node
    while isinstance(first, Split):
        first = first.left
    n_outputs = np.size(first)

    def add(one: Node) -> int:
        at = len(rows)
        rows.append((LEAF, 0.0, 0, 0, False))
        values.append([0.0] * n_outputs if isinstance(one, Split) else np.reshape(one, -1).tolist())
        if isinstance(one, Split):
            rows[at] = (one.feature, one.edge, add(one.left), add(one.right), one.missing_left)
            if one.left_codes is not None:
                codes[at] = one.left_codes
        return at

    add(node)
    feature, edge, left, right, missing_left = (np.array(column) for column in zip(*rows, strict=True))
    return Tree(feature, edge, left, right, np.array(values), missing_left, takes_missing, codes)


def draw_tree(rng: np.random.Generator, columns: list[int], depth: int, n_outputs: int, n_codes: int) -> Node:
    """Column 0 holds categories; some edges are infinite."""
    if depth == 0 or rng.random() < 0.1:
        return (rng.normal(size=n_outputs) * 10.0 ** rng.integers(-3, 4)).tolist()  # type: ignore[no-any-return]
    column = int(rng.choice(columns))
    left, right = (draw_tree(rng, columns, depth - 1, n_outputs, n_codes) for _ in range(2))
    if column == 0:
        codes = np.flatnonzero(rng.random(n_codes) < 0.5).tolist()
        codes += [UNSEEN] * bool(rng.random() < 0.5)
        return Split(0, left, right, left_codes=frozenset(codes), missing_left=True)
    edge = float(rng.choice([np.inf, -np.inf])) if rng.random() < 0.1 else round(float(rng.normal()), 1)
    return Split(column, left, right, edge, missing_left=bool(rng.random() < 0.5))


def walk(tree: Node, row: np.ndarray, n_codes: int) -> Any:
    while isinstance(tree, Split):
        x = row[tree.feature]
        if math.isnan(x):
            left = tree.missing_left
        elif tree.left_codes is not None:
            left = (int(x) if 0 <= x < n_codes else UNSEEN) in tree.left_codes
        else:
            left = x < tree.edge
        tree = tree.left if left else tree.right
    return tree


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_sums_equal_walking_all_trees(seed: int, n_outputs: int) -> None:
    rng = np.random.default_rng(seed)
    n_codes = 4  # the group of column 4 refuses missing values
    groups = {
        0: [[0], [1, 4], [2], [3]],
        1: [[0], [1], [2, 3], [4]],
        2: [[0, 1, 2, 3], [4]],  # categories beside numbers stay trees
        3: [[0, 3], [1, 2], [4]],
    }[seed]
    refusing = next(group for group in groups if 4 in group)
    drawn = [groups[rng.integers(len(groups))] for _ in range(40)]
    trees = [draw_tree(rng, group, int(rng.integers(1, 4)), n_outputs, n_codes) for group in drawn]
    arrays = [make_tree(tree, takes_missing=group != refusing) for tree, group in zip(trees, drawn, strict=True)]
    encoding = TableEncoding(5, None, {0: tuple("abcd")})
    total, constant = sum_trees(part_trees(arrays, encoding), encoding, n_outputs)
    assert len(total.tables) <= 1
    assert all(grid.features in ((2, 3), (1, 4), (1, 2)) for grid in total.grids)
    assert len(total.trees) == (seed > 1)
    classes = np.arange(max(n_outputs, 2))
    intercept = constant if n_outputs > 1 else float(constant[0])
    reading = Reading(
        encoding, total.shapes, total.grids, total.tables, intercept, classes, total.error, trees=total.trees
    )
    model = reading.build()
    rows = rng.normal(size=(200, 5)).round(1)
    rows[:, 0] = rng.integers(-1, n_codes, size=200)
    gaps = rng.random((200, 5)) < 0.1
    gaps[:, refusing] = False
    rows[gaps] = np.nan
    allowed = Fraction(model.score_error) / model.levels
    shift = model.offsets if n_outputs > 1 else (-(model.threshold or 0),)
    for row, scores in zip(rows, np.reshape(model.score(rows), (200, -1)).tolist(), strict=True):
        leaves = [np.reshape(walk(tree, row, n_codes), -1).tolist() for tree in trees]
        for output in range(n_outputs):
            exact = sum(Fraction(leaf[output]) for leaf in leaves)
            ours = Fraction(scores[output] + shift[output], model.levels)
            assert abs(ours - exact) <= allowed
    assert allowed < 1e-9


def sum_up(trees: list[Node], encoding: TableEncoding, *, takes_missing: bool = True) -> CellFunctions:
    arrays = [make_tree(tree, takes_missing=takes_missing) for tree in trees]
    return sum_trees(part_trees(arrays, encoding), encoding, 1)[0]


def test_sums_do_not_lose_small_leaves_beside_large_ones() -> None:
    """Leaves that cancel: a plain sum of doubles would keep nothing of the small one."""
    trees: list[Node] = [Split(0, 1e17, -1e17, 0.0), Split(0, 1.0, 2.0, 0.0), Split(0, -1e17, 1e17, 0.0)]
    total = sum_up(trees, TableEncoding(1, None, {}), takes_missing=False)
    assert np.ravel(total.shapes[0].values).tolist() == [1.0, 2.0]
    assert total.shapes[0].missing is None


def test_pruned_nodes_are_not_read() -> None:
    """Libraries keep nodes that no other one leads to."""
    tree = make_tree(Split(0, 1.0, 2.0, 0.5))
    more = Tree(*(np.concatenate([one, one[:1]]) for one in (tree.feature, tree.edge, tree.left, tree.right)),
                np.array([[9.0], [1.0], [-2.0], [8.0]]), np.zeros(4, dtype=bool))  # fmt: skip
    assert sorted(more.nodes.tolist()) == [0, 1, 2]
    assert more.largest_leaves.tolist() == [2.0]


def test_trees_that_join_much_stay_trees() -> None:
    """More than four columns or a million cells, or categories beside other columns."""
    encoding = TableEncoding(6, tuple("abcdef"), {5: ("x", "y")})

    def chain(columns: list[int]) -> Node:
        tree: Node = 1.0
        for column in columns:
            tree = Split(column, 0.0, tree, 0.5)
        return tree

    (wide,) = sum_up([chain([0, 1, 2]), chain([2, 3, 4])], encoding).trees
    assert (wide.roots.size, np.unique(wide.columns).tolist()) == (2, [0, 1, 2, 3, 4])
    many: list[Node] = [Split(0, 0.0, Split(1, 1.0, 2.0, float(k)), float(k)) for k in range(1200)]
    (fine,) = sum_up(many, encoding, takes_missing=False).trees
    assert (fine.roots.size, fine.refused) == (1200, (0, 1))
    mixed = Split(5, 0.0, Split(0, 1.0, 2.0), left_codes=frozenset([0, UNSEEN]), missing_left=True)
    (one,) = sum_up([mixed], encoding).trees
    assert (one.categories, [codes.tolist() for codes in one.left_codes]) == (((5, 2),), [[-1, 0]])


def _join_all(tree: Node) -> Node:
    """The same with one split more of each of six columns, so that it joins too many to be a function of cells."""
    for column in range(1, 6):
        tree = Split(column, 0.0, tree, 0.5)
    return tree


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (Split(6, 0.0, 1.0), "both as a number and as a category"),
        (Split(0, 0.0, 1.0, math.nan), "threshold of the trees is NaN"),
        (Split(0, 0.0, math.nan), "leaf of the trees is NaN"),
        (Split(0, 0.0, math.inf), "leaf of the trees is NaN or infinite"),
    ],
    ids=["kinds", "threshold", "leaf", "infinity"],
)
@pytest.mark.parametrize("is_deep", [False, True])
def test_what_is_no_tree_is_refused(tree: Node, words: str, is_deep: bool) -> None:
    encoding = TableEncoding(7, None, {6: ("x", "y")})
    with pytest.raises(ValueError, match=words):
        sum_up([_join_all(tree) if is_deep else tree], encoding)


def test_no_trees_are_refused() -> None:
    nothing = TreeReading([], np.zeros(1), TableEncoding(1, None, {}), None, "none", None, "a model", 1, 2.0**-53)
    with pytest.raises(ValueError, match="a model has no trees"):
        nothing.sum_up()


def test_terms_of_trees_hold_no_idle_nodes() -> None:
    """Infinite edges become finite ones, splits that part nothing are left out, shared nodes are copied."""
    encoding = TableEncoding(3, None, {})
    pruned = Split(0, Split(1, 1.0, 2.0, math.inf, missing_left=True), Split(1, 3.0, 4.0, -math.inf), 0.5)
    tree = make_tree(pruned)
    shared = Tree(np.array([0, 1, -1, -1]), np.array([0.0, 1.0, 0, 0]), np.array([1, 2, 0, 0]), np.array([1, 3, 0, 0]),
                  np.array([[0.0], [0.0], [5.0], [6.0]]), np.zeros(4, dtype=bool))  # fmt: skip
    shape, lone = shape_forest(join_forests([tree.forest, shared.forest, make_tree(7.0).forest]), encoding)
    assert shape is not None
    assert [leaf.tolist() for leaf in lone] == [[7.0]]
    assert shape.columns.tolist() == [0, 1]  # column 1 of the first tree parts nothing, column 0 of the second neither
    assert sorted(shape.values.ravel().tolist()) == [1.0, 4.0, 5.0, 6.0]
    gapped = make_tree(Split(0, 1.0, 2.0, math.inf))
    (model,) = [one for one in [shape_forest(gapped.forest, encoding)[0]] if one is not None]
    assert np.isfinite(model.edges).all()
    reading = Reading(encoding, classes=np.arange(2), trees=[model]).build()
    scores = reading.terms[0].score_rows(np.array([[-1e300, 0, 0], [1e300, 0, 0], [np.nan, 0, 0]]))
    assert (scores / reading.levels).tolist() == [1.0, 1.0, 2.0]


def test_errors_of_sums_in_single_precision_are_covered() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 10, 1000):
        leaves = rng.normal(size=n).astype(np.float32)
        running = np.float32(0)
        for leaf in leaves:
            running = np.float32(running + leaf)
        exact = sum(Fraction(float(leaf)) for leaf in leaves)
        total = math.fsum(abs(float(leaf)) for leaf in leaves)
        assert abs(Fraction(float(running)) - exact) <= Fraction(bound_sum_error(n, total, 2.0**-24))


def test_levels_leave_room_for_large_scores() -> None:
    encoding = TableEncoding(1, None, {})
    for size in (1e-12, 1.0, 1e9, 1e14):
        total = sum_up([Split(0, -size, size, 0.0)], encoding)
        model = Reading(encoding, total.shapes, classes=np.arange(2)).build()
        assert isinstance(model, AdditiveEnsemble)
        assert np.sign(model.score([[-1.0], [1.0]]) - (model.threshold or 0)).tolist() == [-1, 1]
        assert model.score_error / model.levels <= max(1e-9, 1e-9 * size)
