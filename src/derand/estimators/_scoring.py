"""Scorers: certified accuracy as scikit-learn's model selection wants it. Must not know how models are trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from derand._core.origin import Fitted
from derand.metrics import certified_accuracy
from derand.threat import Threat


@dataclass(frozen=True, slots=True)
class CertifiedScorer:
    """Certified accuracy at a radius; call it with (estimator, X, y)."""

    radius: float
    balanced: bool
    l0: int
    threat: Threat | None = None

    def __call__(self, estimator: Fitted, X: object, y: ArrayLike) -> float:
        from sklearn.pipeline import Pipeline  # slow to import, and few need it

        if isinstance(estimator, Pipeline):  # certified is what the last step sees
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        asked = {"l0": self.l0} if self.threat is None else {"threat": self.threat}
        certificates = estimator.certify(X, **asked)
        return float(certified_accuracy(np.asarray(y), certificates, [self.radius], balanced=self.balanced)[0])


def make_certified_scorer(
    radius: float, balanced: bool = False, l0: int = 0, *, threat: Threat | None = None
) -> CertifiedScorer:
    """A scorer for `GridSearchCV` and `cross_val_score`: certified accuracy at a radius.

    In a `Pipeline` the radius is about the table that the last step, the classifier, receives.

    Parameters
    ----------
    radius : float
        0 or larger; in the units of the noise's norm.
    balanced : bool
        Mean of the shares within each class, instead of the share of all rows.
    l0 : int
        How many categorical features may change at the same time.
    threat : Threat or None
        What may change, instead of `l0`: another norm, limits.

    Returns
    -------
    CertifiedScorer

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from derand import StumpClassifier, make_certified_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = StumpClassifier(noise="gaussian:0.5", scaling="standard")
    >>> float(cross_val_score(clf, X, y, scoring=make_certified_scorer(0.5)).mean().round(2))
    0.79
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"`radius` must be a number, 0 or larger, got {radius!r}.")
    if threat is not None and l0:
        raise ValueError("Give `l0` or `threat`, got both: write only Threat(l0=...).")
    return CertifiedScorer(float(radius), bool(balanced), int(l0), threat)
