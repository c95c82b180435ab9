"""Training for numbers: stumps against brute force, least squares against NumPy, slopes against differences."""

from __future__ import annotations

import numpy as np
import pytest

from derand import Gaussian, Laplace, Threat, Uniform, certify_interval
from derand.certificates import find_answers
from derand.train import RegressionTable, bin_table, train_additive_regressor, train_stump_regressor
from derand.train.design.columns import ModelSpec
from derand.train.design.groups import group_columns
from derand.train.design.model import design_model
from derand.train.losses.margin import MarginLoss
from derand.train.losses.rows import EndsInMemory
from derand.train.losses.squares import add_functions, choose_penalty, sum_squares


def draw_table(seed: int = 0, n_rows: int = 200, gaps: bool = False) -> RegressionTable:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[:, 3] = rng.integers(0, 3, n_rows)
    y = 10 + 3 * np.sin(X[:, 0]) + X[:, 1] + np.array([0.0, 2.0, -1.0])[X[:, 3].astype(int)]
    y += 0.3 * rng.normal(size=n_rows)
    if gaps:
        X[rng.random(n_rows) < 0.2, 1] = np.nan
    return RegressionTable.of(X, y, n_categories={3: 3})


@pytest.mark.parametrize("noise", [Gaussian(0.3), Laplace(0.3), Uniform(0.5)])
def test_a_stump_is_the_one_of_least_squares_under_noise(noise: Gaussian | Laplace | Uniform) -> None:
    """The first split of a column explains more under noise than any other between two values."""
    table = draw_table()
    column, y = table.rows.X[:, 0], table.target - table.target.mean()
    alone = RegressionTable.of(column[:, None], table.target)
    (term,) = train_stump_regressor(alone, noise, n_rounds=1, regularization=1e-9).model.terms
    values = np.unique(column)
    edges = (values[1:] + values[:-1]) / 2
    right = noise.cdf((column[:, None] - edges) / noise.magnitude)
    gains = (y @ right) ** 2 / right.sum(axis=0) + (y @ (1 - right)) ** 2 / (1 - right).sum(axis=0)
    assert term.axes[0].edges.tolist() == pytest.approx([edges[np.argmax(gains)]])


@pytest.mark.parametrize("gaps", [False, True])
def test_least_squares_are_those_of_numpy(gaps: bool) -> None:
    """Weights solve the penalised equations, and the sum of functions is what the table of functions says."""
    table = draw_table(gaps=gaps)
    binned, target = bin_table(table.rows), table.standardise()
    design = design_model(binned, ModelSpec(Gaussian(0.2), Threat(norm=2), 4, 5), 0.0)
    penalties = design.list_penalties(0.3)
    weights = sum_squares(design, binned, target).solve(penalties)
    tables = [column.tabulate() for column in design.columns]
    functions = np.hstack([np.ones((200, 1)), *(one[binned.codes[:, at]] for at, one in enumerate(tables))])
    expected = np.linalg.solve(functions.T @ functions / 200 + np.diag(penalties), functions.T @ target / 200)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(add_functions(design, binned, weights), functions @ weights, atol=1e-9)
    left = sum_squares(design, binned, target).measure(weights)
    assert left == pytest.approx(np.mean((target - functions @ weights) ** 2), rel=1e-6)
    chosen, path = choose_penalty(design, binned, target)
    assert chosen == path.regularization[np.argmin(path.loss)]


@pytest.mark.parametrize("groups", [(), ((0, 2),)])
@pytest.mark.parametrize("size", [1, 2, np.inf])
def test_slopes_of_the_loss_of_ends(size: float, groups: tuple[tuple[int, ...], ...]) -> None:
    """They are those of differences; for rows that nothing moves the loss is half the mean square."""
    table, rng = draw_table(n_rows=40, gaps=True), np.random.default_rng(1)
    binned, target = group_columns(bin_table(table.rows, n_bins=20), groups, 4), table.standardise()

    def make(radius: float, l0: int) -> MarginLoss:
        threat = Threat(norm=size, l0=l0)
        design = design_model(binned, ModelSpec(Gaussian(0.2), threat, 4, 4, 4), radius)
        return MarginLoss(design, EndsInMemory(design, binned, target))

    loss = make(0.3, 1)
    weights = 0.3 * rng.normal(size=int(loss.design.starts[-1]))
    loss.choose_multipliers(weights)
    _, slopes = loss.evaluate(weights, 0.1)
    for at in range(0, weights.size, 3):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = weights.copy()
            moved[at] += step
            ends.append(loss.evaluate(moved, 0.1)[0])
        assert slopes[at] == pytest.approx((ends[1] - ends[0]) / 2e-5, abs=1e-5)
    plain = make(0.0, 0)
    left = target - add_functions(plain.design, binned, weights)
    assert plain.measure(weights) == pytest.approx(np.mean(left**2) / 2, rel=1e-5)
    assert loss.measure(weights) > plain.measure(weights)


