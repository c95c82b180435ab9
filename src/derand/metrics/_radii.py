"""How large radii are, those without a limit apart: no average is infinite. Must not know how they were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.certificates import Certificates
from derand.metrics._certified import as_labels


class RadiusFigures(TypedDict):
    """A RadiusSummary as results for others hold it."""

    rows: int
    unbounded_rows: int
    unbounded_share: float
    average_of_others: float | None
    median_of_others: float | None


@dataclass(frozen=True, slots=True)
class RadiusSummary:
    """How large certified radii are; a row with a wrong label counts 0.

    Attributes
    ----------
    n_rows : int
    n_unbounded : int
        Rows, labelled correctly, that no change can flip: their radius is infinite.
    unbounded_share : float
        The same as a share of all rows.
    average, median : float or None
        Of all other rows, which are finite; None where there are none. The median is cut: at least half of them have
        that radius or more.
    """

    n_rows: int
    n_unbounded: int
    average: float | None
    median: float | None

    @property
    def unbounded_share(self) -> float:
        return self.n_unbounded / self.n_rows

    def to_dict(self) -> RadiusFigures:
        """The same as a plain dict."""
        return {
            "rows": self.n_rows,
            "unbounded_rows": self.n_unbounded,
            "unbounded_share": self.unbounded_share,
            "average_of_others": self.average,
            "median_of_others": self.median,
        }


def summarize_radii(y: ArrayLike | None, certificates: Certificates) -> RadiusSummary:
    """How large certified radii are: the share of rows without a limit, average and median of the others.

    Rows with a wrong label count 0, as in `average_certified_radius`, which is infinite as soon as one row has no
    limit, and says nothing then.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or None
        True labels; None counts every row as right.
    certificates : Certificates
        In a ball: where limits alone say what may change, there are verdicts instead of radii.

    Returns
    -------
    RadiusSummary

    Examples
    --------
    >>> from derand import AdditiveEnsemble, CategoryTable, StepFunction, Gaussian, certify, summarize_radii
    >>> terms = (StepFunction(0, [0.5], [-1, 1]), CategoryTable(1, [0, 1], [3, 0], 0))
    >>> c = certify(AdditiveEnsemble(terms, 0, 2), [[0.0, 0.0], [0.0, 1.0], [2.5, 1.0]], Gaussian(0.25))
    >>> c.label.tolist(), c.radius.round(2).tolist()
    ([1, 0, 1], [inf, 0.5, 2.0])
    >>> found = summarize_radii([1, 0, 1], c)
    >>> found.n_unbounded, round(found.average, 2), round(found.median, 2)
    (1, 1.25, 0.5)
    """
    if certificates.verdict is not None:
        raise ValueError("`certificates` must have radii, got verdicts within limits: count those instead.")
    if y is None and not len(certificates):
        raise ValueError("`certificates` must hold at least one row, got none.")
    radius = certificates.radius
    if y is not None:
        radius = np.where(as_labels(y, certificates) == certificates.label, radius, 0.0)
    finite = radius[np.isfinite(radius)]
    return summarize_finite_radii(finite, len(certificates))


def summarize_finite_radii(finite: FloatArray, n_rows: int) -> RadiusSummary:
    """The same from the finite radii alone, 0 for wrong rows, and the number of all rows.

    `n_rows`: positive; `finite` has shape (n_finite,).
    """
    if not finite.size:
        return RadiusSummary(n_rows, n_rows, None, None)
    median = float(np.quantile(finite, 0.5, method="lower"))
    return RadiusSummary(n_rows, n_rows - int(finite.size), float(finite.mean()), median)
