"""Certified accuracy and the average radius: certificates beside the true labels."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, Labels
from derand._core.origin import refuse_other_rows
from derand.certificates import Certificates


class ShareAtRadius(TypedDict):
    """The share of the rows that are labelled correctly and certified, at one radius, as results for others hold it."""

    radius: float
    share: float


def certified_accuracy(
    y: ArrayLike, certificates: Certificates, radii: ArrayLike, balanced: bool = False
) -> FloatArray:
    """Share of the rows that are labelled correctly and certified, at each radius.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels, each one of the certificates' classes.
    certificates : Certificates
    radii : array-like of shape (n_radii,)
        A row counts at radius r where its certified radius is r or larger; at r = 0, where it is positive.
    balanced : bool
        Mean of the shares within each class that occurs in y, instead of the share of all rows.

    Returns
    -------
    array of shape (n_radii,)

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, certified_accuracy, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> c = certify(model, [[0.0], [2.0], [3.0]], Gaussian(0.25))
    >>> certified_accuracy([0, 1, 0], c, [0.0, 1.0]).round(3).tolist()
    [0.667, 0.333]
    """
    labels = as_labels(y, certificates)
    correct = labels == certificates.label
    if not balanced:
        return certified_share(correct, certificates.radius, radii)
    groups = [labels == name for name in np.unique(labels)]
    shares = [certified_share(correct[group], certificates.radius[group], radii) for group in groups]
    return np.asarray(np.mean(shares, axis=0))


def certified_share(counted: ArrayLike, radius: ArrayLike, radii: ArrayLike) -> FloatArray:
    """Share of the rows that count and are certified, at each radius; for what has a radius but no certificate, too.

    `counted` (n_rows,): which rows count, such as those with the right label; of one row at least; `radius` (n_rows,):
    certified radius of each row; infinite where nothing can change the answer; `radii` (n_radii,): a row counts at
    radius r where its certified radius is r or larger; at r = 0, where it is positive. Returns shape (n_radii,).

    Examples
    --------
    >>> from derand.metrics import certified_share
    >>> certified_share([True, True, False, True], [0.5, 2.0, 3.0, 0.0], [0.0, 1.0]).tolist()
    [0.5, 0.25]
    """
    wanted = np.atleast_1d(np.asarray(radii, dtype=np.float64))
    if wanted.ndim != 1 or not (wanted >= 0).all():
        raise ValueError(f"`radii` must be a list of numbers, 0 or larger, got {radii!r}.")
    rows, sizes = np.asarray(counted, dtype=bool), np.asarray(radius, dtype=np.float64)
    if rows.ndim != 1 or rows.shape != sizes.shape or not rows.size:
        raise ValueError(
            f"`counted` and `radius` must hold one entry per row, of one row at least, got shapes {rows.shape} and "
            f"{sizes.shape}."
        )
    held = sizes[rows & (sizes > 0)]
    return np.array([np.count_nonzero(held >= one) for one in wanted]) / rows.size


def average_certified_radius(y: ArrayLike, certificates: Certificates) -> float:
    """Mean of the certified radii; a row with a wrong label counts 0. The paper's figure.

    It is infinite as soon as one row has no limit, as with models of categories or constant ones: `summarize_radii`
    tells such rows apart.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    certificates : Certificates

    Returns
    -------
    float

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, average_certified_radius, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> c = certify(model, [[0.0], [2.0]], Gaussian(0.25))
    >>> round(average_certified_radius([0, 0], c), 6)
    0.25
    """
    correct = as_labels(y, certificates) == certificates.label
    return float(np.where(correct, certificates.radius, 0.0).mean())


def as_labels(y: ArrayLike, certificates: Certificates) -> Labels:
    """True labels, one per certificate, each one of its classes; others are refused."""
    if not isinstance(certificates, Certificates):
        swapped = isinstance(y, Certificates)
        raise TypeError(
            "`certificates` must be what `certify` gave, "
            + ("got it as `y`: the true labels come first." if swapped else f"got a {type(certificates).__name__}.")
        )
    refuse_other_rows(y, certificates, "y")
    labels = np.asarray(y)
    if labels.shape != (len(certificates),):
        raise ValueError(
            f"`y` must hold one label per certificate, {len(certificates)} in all, got shape {labels.shape}."
        )
    if not len(labels):
        raise ValueError("`y` must hold at least one label, got none.")
    strange = labels[~np.isin(labels, certificates.classes)]
    if strange.size:
        raise ValueError(
            f"`y` must hold labels among {certificates.classes.tolist()}, got {strange[:1].tolist()[0]!r}."
        )
    return labels
