"""Plots show the numbers of the library, on the axes that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from derand import AdditiveEnsemble, CategoryTable, Gaussian, StepFunction, certified_accuracy, certify, distribution
from derand import plot as plots


def test_the_curve_is_certified_accuracy_at_every_radius() -> None:
    """Read off between, at and beyond the steps, the curve equals the metric."""
    model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 0.2], [0.1, 0.3], [0.9, 0.6], n_features=2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    certificates = certify(model, X, "gaussian:0.25")
    y = (X[:, 0] > 0.3).astype(int)
    axes = Figure().subplots()
    assert plots.certified_accuracy(y, certificates, axes, label="mine") is axes
    (line,) = axes.get_lines()
    radii, shares = (np.asarray(part) for part in line.get_data())
    assert line.get_label() == "mine"
    assert line.get_drawstyle() == "steps-pre"
    asked = np.concatenate([certificates.radius, rng.uniform(0, radii[-1], size=50)])
    drawn = shares[np.searchsorted(radii, asked, side="left")]  # "pre": a share holds up to its radius
    np.testing.assert_allclose(drawn, certified_accuracy(y, certificates, asked))
    assert axes.get_xlabel() == "radius (l2)"


def test_rows_that_nothing_flips_stay_at_the_end_of_the_curve() -> None:
    """Infinite radii do not break the axes; their share is where the curve ends."""
    model = AdditiveEnsemble((), threshold=0, n_features=1)
    certificates = certify(model, [[0.0], [1.0]], "laplace:1")
    axes = plots.certified_accuracy([0, 1], certificates, Figure().subplots())
    (line,) = axes.get_lines()
    assert line.get_ydata()[-1] == 0.5
    assert np.isfinite(axes.get_xlim()).all()


def test_names_of_lines_keep_their_distance_and_order() -> None:
    """As near to the ends of their lines as that allows; names that are far apart stay where they are."""
    heights = np.array([0.5, 0.9, 0.51, 0.505, 0.2])
    places = np.array(plots._spread(heights, 0.05))
    assert np.diff(np.sort(places)).min() >= 0.05 - 1e-12
    assert np.argsort(places).tolist() == np.argsort(heights).tolist()
    assert places[[1, 4]].tolist() == pytest.approx([0.9, 0.2])
    assert places[[0, 2, 3]].mean() == pytest.approx(heights[[0, 2, 3]].mean())


def test_a_trade_off_without_a_choice_is_grey() -> None:
    """Lines begin at the natural accuracy; no colour and no constant model where there are none."""
    axes = plots.trade_off(
        [0.5, 1.0], [0.9, 0.8], [[0.5, 0.2], [0.7, 0.6]], ["a", "b"], Figure().subplots(), norm=np.inf
    )
    first, second = axes.get_lines()
    assert first.get_ydata().tolist() == [0.9, 0.5, 0.2]
    assert second.get_xdata().tolist() == [0.0, 0.5, 1.0]
    assert plots.ACCENT not in (first.get_color(), second.get_color())
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
    assert axes.get_xlabel() == "radius (linf); at 0: natural accuracy"


def test_new_axes_are_made_where_none_are_given() -> None:
    """Without axes the plot makes its own."""
    from matplotlib import pyplot

    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    axes = plots.certified_accuracy([0], certify(model, [[0.0]], "uniform:1"), balanced=True)
    assert axes.get_ylabel() == "certified accuracy"
    pyplot.close("all")


def test_a_shape_shows_the_steps_and_their_mean_under_noise() -> None:
    """The steps hold between the edges, and the smooth line is the mean score under noise."""
    term, noise = StepFunction(0, [0.0, 1.0], [-3, 1, 4]), Gaussian(0.5)
    axes = plots.shape(term, noise, [-1.0, 0.5, 2.0], Figure().subplots(), name="age")
    steps, smooth = axes.get_lines()
    assert steps.get_drawstyle() == "steps-post"
    assert steps.get_xdata()[1:-1].tolist() == [0.0, 1.0]
    assert list(steps.get_ydata()) == [-3, 1, 4, 4]
    x = np.asarray(smooth.get_xdata())
    np.testing.assert_allclose(smooth.get_ydata(), noise.cell_probabilities(x, term.edges) @ [-3, 1, 4])
    assert axes.get_xlabel() == "age"


def test_a_shape_without_noise_or_data_has_the_steps_alone() -> None:
    """Nothing is drawn that was not given, and a constant term has axes, too."""
    assert len(plots.shape(StepFunction(3, [1.0], [0, 2]), axes=Figure().subplots()).get_lines()) == 1
    axes = plots.shape(StepFunction(3, [], [2]), axes=Figure().subplots())
    assert axes.get_xlabel() == "feature 3"
    assert axes.get_lines()[0].get_ydata().tolist() == [2, 2]


def test_a_shape_of_categories_has_a_bar_for_each_and_one_for_the_others() -> None:
    """Bars are the scores, named and counted."""
    table = CategoryTable(0, [0, 1], [-2, 5], other=1)
    axes = plots.shape(table, "gaussian:1", [0, 1, 1, 7], Figure().subplots(), categories=["no", "yes"])
    assert [bar.get_height() for bar in axes.patches] == [-2, 5, 1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["no (1)", "yes (2)", "other"]


@pytest.mark.parametrize("x", [-0.6, 0.9])
def test_the_wrong_side_of_a_law_adds_up_to_the_failure_mass(x: float) -> None:
    """Bars of the other class's colour are the failure mass, and the cdf ends at 1."""
    model = AdditiveEnsemble.from_stumps([0, 1], [0.0, 0.0], [0.2, 0.3], [0.9, 0.6], n_features=2)
    rows = [[0.3, 0.1], [x, x]]
    found = distribution(model, rows, "gaussian:0.5")
    axes = plots.law(found, model.threshold, Figure().subplots(), row=1)
    wrong = [bar.get_height() for bar in axes.patches if bar.get_facecolor()[0] > 0.5]
    certificates = certify(model, rows, "gaussian:0.5")
    assert sum(wrong) == pytest.approx(certificates.failure[1], rel=1e-9)
    assert axes.figure.axes[-1].get_lines()[0].get_ydata()[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("x", [-0.6, 0.9])
def test_the_percentile_is_on_the_right_side_exactly_where_the_row_is_certified(x: float) -> None:
    """Just below the certified radius the percentile is on the answer's side, just above it is not."""
    noise = Gaussian(0.5)
    model = AdditiveEnsemble.from_stumps([0, 1], [0.0, 0.0], [0.2, 0.3], [0.9, 0.6], n_features=2)
    found, certificates = distribution(model, [[x, x]], noise), certify(model, [[x, x]], noise)
    for factor, expected in ((0.999, True), (1.001, False)):
        axes = plots.law(
            found,
            model.threshold,
            Figure().subplots(),
            allowed=float(noise.failure_at(factor * certificates.radius[0])),
        )
        mark = axes.get_lines()[1].get_xdata()[0]
        assert ((mark > model.threshold) == bool(certificates.label[0])) == expected


def test_shapes_show_the_cell_of_missing_values() -> None:
    """A line for a number, a bar beside the others for a category; gaps in the data are left out."""
    step = StepFunction(0, [1.0], [-2, 3], missing=7)
    axes = plots.shape(step, "gaussian:0.5", [0.0, np.nan, 2.0], Figure().subplots())
    assert "missing" in [line.get_label() for line in axes.get_lines()]
    low, high = axes.get_xlim()
    assert np.isfinite([low, high]).all()
    table = CategoryTable(0, [0, 1], [2, -1], other=5, missing=-4)
    axes = plots.shape(table, axes=Figure().subplots())
    assert [bar.get_height() for bar in axes.patches] == [2, -1, 5, -4]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "other", "missing"]
