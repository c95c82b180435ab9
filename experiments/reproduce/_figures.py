"""Figures of the paper, drawn from outcomes or from the small models that their TOML files hold.

Owns one function per kind of figure. Must not know how outcomes came about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derand import plot
from derand._core.arrays import FloatArray, IntArray
from derand._core.files import replace_when_done
from derand.certificates import certify, distribution
from derand.model import AdditiveEnsemble, CategoryTable, StepFunction
from derand.noise import parse_noise
from experiments.reproduce._outcomes import Outcome
from experiments.reproduce._specification import Item, Line, TomlTable, find_item, fits, resolve_recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Outcomes = Callable[[Line], Sequence[Outcome]]
_FORMATS = {".svg": {"metadata": {"Date": None}}, ".png": {"dpi": 150}}
_CLASSES = (plot.WRONG, plot.ACCENT)  # class 0, class 1


def list_curves(item: Item) -> list[Line]:
    """The lines whose outcomes a figure shows; none for a drawing of a small model."""
    return [
        Line(curve, resolve_recipe(item.content, curve["fields"]), (), None, ())
        for curve in item.content.get("curves", [])
    ]


def draw_figure(item: Item, outcomes: Outcomes, stem: Path) -> list[Path]:
    """Draw a figure as SVG and PNG.

    Parameters
    ----------
    item : Item
    outcomes : callable
        Gives the outcomes of a line.
    stem : Path
        Where to, without the ending.

    Returns
    -------
    list of Path
    """
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "derand", "font.size": 9}):
        figure = DRAWERS[item.content["kind"]](item, outcomes)
        files = []
        for ending, options in _FORMATS.items():
            path = stem.with_name(stem.name + ending)
            with replace_when_done(path) as draft:
                figure.savefig(draft, format=ending[1:], bbox_inches="tight", **options)  # type: ignore[arg-type]
            files.append(path)
    return files


def _open_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _draw_curves(item: Item, outcomes: Outcomes) -> Figure:
    """Certified accuracy over the radius, one curve per outcome, with the published numbers as dots."""
    content = item.content
    figure, (axes,) = _open_figure(5.2, 3.4)
    for at, line in enumerate(list_curves(item)):
        outcome = outcomes(line)[0]
        budget = line.recipe.get("r0", 0)
        style = {"color": f"C{at}", "label": line.fields["label"], "linewidth": 1.2}
        style["linestyle"] = line.fields.get("linestyle", "-")
        measure = partial(outcome.certified_accuracy, budget, balanced=content["metric"] == "bca")
        plot.certified_curve(outcome.radius[budget], measure, axes, norm=2, **style)
        for radius, value in _find_published(content, line):
            axes.plot(radius, value / 100, "o", color=f"C{at}", markersize=3, markeredgewidth=0)
    axes.set_xlim(0, content["largest_radius"])
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(f"{content['norm']} radius")
    axes.set_ylabel("balanced certified accuracy" if content["metric"] == "bca" else "certified accuracy")
    axes.plot([], [], "o", color="gray", markersize=3, label="published")
    axes.legend(frameon=False, fontsize=7)
    return figure


def _find_published(content: TomlTable, line: Line) -> list[tuple[float, float]]:
    """Printed numbers of the line of a table that has a curve's fields: (radius, per cent)."""
    wanted = line.fields["fields"]
    return [
        (number.radius, number.value)
        for printed in find_item(content["published_in"]).lines
        if fits(wanted, printed.fields)
        for number in printed.published
        if number.radius is not None and number.metric == content["metric"]
    ]


