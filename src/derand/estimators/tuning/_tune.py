"""`tune`: from an estimator and rows to a Tuning, by cross-validation.

Owns the order of the steps, folds and what is counted on them. Must not know what is recommended.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_consistent_length

from derand._core.arrays import FloatArray, IntArray, Labels, is_whole
from derand.certificates import Certificates
from derand.estimators import CertifiedClassifier
from derand.estimators.tuning._candidates import choose_candidates, choose_threat
from derand.estimators.tuning._result import Tuning
from derand.metrics import certified_accuracy
from derand.tables import TableEncoding, as_rows, take_rows
from derand.threat import Threat

Fold = tuple[IntArray, IntArray]
"""Rows to train on, and rows to measure."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """What was counted, of all rows (at 0 of the first axis) and as the mean of all classes (at 1)."""

    natural: FloatArray
    """Right without any change, (2, n_classifiers, n_folds)."""
    certified: FloatArray
    """Right and certified, (2, n_classifiers, n_folds, n_radii)."""
    norm: float
    """Of the ball."""


def _cut_folds(labels: Labels, cv: object, random_state: object) -> list[Fold]:
    """Folds with the classes in equal shares, shuffled; what cannot be cut is refused."""
    if not is_whole(cv) or cv < 2:
        raise ValueError(f"`cv` must be a whole number of folds, 2 or larger, got {cv!r}.")
    if labels.ndim != 1:
        raise ValueError(f"`y` must hold one label per row, got shape {labels.shape}.")
    classes, counts = np.unique(labels, return_counts=True)
    if classes.size < 2:
        raise ValueError(f"`y` must hold two classes at least, got {classes.size}: there is nothing to tell apart.")
    if counts.min() < cv:
        raise ValueError(
            f"`cv`, the number of folds, must be at most {counts.min()}, the number of rows of the class "
            f"{classes[counts.argmin()].item()!r}, got {cv}: every fold needs one. Use fewer folds or more rows."
        )
    splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros((labels.size, 1)), labels))


def _count_larger_class(labels: Labels, folds: Sequence[Fold]) -> float:
    """What a model gets that always names the larger class: counted on the folds, as those that it is compared with."""
    classes, counts = np.unique(labels, return_counts=True)
    return float(np.mean([(labels[test] == classes[counts.argmax()]).mean() for _, test in folds]))


def _cross_validate(
    classifiers: Sequence[CertifiedClassifier],
    X: object,
    labels: Labels,
    folds: Sequence[Fold],
    *,
    threat: Threat,
    radii: FloatArray,
    n_jobs: int | None,
    advance: Callable[[int, int], None],
) -> _Scores:
    """Train every classifier on every fold, and certify the rows that were left out.

    `classifiers`: cloned, never changed; `n_jobs`: None is each classifier's own; `advance`: told how many trainings of
    how many are done; `labels` has shape (n_rows,), `radii` (n_radii,).
    """
    natural = np.empty((2, len(classifiers), len(folds)))
    certified = np.empty((*natural.shape, len(radii)))
    for at, classifier in enumerate(classifiers):
        for number, (train, test) in enumerate(folds):
            advance(at * len(folds) + number, len(classifiers) * len(folds))
            fresh = clone(classifier) if n_jobs is None else clone(classifier).set_params(n_jobs=n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a model says the same of all rows, figures tell
                fresh.fit(take_rows(X, train), labels[train])
                found = fresh.certify(take_rows(X, test), threat=threat)
            for counting, balanced in enumerate((False, True)):
                natural[counting, at, number] = _count_right(labels[test], found, balanced)
                certified[counting, at, number] = certified_accuracy(labels[test], found, radii, balanced=balanced)
    assert found.norm is not None  # a threat that is tuned for has a ball
    return _Scores(natural, certified, found.norm)


def _count_right(labels: Labels, certificates: Certificates, balanced: bool) -> float:
    right = labels == certificates.label
    if not balanced:
        return float(right.mean())
    return float(np.mean([right[labels == name].mean() for name in np.unique(labels)]))


def tune(
    estimator: CertifiedClassifier,
    X: object,
    y: ArrayLike,
    *,
    radii: ArrayLike | None = None,
    norm: float | str | None = None,
    threat: Threat | None = None,
    parameter: str = "auto",
    values: Iterable[object] | None = None,
    cv: int = 5,
    balanced: bool = False,
    accuracy_loss: float = 0.01,
    n_jobs: int | None = None,
    random_state: int = 0,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> Tuning:
    """Measure what robustness costs, and say how much of it is cheap.

    Every value of a parameter is cross-validated on the rows that are given, those to train on: natural accuracy, and
    certified accuracy at each radius. Recommended is the value for the largest radius (`Tuning.own_radii`; on a tie the
    one that certifies more there) of those

    - whose natural accuracy lies below the best one by at most `accuracy_loss` plus one standard error of the best, and
    - that certify more rows at their own radius than a model that always says the same gets right.

    Parameters
    ----------
    estimator : CertifiedClassifier
        Not changed, and need not be fitted.
    X : array or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    radii : array-like of shape (n_radii,) or None
        Where certified accuracy is measured. None: the training radii above 0 that are tried; for a noise up to twice
        the estimator's own (in another norm the balls that fit into those).
    norm : float, str or None
        Norm of the ball: 0, 1, 2 or inf. None is the estimator's `norm`, where it has one, or else that of its noise.
    threat : Threat or None
        What may change, instead of `norm`; it must have a ball.
    parameter : str
        "auto" is the training radius of estimators that have `radius` and `norm`, and the noise of others.
    values : iterable or None
        What to try. None: 0, 0.05, 0.1, 0.25, 0.5 and 1 for a training radius, 1/8 to 4 times the estimator's own for a
        noise. A number stands for the estimator's noise with that magnitude.
    cv : int
        Number of folds.
    balanced : bool
        Let the recommendation count all classes alike; a model that always says the same then gets 1/2 of two.
    accuracy_loss : float
        How much natural accuracy robustness may cost; 0.01 is one point.
    n_jobs : int or None
        Threads of each training and certification; None is the estimator's own. Nothing depends on it.
    random_state : int
        How rows are shuffled into folds.
    advance : callable
        Told how many trainings of how many are done.

    Returns
    -------
    Tuning

    Notes
    -----
    What trainings on single folds warn of is not shown. The figures of the recommended value are a little optimistic,
    because it was chosen by them: report those of rows that were not used here.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from derand import StumpClassifier, tune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tuning = tune(StumpClassifier(scaling="standard"), X, y, radii=[0.25, 0.5], values=[0.05, 0.25, 1.0], cv=3)
    >>> tuning.recommended
    Gaussian(sigma=0.25, units=None)
    >>> tuning.certified.round(2).tolist()
    [[0.87, 0.78], [0.88, 0.82], [0.67, 0.67]]
    >>> clf = tuning.best_estimator().fit(X, y)
    """
    if not isinstance(estimator, CertifiedClassifier):
        raise TypeError(f"`estimator` must be a classifier of derand such as StumpClassifier(), got {estimator!r}.")
    if isinstance(accuracy_loss, bool) or not isinstance(accuracy_loss, int | float) or not 0 <= accuracy_loss < 1:
        raise ValueError(f"`accuracy_loss` must be a share of rows, 0 or larger and below 1, got {accuracy_loss!r}.")
    asked = choose_threat(estimator, norm, threat)
    X, labels = as_rows(X), np.asarray(y)
    folds = _cut_folds(labels, cv, random_state)
    check_consistent_length(X, labels)
    found = choose_candidates(
        estimator,
        parameter,
        values,
        radii,
        norm=asked.norm,
        count_numbers=lambda: len(TableEncoding.learn(X, estimator.categorical_features).numerical),
    )
    n_radii = len(found.radii)
    scores = _cross_validate(
        [clone(estimator).set_params(**{found.parameter: value}) for value in found.values],
        X,
        labels,
        folds,
        threat=asked,
        radii=np.concatenate([found.radii, found.own_radii]),
        n_jobs=n_jobs,
        advance=advance,
    )
    counting = int(balanced)
    natural, certified = scores.natural.mean(axis=2), scores.certified.mean(axis=2)
    certified_error = _estimate_errors(scores.certified)[..., :n_radii]
    return Tuning(
        clone(estimator),
        found.parameter,
        found.values,
        found.radii,
        natural=natural[0],
        natural_balanced=natural[1],
        natural_error=_estimate_errors(scores.natural)[counting],
        certified=certified[0, :, :n_radii],
        certified_error=certified_error[0],
        balanced=certified[1, :, :n_radii],
        balanced_error=certified_error[1],
        own_radii=found.own_radii,
        own_certified=certified[counting, :, n_radii:],
        constant=1 / np.unique(labels).size if balanced else _count_larger_class(labels, folds),
        norm=scores.norm,
        by_balanced=bool(balanced),
        accuracy_loss=float(accuracy_loss),
    )


def _estimate_errors(scores: FloatArray) -> FloatArray:
    """Standard errors of means over folds, which are the third axis."""
    return np.asarray(scores.std(axis=2, ddof=1) / np.sqrt(scores.shape[2]))