@pytest.mark.parametrize("scale", [1.0, 1e7])
def test_the_function_of_a_group_is_that_of_least_squares(scale: float) -> None:
    """Answers are those of jumps, and products of jumps, that NumPy fits at the same cuts with the same penalties."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    y = scale * (5 + 2 * X[:, 0] * X[:, 1] + X[:, 0] + 0.1 * rng.normal(size=300))
    training = train_additive_regressor(
        RegressionTable.of(X, y), None, Threat(norm=2), regularization=0.5, groups=((0, 1),), n_cuts=3
    )
    (pair,) = training.model.terms
    assert training.groups == (pair.features,) == ((0, 1),)
    left, right = (1.0 * (X[:, axis.feature, None] >= axis.edges) for axis in pair.axes)
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    crossed = (left[:, :, None] * right[:, None, :]).reshape(300, 9)
    functions = np.hstack([left, right, crossed - crossed.mean(axis=0)])
    penalties = 0.5 * np.array([3.0] * 6 + [2 * 3.0] * 9)
    weights = np.linalg.solve(functions.T @ functions + np.diag(penalties), functions.T @ (y - y.mean()))
    answers = find_answers(training.model, X, None, rule="mean")
    np.testing.assert_allclose(answers, y.mean() + functions @ weights, atol=3e-4 * scale)


@pytest.mark.parametrize("groups", [None, ((0, 2),)])
def test_pairs_that_say_something_together_are_found(groups: tuple[tuple[int, ...], ...] | None) -> None:
    """A product of two columns, beside one that adds something by itself; nothing where nothing interacts."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 5))
    noisy = X[:, 1] + 0.5 * rng.normal(size=600)
    table = RegressionTable.of(X, X[:, 0] * X[:, 2] + noisy)
    training = train_additive_regressor(table, None, Threat(norm=2), groups=groups, regularization=1.0)
    assert training.groups == ((0, 2),)
    assert training.importances[0] == training.importances[2] > 2 * training.importances[3:].max()
    apart = RegressionTable.of(X, X[:, 0] ** 2 + X[:, 2] + noisy)
    assert train_additive_regressor(apart, None, Threat(norm=2), groups=None, regularization=1.0).groups == ()


def test_training_for_a_radius_narrows_intervals() -> None:
    """At a radius trained for, intervals are narrower than those of a plain model, for little more error."""
    table = draw_table(n_rows=300)
    X, y = table.rows.X, table.target
    found = {}
    for radius in (0.0, 0.5):
        model = train_additive_regressor(table, Gaussian(0.25), Threat(norm=2), radius=radius).model
        width = certify_interval(model, X, Gaussian(0.25), 0.5, rule="mean").width.mean()
        error = np.sqrt(np.mean((find_answers(model, X, Gaussian(0.25), rule="mean") - y) ** 2))
        found[radius] = (width, error)
    assert found[0.5][0] < 0.85 * found[0.0][0]
    assert found[0.5][1] < 2.0 * found[0.0][1]
    assert found[0.0][1] < 0.5


def test_large_and_small_targets() -> None:
    """Answers keep their digits, and pmfs stay small, whatever the units of the target."""
    table = draw_table(n_rows=120)
    answers = {}
    for scale in (1e-9, 1.0, 1e7):
        same = RegressionTable.of(table.rows.X, table.target * scale, n_categories={3: 3})
        model = train_stump_regressor(same, Gaussian(0.3)).model
        answers[scale] = find_answers(model, table.rows.X, Gaussian(0.3)) / scale
        assert certify_interval(model, table.rows.X[:3], Gaussian(0.3), 0.1).width.max() < 10 * scale
    for one in answers.values():
        np.testing.assert_allclose(one, answers[1.0], atol=0.05)


def test_constant_targets_and_columns() -> None:
    """Where there is nothing to learn, the answer is the mean."""
    X = np.column_stack([np.arange(6.0), np.zeros(6)])
    for y in (np.full(6, 3.5), np.full(6, 0.0)):
        model = train_additive_regressor(RegressionTable.of(X, y), None, Threat(norm=2)).model
        np.testing.assert_allclose(find_answers(model, X, None, rule="mean"), y, atol=1e-4)
    model = train_stump_regressor(RegressionTable.of(np.zeros((4, 1)), np.array([1.0, 2, 3, 4])), Gaussian(1.0)).model
    np.testing.assert_allclose(find_answers(model, np.zeros((1, 1)), Gaussian(1.0)), 2.5, atol=1e-3)


def test_a_smooth_function_is_found() -> None:
    """A sine is met to within the noise of the data, by medians and by means."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-3, 3, size=(500, 1))
    table = RegressionTable.of(X, np.sin(X[:, 0]) + 0.05 * rng.normal(size=500))
    grid = np.linspace(-2.5, 2.5, 21)[:, None]
    model = train_additive_regressor(table, Gaussian(0.2), Threat(norm=2)).model
    np.testing.assert_allclose(find_answers(model, grid, Gaussian(0.2), rule="mean"), np.sin(grid[:, 0]), atol=0.12)
