"""Plots: matplotlib axes in and out. Must not know files or how results are made.

`_accuracy` draws shares over the radius, `_trade_off` what robustness costs, `_shapes` one feature's part of a score
with its band (`_heights`) and the data beneath (`_density`), `_figure` many of them, `_law` a row's score under noise,
`_bars` what pushes a row and what flips it. matplotlib is imported when something is drawn, not before.
"""

from derand.explain.plots._accuracy import certified_accuracy, certified_curve, plot_certified_accuracy
from derand.explain.plots._axes import ACCENT, DATA, MUTED, WRONG
from derand.explain.plots._bars import Bar, Span, Step, pushes, reaches
from derand.explain.plots._density import Density, measure_density
from derand.explain.plots._figure import Panel, shapes
from derand.explain.plots._heights import measure_heights
from derand.explain.plots._law import law
from derand.explain.plots._shapes import Scale, shape
from derand.explain.plots._trade_off import trade_off

__all__ = [
    "ACCENT",
    "DATA",
    "MUTED",
    "WRONG",
    "Bar",
    "Density",
    "Panel",
    "Scale",
    "Span",
    "Step",
    "certified_accuracy",
    "certified_curve",
    "law",
    "measure_density",
    "measure_heights",
    "plot_certified_accuracy",
    "pushes",
    "reaches",
    "shape",
    "shapes",
    "trade_off",
]
