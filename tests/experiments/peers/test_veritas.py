"""Asking Veritas: its radii are those of the plain baseline, and merging trees changes nothing but the time."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from derand._core.arrays import FloatArray, IntArray
from experiments.peers import PeerRadii, convert_stumps, find_linf_radii, make_addtree, merge_by_feature, search_radii

REASON = "the dependency group `peers` is not installed"


@pytest.fixture(scope="module")
def stumps() -> tuple[Any, FloatArray, IntArray]:
    """A classifier, rows in single precision, and their labels."""
    pytest.importorskip("veritas", reason=REASON)
    xgboost = pytest.importorskip("xgboost", reason=REASON)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 4)).astype(np.float32).astype(np.float64)
    y = rows.sum(axis=1) + 0.5 * rng.normal(size=300) > 0
    classifier = xgboost.XGBClassifier(n_estimators=40, max_depth=1, n_jobs=1).fit(rows, y)
    return classifier, rows, classifier.predict(rows)


def test_radii_are_those_of_the_plain_baseline(stumps: tuple[Any, FloatArray, IntArray]) -> None:
    """For both forms of the model, within Veritas' tolerance and half a unit of single precision."""
    classifier, rows, label = stumps
    plain = find_linf_radii(convert_stumps(classifier, 4), rows[:40])
    addtree = make_addtree(classifier)
    for form in (addtree, merge_by_feature(addtree)):
        found = search_radii(form, rows[:40], label[:40])
        assert found.is_finished.all()
        assert (found.seconds > 0).all()
        assert (found.lower <= plain.flipped + 1e-6).all()
        assert (plain.radius <= found.upper + 1e-6).all()
        assert np.median(np.abs(found.upper - plain.radius)) < 1e-6


def test_merged_trees_have_the_same_output(stumps: tuple[Any, FloatArray, IntArray]) -> None:
    """One tree per feature."""
    classifier, rows, _ = stumps
    addtree = make_addtree(classifier)
    merged = merge_by_feature(addtree)
    assert len(merged) == len(addtree.get_splits()) <= 4
    np.testing.assert_allclose(merged.eval(rows), addtree.eval(rows), atol=1e-9)


def test_a_label_that_nothing_flips_has_no_end() -> None:
    """All leaves, and a tree without a split, on one side."""
    veritas = pytest.importorskip("veritas", reason=REASON)
    addtree = veritas.AddTree(1, veritas.AddTreeType.REGR)
    tree = addtree.add_tree()
    tree.split(tree.root(), 0, 0.5)
    tree.set_leaf_value(tree.left(tree.root()), 0, 1.0)
    tree.set_leaf_value(tree.right(tree.root()), 0, 2.0)
    constant = addtree.add_tree()
    constant.set_leaf_value(constant.root(), 0, 0.25)
    for form in (addtree, merge_by_feature(addtree)):
        assert form.eval(np.array([[0.0]])).tolist() == [[1.25]]
        found = search_radii(form, np.array([[0.0], [3.0]]), np.array([1, 1]))
        assert found.lower.tolist() == found.upper.tolist() == [np.inf, np.inf]
        assert found.is_finished.all()


def test_deeper_trees_are_not_merged() -> None:
    """They are no functions of one feature."""
    veritas = pytest.importorskip("veritas", reason=REASON)
    addtree = veritas.AddTree(1, veritas.AddTreeType.REGR)
    tree = addtree.add_tree()
    tree.split(tree.root(), 0, 0.5)
    tree.split(tree.left(tree.root()), 1, 0.5)
    with pytest.raises(ValueError, match="depth 1 or 0, got a deeper one"):
        merge_by_feature(addtree)


def test_bounds_far_apart_are_unfinished() -> None:
    """Close, equal, infinite and empty boxes are finished."""
    lower, upper = np.array([0.1, 0.1, np.inf, 0.0]), np.array([0.1000001, 0.2, np.inf, 1e-9])
    assert PeerRadii(lower, upper, np.ones(4)).is_finished.tolist() == [True, False, True, True]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(sys.modules, "veritas", None)
    with pytest.raises(ValueError, match=r"needs veritas, which is not installed: pip install --group peers"):
        make_addtree(None)
