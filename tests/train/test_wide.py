"""Wide tables: columns are chosen before they are fitted, none that is missed, and not where very many say a little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from derand.certificates import certify
from derand.noise import Gaussian
from derand.storage import write_bytes
from derand.threat import Threat
from derand.train import (
    AdditiveOptions,
    AdditiveTraining,
    CodedRows,
    PartsInMemory,
    TrainingTable,
    WholeTable,
    train_additive,
)
from derand.train.additive import bin_rows
from derand.train.bins import BinnedTable, code_rows
from derand.train.formulations import Problem
from derand.train.selection.screening import (
    choose_columns,
    measure_strengths,
    say_nothing,
    select_outstanding,
)
from derand.train.strategies import LIMITS, Strategy
from derand.train.trainer import Trainer

NOISE, THREAT = Gaussian(0.125), Threat(norm=2)
CHOOSING = AdditiveOptions(radius=0.25, wide_columns=100)
QUICK = replace(CHOOSING, regularization=1.0)
FITTING_ALL = replace(CHOOSING, wide_columns=10**9)
PLAIN = AdditiveOptions(radius=0.0, regularization=0.5, wide_columns=100)


def draw(n_rows: int = 400, n_columns: int = 120, n_telling: int = 6, seed: int = 0) -> tuple[Any, NDArray[np.uint8]]:
    """Independent columns, the first of which tell something about the label, all of them equally much."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).round(4)
    score = X[:, :n_telling].sum(axis=1) * 2 / np.sqrt(n_telling) + rng.normal(size=n_rows)
    return X, (score > 0).astype(np.uint8)


def train(X: Any, y: Any, options: AdditiveOptions = CHOOSING, **more: Any) -> AdditiveTraining:
    """Train with noise, or without where nothing changes."""
    return train_additive(TrainingTable(X, y, **more), NOISE if options.radius else None, THREAT, options)


def list_read(training: AdditiveTraining) -> list[int]:
    """Columns that a model reads."""
    return sorted({axis.feature for term in training.model.member_terms for axis in term.axes})


def assert_same(first: AdditiveTraining, second: AdditiveTraining) -> None:
    """Both have the same scores, to the last bit, and everything else that was found."""
    assert write_bytes(first.model) == write_bytes(second.model)
    assert first.regularization == second.regularization
    assert first.calibration == second.calibration
    np.testing.assert_array_equal(first.path.loss, second.path.loss)


def bin_wide(X: Any, y: Any) -> BinnedTable:
    return bin_rows(TrainingTable(X, y), CHOOSING)


def test_columns_that_tell_are_chosen() -> None:
    """All that tell the label are read, and few others."""
    read = list_read(train(*draw()))
    assert set(range(6)) <= set(read)
    assert len(read) <= 24


def test_the_model_is_that_of_the_chosen_columns() -> None:
    """Choosing leaves columns out and changes nothing else: a table of the chosen ones alone gives the same model."""
    X, y = draw()
    training = train(X, y, PLAIN)
    read = list_read(training)
    assert len(read) < 30
    alone = train(X[:, read], y, PLAIN)
    np.testing.assert_array_equal(training.model.score(X), alone.model.score(X[:, read]))
    assert (training.model.threshold, training.model.levels) == (alone.model.threshold, alone.model.levels)
    np.testing.assert_array_equal(training.importances[read], alone.importances)


def test_no_column_is_missed() -> None:
    """At the end none of those left out stands out from what the chosen ones leave."""
    X, y = draw(n_telling=12)
    rows = bin_wide(X, y)
    seen: list[NDArray[np.float64]] = []

    def leave(places: Any) -> NDArray[np.float64]:
        design = np.concatenate([np.ones((y.size, 1)), X[:, places]], axis=1)
        seen.append(y - design @ np.linalg.lstsq(design, y.astype(float), rcond=None)[0])
        return seen[-1]

    chosen = choose_columns(rows, leave)
    strengths = measure_strengths(rows, leave(chosen))
    strengths[chosen] = 0.0
    assert not select_outstanding(strengths).any()
    assert len(seen) > 2, "what joins late is found in what others leave"


def test_tables_that_are_not_wide_are_fitted_as_ever() -> None:
    """Below the limit nothing is chosen: all columns are read, to the bits of a trainer that never chooses."""
    X, y = draw(n_columns=30)
    usual = train(X, y, AdditiveOptions(radius=0.25, regularization=1.0))
    assert_same(usual, train(X, y, replace(QUICK, wide_columns=31)))
    assert list_read(usual) == list(range(30))
    assert LIMITS.wide_columns > 784, "images of 28 by 28 pixels are no wide tables"


