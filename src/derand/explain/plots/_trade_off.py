"""What robustness costs, drawn: lines over the radius, each with its name. Must not know models or certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand._core.text import Facts
from derand.explain.plots._axes import ACCENT, WRONG, as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    axes = as_axes(axes)
    x = np.concatenate([[0.0], np.asarray(radii, dtype=np.float64)])
    heights = np.column_stack([natural, certified])
    lowest = float(min(heights.min(), 1.0 if constant is None else constant))
    highest = float(max(heights.max(), 0.0 if constant is None else constant))
    bottom, top = max(0.0, np.floor(10 * lowest - 0.5) / 10), min(1.0, np.ceil(10 * highest + 0.5) / 10)
    axes.set_xlim(0.0, float(x[-1]) or 1.0)
    axes.set_ylim(bottom, top)
    if constant is not None:
        axes.axhline(constant, color=WRONG, linewidth=1, ls="--", zorder=5)
        text: Facts = {"textcoords": "offset points", "color": WRONG, "va": "top", "fontsize": 8.5}
        axes.annotate("always the same label", (0.0, constant), (4, -3), **text)
    places = spread(heights[:, -1], 0.06 * (top - bottom))
    greys = [str(grey) for grey in np.linspace(0.55, 0.15, len(heights))]
    for at, line in enumerate(heights):
        name, style = names[at], Line(greys[at], 1.2, 3.0, "normal", 3)
        if at == chosen:
            name, style = f"{name}, recommended", Line(ACCENT, 2.6, 5.5, "bold", 4)
        draw_named(axes, x, line, name, places[at], style)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"radius (l{norm:g}); at 0: natural accuracy")
    axes.set_ylabel("balanced certified accuracy" if balanced else "certified accuracy")
    axes.grid(alpha=0.3)
    return axes


class Line(NamedTuple):
    """How a line and its name look."""

    colour: str
    width: float
    dot: float
    weight: str
    layer: int


def draw_named(axes: Axes, x: FloatArray, y: FloatArray, name: str, place: float, style: Line) -> None:
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


def spread(heights: FloatArray, gap: float) -> list[float]:
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
