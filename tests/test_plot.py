"""Plots show the numbers of the library, on the axes that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    GridTerm,
    StepFunction,
    Threat,
    certified_accuracy,
    certify,
    distribution,
    plot_certified_accuracy,
)
from derand import plot as plots
from derand.explain.heights import measure_band, measure_heights
from derand.explain.plots._trade_off import spread


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
    places = np.array(spread(heights, 0.05))
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
    assert [label.get_text() for label in axes.get_xticklabels()] == ["no (1)", "yes (2)", "new or missing"]


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
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "new", "missing"]


def test_several_models_stand_side_by_side_with_the_commonest_label() -> None:
    """Each curve is the metric of its own certificates, on radii of all of them; names are shown as they are."""
    rows = np.random.default_rng(0).normal(size=(30, 1))
    y = np.where(rows[:, 0] > 0.2, "yes", "no")
    found = {}
    for name, edge in (("$a$", 0.0), ("_b", 0.5)):
        model = AdditiveEnsemble.from_stumps([0], [edge], [0.1], [0.9], n_features=1)
        found[name] = certify(model, rows, "gaussian:0.25").with_classes(np.array(["no", "yes"]))
    axes = plot_certified_accuracy(found, y, Figure().subplots())
    first, second, constant = axes.get_lines()
    for line, certificates in ((first, found["$a$"]), (second, found["_b"])):
        radii, shares = (np.asarray(part) for part in line.get_data())
        np.testing.assert_allclose(shares, certified_accuracy(y, certificates, radii))
    assert constant.get_ydata()[0] == max(np.mean(y == "no"), np.mean(y == "yes"))
    texts = axes.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["$a$", "_b", f"always {'no' if np.mean(y == 'no') > 0.5 else 'yes'}"]
    assert not any(text.get_parse_math() for text in texts)
    balanced = plot_certified_accuracy(found["_b"], y, Figure().subplots(), balanced=True)
    assert balanced.get_lines()[-1].get_ydata()[0] == 0.5


def test_models_that_cannot_be_compared_are_refused() -> None:
    """Other rows, norms and units than the first model's, and nothing at all."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    one = certify(model, [[0.0], [1.0]], "gaussian:0.25")
    for other, told in (
        (one[:1], "must be of the same rows, got 2 of 'one' and 1 of 'other'"),
        (certify(model, [[0.0], [1.0]], "gaussian:0.25", threat=Threat(norm=1)), "must be in one norm"),
        (certify(model, [[0.0], [1.0]], "gaussian:0.25", threat=Threat(units=[2.0])), "must count in the same units"),
    ):
        with pytest.raises(ValueError, match=told):
            plot_certified_accuracy({"one": one, "other": other}, [0, 1], Figure().subplots())
    with pytest.raises(ValueError, match="at least one model"):
        plot_certified_accuracy({}, [0, 1])


@pytest.mark.parametrize("noise", [None, Gaussian(0.3)])
def test_the_band_holds_every_height_that_a_change_can_reach(noise: Gaussian | None) -> None:
    """Drawn at random, changes within the reach stay within the band; without noise its ends are reached."""
    rng = np.random.default_rng(0)
    term = StepFunction(0, np.sort(rng.normal(size=5)), rng.integers(-9, 10, 6))
    x = np.linspace(-3.0, 3.0, 41)
    low, high = measure_band(term, x, noise, lambda values: (values - 0.4, values + 0.7))
    for share in np.linspace(0.0, 1.0, 60):
        heights = measure_heights(term, x - 0.4 + 1.1 * share, noise)
        assert (low <= heights + 1e-3).all()
        assert (heights <= high + 1e-3).all()
    assert (high - low).max() > 1
    everything = measure_band(term, x, noise, lambda values: (np.full(x.size, -np.inf), np.full(x.size, np.inf)))
    heights = measure_heights(term, np.linspace(-9.0, 9.0, 2000), noise)
    assert np.allclose([everything[0].min(), everything[1].max()], [heights.min(), heights.max()], atol=1e-3)


def test_heights_of_two_columns_are_their_means_under_noise() -> None:
    """As the products of the sides' probabilities say; a missing number stays missing."""
    grid = GridTerm((0, 2), ([0.0], [0.0]), [[1, 2], [3, 4], [5, 6]], missing=(True, False))
    noise = Gaussian(0.5)
    cells = noise.cell_probabilities(np.array([0.3]), np.array([0.0]))
    at = measure_heights(grid, np.array([[np.nan, 0.3]]), noise)
    np.testing.assert_allclose(at, cells @ np.array([[5.0], [6.0]]))


def test_a_figure_names_its_panels_as_they_are() -> None:
    """Formulas and tags are text; many categories are cut to the most frequent, which is said; pairs are maps."""
    many = CategoryTable(1, range(40), range(40), other=0)
    density = plots.measure_density(np.repeat(np.arange(40.0), np.arange(1, 41)), is_category=True)
    grid = GridTerm((2, 3), ([0.0], [0.0, 1.0]), [[1, 2, 3], [4, 5, 6]])
    panels = [
        plots.Panel(StepFunction(0, [1.0], [-2, 3], missing=1), ["$x$"], reach=lambda x: (x - 1, x + 1)),
        plots.Panel(many, ["<b>"], densities=[density], categories=[f"$k{at}$" for at in range(40)]),
        plots.Panel(grid, ["a", "b" * 200]),
    ]
    axes = plots.shapes(panels, Gaussian(0.5), band="within radius 1")
    figure = axes[0].figure
    figure.canvas.draw()  # no formula is parsed
    assert [one.get_title(loc="left")[:3] for one in axes] == ["$x$", "<b>", "a a"]
    assert axes[1].get_yticklabels()[0].get_text() == "$k39$ (40)"
    assert "28 more categories" in figure.get_supxlabel()
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"within radius 1", "missing"}
    from matplotlib import pyplot

    pyplot.close("all")


def test_densities_of_odd_columns() -> None:
    """All equal, all missing, and numbers so far apart or so close that bins have no width."""
    assert plots.measure_density([2.0, 2.0]).ends == (2.0, 2.0)
    assert plots.measure_density([np.nan]).ends is None
    assert plots.measure_density([-1e308, 1e308]).counts.sum() == 2
    assert plots.measure_density([1.0, np.nextafter(1.0, 2.0)]).counts.sum() == 2
    for column in ([2.0, 2.0], [np.nan], [1e300, -1e300]):
        plots.shape(StepFunction(0, [1.0], [0, 2]), column=column, axes=Figure().subplots()).figure.canvas.draw()


def test_axes_show_the_ends_of_columns_and_nothing_below() -> None:
    """Amounts begin where they do; ends that are known without data are on the axis."""
    step = StepFunction(0, [0.4, 0.6], [-2, 0, 3])
    axes = plots.shape(step, "gaussian:0.1", [0.0, 1.0, 1.0], Figure().subplots())
    assert axes.get_xlim() == pytest.approx((0.0, 1.05))
    axes = plots.shape(step, "gaussian:0.1", [-1.0, 1.0], Figure().subplots())
    assert axes.get_xlim() == pytest.approx((-1.1, 1.1))
    ((known,),) = plots.shapes([plots.Panel(step, ["flag"], ends=[(0, 1)])]).reshape(1, 1)
    low, high = known.get_xlim()
    assert low == 0.0
    assert high > 1.0
