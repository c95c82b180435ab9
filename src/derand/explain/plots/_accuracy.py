"""Certified accuracy over the radius, of one model or of several side by side. Must not know models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from derand import metrics
from derand._core.arrays import FloatArray
from derand.certificates import Certificates
from derand.explain.plots._axes import LINES, MUTED, as_axes, as_label, keep_plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME_LENGTH = 40
_STYLES = ("-", "--", "-.", ":")


def certified_accuracy(
    y: ArrayLike, certificates: Certificates, axes: Axes | None = None, balanced: bool = False, **style: object
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


def plot_certified_accuracy(
    certificates: Certificates | Mapping[str, Certificates],
    y: ArrayLike,
    axes: Axes | None = None,
    *,
    balanced: bool = False,
) -> Axes:
    """Certified accuracy over the radius, of one model or of several, beside that of the commonest label.

    Parameters
    ----------
    certificates : Certificates, or mapping of a name to Certificates
        Of the same rows, all in the same norm and units: only then are radii of several models comparable.
    y : array-like of shape (n_rows,)
        True labels.
    axes : matplotlib Axes or None
        None takes new ones.
    balanced : bool
        Mean of the shares within each class.

    Returns
    -------
    matplotlib Axes
        With a legend. The dashed line is what a model gets that always gives the commonest label: it is certified
        at every radius, so that below it nothing is gained.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from derand import AdditiveEnsemble, certify, plot_certified_accuracy
    >>> one, two = (AdditiveEnsemble.from_stumps([0], [at], [0.1], [0.9], n_features=1) for at in (0.5, 1.0))
    >>> rows = [[0.0], [2.0], [3.0]]
    >>> found = {"at 0.5": certify(one, rows, "gaussian:0.25"), "at 1": certify(two, rows, "gaussian:0.25")}
    >>> axes = plot_certified_accuracy(found, [0, 1, 1], Figure().subplots())
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['at 0.5', 'at 1', 'always 1']
    """
    named = dict(certificates) if isinstance(certificates, Mapping) else {"certified accuracy": certificates}
    if not named:
        raise ValueError("`certificates` must hold at least one model's, got an empty mapping.")
    norm = _require_comparable(named)
    radii = np.concatenate([one.radius for one in named.values()])
    handles = []
    for at, one in enumerate(named.values()):

        def measure(asked: FloatArray, one: Certificates = one) -> FloatArray:
            return metrics.certified_accuracy(y, one, asked, balanced=balanced)

        colour, style = LINES[at % len(LINES)], _STYLES[at // len(LINES) % len(_STYLES)]
        axes = certified_curve(radii, measure, axes, norm=norm, color=colour, linestyle=style, linewidth=2)
        handles.append(axes.get_lines()[-1])
    assert axes is not None  # there is one curve at least
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    share = 1 / labels.size if balanced else float(counts.max() / counts.sum())
    handles.append(axes.axhline(share, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3))))
    names = [*named, f"always {labels[counts.argmax()]}"]
    legend = axes.legend(handles, list(map(str, range(len(handles)))), frameon=False)
    for text, name in zip(legend.get_texts(), names, strict=True):  # set later: older ones leave out what begins with _
        text.set_text(as_label(name, _NAME_LENGTH))
    keep_plain(*legend.get_texts())
    if balanced:
        axes.set_ylabel("balanced certified accuracy")
    return axes


def _require_comparable(named: Mapping[str, Certificates]) -> float:
    """The norm of all of them."""
    (first, one), *others = named.items()
    norm = _require_norm(one)
    for name, other in others:
        if len(other) != len(one):
            raise ValueError(
                f"`certificates` must be of the same rows, got {len(one)} of {first!r} and {len(other)} of {name!r}."
            )
        if _require_norm(other) != norm:
            raise ValueError(
                f"`certificates` must be in one norm to be compared, got l{norm} of {first!r} and l{other.norm} of "
                f"{name!r}: certify both with the same `threat=Threat(norm=...)`."
            )
        if not _has_same_units(one, other):
            raise ValueError(
                f"`certificates` must count in the same units to be compared, got other ones of {name!r} than of "
                f"{first!r}: certify both with the same `threat=Threat(units=...)`, such as the `units` of one model."
            )
    return norm


def _has_same_units(one: Certificates, other: Certificates) -> bool:
    units = [certificates.threat.units for certificates in (one, other)]
    sizes = {len(some) for some in units if some is not None}
    if len(sizes) > 1:
        return False
    first, second = (np.ones(max(sizes, default=1)) if some is None else np.asarray(some) for some in units)
    return bool(np.array_equal(first, second))


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
    axes = as_axes(axes)
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
