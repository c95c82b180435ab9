"""Prediction sets whose coverage holds under attack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, AdditiveRegressor, ConformalPredictor, StumpClassifier, Threat
from derand._core.arrays import FloatArray
from derand.certificates.search.worst_positions import move_to_worst
from derand.perturbation import resolve

THREAT = Threat(norm=None, limits={0: "10%", 1: (0.0, 0.4)}, frozen=[2])
"""Neither a percentage nor what is one-sided is the same around the row that is seen."""


def draw_table(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    X = rng.normal(size=(n, 3)) + np.array([3.0, 0.0, 0.0])
    return X, 1.5 * X[:, 0] + 2 * np.sin(2 * X[:, 1]) + X[:, 2] + rng.normal(size=n)


def attack_rows(model: AdditiveClassifier | AdditiveRegressor, X: FloatArray, signs: FloatArray) -> FloatArray:
    """Rows at their lowest score within the threat, or where signs are -1 at their highest."""
    perturbation = resolve(THREAT, model.ensemble_, None)
    return move_to_worst(model.ensemble_.members[0], X, None, perturbation, signs)


def test_attacked_rows_of_two_classes_are_covered_as_promised() -> None:
    rng = np.random.default_rng(0)
    X, score = draw_table(rng, 1000)
    clf = AdditiveClassifier(radius=0, regularization=0.1).fit(X, score > 5)
    shares = {"attacked": [], "clean": [], "attacked plain": []}
    for _ in range(40):
        X, score = draw_table(rng, 400)
        y = score > 5
        robust = ConformalPredictor(clf, coverage=0.8, threat=THREAT).calibrate(X[:200], y[:200])
        plain = ConformalPredictor(clf, coverage=0.8, threat=Threat(norm=2), radius=0.0).calibrate(X[:200], y[:200])
        rows, truth = X[200:], y[200:].astype(int)
        changed = attack_rows(clf, rows, np.where(truth == 1, 1.0, -1.0))
        at = np.arange(len(rows))
        shares["attacked"].append(robust.predict_set(changed)[at, truth].mean())
        shares["clean"].append(robust.predict_set(rows)[at, truth].mean())
        shares["attacked plain"].append(plain.predict_set(changed)[at, truth].mean())
        assert robust.quantile_ >= plain.quantile_
    means = {name: float(np.mean(own)) for name, own in shares.items()}
    assert 0.78 < means["attacked"] < 0.84  # 40 splits of 200: its standard error is 0.006
    assert means["clean"] > means["attacked"]
    assert means["attacked plain"] < 0.75


def test_attacked_numbers_are_covered_as_promised() -> None:
    rng = np.random.default_rng(1)
    X, y = draw_table(rng, 1000)
    reg = AdditiveRegressor(radius=0, regularization=1.0).fit(X, y)
    shares, plain_shares = [], []
    for _ in range(40):
        X, y = draw_table(rng, 400)
        robust = ConformalPredictor(reg, coverage=0.8, threat=THREAT).calibrate(X[:200], y[:200])
        plain = ConformalPredictor(reg, coverage=0.8, threat=Threat(norm=2), radius=0.0).calibrate(X[:200], y[:200])
        rows, truth = X[200:], y[200:]
        ends = [attack_rows(reg, rows, np.full(len(rows), sign)) for sign in (1.0, -1.0)]
        farther = np.abs(reg.predict(ends[0]) - truth) > np.abs(reg.predict(ends[1]) - truth)
        changed = np.where(farther[:, None], ends[0], ends[1])
        for sets, own in ((robust, shares), (plain, plain_shares)):
            low, high = sets.predict_set(changed).T
            own.append(float(((truth >= low) & (truth <= high)).mean()))
    assert 0.78 < np.mean(shares) < 0.84
    assert np.mean(plain_shares) < 0.75


def test_several_classes_under_noise() -> None:
    rng = np.random.default_rng(0)
    X, score = draw_table(rng, 1500)
    y = np.digitize(score, [3.0, 6.0])
    clf = AdditiveClassifier(radius=0.1, regularization=0.1).fit(X[:500], y[:500])
    sets = ConformalPredictor(clf, coverage=0.9).calibrate(X[500:1000], y[500:1000])
    changed = X[1000:] + 0.07 * rng.choice([-1, 1], (500, 3)) / np.sqrt(3)
    inside = sets.predict_set(changed)
    assert inside.shape == (500, 3)
    assert inside[np.arange(500), y[1000:]].mean() > 0.88
    plain = ConformalPredictor(clf, coverage=0.9, radius=0.0).calibrate(X[500:1000], y[500:1000])
    assert plain.quantile_ < sets.quantile_
    assert (inside | ~plain.predict_set(changed)).all()


def test_too_few_rows_give_everything() -> None:
    rng = np.random.default_rng(0)
    X, score = draw_table(rng, 100)
    clf = AdditiveClassifier(radius=0.1, regularization=0.1).fit(X, score > 5)
    sets = ConformalPredictor(clf, coverage=0.9).calibrate(X[:8], score[:8] > 5)
    assert np.isinf(sets.quantile_)
    assert sets.predict_set(X).all()
    assert np.isfinite(ConformalPredictor(clf, coverage=0.9).calibrate(X[:9], score[:9] > 5).quantile_)


def test_what_is_refused_in_one_line() -> None:
    rng = np.random.default_rng(0)
    X, score = draw_table(rng, 100)
    y = np.where(score > 5, "yes", "no")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = AdditiveClassifier(radius=0.1, regularization=0.1).fit(table, y)
    for coverage in (0, 1, 1.5, True, "0.9"):
        with pytest.raises(ValueError, match=r"`coverage` must lie between 0 and 1"):
            ConformalPredictor(clf, coverage=coverage)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must hold calibration rows, got none"):
        ConformalPredictor(clf).calibrate(table[:0], y[:0])
    with pytest.raises(ValueError, match=r"`y` must hold labels among \['no', 'yes'\], got 'maybe'"):
        ConformalPredictor(clf).calibrate(table[:1], ["maybe"])
    with pytest.raises(ValueError, match=r"`y` must hold one label per row, 2 in all"):
        ConformalPredictor(clf).calibrate(table[:2], y[:1])
    with pytest.raises(ValueError, match=r"is not calibrated"):
        ConformalPredictor(clf).predict_set(table)
    with pytest.raises(TypeError, match=r"`estimator` must be a fitted estimator of derand"):
        ConformalPredictor(AdditiveClassifier())
    stumps = StumpClassifier(noise="gaussian:0.25").fit(table, y)
    with pytest.raises(ValueError, match=r"need the rule 'mean', got 'vote'"):
        ConformalPredictor(stumps)
    means = StumpClassifier(noise="gaussian:0.25", rule="mean").fit(table, y)
    with pytest.raises(ValueError, match=r"`radius` must be given, such as 0.25: this StumpClassifier"):
        ConformalPredictor(means).calibrate(table, y)
