"""The nearest-centroid rule: the simplest linear classifier, whose robust radius is known exactly.

A sanity check for every other certificate: a method that certifies less than this on the same rows earns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.certificates import Certificates
from derand.threat import Threat


@dataclass(frozen=True, slots=True, eq=False)
class NearestCentroid:
    """Class 1 iff a row is nearer to the mean of class 1: the sign of a linear function.

    Examples
    --------
    >>> rule = NearestCentroid.fit([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]], [0, 0, 1, 1])
    >>> certificates = rule.certify([[3.0, 7.0]])
    >>> certificates.label.tolist(), certificates.radius.round(6).tolist()
    ([1], [1.0])
    """

    weights: FloatArray
    offset: float

    @classmethod
    def fit(cls, X: ArrayLike, y: ArrayLike) -> NearestCentroid:
        """The rule of the two classes' means.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), 0 or 1

        Returns
        -------
        NearestCentroid
        """
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        zero, one = (rows[labels == code].mean(axis=0) for code in (0, 1))
        return cls(one - zero, float(-0.5 * (one + zero) @ (one - zero)))

    def certify(self, X: ArrayLike, p: float = 2.0) -> Certificates:
        """Label of each row and its distance, in the lp norm, from the rows of the other class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        p : float
            1 or larger, or `inf`.

        Returns
        -------
        Certificates
            `failure` is NaN. Radii are rounded downward by more than the error of the sums.
        """
        if not p >= 1:
            raise ValueError(f"`p` must be 1 or larger, or infinity, got {p!r}.")
        rows = np.asarray(X, dtype=np.float64)
        margin = rows @ self.weights + self.offset
        dual = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
        steepness = np.linalg.norm(self.weights, dual)
        error = 4 * (rows.shape[1] + 8) * 2.0**-52 * (np.abs(rows) @ np.abs(self.weights) + abs(self.offset))
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.maximum(np.abs(margin) - error, 0.0) / steepness * (1 - (rows.shape[1] + 8) * 2.0**-52)
        unknown = np.full(rows.shape[0], np.nan)
        return Certificates(
            (margin > 0).astype(np.int64),
            unknown,
            unknown,
            np.where(steepness > 0, radius, np.inf),
            Threat(norm=p),
            rule="unsmoothed",
        )
