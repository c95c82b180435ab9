"""Training for a certified margin: what is learned, what is chosen, and that a fit can be repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from derand.certificates import certify
from derand.noise import Gaussian
from derand.threat import Threat
from derand.train import AdditiveOptions, TrainingTable, measure_units, train_additive


def make_table(n_rows: int = 400, seed: int = 0, n_columns: int = 4) -> TrainingTable:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    score = 2 * np.sin(1.5 * X[:, 0]) + X[:, 1] + rng.logistic(size=n_rows)
    return TrainingTable(X, (score > 0).astype(np.uint8))


@pytest.mark.parametrize(("norm", "radius"), [(1, 0.5), (2, 0.3), (np.inf, 0.3)])
def test_training_for_a_radius_certifies_more_at_it(norm: float, radius: float) -> None:
    table, test = make_table(1000), make_table(1000, seed=1)
    noise, threat = Gaussian(radius / 2), Threat(norm=norm)
    certified = []
    for trained in (0.0, radius):
        training = train_additive(table, noise, threat, AdditiveOptions(trained, regularization=0.1))
        found = certify(training.model, test.X, noise, rule="mean", threat=threat)
        certified.append(((found.label == test.target) & (found.radius >= radius)).mean())
    assert certified[1] > certified[0] + 0.01


def test_a_fit_can_be_repeated_on_any_number_of_threads() -> None:
    table = make_table(4_000)
    models = [
        train_additive(table, Gaussian(0.1), Threat(norm=2), AdditiveOptions(0.2, n_threads=n_threads)).model
        for n_threads in (1, 2)
    ]
    first, second = ([term.describe() for term in model.terms] for model in models)
    assert first == second
    assert models[0].threshold == models[1].threshold


def test_a_weight_counts_as_so_many_rows() -> None:
    table = make_table(80)
    repeats = np.random.default_rng(0).integers(1, 4, size=80)
    weighted = replace(table, sample_weight=repeats / repeats.mean())
    repeated = table.take(np.repeat(np.arange(80), repeats))
    models = [train_additive(one, None, Threat(norm=2), AdditiveOptions(0.0)).model for one in (weighted, repeated)]
    rows = make_table(200, seed=1).X
    scores = [(model.score(rows) - (model.threshold or 0)) / model.levels for model in models]
    assert scores[0] == pytest.approx(scores[1], abs=1e-2)


def test_cross_validation_takes_what_loses_least() -> None:
    training = train_additive(make_table(1000), None, Threat(norm=2), AdditiveOptions(0.0))
    path = training.path
    assert path.loss.size == path.ramp.size == path.error.size == path.regularization.size >= 4
    assert path.regularization[int(np.argmin(path.loss))] == training.regularization
    assert (path.error > 0).all()


def test_classes_of_one_row_each_are_trained_without_folds() -> None:
    table = TrainingTable(np.array([[0.0], [1.0]]), np.array([0, 1], dtype=np.uint8))
    training = train_additive(table, None, Threat(norm=2), AdditiveOptions(0.0))
    assert training.path.loss.size == 0
    assert (training.model.score([[0.0], [1.0]]) > training.model.threshold).tolist() == [False, True]


def test_collapse_names_a_radius_at_which_it_does_not() -> None:
    table = make_table(600)
    options = AdditiveOptions(6.0, regularization=0.1)
    (text,) = train_additive(table, Gaussian(3.0), Threat(norm=np.inf), options).warnings
    assert "collapsed" in text
    largest = float(text.split("were tried, ")[1].split(" ")[0])
    assert 0 < largest < 6
    again = replace(options, radius=largest / 2)
    assert train_additive(table, Gaussian(largest / 4), Threat(norm=np.inf), again).warnings == ()


def test_a_category_that_no_change_reaches_is_not_given_up_with_the_numbers() -> None:
    """Where numbers count for next to nothing at a radius, categories still tell rows apart."""
    rng = np.random.default_rng(0)
    X, code, worth = rng.normal(size=(800, 4)), rng.integers(0, 3, 800), 0.5 * rng.normal(size=3)
    score = 0.8 * (X[:, 0] + X[:, 3]) + worth[code] + rng.logistic(size=800)
    table = TrainingTable(np.column_stack([X, code]), (score > 0).astype(np.uint8), n_categories={4: 3})
    training = train_additive(table, Gaussian(0.25), Threat(norm=2), AdditiveOptions(0.5, regularization=1.0))
    assert training.importances[4] > 0.5
    assert training.warnings == ()
    assert training.record.fit.gap < 2e-3 * training.record.fit.loss


def test_numbers_that_no_longer_count_are_named() -> None:
    """A radius that leaves nothing of the numbers, and categories that still tell the classes apart."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 400).astype(np.float64)
    target = np.where(rng.random(400) < 0.9, codes, 1 - codes).astype(np.uint8)
    X = np.column_stack([rng.normal(size=400) + 0.5 * target, codes])
    table = TrainingTable(X, target, n_categories={1: 2})
    (text,) = train_additive(table, Gaussian(5.0), Threat(norm=2), AdditiveOptions(10.0, regularization=1.0)).warnings
    assert "no numerical column counts any more" in text
    assert (
        train_additive(table, Gaussian(0.05), Threat(norm=2), AdditiveOptions(0.1, regularization=1.0)).warnings == ()
    )


def test_monotone_columns_only_rise_or_fall() -> None:
    table = make_table(500)
    options = AdditiveOptions(0.1, regularization=0.01, monotone={0: 1, 2: -1})
    model = train_additive(table, Gaussian(0.05), Threat(norm=2), options).model
    for term in model.terms:
        jumps = np.diff(term.scores.ravel())
        if term.features == (0,):
            assert (jumps > 0).all()
        if term.features == (2,):
            assert (jumps < 0).all()


def test_missing_numbers_are_learned_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    X[rng.random(800) < 0.3, 0] = np.nan
    target = (np.where(np.isnan(X[:, 0]), 2.0, X[:, 0]) + rng.logistic(size=800) > 0).astype(np.uint8)
    model = train_additive(TrainingTable(X, target), None, Threat(norm=2), AdditiveOptions(0.0)).model
    (first,) = [term for term in model.terms if term.features == (0,)]
    at_missing, in_the_middle = first.evaluate([np.nan, 0.0])
    assert (at_missing - in_the_middle) / model.levels > 0.8


def test_rounding_moves_the_score_by_next_to_nothing() -> None:
    table = make_table(500)
    training = train_additive(table, None, Threat(norm=2), AdditiveOptions(0.0, regularization=1.0))
    assert training.model.levels > 1000
    assert training.importances.sum() == pytest.approx(1)
    assert training.importances[0] > training.importances[3]


def test_units_count() -> None:
    """A column in other units, with its unit, gives the same model but for the place of its edges."""
    table = make_table(300)
    other = replace(table, X=table.X * [1.0, 1000.0, 1.0, 1.0])
    scores = []
    for one in (table, other):
        units = measure_units(one, "standard")
        noise, threat = Gaussian(0.2).with_units(units.tolist()), Threat(norm=2, units=tuple(units.tolist()))
        model = train_additive(one, noise, threat, AdditiveOptions(0.3, regularization=0.3)).model
        scores.append((model.score(one.X) - (model.threshold or 0)) / model.levels)
    assert scores[0] == pytest.approx(scores[1], abs=0.05)