def _draw_split_histogram(item: Item, outcomes: Outcomes) -> Figure:
    """Where models split, beside the range of the data."""
    figure, axes = _open_figure(7.0, 2.6, len(item.content["curves"]))
    for place, line in zip(axes, list_curves(item), strict=True):
        edges = outcomes(line)[0].edges
        place.axvspan(0, 1, color="0.9", label="range of the data")
        place.hist(edges, bins=np.arange(-2.5, 3.6, 0.1).tolist(), color="C0")
        place.set_title(line.fields["label"], fontsize=9)
        place.set_xlabel("split position")
        place.set_ylabel("splits")
        place.legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def _read_model(content: TomlTable) -> AdditiveEnsemble:
    """The small model of a figure's file."""
    terms = [
        StepFunction(at, np.array(term["edges"]), np.array(term["scores"])) for at, term in enumerate(content["terms"])
    ]
    tables = [
        CategoryTable(
            len(terms) + at, np.arange(float(len(table["scores"]))), np.array(table["scores"]), table["other"]
        )
        for at, table in enumerate(content.get("tables", []))
    ]
    return AdditiveEnsemble((*terms, *tables), content["threshold"], len(terms) + len(tables), content["levels"])


def _draw_step(axes: Axes, term: StepFunction, low: float, high: float, levels: float, **style: Any) -> None:
    edges = [low, *term.edges.tolist(), high]
    values = (term.cell_scores / levels).tolist()
    axes.step(edges, [*values, values[-1]], where="post", **style)


def _draw_overview(item: Item, outcomes: Outcomes) -> Figure:
    """(a) meta-stumps under noise, (b) laws of their outputs, (c) law and (d) distribution function of the ensemble."""
    from matplotlib.figure import Figure

    content = item.content
    model, noise, row = _read_model(content), parse_noise(content["noise"]), np.array([content["row"]])
    terms, levels, threshold = model.step_functions, model.levels, content["threshold"]
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    grid = figure.add_gridspec(len(terms), 4, width_ratios=(1, 1, 1.5, 1.5))
    for at, term in enumerate(terms):
        left, right = figure.add_subplot(grid[at, 0]), figure.add_subplot(grid[at, 1])
        span = np.linspace(-2.0, 3.0, 301)
        density = np.gradient(np.asarray(noise.cdf((span - row[0, at]) / noise.magnitude)), span)
        left.fill_between(span, 0, density / density.max() * term.scores.max() / levels, color="0.88")
        _draw_step(left, term, -2.0, 3.0, levels, color="C0")
        left.set_ylabel(rf"$\tilde f_{at + 1}(x_{at + 1})$")
        alone = AdditiveEnsemble((StepFunction(0, term.edges, term.scores),), 0, 1, levels)
        law = distribution(alone, row[:, [at]], noise)
        right.bar(law.support / levels, law.pmf[0], width=0.6 / levels, color="C0")
        right.set_ylim(0, 1)
    law = distribution(model, row, noise)
    colors = [_CLASSES[int(score > threshold)] for score in law.support]
    pdf, cdf = figure.add_subplot(grid[:, 2]), figure.add_subplot(grid[:, 3])
    pdf.bar(law.support / levels, law.pmf[0], width=0.6 / levels, color=colors)
    cdf.step(law.support / levels, np.cumsum(law.pmf[0]), where="post", color="k")
    _mark_decision(cdf, threshold / levels, float(law.cdf(threshold)[0]))
    for axes, title in zip((figure.axes[0], figure.axes[1], pdf, cdf), content["panels"], strict=True):
        axes.set_title(title, fontsize=9)
    for axes in (pdf, cdf):
        axes.set_xlabel("score of the ensemble")
    return figure


def _mark_decision(axes: Axes, threshold: float, mass: float) -> None:
    axes.axvline(threshold, color="0.5", linewidth=0.8)
    axes.plot([threshold], [mass], "o", color=_CLASSES[0], markersize=4)
    text = f"P(class 0) = {mass:.3f}"
    axes.annotate(text, (threshold, mass), xytext=(4, -10), textcoords="offset points", fontsize=7)