def test_many_columns_that_each_say_a_little_are_all_fitted() -> None:
    """Where no column stands out, but all of them do together, none is left out."""
    X, y = draw(n_columns=150, n_telling=150)
    rows = bin_wide(X, y)
    left = y - y.mean()
    strong = np.argsort(-measure_strengths(rows, left))[:16]
    assert not say_nothing(rows, left, np.setdiff1d(np.arange(150), strong))
    options = replace(PLAIN, radius=0.0)
    assert_same(train(X, y, options), train(X, y, replace(options, wide_columns=10**9)))


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_say_nothing_are_left_out(seed: int) -> None:
    """Columns without any signal say nothing together, also where neighbours are alike."""
    X, y = draw(n_columns=200, n_telling=1, seed=seed)
    X[:, 1:] += np.roll(X[:, 1:], 1, axis=1)
    assert say_nothing(bin_wide(X, y), y - y.mean(), np.arange(3, 200))


@pytest.mark.long
def test_it_is_no_worse_than_fitting_all() -> None:
    """On rows that training did not see it is right, and certified, at least as often."""
    X, y = draw(n_rows=1400, seed=3)
    shares = []
    for options in (CHOOSING, FITTING_ALL):
        found = certify(train(X[:400], y[:400], options).model, X[400:], NOISE, rule="mean", threat=THREAT)
        right = found.label == y[400:]
        shares.append((right.mean(), (right & (found.radius >= 0.25)).mean()))
    assert shares[0][0] >= shares[1][0]
    assert shares[0][1] >= shares[1][1]


def test_threads_and_order_do_not_matter() -> None:
    """The model does not depend on threads; which columns are read does not depend on the order of rows."""
    X, y = draw()
    first = train(X, y, QUICK)
    assert_same(first, train(X, y, replace(QUICK, n_threads=3)))
    order = np.random.default_rng(1).permutation(y.size)
    assert list_read(train(X[order], y[order], QUICK)) == list_read(first)


def test_a_column_that_tells_by_being_missing_is_chosen() -> None:
    """What is missing is tested as well."""
    X, y = draw()
    X[(y == 1) & (np.random.default_rng(2).random(y.size) < 0.5), 77] = np.nan
    assert 77 in list_read(train(X, y, QUICK))


def test_bent_columns_are_chosen() -> None:
    """A column whose middle is of one label has no slope, but a bend."""
    X, y = draw()
    y = (np.abs(X[:, 50]) + 0.3 * X[:, 51] > 0.7).astype(np.uint8)
    assert {50, 51} <= set(list_read(train(X, y, QUICK)))


def test_categories_stay() -> None:
    """Categorical columns are all fitted, whatever they say."""
    X, y = draw()
    X[:, 110:] = np.random.default_rng(0).integers(0, 3, (y.size, 10))
    training = train(X, y, QUICK, n_categories=dict.fromkeys(range(110, 120), 3))
    assert (training.importances[110:] > 0).all()
    assert set(range(6)) <= set(list_read(training))


def test_labels_by_chance_can_be_trained_on() -> None:
    """Where no column tells anything, training ends, with some columns or none."""
    X, _ = draw()
    y = np.random.default_rng(4).integers(0, 2, len(X)).astype(np.uint8)
    assert len(list_read(train(X, y, QUICK))) <= 30


def test_parts_do_not_matter() -> None:
    """Rows that lie in parts are coded by the chosen columns alone: any parts give the same model."""
    X, y = draw(n_rows=500)

    def fit_parts(n_parts: int) -> AdditiveTraining:
        def share(binned: BinnedTable) -> PartsInMemory:
            codes = code_rows(X, binned.numbers, binned.categories)
            parts = np.array_split(np.arange(y.size), n_parts)
            return PartsInMemory([CodedRows(codes[rows], y[rows]) for rows in parts])

        whole = WholeTable(np.bincount(y), LIMITS.large_rows + 1, share)
        table = TrainingTable(X[:400], y[:400], whole=whole)
        return train_additive(table, NOISE, THREAT, replace(CHOOSING, regularization=3.0))

    assert_same(fit_parts(2), fit_parts(5))
    assert len(list_read(fit_parts(1))) <= 24


def test_a_fold_chooses_without_its_own_rows() -> None:
    """Labels of the rows left out do not change which columns are fitted to the others."""
    X, y = draw()
    rows = bin_wide(X, y)
    folds = np.arange(y.size) % 5
    other = replace(rows, target=np.where(folds == 2, 1 - rows.target, rows.target).astype(np.uint8))
    features = []
    for table in (rows, other):
        problem = Problem(NOISE, THREAT, CHOOSING, X.shape[1], 2)
        trainer = Trainer.of(problem, table, Strategy("margins"))
        trainer.wide = table
        own, narrow = trainer.part_folds(np.arange(y.size), folds)[2]
        features.append([one.feature for one in narrow.numbers])
        assert [one.feature for one in own.formulation.design(True).numbers] == features[-1]
    assert features[0] == features[1]
