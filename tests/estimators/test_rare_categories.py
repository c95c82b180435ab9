"""Categories of few rows: a column of chance must not seem to matter, and rare ones can share a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import (
    AdditiveClassifier,
    AdditiveRegressor,
    RobAdaBoostClassifier,
    RobTreeBoostClassifier,
    StumpClassifier,
    StumpRegressor,
    load,
    save,
)
from derand.fitted import encode_rows
from derand.train import TrainingTable
from derand.train.bins import bin_table
from derand.train.selection.shrinking import shrink_categories


def make_mixed(n_rows: int, seed: int, *, number: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers and categories that matter, and a shop of 300 that does not; 12 % are positive."""
    rng = np.random.default_rng(seed)
    income, age, debt = rng.normal(size=n_rows), rng.uniform(20, 70, n_rows), rng.gamma(2, 1, n_rows)
    job, own = rng.integers(0, 6, n_rows), rng.integers(0, 2, n_rows)
    shop = rng.integers(0, 300, n_rows)
    score = -0.8 * income - 0.03 * (age - 45) + 0.6 * (debt - 2) + 0.4 * (job - 2.5) + 0.8 * (own - 0.5)
    frame = pd.DataFrame({"income": income, "age": age, "debt": debt})
    frame["job"], frame["own"] = [f"job {at}" for at in job], np.where(own == 1, "yes", "no")
    frame["shop"] = [f"shop {at}" for at in shop]
    noisy = score + (rng.normal(size=n_rows) if number else rng.logistic(size=n_rows))
    return frame, noisy if number else (noisy > np.quantile(noisy, 0.88)).astype(int)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_rows", [2000, 4000])
def test_a_random_category_comes_last_of_a_classifier(n_rows: int, seed: int) -> None:
    """Its 300 values are drawn to nothing, by default, whatever the weights of classes."""
    X, y = make_mixed(n_rows, seed)
    for weight in (None, "balanced"):
        found = AdditiveClassifier(radius=0, regularization=1.0, class_weight=weight).fit(X, y).feature_importances_
        assert np.argmin(found) == 5
        assert found[5] < 0.5 * np.sort(found)[1]


@pytest.mark.parametrize("kind", [AdditiveRegressor, StumpRegressor])
def test_a_random_category_comes_last_of_a_regressor(kind: Any) -> None:
    """So with numbers as targets."""
    X, y = make_mixed(2000, 0, number=True)
    options = {"radius": 0} if kind is AdditiveRegressor else {}
    found = kind(regularization=1.0, **options).fit(X, y).feature_importances_
    assert np.argmin(found) == 5
    assert found[5] < 0.5 * np.sort(found)[1]


def test_a_random_category_comes_last_under_a_radius() -> None:
    """The same where training is for a certificate."""
    X, y = make_mixed(2000, 0)
    found = AdditiveClassifier(radius=0.1, regularization=1.0).fit(X, y).feature_importances_
    assert np.argmin(found) == 5


def test_several_classes_shrink_alike() -> None:
    """A table per class, each drawn to nothing where it is chance."""
    X, score = make_mixed(2000, 0, number=True)
    y = np.digitize(score, np.quantile(score, [0.4, 0.8]))
    found = AdditiveClassifier(radius=0, regularization=1.0).fit(X, y).feature_importances_
    assert np.argmin(found) == 5


def weigh_tables(model: Any, X: pd.DataFrame) -> dict[int, float]:
    """Mean size of what each table of a paper's model adds, on the table's own grid."""
    rows = encode_rows(model, X)
    sizes: dict[int, float] = {}
    for member in model.ensemble_.members:
        for term in member.category_tables:
            added = term.scores[rows[:, term.feature].astype(int)]
            sizes[term.feature] = sizes.get(term.feature, 0.0) + float(np.abs(added - added.mean()).mean())
    return sizes


@pytest.mark.parametrize("kind", [StumpClassifier, RobTreeBoostClassifier, RobAdaBoostClassifier])
def test_the_paper_s_trainers_leave_rare_categories_out_when_asked(kind: Any) -> None:
    """By default each category votes, the paper's way; with `min_rows_per_category` rare ones abstain."""
    X, y = make_mixed(2000, 0)
    options: dict[str, Any] = {"class_weight": "balanced", "scaling": "standard"}
    if kind is not StumpClassifier:
        options["n_estimators"] = 2
    default = weigh_tables(kind(**options).fit(X, y), X)
    asked = weigh_tables(kind(min_rows_per_category=30, **options).fit(X, y), X)
    assert default[5] > 0
    assert asked[5] == 0
    assert asked[3] > 0
    assert asked[4] > 0


def test_rare_categories_have_the_value_of_an_unseen_one() -> None:
    """Those below the limit get it to the last bit, the others keep their own."""
    X, y = make_mixed(2000, 0)
    X.loc[:5, "job"] = "diver"
    model = AdditiveClassifier(radius=0, regularization=1.0, min_rows_per_category=7).fit(X, y)
    new = X[:3].assign(job="astronaut")
    np.testing.assert_array_equal(model.predict_proba(X[:3]), model.predict_proba(new))
    assert (model.predict_proba(X[10:13]) != model.predict_proba(X[10:13].assign(job="astronaut"))).all()
    plain = AdditiveClassifier(radius=0, regularization=1.0, min_rows_per_category=6).fit(X, y)
    assert (plain.predict_proba(X[:3]) != plain.predict_proba(new)).all()


def test_the_limit_is_kept_in_files(tmp_path: Path) -> None:
    """Also where there is none."""
    X, y = make_mixed(200, 0)
    for limit in (None, 20):
        model = StumpClassifier(min_rows_per_category=limit).fit(X, y)
        save(model, tmp_path / "model.json")
        assert load(tmp_path / "model.json").min_rows_per_category == limit


@pytest.mark.parametrize("kind", [AdditiveClassifier, AdditiveRegressor, StumpClassifier, StumpRegressor])
@pytest.mark.parametrize("limit", [0, 2.5, True])
def test_a_limit_must_be_a_whole_number(kind: Any, limit: Any) -> None:
    """Anything else is refused before data is read."""
    with pytest.raises(ValueError, match="min_rows_per_category"):
        kind(min_rows_per_category=limit).fit([[0.0], [1.0]], [0, 1])


def test_repeating_rows_changes_no_penalty() -> None:
    """A row of weight 2 and the same row twice are drawn alike, as long as rows differ mostly."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 30, 300)])
    y = (rng.random(300) < 0.3).astype(np.uint8)
    twice = rng.integers(1, 3, 300)
    table = TrainingTable(X, y, sample_weight=twice / twice.mean(), n_categories={1: 30})
    again = TrainingTable(np.repeat(X, twice, axis=0), np.repeat(y, twice), n_categories={1: 30})
    first, second = (shrink_categories(bin_table(one), one).penalties[1] for one in (table, again))
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_a_table_of_categories_alone_is_not_drawn_to_nothing() -> None:
    """Rows that repeat because they have few columns are cases of their own."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 8, 4000)
    y = (rng.random(4000) < np.linspace(0.05, 0.9, 8)[code]).astype(int)
    X = pd.DataFrame({"job": [f"j{at}" for at in code]})
    model = AdditiveClassifier(radius=0, regularization=1.0).fit(X, y)
    table = TrainingTable(code[:, None].astype(float), y.astype(np.uint8), n_categories={0: 8})
    assert shrink_categories(bin_table(table), table).penalties[0].max() == 1.0
    assert (model.predict(X) == y).mean() > 0.7
