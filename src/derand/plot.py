"""Plots: matplotlib axes in and out. The room is `derand.explain.plots`."""

from derand.explain.plots import *  # noqa: F403
from derand.explain.plots import __all__  # noqa: F401
