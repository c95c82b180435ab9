"""One feature's part of the score, drawn: steps, their mean under noise, the band that a change can reach, the data.

Must not know estimators: names, categories and what a change can reach are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand._core.text import format_count, format_readable
from derand.explain.densities import Density, measure_density
from derand.explain.heights import Reach, measure_band, measure_heights
from derand.explain.plots._axes import ACCENT, DATA, MUTED, as_axes, as_label, keep_plain
from derand.model import Axis, Term
from derand.noise import Noise, resolve_noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 400
_BAR_NAME = 18
_GRID = 120
Ends = tuple[float, float] | None
"""The least and the largest value of a column, where they are known."""
BAND = 0.22
"""How opaque a band is."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How scores become heights: `(score - neutral) / points`, one neutral score per output."""

    neutral: FloatArray | float = 0.0
    points: float = 1.0

    def place(self, scores: ArrayLike) -> FloatArray:
        """Heights of scores, whose last axis is that of the outputs."""
        return np.asarray((np.asarray(scores, dtype=np.float64) - self.neutral) / self.points)


def shape(
    term: Term,
    noise: Noise | str | float | None = None,
    column: ArrayLike | None = None,
    axes: Axes | None = None,
    *,
    name: str | None = None,
    categories: Sequence[object] | None = None,
    reach: float | Reach | None = None,
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
    reach : float, callable or None
        By how much a number may change: draws the least and the largest score that it can reach so as a band. A
        callable takes values, (n,), and returns the least and the largest value that each may become.

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
    if len(term.features) != 1:
        raise ValueError(f"`term` must be of one column to be drawn, got one of columns {term.features}.")
    axes = as_axes(axes)
    (feature,) = term.features
    density = None if column is None else measure_density(column, is_category=not term.axes)
    if term.axes:
        smoothing = resolve_noise(noise)
        draw_steps(axes, term, smoothing, density, as_reach(reach), Scale(), [ACCENT])
    else:
        draw_table(axes, term, density, categories, Scale(), [ACCENT])
    keep_plain(axes.set_xlabel(f"feature {feature}" if name is None else name))
    axes.set_ylabel("score")
    return axes


def as_reach(reach: float | Reach | None) -> Reach | None:
    """How far values may change, as a function of them."""
    if reach is None or callable(reach):
        return reach
    size = float(reach)
    return lambda x: (x - size, x + size)


def draw_steps(
    axes: Axes,
    term: Term,
    noise: Noise | None,
    density: Density | None,
    reach: Reach | None,
    scale: Scale,
    colours: Sequence[str],
    outputs: Sequence[int] = (0,),
    *,
    ends: Ends = None,
) -> None:
    """A number's part of the score: one line for each of some outputs; `ends` are shown where there is no data."""
    (axis,) = term.axes
    x = _choose_range(axis, noise, density, ends)
    if density is not None:
        _draw_beneath(axes, density, (float(x[0]), float(x[-1])))
    heights = scale.place(measure_heights(term, x, noise))
    if reach is not None:
        low, high = (scale.place(end) for end in measure_band(term, x, noise, reach))
        for at, colour in zip(outputs, colours, strict=True):
            step: Literal["post"] | None = None if noise is not None or term.slope is not None else "post"
            axes.fill_between(x, low[:, at], high[:, at], color=colour, alpha=BAND, linewidth=0, step=step)
    is_single = len(outputs) == 1
    if term.slope is None and is_single:
        inside, cells = np.concatenate([[x[0]], axis.edges, [x[-1]]]), scale.place(term.scores)[:, outputs[0]]
        cells = cells[: axis.edges.size + 1]
        colour = MUTED if noise is not None else colours[0]
        axes.step(inside, [*cells.tolist(), cells[-1]], where="post", color=colour, linewidth=1, label="steps")
    if noise is not None or term.slope is not None or not is_single:
        label = "line" if term.slope is not None else "mean under noise"
        for at, colour in zip(outputs, colours, strict=True):
            axes.plot(x, heights[:, at], color=colour, linewidth=2, label=label if is_single else None)
    if term.missing_features and is_single:
        gap = float(scale.place(measure_heights(term, np.array([np.nan]), None))[0, outputs[0]])
        axes.axhline(gap, color=MUTED, linestyle="--", linewidth=1, label="missing")
    axes.set_xlim(float(x[0]), float(x[-1]))


def _choose_range(axis: Axis, noise: Noise | None, density: Density | None, ends: Ends = None) -> FloatArray:
    """Values at which a number's function is drawn: none below 0 where no value is."""
    scale = 1.0 if noise is None else float(noise.scales(np.array([axis.feature]))[0])
    known = ends if density is None else density.ends
    seen = [*(() if known is None else known), *axis.edges.tolist()]
    low, high = (min(seen), max(seen)) if seen else (0.0, 0.0)
    margin = 0.05 * (high - low) or 3 * scale
    if known is None:
        margin = max(margin, 3 * scale)
    margin = max(margin, 1e-9 * max(abs(low), abs(high)))  # so large that a small margin would vanish beside it
    start = low if known is not None and 0 <= low < high else low - margin
    return np.linspace(start, high + margin, _POINTS)


def _draw_beneath(axes: Axes, density: Density, ends: tuple[float, float]) -> None:
    """The data as pale bars in the lower third, on a scale of their own."""
    below = axes.twinx()
    edges, counts = density.edges, density.counts
    if edges.size == 2 and edges[0] == edges[1]:  # one value alone
        half = 0.01 * (ends[1] - ends[0])
        edges = np.array([edges[0] - half, edges[1] + half])
    if counts.size:
        below.stairs(counts, edges, fill=True, color=DATA)
    below.set_ylim(0, 3 * max(float(counts.max(initial=0)), 1.0))
    below.set_yticks([])
    below.spines[:].set_visible(False)
    axes.set_zorder(below.get_zorder() + 1)
    axes.patch.set_visible(False)


def draw_table(
    axes: Axes,
    term: Term,
    density: Density | None,
    categories: Sequence[object] | None,
    scale: Scale,
    colours: Sequence[str],
    outputs: Sequence[int] = (0,),
    *,
    sideways: bool = False,
    most: int | None = None,
) -> int:
    """A category's part of the score: bars, for each of some outputs; how many categories were left out.

    `most` is how many are drawn: the most frequent ones, or without data those that weigh most.
    """
    order = _choose_codes(term.codes, scale.place(term.scores), density, most)
    codes = term.codes[order]
    names = [as_label(f"{code:g}" if categories is None else categories[int(code)], _BAR_NAME) for code in codes]
    if density is not None:
        counts = [format_count(density.count(code)) for code in codes.tolist()]
        names = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    unseen = min([0.0, *term.codes.tolist()]) - 1.0
    outside = {"new or missing": unseen} if term.missing is None else {"new": unseen, "missing": np.nan}
    heights = scale.place(measure_heights(term, np.array([*codes.tolist(), *outside.values()]), None))
    width = 0.8 / len(outputs)
    for k, (at, colour) in enumerate(zip(outputs, colours, strict=True)):
        inside = [colour] * len(order) + [MUTED if len(outputs) == 1 else colour] * len(outside)
        places = np.arange(len(heights)) + (k - 0.5 * (len(outputs) - 1)) * width
        (axes.barh if sideways else axes.bar)(places, heights[:, at], width, color=inside)
    if sideways:
        axes.set_yticks(range(len(heights)), [*names, *outside], parse_math=False)
        axes.invert_yaxis()
    else:
        axes.set_xticks(range(len(heights)), [*names, *outside], rotation=30, ha="right", parse_math=False)
    return int(term.codes.size - len(order))


def _choose_codes(codes: FloatArray, heights: FloatArray, density: Density | None, most: int | None) -> list[int]:
    """Which categories are drawn, in which order: all as they are, or some, the most telling first."""
    if most is None or codes.size <= most:
        return list(range(codes.size))
    spread = np.abs(heights).max(axis=1, initial=0.0)
    weight = spread if density is None else np.array([density.count(code) for code in codes.tolist()], dtype=float)
    return [int(at) for at in np.lexsort((-spread, -weight))[:most]]


def draw_map(
    axes: Axes,
    term: Term,
    noise: Noise | None,
    densities: Sequence[Density | None],
    scale: Scale,
    ends: Sequence[Ends] = (None, None),
) -> Any:
    """A function of two numbers as a map, from blue below 0 to orange above; what a colour bar is made from."""
    sides = [
        _choose_range(axis, noise, density, pair)
        for axis, density, pair in zip(term.axes, densities, ends, strict=True)
    ]
    first, second = (np.linspace(side[0], side[-1], _GRID) for side in sides)
    points = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    heights = scale.place(measure_heights(term, points, noise))[:, 0].reshape(_GRID, _GRID)
    largest = float(np.abs(heights).max()) or 1.0
    return axes.pcolormesh(
        first, second, heights.T, cmap="PuOr_r", vmin=-largest, vmax=largest, shading="nearest", rasterized=True
    )


def write_ticks(*every: Any) -> None:
    """Numbers along axes as people write them, and few of them."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in every:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_readable(float(f"{value:.12g}"))))
