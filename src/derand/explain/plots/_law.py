"""The exact law of a row's score, drawn. Must not know models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from derand.certificates import Distribution
from derand.explain.plots._axes import ACCENT, MUTED, WRONG, as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    axes = as_axes(axes)
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
