"""What other rooms ask of estimators and users do not, as functions over an estimator.

Owns rows that are read already (`encode_rows`, `certify_encoded`), training on tables that were checked, and fitted
estimators put together from their parts. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray, Labels
from derand.certificates import Certificates, rank_rows
from derand.estimators._base import CertifiedEstimator
from derand.estimators._classifier import CertifiedClassifier
from derand.metrics import RowGrades
from derand.model import Model
from derand.noise import Noise
from derand.tables import TableEncoding

Kind = TypeVar("Kind", bound=CertifiedEstimator)

_NO_CHANCES = {
    "vote": "`predict_proba` of a vote is a share of votes (of noisy copies, or of members), not how likely a label is",
    "mean": "`predict_proba` of this model is the position of its score between its extremes, not a probability",
}
_OTHER_RULE = "probabilities are those of the model's own rule and noise, and others were asked for"
"""Why there is no log-loss."""


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


def encode_rows(estimator: CertifiedEstimator, X: object) -> FloatArray:
    """Rows to predict or certify as the model reads them."""
    return estimator._encode_rows(X)


def grade_rows(
    classifier: CertifiedClassifier, X: object, certificates: Certificates, *, encoded: FloatArray | None = None
) -> RowGrades:
    """What a classifier says of certified rows besides their labels, for `measure_answers`.

    A score to rank rows by, and probabilities, or the reason why there are none. `encoded` is what `encode_rows`
    returned, lest rows are encoded again.
    """
    is_own = certificates.rule == classifier.rule and certificates.noise == classifier.noise_
    if classifier._gives_probabilities and is_own:
        return RowGrades(None, classifier.predict_proba(X), costs=classifier._costs)
    rows = encode_rows(classifier, X) if encoded is None else encoded
    score = rank_rows(classifier.ensemble_, rows, certificates, n_jobs=classifier.n_jobs)
    why = _NO_CHANCES[certificates.rule] if is_own or not classifier._gives_probabilities else _OTHER_RULE
    return RowGrades(score, None, f"Log-loss and calibration need probabilities: {why}.", classifier._costs)


def read_odds(classifier: CertifiedClassifier) -> tuple[float, float] | None:
    """Slope and shift that make calibrated log-odds of `classes_[1]` of how far a score is ahead of the threshold.

    None where scores are no logarithms of odds, or `predict_proba` gives no probabilities.
    """
    if classifier.classes_.size > 2 or not (classifier.score_is_log_odds and classifier._gives_probabilities):
        return None
    cut = classifier._read_cut()
    return cut.slope, cut.shift
