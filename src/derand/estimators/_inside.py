"""What other rooms ask of estimators and users do not, as functions over an estimator.

Owns rows that are read already (`encode_rows`, `certify_encoded`), training on tables that were checked, and fitted
estimators put together from their parts. Must not know files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._arrays import FloatArray
from derand.certificates import Certificates, certify_checked, rank_rows
from derand.estimators._reading import warn_of_lone_labels
from derand.frames import TableEncoding
from derand.learn import TrainingTable
from derand.metrics import RowGrades
from derand.model import Model
from derand.noise import Noise
from derand.threat import Threat

if TYPE_CHECKING:
    from derand.estimators._base import CertifiedEstimator
    from derand.estimators._classifier import CertifiedClassifier
    from derand.estimators._regressor import CertifiedRegressor

Kind = TypeVar("Kind", bound="CertifiedEstimator")

_NO_CHANCES = {
    "vote": "`predict_proba` of a vote is a share of votes (of noisy copies, or of members), not how likely a label is",
    "mean": "`predict_proba` of this model is the place of its score between its extremes, not a probability",
}
_OTHER_RULE = "probabilities are those of the model's own rule and noise, and others were asked for"
"""Why there is no log-loss."""


def fit_checked(estimator: Kind, X: Any, y: ArrayLike) -> Kind:
    """`fit` on a table that `derand.frames.check_columns` has looked at: doubtful columns are not looked for again."""
    return estimator._fit_or_leave(X, y, None, doubts=False)


def fit_table(
    classifier: CertifiedClassifier,
    table: TrainingTable,
    encoding: TableEncoding,
    classes: NDArray[Any],
    totals: FloatArray,
    find_rows: Callable[[Noise | None], Any] | None = None,
) -> tuple[str, ...]:
    """Train on rows that were read and checked; what there is to warn of.

    `totals` is the weight of the rows of each class. `find_rows`, told the noise in its units, gives what is trained on
    instead of `table`, which is a sample of it then.
    """
    classifier.classes_ = classes
    noise = classifier._keep_table(table, encoding)
    training = classifier._train(table if find_rows is None else find_rows(noise), noise)
    classifier.ensemble_ = training.model
    classifier._move_as_asked()
    told = classifier._warn_of_one_label(table, totals, training)
    return (*warn_of_lone_labels(classes, table.target), *told, *training.warnings)


def assemble(
    kind: type[Kind],
    ensemble: Model,
    noise: Noise | None,
    encoding: TableEncoding,
    training: Mapping[str, Any],
    parameters: Mapping[str, Any],
    *,
    classes: NDArray[Any] | None = None,
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


def encode_rows(estimator: CertifiedEstimator, X: Any) -> FloatArray:
    """Rows to predict or certify as the model reads them."""
    return estimator._encode_rows(X)


def certify_encoded(
    classifier: CertifiedClassifier,
    rows: FloatArray,
    threats: Sequence[Threat],
    *,
    rule: str | None = None,
    proof: str = "best",
    noise: Noise | str | float | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
) -> list[Certificates]:
    """`certify` for rows that `encode_rows` returned, for each of several threats that differ in `l0` alone."""
    asked = [classifier._name_columns(one) for one in threats]
    found = certify_checked(
        classifier.ensemble_,
        rows,
        classifier._choose_noise(noise, *asked[:1]),
        asked,
        rule=rule or classifier.rule,
        proof=proof,
        backend=backend,
        n_jobs=classifier.n_jobs if n_jobs is None else n_jobs,
    )
    return [one.with_classes(classifier.classes_) for one in found]


def grade_rows(
    classifier: CertifiedClassifier, X: Any, certificates: Certificates, *, encoded: FloatArray | None = None
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


def find_odds(classifier: CertifiedClassifier) -> tuple[float, float] | None:
    """Slope and shift that make calibrated log-odds of `classes_[1]` of how far a score is ahead of the threshold.

    None where scores are no logarithms of odds, or `predict_proba` gives no probabilities.
    """
    if classifier.classes_.size > 2 or not (classifier.score_is_log_odds and classifier._gives_probabilities):
        return None
    cut = classifier._find_cut()
    return cut.slope, cut.shift


def choose_radius(regressor: CertifiedRegressor, threat: Threat, radius: float | None) -> float | None:
    """The radius of intervals: as asked, or what the regressor was trained for; None where there is no ball."""
    if radius is not None or threat.norm is None:
        return radius
    if threat.norm == 0:
        raise ValueError("`radius` must be given in norm 0: how many numerical columns may become anything, such as 1.")
    trained = regressor.get_params(deep=False).get("radius")
    if not trained:
        raise ValueError(
            f"`radius` must be given, such as 0.25: this {type(regressor).__name__} was not trained for one."
        )
    return float(trained)