def _draw_merge(item: Item, outcomes: Outcomes) -> Figure:
    """Two stumps on one feature, and the step function that they make together."""
    content = item.content
    columns = [content["stumps"][name] for name in ("thresholds", "left", "right")]
    merged = AdditiveEnsemble.from_stumps([0, 0], *columns, n_features=1, levels=content["levels"]).step_functions[0]
    figure, axes = _open_figure(6.6, 2.2, 3)
    for at, (threshold, left, right) in enumerate(zip(*columns, strict=True)):
        axes[at].step([0, threshold, 1], [left, right, right], where="post", color=f"C{at}")
        axes[at].set_title(f"$f_{at + 1}$", fontsize=9)
    _draw_step(axes[2], merged, 0, 1, content["levels"], color="k")
    axes[2].set_title(r"$\tilde f = f_1 + f_2$", fontsize=9)
    for place in axes:
        place.set_ylim(0, 2)
        place.set_xlabel("$x$")
        for threshold in columns[0]:
            place.axvline(threshold, color="0.85", linewidth=0.8, zorder=0)
    return figure


def _draw_shifted_cdf(item: Item, outcomes: Outcomes) -> Figure:
    """Distribution functions of the score after changes of at most one category, bounded by the worst case."""
    content = item.content
    model, noise, row = _read_model(content), parse_noise(content["noise"]), np.array([content["row"]], dtype=float)
    figure, (axes,) = _open_figure(4.6, 3.0)
    law = distribution(model, row, noise)
    tables = model.category_tables
    own = [int(table.evaluate(row[:, table.feature])[0]) for table in tables]
    shifts = [int(score) - mine for table, mine in zip(tables, own, strict=True) for score in table.cell_scores]
    for shift in sorted(set(shifts)):
        if 0 < shift < max(shifts):
            _draw_cdf(axes, law.support + shift, law.pmf[0], model, color="0.75", linewidth=0.8)
    worst = certify(model, row, noise, l0=1, proof="paper")
    _draw_cdf(axes, law.support, law.pmf[0], model, color=_CLASSES[0], label="unchanged")
    label = f"worst change of one category: failure {float(worst.failure[0]):.3f}"
    _draw_cdf(axes, law.support + max(shifts), law.pmf[0], model, color=_CLASSES[1], label=label)
    axes.axvline(content["threshold"] / model.levels, color="0.5", linewidth=0.8)
    axes.set_xlabel("score of the ensemble")
    axes.set_ylabel("distribution function")
    axes.legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def _draw_cdf(axes: Axes, support: IntArray, pmf: FloatArray, model: AdditiveEnsemble, **style: Any) -> None:
    axes.step(support / model.levels, np.cumsum(pmf), where="post", **style)


def _draw_inverse_cdf(item: Item, outcomes: Outcomes) -> Figure:
    """The inverse distribution function, with the clean and the certifiable prediction of a row of class 1."""
    content = item.content
    model, noise, row = _read_model(content), parse_noise(content["noise"]), np.array([content["row"]])
    law = distribution(model, row, noise)
    failure = float(noise.failure_at(content["radius"]))
    shares = np.linspace(0.001, 0.999, 999)
    figure, (axes,) = _open_figure(4.4, 3.0)
    scores = law.quantile(shares)[0] / model.levels
    axes.step(shares, scores, where="post", color="k", label="inverse distribution function")
    axes.axhline(content["threshold"] / model.levels, color="0.5", linewidth=0.8)
    predictions = ((0.5, "clean prediction", _CLASSES[1]), (failure, "certifiable prediction", _CLASSES[0]))
    for share, name, color in predictions:
        score = float(law.quantile(share)[0]) / model.levels
        axes.plot([share, share], [0, score], ":", color=color)
        axes.plot([share], [score], "o", color=color, label=f"{name}: {score:.2f}")
    axes.set_xlim(0, 1)
    axes.set_xlabel("percentile")
    axes.set_ylabel("score of the ensemble")
    axes.legend(frameon=False, fontsize=7)
    return figure


DRAWERS: Mapping[str, Callable[[Item, Outcomes], Figure]] = {
    "curves": _draw_curves,
    "split histogram": _draw_split_histogram,
    "overview": _draw_overview,
    "merge": _draw_merge,
    "shifted cdf": _draw_shifted_cdf,
    "inverse cdf": _draw_inverse_cdf,
}
