"""Plots: matplotlib axes in and out. Must not know files or how results are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand import metrics
from derand._arrays import FloatArray
from derand.certificates import Certificates, Distribution
from derand.model import Axis, Term
from derand.noise import Noise, as_noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCENT, WRONG, MUTED, DATA = "#0a5ea8", "#c2500a", "#5b6b7a", "#dde4eb"
"""Blue, orange and greys that people of any colour vision tell apart."""
_POINTS = 400


def certified_accuracy(
    y: ArrayLike, certificates: Certificates, axes: Axes | None = None, balanced: bool = False, **style: Any
) -> Axes:
    """Certified accuracy over the radius, as the step curve that it is.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels.
    certificates : Certificates
    axes : matplotlib Axes or None
        None takes new ones.
    balanced : bool
        Mean of the shares within each class.
    **style
        For `Axes.step`, such as `label` and `color`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import AdditiveEnsemble, certify, plot
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> certificates = certify(model, [[0.0], [2.0]], "gaussian:0.25")
    >>> plot.certified_accuracy([0, 1], certificates, Figure().subplots()).get_ylabel()
    'certified accuracy'
    """

    def measure(radii: FloatArray) -> FloatArray:
        return metrics.certified_accuracy(y, certificates, radii, balanced=balanced)

    return certified_curve(certificates.radius, measure, axes, norm=_require_norm(certificates), **style)


def _require_norm(certificates: Certificates) -> float:
    if certificates.norm is None:
        raise ValueError("`certificates` of a Threat without a norm have no radius to plot: look at their `verdict`.")
    return certificates.norm


def certified_curve(
    radius: ArrayLike,
    measure: Callable[[FloatArray], FloatArray],
    axes: Axes | None = None,
    *,
    norm: float,
    **style: Any,
) -> Axes:
    """Any share of certified rows over the radius, as the step curve that it is.

    Parameters
    ----------
    radius : array-like of shape (n_rows,)
        Certified radius of each row: where the curve may fall.
    measure : callable
        Takes radii and returns the share at each of them.
    axes : matplotlib Axes or None
        None takes new ones.
    norm : float
        Of the ball, for the label of the axis.
    **style
        For `Axes.step`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import plot
    >>> from derand.metrics import certified_share
    >>> radius = [0.5, 1.0, 2.0]
    >>> measure = lambda radii: certified_share([True, False, True], radius, radii)
    >>> plot.certified_curve(radius, measure, Figure().subplots(), norm=2).get_xlabel()
    'radius (l2)'
    """
    axes = _as_axes(axes)
    sizes = np.asarray(radius, dtype=np.float64)
    radii = np.unique(np.concatenate([[0.0], sizes[np.isfinite(sizes)]]))
    end = max(1.05 * float(radii[-1]), float(np.finfo(np.float64).tiny))
    points = np.append(radii, end)
    # a share holds up to and including its radius, so that each step falls to the right of it
    axes.step(points, measure(points), where="pre", **style)
    axes.set_xlim(0.0, end)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(f"radius (l{norm})")
    axes.set_ylabel("certified accuracy")
    axes.grid(alpha=0.3)
    return axes


def shape(
    term: Term,
    noise: Noise | str | float | None = None,
    column: ArrayLike | None = None,
    axes: Axes | None = None,
    *,
    name: str | None = None,
    categories: Sequence[Any] | None = None,
) -> Axes:
    """One feature's part of the score: its steps, what noise makes of them, and the data beneath.

    Parameters
    ----------
    term : Term
        One of `model.terms`, of one column.
    noise : Noise, str or None
        Draws the mean score under noise as well; a category is not randomised.
    column : array-like of shape (n_rows,) or None
        Values of the feature, codes for a category: drawn as a histogram beneath, and they fix the range shown.
    axes : matplotlib Axes or None
        None takes new ones.
    name : str or None
        Name of the feature.
    categories : sequence or None
        Names of the categories, by code.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import StepFunction, plot
    >>> plot.shape(StepFunction(0, [1.0], [-2, 3]), "gaussian:0.5", axes=Figure().subplots(), name="age").get_xlabel()
    'age'
    """
    axes = _as_axes(axes)
    values = None if column is None else np.asarray(column, dtype=np.float64)
    if values is not None and term.axes:
        values = values[~np.isnan(values)]
    if len(term.features) != 1:
        raise ValueError(f"`term` must be of one column to be drawn, got one of columns {term.features}.")
    (feature,) = term.features
    if term.axes:
        _draw_steps(axes, term, term.axes[0], None if noise is None else as_noise(noise), values)
    else:
        _draw_table(axes, term, values, categories)
    axes.set_xlabel(f"feature {feature}" if name is None else name)
    axes.set_ylabel("score")
    return axes


def _draw_steps(axes: Axes, term: Term, axis: Axis, noise: Noise | None, values: FloatArray | None) -> None:
    scale = 1.0 if noise is None else float(noise.scales(np.array([axis.feature]))[0])
    seen = [*(() if values is None or not values.size else (values.min(), values.max())), *axis.edges.tolist()]
    low, high = (min(seen), max(seen)) if seen else (0.0, 0.0)
    margin = 0.05 * (high - low) or 3 * scale
    if values is None:
        margin = max(margin, 3 * scale)
    x = np.linspace(low - margin, high + margin, _POINTS)
    if values is not None:
        _draw_beneath(axes, values, (float(x[0]), float(x[-1])))
    if term.slope is not None:
        axes.plot(x, term.evaluate(x), color=ACCENT, linewidth=2, label="line")
    else:
        _draw_cells(axes, term, axis, noise, x)
    if term.missing_score is not None:
        axes.axhline(term.missing_score, color=MUTED, linestyle="--", label="missing")
    axes.set_xlim(float(x[0]), float(x[-1]))


def _draw_cells(axes: Axes, term: Term, axis: Axis, noise: Noise | None, x: FloatArray) -> None:
    inside, heights = np.concatenate([[x[0]], axis.edges, [x[-1]]]), term.cell_scores
    axes.step(inside, [*heights.tolist(), int(heights[-1])], where="post", color=MUTED, label="steps")
    if noise is not None:
        cells = noise.cell_probabilities(x, axis.edges, axis.feature)
        axes.plot(x, cells @ heights, color=ACCENT, linewidth=2, label="mean under noise")


def _draw_beneath(axes: Axes, values: FloatArray, ends: tuple[float, float]) -> None:
    """The data as pale bars in the lower third, on a scale of their own."""
    below = axes.twinx()
    counts, _, _ = below.hist(values, bins=40, range=ends, color=DATA)
    below.set_ylim(0, 3 * max(float(np.max(counts)), 1.0))
    below.set_yticks([])
    axes.set_zorder(below.get_zorder() + 1)
    axes.patch.set_visible(False)


def _draw_table(axes: Axes, term: Term, values: FloatArray | None, categories: Sequence[Any] | None) -> None:
    codes = term.codes.tolist()
    names = [f"{code:g}" if categories is None else str(categories[int(code)]) for code in codes]
    if values is not None:
        names = [f"{name} ({int((values == code).sum())})" for name, code in zip(names, codes, strict=True)]
    outside = {"other": min([0.0, *codes]) - 1.0} | ({} if term.missing is None else {"missing": np.nan})
    heights = term.evaluate([*codes, *outside.values()]).tolist()
    axes.bar(range(len(heights)), heights, color=[*[ACCENT] * len(codes), *[MUTED] * len(outside)])
    axes.set_xticks(range(len(heights)), [*names, *outside], rotation=30, ha="right")


def law(
    distribution: Distribution,
    threshold: int,
    axes: Axes | None = None,
    *,
    row: int = 0,
    allowed: float | None = None,
) -> Axes:
    """The exact law of a row's score: bars for its probabilities, coloured by the answer they give, and its cdf.

    Parameters
    ----------
    distribution : Distribution
        From `derand.distribution`.
    threshold : int
        The model's: class 1 iff the score is above.
    axes : matplotlib Axes or None
        None takes new ones. The cdf goes to a second axis on the right.
    row : int
        Which row of the distribution.
    allowed : float or None
        A failure mass, such as `noise.failure_at(radius)`: marks the certified percentile, which lies on the answer's
        side of the threshold where the row is certified at that radius.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import AdditiveEnsemble, distribution, plot
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> found = distribution(model, [[0.0]], "gaussian:0.5")
    >>> plot.law(found, model.threshold, Figure().subplots()).get_xlabel()
    'score'
    """
    axes = _as_axes(axes)
    support, mass = distribution.support, distribution.pmf[row]
    width = float(support[1] - support[0]) if support.size > 1 else 1.0
    above = support > threshold
    is_one = bool(mass[above].sum() > 0.5)
    for side, one in ((~above, False), (above, True)):
        colour = ACCENT if one == is_one else WRONG
        axes.bar(support[side], mass[side], width, color=colour, label=f"class {int(one)}")
    axes.axvline(threshold + 0.5 * width, color="black", linewidth=1, label="threshold")
    if allowed is not None:
        percentile = distribution.percentile(allowed, row=row, label=int(is_one))
        axes.axvline(float(percentile), color="black", ls="--", label="percentile")
    right = axes.twinx()
    right.step(support, np.cumsum(mass), where="post", color=MUTED, linewidth=1)
    right.set_ylim(0.0, 1.02)
    right.set_ylabel("cdf")
    axes.set_xlabel("score")
    axes.set_ylabel("probability")
    return axes


def trade_off(
    radii: ArrayLike,
    natural: ArrayLike,
    certified: ArrayLike,
    names: Sequence[str],
    axes: Axes | None = None,
    *,
    norm: float,
    chosen: int | None = None,
    constant: float | None = None,
    balanced: bool = False,
) -> Axes:
    """What robustness costs: certified accuracy over the radius, one line per model, each from its natural accuracy on.

    Parameters
    ----------
    radii : array-like of shape (n_radii,)
    natural : array-like of shape (n_models,)
        Accuracy without any change, where the lines begin.
    certified : array-like of shape (n_models, n_radii)
    names : sequence of str
        Of the models; they stand where the lines end.
    axes : matplotlib Axes or None
        None takes new ones.
    norm : float
        Of the ball, for the label of the axis.
    chosen : int or None
        The model that is recommended: drawn in colour, the others in grey, from pale to dark.
    constant : float or None
        What a model that always says the same gets, as a dashed line.
    balanced : bool
        Whether accuracies are means of all classes, for the label of the axis.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import plot
    >>> natural, certified = [0.92, 0.9], [[0.7, 0.4], [0.85, 0.8]]
    >>> axes = plot.trade_off([0.5, 1.0], natural, certified, ["less", "more"], Figure().subplots(), norm=2, chosen=1)
    >>> axes.get_ylabel()
    'certified accuracy'
    """
    axes = _as_axes(axes)
    x = np.concatenate([[0.0], np.asarray(radii, dtype=np.float64)])
    heights = np.column_stack([natural, certified])
    lowest = float(min(heights.min(), 1.0 if constant is None else constant))
    highest = float(max(heights.max(), 0.0 if constant is None else constant))
    bottom, top = max(0.0, np.floor(10 * lowest - 0.5) / 10), min(1.0, np.ceil(10 * highest + 0.5) / 10)
    axes.set_xlim(0.0, float(x[-1]) or 1.0)
    axes.set_ylim(bottom, top)
    if constant is not None:
        axes.axhline(constant, color=WRONG, linewidth=1, ls="--", zorder=5)
        text: dict[str, Any] = {"textcoords": "offset points", "color": WRONG, "va": "top", "fontsize": 8.5}
        axes.annotate("always the same label", (0.0, constant), (4, -3), **text)
    places = _spread(heights[:, -1], 0.06 * (top - bottom))
    greys = [str(grey) for grey in np.linspace(0.55, 0.15, len(heights))]
    for at, line in enumerate(heights):
        name, style = names[at], _Line(greys[at], 1.2, 3.0, "normal", 3)
        if at == chosen:
            name, style = f"{name}, recommended", _Line(ACCENT, 2.6, 5.5, "bold", 4)
        _draw_named(axes, x, line, name, places[at], style)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"radius (l{norm:g}); at 0: natural accuracy")
    axes.set_ylabel("balanced certified accuracy" if balanced else "certified accuracy")
    axes.grid(alpha=0.3)
    return axes


class _Line(NamedTuple):
    """How a line and its name look."""

    colour: str
    width: float
    dot: float
    weight: str
    layer: int


def _draw_named(axes: Axes, x: FloatArray, y: FloatArray, name: str, place: float, style: _Line) -> None:
    """A line with a dot at every point, and its name to the right of the axes, tied to where the line ends."""
    axes.plot(
        x,
        y,
        color=style.colour,
        linewidth=style.width,
        marker="o",
        markersize=style.dot,
        clip_on=False,
        zorder=style.layer,
    )
    axes.annotate(
        name,
        (float(x[-1]), float(y[-1])),
        (1.06, place),
        textcoords=axes.get_yaxis_transform(),
        color=style.colour,
        weight=style.weight,
        fontsize=9,
        va="center",
        arrowprops={
            "arrowstyle": "-",
            "color": style.colour,
            "linewidth": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 2,
            "shrinkB": 4,
        },
    )


def _spread(heights: FloatArray, gap: float) -> list[float]:
    """Heights for labels: as near to the given ones as lets them keep a distance, in the same order."""
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(order.size)
    free = np.asarray(heights)[order] - steps
    # the nearest increasing heights: means of blocks that would overlap, merged until none does
    blocks: list[tuple[float, int]] = []
    for height in free.tolist():
        blocks.append((height, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (low, n_low), (high, n_high) = blocks[-2:]
            blocks[-2:] = [((low * n_low + high * n_high) / (n_low + n_high), n_low + n_high)]
    placed = np.repeat([height for height, _ in blocks], [number for _, number in blocks]) + steps
    result = np.empty(order.size)
    result[order] = placed
    return [float(height) for height in result]


def _as_axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]
