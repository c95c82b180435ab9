"""What other rooms ask of estimators and users do not, as functions over an estimator.

Owns training on tables that were checked, and fitted estimators put together from their parts. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import Labels
from derand.estimators._base import CertifiedEstimator
from derand.estimators._classifier import CertifiedClassifier
from derand.model import Model
from derand.noise import Noise
from derand.tables import TableEncoding

Kind = TypeVar("Kind", bound=CertifiedEstimator)


def fit_checked(estimator: Kind, X: object, y: ArrayLike) -> Kind:
    """`fit` on a table that `derand.tables.check_columns` has looked at: doubtful columns are not looked for again."""
    return estimator._fit_or_leave(X, y, None, doubts=False)


def check_parameters(estimator: CertifiedEstimator, n_classes: int = 2) -> None:
    """Refuse parameters that `fit` would refuse, without data; numbers have no classes."""
    estimator._check_parameters()
    if isinstance(estimator, CertifiedClassifier):
        estimator._refuse_threshold_of(n_classes)


def assemble(
    kind: type[Kind],
    ensemble: Model,
    noise: Noise | None,
    encoding: TableEncoding,
    training: Mapping[str, object],
    parameters: Mapping[str, object],
    *,
    classes: Labels | None = None,
) -> Kind:
    """A fitted estimator from its parts, as a file holds them; parameters that make no sense are refused, as by `fit`.

    `noise` has units, `training` is what else `fit` found, such as `entropy_`, and `parameters` are those of the
    constructor (`noise` as it was given there). A classifier has `classes`.
    """
    estimator = kind(**parameters)
    estimator._check_parameters()
    estimator.ensemble_, estimator.noise_, estimator.encoding_ = ensemble, noise, encoding
    estimator.n_features_in_ = encoding.n_features
    if encoding.names is not None:
        estimator.feature_names_in_ = np.array(encoding.names, dtype=object)
    for name, value in training.items():
        setattr(estimator, name, value)
    if classes is not None:
        estimator.classes_ = classes
    return estimator
