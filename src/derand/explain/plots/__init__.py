"""Plots: matplotlib axes in and out. Must not know files or how results are made.

`_accuracy` draws shares over the radius, `_trade_off` what robustness costs, `_shapes` one feature's part of a score
with its band and the data beneath, `_figure` many of them, `model` those of a fitted model, `_law` the distribution of
a row's score, `_bars` what contributes to a row and what flips it. What is drawn is measured outside this folder
(`bars`, `densities`, `heights` of `derand.explain`): fitting and certifying import neither it nor matplotlib.
"""

from derand.explain.bars import Bar, Span, Step
from derand.explain.densities import Density, measure_density
from derand.explain.heights import measure_heights
from derand.explain.plots._accuracy import certified_accuracy, certified_curve, plot_certified_accuracy
from derand.explain.plots._axes import ACCENT, DATA, MUTED, WRONG
from derand.explain.plots._bars import pushes, reaches
from derand.explain.plots._figure import Panel, shapes
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
