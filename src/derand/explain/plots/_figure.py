"""Many shapes in one figure: a panel for each term, the most important first. Must not know estimators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import PlotAxes
from derand._core.origin import Cell
from derand._core.text import plural
from derand.explain.densities import Density
from derand.explain.heights import Reach
from derand.explain.plots._axes import ACCENT, DATA, LINES, MUTED, as_label, keep_plain
from derand.explain.plots._shapes import BAND, Ends, Scale, draw_map, draw_steps, draw_table, write_ticks
from derand.model import Term
from derand.noise import Noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CATEGORIES = 12
_ACROSS = 3
_SIZE = (3.5, 2.6)
_NAME_LENGTH = 34


@dataclass(frozen=True, slots=True)
class Panel:
    """What one panel shows.

    Attributes
    ----------
    term : Term
        Of one column, or of two numbers.
    names : sequence of str
        Of its columns.
    scale : Scale
        How its scores become heights.
    densities : sequence of Density or None
        The data of its columns.
    categories : sequence or None
        Names of its categories, by code.
    reach : callable or None
        How far its number may change: draws the band.
    ends : sequence of (least, largest) or None
        Of its columns: they are shown where there is no data.
    """

    term: Term
    names: Sequence[str]
    scale: Scale = field(default_factory=Scale)
    densities: Sequence[Density | None] = ()
    categories: Sequence[Cell] | None = None
    reach: Reach | None = None
    ends: Sequence[Ends] = ()


def shapes(
    panels: Sequence[Panel],
    noise: Noise | None = None,
    *,
    height: str = "score",
    classes: Mapping[str, int] | None = None,
    band: str = "",
    notes: Sequence[str] = (),
) -> PlotAxes:
    """Shapes of several features in one figure, three across.

    Parameters
    ----------
    panels : sequence of Panel
    noise : Noise or None
        Shapes are their means under it.
    height : str
        What the heights are.
    classes : mapping of name to output, or None
        Which of several scores are drawn, each in a colour of its own; None for the only one.
    band : str
        What the band is, for the legend; nothing where there is none.
    notes : sequence of str
        Lines beneath.

    Returns
    -------
    array of matplotlib Axes, one per panel
        Its figure is `axes[0].figure`.

    Examples
    --------
    >>> from derand import StepFunction, plot
    >>> axes = plot.shapes([plot.Panel(StepFunction(0, [1.0], [-2, 3]), ["age"])])
    >>> axes[0].get_title(loc="left"), len(axes)
    ('age', 1)
    """
    from matplotlib import pyplot

    across = 2 if len(panels) == 4 else min(_ACROSS, max(len(panels), 1))
    down = max(math.ceil(len(panels) / across), 1)
    figure, grid = pyplot.subplots(
        down, across, figsize=(across * _SIZE[0], down * _SIZE[1] + 0.5), squeeze=False, layout="constrained"
    )
    every = grid.ravel()
    told = list(notes)
    for axes, panel in zip(every, panels, strict=False):
        told += _draw_panel(axes, panel, noise, list((classes or {"": 0}).values()), height)
    for axes in every[len(panels) :]:
        axes.set_visible(False)
    _share_heights(list(every), panels)
    _draw_legend(figure, panels, noise, classes, band)
    if told:
        keep_plain(figure.supxlabel("\n".join(told), fontsize=8, color=MUTED))
    return np.array(every[: len(panels)], dtype=object)


def _draw_panel(axes: Axes, panel: Panel, noise: Noise | None, outputs: list[int], height: str) -> list[str]:
    """Draw one panel; what is to be said beneath the figure."""
    term = panel.term
    densities = list(panel.densities) or [None] * len(term.features)
    colours = [ACCENT] if len(outputs) == 1 else [LINES[k % len(LINES)] for k in range(len(outputs))]
    names = [as_label(name, _NAME_LENGTH) for name in panel.names]
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    keep_plain(axes.set_title(" and ".join(names), fontsize=9, loc="left"))
    if len(term.features) == 2:
        _draw_map(axes, panel, noise, densities)
        return []
    if term.axes:
        axes.axhline(0.0, color="black", linewidth=0.6, zorder=1)
        ends = panel.ends or (None,)
        draw_steps(axes, term, noise, densities[0], panel.reach, panel.scale, colours, outputs, ends=ends[0])
        axes.set_ylabel(height, fontsize=8)
        write_ticks(axes.xaxis, axes.yaxis)
        return []
    scale, most = panel.scale, MOST_CATEGORIES
    left = draw_table(axes, term, densities[0], panel.categories, scale, colours, outputs, sideways=True, most=most)
    axes.axvline(0.0, color="black", linewidth=0.6)
    axes.set_xlabel(height, fontsize=8)
    axes.tick_params(axis="y", labelsize=6.5, length=0)
    write_ticks(axes.xaxis)
    return [f"{names[0]}: {plural(left, 'more category', 'more categories')} not shown."] if left else []


def _draw_map(axes: Axes, panel: Panel, noise: Noise | None, densities: Sequence[Density | None]) -> None:
    """Two numbers that interact."""
    names = [as_label(name, _NAME_LENGTH // 2) for name in panel.names]
    ends = panel.ends or (None, None)
    picture = draw_map(axes, panel.term, noise, densities, panel.scale, ends)
    keep_plain(axes.set_xlabel(names[0], fontsize=8), axes.set_ylabel(names[1], fontsize=8))
    bar = axes.figure.colorbar(picture, ax=axes, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    write_ticks(axes.xaxis, axes.yaxis)


def _share_heights(every: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """One scale for all, so that what matters little looks so."""
    single = [(axes, panel) for axes, panel in zip(every, panels, strict=False) if len(panel.term.features) == 1]
    ends = [axes.get_ylim() if panel.term.axes else axes.get_xlim() for axes, panel in single]
    for axes, panel in single:
        shared = min(low for low, _ in ends), max(high for _, high in ends)
        (axes.set_ylim if panel.term.axes else axes.set_xlim)(shared)


def _draw_legend(
    figure: Figure, panels: Sequence[Panel], noise: Noise | None, classes: Mapping[str, int] | None, band: str
) -> None:
    """What lines, bands and bars mean, above all panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    numbers = [panel for panel in panels if len(panel.term.axes) == 1]
    entries: list[tuple[object, str]] = []
    if classes is not None:
        entries = [(Line2D([], [], color=LINES[k % len(LINES)], linewidth=2), name) for k, name in enumerate(classes)]
    elif numbers and noise is not None:
        entries = [(Line2D([], [], color=ACCENT, linewidth=2), "mean under noise")]
        entries += [(Line2D([], [], color=MUTED, linewidth=1), "steps")]
    if band and any(panel.reach is not None for panel in numbers):
        colour = MUTED if classes is not None else ACCENT
        entries.append((Patch(color=colour, alpha=BAND, linewidth=0), band))
    if any(one is not None for panel in numbers for one in panel.densities):
        entries.append((Patch(color=DATA), "data"))
    if any(panel.term.missing_features for panel in numbers) and classes is None:
        entries.append((Line2D([], [], color=MUTED, linestyle="--", linewidth=1), "missing"))
    if not entries:
        return
    handles, names = zip(*entries, strict=True)
    legend = figure.legend(
        handles,
        [as_label(name, 60) for name in names],
        loc="outside upper center",
        ncols=min(len(names), 6),
        frameon=False,
        fontsize=8,
    )
    keep_plain(*legend.get_texts())
