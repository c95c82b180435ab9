"""Many groups: their functions, the loss to first order and its slopes, and what training makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveClassifier, Gaussian
from derand.threat import Threat
from derand.train import NumberBins, TrainingTable, bin_table
from derand.train.design.columns import ModelSpec
from derand.train.design.products import ProductDesign, choose_smoothed_cuts, design_products
from derand.train.losses.products import ProductLoss


def design_some(norm: float) -> tuple[ProductDesign, ProductLoss, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 9))
    X[::7, 8] = np.nan
    X[:, 7] = rng.integers(0, 3, size=150)
    target = rng.integers(0, 3, size=150).astype(np.uint8)
    binned = bin_table(TrainingTable(X, target, class_weight=np.ones(3), n_categories={7: 3}))
    spec = ModelSpec(Gaussian(0.5), Threat(norm=norm), 9, 5)
    design = design_products(binned, [[0, 1, 2, 3], [4, 5]], spec, 0.3)
    weights = 0.3 * rng.normal(size=(3, design.n_weights))
    weights[:, design.is_fixed] = 0.0
    parts = sum(added for _, added in design.list_parts(weights, binned.codes))
    loss = ProductLoss(design, binned, 3)
    np.testing.assert_allclose(loss.score(weights.ravel()), parts + weights[:, 0], atol=1e-5)
    return design, loss, weights.ravel()


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_slopes_are_those_of_the_loss(norm: float) -> None:
    _, loss, weights = design_some(norm)
    value, slopes = loss.evaluate(weights, 0.0)
    assert value == pytest.approx(loss.measure(weights), rel=1e-6)
    for at in np.random.default_rng(1).choice(np.flatnonzero(slopes), 8):
        step = np.zeros(weights.size)
        step[at] = 1e-2
        risen = (loss.measure(weights + step) - loss.measure(weights - step)) / 2e-2
        assert slopes[at] == pytest.approx(risen, rel=5e-2, abs=5e-4)


def test_slopes_do_not_depend_on_threads() -> None:
    design, loss, weights = design_some(2)
    several = ProductLoss(design, loss._all_rows, 3, 4)
    assert (several.evaluate(weights, 0.0)[1] == loss.evaluate(weights, 0.0)[1]).all()


def test_cuts_lie_where_noise_does_not_hide_them() -> None:
    shares = np.array([0.8, 0.05, 0.05, 0.1])
    bins = NumberBins(0, np.array([0.05, 0.4, 0.8]), np.array([0.0, 0.2, 0.6, 1.0]), shares, 0.0)
    assert choose_smoothed_cuts(bins, Gaussian(0.25), 1).tolist() == [0.4]
    assert choose_smoothed_cuts(bins, Gaussian(0.25), 3).size == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_groups_tell_what_single_columns_cannot(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1000, 16))
    crossed = sum(((X[:, 2 * k] > 0) ^ (X[:, 2 * k + 1] > 0)).astype(int) for k in range(8))
    y = np.digitize(crossed, [4] if n_classes == 2 else [4, 5])
    groups = [[2 * k, 2 * k + 1] for k in range(8)]
    options = {"radius": 0.05, "noise": "gaussian:0.1", "scaling": None, "regularization": 1.0}
    clf = AdditiveClassifier(groups=groups, **options).fit(X[:800], y[:800])
    assert clf.groups_ == tuple(map(tuple, groups))
    assert {term.features for term in clf.ensemble_.terms} == {tuple(group) for group in groups}
    assert (clf.predict(X[800:]) == y[800:]).mean() > (0.75 if n_classes == 2 else 0.65)  # by chance 0.5 and 0.36
    found = clf.certify(X[800:840])
    assert (found.radius > 0.02).mean() > 0.5
    assert (clf.attack(X[800:810]).distance >= found.radius[:10]).all()
    assert np.isfinite(clf.predict_proba(X[:5])).all()


def test_few_groups_of_several_classes_are_trained_by_duels() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 3))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)) + (X[:, 2] > 0.3).astype(int)
    clf = AdditiveClassifier(radius=0.05, regularization=0.3, groups="auto").fit(X, y)
    assert clf.groups_ == ((0, 1),)
    assert (clf.predict(X) == y).mean() > 0.9
    plain, alone = (
        AdditiveClassifier(radius=0.05, regularization=0.3, groups=one).fit(X, y) for one in (None, [[0], [1]])
    )
    assert [one.describe() for one in plain.ensemble_.terms] == [one.describe() for one in alone.ensemble_.terms]
