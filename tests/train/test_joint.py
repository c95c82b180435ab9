"""Groups without noise: joint cells, columns in several groups, and the models and certificates that follow."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, Threat, load, save
from derand.model import AdditiveEnsemble, TreeTerm
from derand.train.additive import AdditiveOptions, bin_rows
from derand.train.design.columns import Design
from derand.train.design.joint import JointColumn
from derand.train.design.model import group_rows
from derand.train.formulations import InMemory, Margins, Problem
from derand.train.optimisers.base import Effort
from derand.train.optimisers.blocks import BlockDescent
from derand.train.table import TrainingTable

RADIUS = 0.1
GROUPS = ((0, 1), (1, 2), (0, 2, 3))


def draw(n_rows: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four numbers on a coarse grid, of which two interact."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, size=(n_rows, 4)), 1)
    return X, ((X[:, 0] > 0) ^ (X[:, 2] > 0) ^ (rng.random(n_rows) < 0.1)).astype(np.uint8)


def prepare(radius: float, designed_for: float | None = None) -> tuple[BlockDescent, Design, Margins]:
    options = AdditiveOptions(radius, n_cuts=3)
    problem = Problem(None, Threat(norm=np.inf), options, 4, 2)
    binned = bin_rows(TrainingTable(*draw()), options)
    binned = group_rows(binned, GROUPS, problem.specify(binned), radius, 2)
    rows = Margins(problem, binned)
    design = rows.design(False, designed_for)
    found = rows.prepare(design, InMemory(binned), 0.3, 1)
    assert isinstance(found, BlockDescent)
    return found, design, rows


def list_margins(design: Design, weights: np.ndarray, X: np.ndarray, y: np.ndarray, radius: float) -> np.ndarray:
    """Sums of the least values of all groups over a fine grid of changes of their columns."""
    margins = weights[0] * (2.0 * y - 1)
    shifts = np.linspace(-radius, radius, 25)
    for column, start in zip(design.numbers, design.starts, strict=False):
        assert isinstance(column, JointColumn)
        shape = column.read(weights[start : start + column.n_weights])
        least = np.full(len(X), np.inf)
        for moved in itertools.product(shifts, repeat=len(shape.axes)):
            cells = [
                np.searchsorted(axis.cuts, X[:, axis.feature] + by, side="right")
                for axis, by in zip(shape.axes, moved, strict=True)
            ]
            least = np.minimum(least, (2.0 * y - 1) * shape.values[tuple(cells)])
        margins = margins + least
    return margins


@pytest.mark.parametrize(("radius", "designed_for"), [(RADIUS, RADIUS), (RADIUS, 0.04), (0.0, 0.0)])
def test_margins_are_sums_of_least_values_of_groups(radius: float, designed_for: float) -> None:
    """Also where bins were made for another radius, and places of some codes are repeated."""
    blocks, design, _ = prepare(radius, designed_for)
    weights = np.random.default_rng(1).normal(size=int(design.starts[-1]))
    few = slice(0, 40)
    expected = list_margins(design, weights, *(part[few] for part in draw()), designed_for)
    found = blocks.compute_margins(weights)[few]
    if radius == designed_for:
        assert found == pytest.approx(expected, abs=1e-5)
    else:  # of a bin the mean value moves
        assert np.median(np.abs(found - expected)) < 1e-5


def test_no_weights_lose_less_than_the_gap_allows() -> None:
    blocks = prepare(RADIUS)[0]
    weights = blocks.fit(None, Effort(1e-4, 500))
    assert blocks.result.has_ended
    assert 0 <= blocks.result.gap <= 1e-4 * blocks.result.loss
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        others = weights + scale * rng.normal(size=(20, weights.size))
        assert min(map(blocks.measure, others)) >= blocks.result.loss - blocks.result.gap
    assert blocks.result.loss < blocks.measure(blocks.constant) - 0.05


def draw_frame(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, one of them with gaps, and a category that turns the sign of another column's effect."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(n_rows, 3)), columns=list("abm"))
    frame["k"] = rng.choice(["u", "v", "w"], n_rows)
    frame.loc[rng.random(n_rows) < 0.2, "m"] = np.nan
    return frame, ((frame["a"] > 0) ^ (frame["k"] == "u") | (frame["m"].isna() & (frame["b"] > 0.5))).astype(int)


GROUPED: dict[str, Any] = {"groups": [["a", "k"], ["a", "m"], ["b", "m", "k"]], "regularization": 0.1, "norm": np.inf}


def test_categories_and_missing_values_are_grouped(tmp_path: Path) -> None:
    X, y = draw_frame()
    clf = AdditiveClassifier(radius=0.05, scaling=None, **GROUPED).fit(X, y)
    assert clf.groups_ == (("a", "k"), ("a", "m"), ("b", "m", "k"))
    assert isinstance(clf.ensemble_, AdditiveEnsemble)
    assert isinstance(clf.ensemble_.terms[0], TreeTerm)
    assert (clf.predict(X) == y).mean() > 0.9
    assert clf.gap_ < 0.01
    odd = X[:3].assign(k=["never seen", None, "u"], m=[np.nan, 0.0, np.nan])
    save(clf, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.predict(odd).tolist() == clf.predict(odd).tolist()
    found, other = clf.certify(X[:50]), again.certify(X[:50])
    assert np.array_equal(found.radius, other.radius)
    assert ((found.label == y[:50]) & (found.radius >= 0.05)).mean() > 0.7


def test_what_a_category_may_change_to_is_trained_against() -> None:
    """One changed category: a model that was trained for it certifies more than one that was not."""
    X, y = draw_frame()
    y = ((X["a"] > 0.2) ^ ((X["k"] == "u") & (X["a"].abs() < 0.2))).to_numpy().astype(int)
    threat = Threat(norm=None, l0=1, limits={"a": 0.05, "b": 0.05, "m": 0.05})
    shares = []
    for l0 in (0, 1):
        clf = AdditiveClassifier(radius=0.05, scaling=None, l0=l0, **GROUPED).fit(X, y)
        found = clf.certify(X[:100], threat=threat)
        shares.append(((found.label == y[:100]) & (found.verdict == "holds")).mean())
        some = clf.certify(X[:20], threat=threat)
        assert not clf.attack(X[:20], threat=threat).find_inside(some).any()
    assert shares[1] > shares[0]


def test_certificates_of_overlapping_groups_hold_at_every_cell() -> None:
    """Rows are moved to both ends of every cell in reach: none flips within its radius, some just beyond it."""
    X, y = draw(120)
    clf = AdditiveClassifier(
        radius=0.1, norm=np.inf, scaling=None, n_cuts=2, regularization=0.1, groups=[list(one) for one in GROUPS]
    ).fit(X, y)
    edges = [
        np.unique(np.concatenate([[-9.0], *(axis.edges for axis in clf.ensemble_.terms[0].axes[at : at + 1])]))
        for at in range(4)
    ]
    found = clf.certify(X[:15])
    for row, radius, label in zip(X, found.radius, found.label, strict=False):
        at_all = []
        for value, own in zip(row, edges, strict=True):
            ends = np.concatenate([own, np.nextafter(own, -np.inf), [value]])
            at_all.append(ends)
        every = np.array(list(itertools.product(*at_all)))
        distance = np.abs(every - row).max(axis=1)
        flips = clf.predict(every) != label
        nearest = distance[flips].min() if flips.any() else np.inf
        assert radius <= nearest
        assert radius == pytest.approx(nearest, abs=1e-9)


def test_patches_of_an_image_overlap() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((150, 16))
    y = (X.reshape(-1, 4, 4)[:, :2, :2].mean(axis=(1, 2)) > 0.5).astype(int)
    options: dict[str, Any] = {"radius": 0.1, "norm": np.inf, "scaling": None, "regularization": 1.0}
    square = AdditiveClassifier(groups="patches:2", **options).fit(X, y)
    assert square.groups_[0] == (0, 1, 4, 5)
    assert len(square.groups_) == 9
    wide = AdditiveClassifier(groups="patches:1x2:2x8", **options).fit(X, y)
    assert wide.groups_[:2] == ((0, 1), (1, 2))
    assert len(wide.groups_) == 14
    assert (square.predict(X) == y).mean() > 0.85


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("patches", "must name patches as 'patches:3'"),
        ("patches:2:3x5", "not 3 x 5 pixels"),
        ("patches:4:4x4", "2 to 9 pixels that fit into 4 x 4"),
        ([[0, 1, 1]], "each column once in a group, got 1 twice"),
        ([list(range(10))], "at most 9 columns each, got 10"),
    ],
)
def test_bad_patches_are_refused(groups: Any, words: str) -> None:
    X = np.random.default_rng(0).random((40, 16))
    with pytest.raises(ValueError, match=words):
        AdditiveClassifier(groups=groups, regularization=1.0).fit(X, X[:, 0] > 0.5)


def test_groups_that_help_against_changes_are_found() -> None:
    """A triple that no pair explains, and a number whose effect a category turns; nothing where nothing interacts."""
    X, _ = draw(800)
    options: dict[str, Any] = {"radius": 0.05, "norm": np.inf, "scaling": None, "regularization": 0.1, "groups": "auto"}
    crossed = (X[:, 0] > 0.05) ^ (X[:, 1] > 0.05) ^ (X[:, 2] > 0.05)
    assert AdditiveClassifier(**options).fit(X, crossed).groups_ == ((0, 1, 2),)
    frame, _ = draw_frame(800)
    turned = (frame["a"] > 0) ^ (frame["k"] == "u")
    assert AdditiveClassifier(**options).fit(frame, turned).groups_ == (("a", "k"),)
    rng = np.random.default_rng(0)
    noisy = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X)) > 0
    assert AdditiveClassifier(**options).fit(X, noisy).groups_ == ()
