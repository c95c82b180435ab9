"""Draw the picture of docs/choose.md, what each threat lets a row become: `python scripts/draw_choices.py [folder]`.

It goes to docs/images.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon, Rectangle

AREA = {"facecolor": "#3949ab", "alpha": 0.25, "edgecolor": "#3949ab", "linewidth": 1.2}
COLOUR = "#3949ab"
ROW = (0.0, 0.0)
END = 1.6


def draw_sum(axes: Axes) -> None:
    axes.add_patch(Polygon([(1, 0), (0, 1), (-1, 0), (0, -1)], **AREA))


def draw_disc(axes: Axes) -> None:
    axes.add_patch(Circle(ROW, 1.0, **AREA))


def draw_square(axes: Axes) -> None:
    axes.add_patch(Rectangle((-1, -1), 2, 2, **AREA))


def draw_limits(axes: Axes) -> None:
    axes.add_patch(Rectangle((-0.5, -0.2), 1.0, 1.2, **AREA))


def draw_columns(axes: Axes) -> None:
    axes.plot([-END, END], [0, 0], color=COLOUR, linewidth=3, alpha=0.6)
    axes.plot([0, 0], [-END, END], color=COLOUR, linewidth=3, alpha=0.6)


def draw_steps(axes: Axes) -> None:
    for x in (-1.0, -0.5, 0.0, 0.5, 1.0):
        axes.plot([x, x], [-0.6, 0.6], color=COLOUR, linewidth=3, alpha=0.6)


PANELS: tuple[tuple[str, str, Callable[[Axes], None]], ...] = (
    ("norm=1", "changes add up", draw_sum),
    ("norm=2", "many small changes", draw_disc),
    ("norm=inf", "all off at once", draw_square),
    ("norm=None, limits=...", "limits of each column", draw_limits),
    ("norm=0", "one column, to anything", draw_columns),
    ("steps=...", "counts stay whole", draw_steps),
)


def draw(folder: Path) -> Path:
    """Draw all panels into one picture and say where it is."""
    figure, grid = plt.subplots(2, 3, figsize=(7.8, 5.4), layout="constrained")
    for axes, (code, words, fill) in zip(np.ravel(grid), PANELS, strict=True):
        fill(axes)
        axes.plot(*ROW, "o", color="black", markersize=5)
        axes.set(xlim=(-END, END), ylim=(-END, END), xticks=[], yticks=[], aspect="equal")
        axes.set_title(f"{words}\n", fontsize=11)
        axes.text(0.5, 1.02, code, transform=axes.transAxes, ha="center", family="monospace", fontsize=9)
        axes.set_xlabel("income", fontsize=9)
        axes.set_ylabel("children" if code.startswith("steps") else "debt", fontsize=9)
        if code.startswith("steps"):
            axes.set_xlabel("children", fontsize=9)
            axes.set_ylabel("income", fontsize=9)
    path = folder / "choose-threat.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


if __name__ == "__main__":
    print(draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")))
