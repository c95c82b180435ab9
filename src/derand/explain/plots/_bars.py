"""What contributes to a row, and how far each column is from flipping it: two panels of bars. Must not know models."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import PlotAxes
from derand.explain.bars import Bar, Span, Step
from derand.explain.plots._axes import ACCENT, MUTED, WRONG, as_label, keep_plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME_LENGTH = 34
_LINE = 0.3
"""Inches of a bar."""


def pushes(
    bars: Sequence[Bar],
    total: Bar | None,
    steps: Sequence[Step],
    *,
    sides: tuple[str, str],
    height: str,
    size: str,
    title: str,
) -> PlotAxes:
    """What pushes a row, to the left and to the right, and beside it how far each change is from flipping it.

    Parameters
    ----------
    bars : sequence of Bar
    total : Bar or None
        What they add up to; the answer changes where it crosses 0.
    steps : sequence of Step
        From the smallest change to the largest; infinite where nothing flips.
    sides : tuple of two str
        Where bars to the left and to the right push.
    height, size : str
        What bars and changes are measured in.
    title : str
        Above both.

    Returns
    -------
    array of two matplotlib Axes

    Examples
    --------
    >>> from derand import plot
    >>> bars = [plot.Bar("age is 31", 0.5, "+0.5"), plot.Bar("income is 2,400", -2.0, "-2")]
    >>> steps = [plot.Step("income", 0.4, 0.4, "to 2,900")]
    >>> how = {"sides": ("no", "yes"), "height": "log-odds", "size": "change", "title": "The answer is 'no'."}
    >>> left, right = plot.pushes(bars, plot.Bar("in all", -1.5, "-1.5"), steps, **how)
    >>> [label.get_text() for label in left.get_yticklabels()]
    ['age is 31', 'income is 2,400', 'in all']
    """
    left, right = _open_panels(max(len(bars) + (total is not None), len(steps), 2), title)
    _draw_contributions(left, bars, total, sides, f"{height}\nthe answer changes where the sum crosses 0")
    _draw_changes(right, steps, size)
    return np.array([left, right], dtype=object)


def reaches(
    bars: Sequence[Bar],
    spans: Sequence[Span],
    *,
    value: float,
    height: str,
    found: tuple[float, float],
    title: str,
) -> PlotAxes:
    """What adds up to a number, and beside it how far changes can move it.

    Parameters
    ----------
    bars : sequence of Bar
    spans : sequence of Span
        The first is that of all numbers together, where `found` is marked as well.
    value : float
        The answer.
    height : str
        What bars are measured in, and from.
    found : tuple of two floats
        The lowest and the highest answer that changes were found to have.
    title : str

    Returns
    -------
    array of two matplotlib Axes

    Examples
    --------
    >>> from derand import plot
    >>> spans = [plot.Span("all numbers together", 190.0, 230.0), plot.Span("age", 200.0, 220.0)]
    >>> bars, found = [plot.Bar("age = 31", 12.0, "+12")], (192.0, 228.0)
    >>> _, right = plot.reaches(bars, spans, value=212.0, height="added to 200", found=found, title="212")
    >>> [label.get_text() for label in right.get_yticklabels()]
    ['all numbers together', 'age']
    """
    left, right = _open_panels(max(len(bars), len(spans), 2), title)
    _draw_contributions(left, bars, None, ("less", "more"), height)
    for at, span in enumerate(spans):
        right.barh(at, span.high - span.low, 0.65, left=span.low, color=ACCENT, alpha=0.35, linewidth=0)
    if spans:
        right.plot(found, (0, 0), linestyle="none", marker="D", color=WRONG, markersize=5, clip_on=False)
    right.axvline(value, color="black", linewidth=0.8)
    _name_lines(right, [span.name for span in spans])
    right.set_title("between which numbers it stays", loc="left", fontsize=9)
    right.set_xlabel("the answer\nbar: proven, diamond: found, line: the row as it is", fontsize=8)
    return np.array([left, right], dtype=object)


def _open_panels(lines: int, title: str) -> tuple[Axes, Axes]:
    """A figure of two panels, with room between them for the names of the right one."""
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 1.5 + _LINE * lines))
    figure.set_layout_engine("constrained", wspace=0.08)
    keep_plain(figure.suptitle(fill(as_label(title, 360), 118), x=0.01, ha="left", fontsize=10))
    return left, right


def _draw_contributions(axes: Axes, bars: Sequence[Bar], total: Bar | None, sides: tuple[str, str], below: str) -> None:
    shown = [*bars, *([] if total is None else [total])]
    largest = max((abs(bar.size) for bar in shown), default=0.0) or 1.0
    for at, bar in enumerate(shown):
        is_right = bar.size >= 0
        axes.barh(at, bar.size, 0.65, color=ACCENT if is_right else WRONG, alpha=1.0 if bar is not total else 0.6)
        _write_beside(axes, bar.size, at, bar.text, to_right=is_right)
    if total is not None:
        axes.axhline(len(bars) - 0.5, color=MUTED, linewidth=0.6)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_xlim(-1.5 * largest, 1.5 * largest)
    _name_lines(axes, [bar.name for bar in shown])
    low, high = (as_label(side, 16) for side in sides)
    keep_plain(
        axes.set_title(f"\N{LEFTWARDS ARROW} {low}", loc="left", fontsize=9, color=WRONG),
        axes.set_title(f"{high} \N{RIGHTWARDS ARROW}", loc="right", fontsize=9, color=ACCENT),
    )
    keep_plain(axes.set_xlabel(below, fontsize=8))


def _draw_changes(axes: Axes, steps: Sequence[Step], size: str) -> None:
    finite = [one for step in steps for one in (step.certified, step.found) if np.isfinite(one)]
    end = 2.2 * (max(finite, default=0.0) or 1.0)
    for at, step in enumerate(steps):
        is_safe = np.isinf(step.certified)
        axes.barh(at, end if is_safe else np.nan_to_num(step.certified), 0.65, color=ACCENT, alpha=0.35, linewidth=0)
        if np.isfinite(step.found):
            axes.plot(step.found, at, marker="D", color=WRONG, markersize=5, clip_on=False)
        beside = max([one for one in (step.certified, step.found) if np.isfinite(one)], default=0.0)
        _write_beside(axes, beside, at, as_label(step.text, 30), to_right=True)
    axes.set_xlim(0.0, end)
    _name_lines(axes, [step.name for step in steps])
    axes.set_title("how far it is from flipping", loc="left", fontsize=9)
    axes.set_xlabel(f"{size}\nbar: proven not to flip, diamond: flips", fontsize=8)
    if not finite:
        axes.set_xticks([])


def _write_beside(axes: Axes, x: float, y: float, text: str, *, to_right: bool) -> None:
    """Text a little to the side of a point."""
    offset, side = (7, "left") if to_right else (-4, "right")
    note = axes.annotate(text, (x, y), (offset, 0), textcoords="offset points", va="center", ha=side, fontsize=8)
    keep_plain(note)


def _name_lines(axes: Axes, names: Sequence[str]) -> None:
    labels = [as_label(name, _NAME_LENGTH) for name in names]
    axes.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
