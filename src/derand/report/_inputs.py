"""What a report is made of: the model with its noise and names, the rows, their labels, their certificates.

Owns the checks of what the user gave. Must not know what the report says or how it looks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._arrays import BoolArray, FloatArray
from derand.certificates import Certificates, certify
from derand.model import AdditiveEnsemble, Model, is_model
from derand.noise import Noise, as_noise
from derand.text import format_short
from derand.threat import Threat, as_budget, as_threats

LabelArray = NDArray[Any]
"""Labels, groups or classes: numbers or text, as the user has them."""

Groups = str | int | Sequence[str | int] | Mapping[str, str | int | ArrayLike]
"""Columns, or titles with one group per row or a column."""

DEFAULT_L0 = 3
"""How many categorical changes are looked at where nothing is asked for."""


class Encoding(Protocol):
    """What a report reads of a classifier's encoding of tables."""

    names: tuple[str, ...] | None
    categories: Mapping[int, tuple[Any, ...]]


class Classifier(Protocol):
    """What a report asks of a fitted classifier."""

    ensemble_: Model
    noise_: Noise
    classes_: LabelArray
    encoding_: Encoding
    n_jobs: int | None

    def __init__(self, **parameters: Any) -> None: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the constructor."""

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train."""

    def encode_rows(self, X: Any) -> FloatArray:
        """Rows as the model reads them, checked."""

    def certify_encoded(self, rows: FloatArray, threats: Sequence[Threat]) -> list[Certificates]:
        """Certificates of such rows, one list entry per threat."""


class Training(NamedTuple):
    """Rows and labels for a twin of the classifier."""

    X: Any
    y: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The model that is reported on."""

    model: Model
    noise: Noise
    classes: LabelArray
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...]]
    estimator: Classifier | None
    """The fitted classifier; None where a bare model was given."""

    @property
    def additive(self) -> AdditiveEnsemble | None:
        """The model where it is one sum, which has shapes and laws; None for a vote."""
        return self.model.members[0] if self.model.weights is None else None

    @property
    def units(self) -> FloatArray:
        """What one unit of radius is worth in each column's own unit."""
        return self.noise.units_of(np.arange(self.model.n_features))

    def describe_value(self, feature: int, value: float) -> str:
        """A cell of the encoded table as the user wrote it."""
        if feature not in self.categories:
            return format_short(value, 6)
        if np.isnan(value):
            return "(missing or new)"
        categories = self.categories[feature]
        code = int(value)
        return str(categories[code]) if 0 <= code < len(categories) else str(code)


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Everything that the summary is computed from."""

    subject: Subject
    matrix: FloatArray
    """The rows, categories as codes."""
    labels: LabelArray | None
    certificates: tuple[Certificates, ...]
    """One per number of categorical changes, from 0 on."""
    certify_seconds: float

    @property
    def plain(self) -> Certificates:
        """The certificates without categorical changes."""
        return self.certificates[0]

    @property
    def n_rows(self) -> int:
        return len(self.plain)

    @property
    def correct(self) -> BoolArray | None:
        return None if self.labels is None else np.asarray(self.labels == self.plain.label)


def read_subject(clf: Any, noise: Noise | str | None, feature_names: Sequence[str] | None) -> Subject:
    """The model, its noise and its names, from a fitted classifier or a bare model."""
    if is_model(clf):
        if noise is None:
            raise ValueError(
                f"`noise` must be given with a bare {type(clf).__name__}, such as 'gaussian:0.25': only a fitted "
                "classifier knows its own."
            )
        names = _name_features(clf, feature_names)
        return Subject(clf, as_noise(noise), np.array([0, 1]), names, _list_codes(clf), None)
    fitted = _check_classifier(clf, noise)
    model, encoding = fitted.ensemble_, fitted.encoding_
    names = _name_features(model, encoding.names if feature_names is None else feature_names)
    categories = encoding.categories or _list_codes(model)
    return Subject(model, fitted.noise_, np.asarray(fitted.classes_), names, categories, fitted)


def _check_classifier(clf: Any, noise: Noise | str | None) -> Classifier:
    if not hasattr(clf, "certify") or not hasattr(clf, "get_params"):
        raise TypeError(
            "`clf` must be a fitted classifier of derand, an AdditiveEnsemble or a WeightedVote, "
            f"got {type(clf).__name__}."
        )
    if not hasattr(clf, "ensemble_"):
        raise ValueError(f"`clf` must be fitted, got a {type(clf).__name__} that is not: call `fit` first.")
    fitted: Classifier = clf
    if noise is not None:
        raise ValueError(
            f"`noise` must be left out for a classifier, which is certified under its own noise, "
            f"{fitted.noise_}, got {noise!r}."
        )
    return fitted


def _name_features(model: Model, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names to show, by number where there are none."""
    names = tuple(f"feature {column}" for column in range(model.n_features)) if given is None else tuple(given)
    if len(names) != model.n_features:
        raise ValueError(
            f"`feature_names` must hold {model.n_features} names, one per feature of the model, got {len(names)}."
        )
    return tuple(str(name) for name in names)


def _list_codes(model: Model) -> dict[int, tuple[int, ...]]:
    """For each categorical feature all codes up to the largest that the model knows: they stand for themselves."""
    return {
        feature: tuple(range(int(term.codes.max(initial=-1)) + 1))
        for term in model.member_terms
        if not term.axes
        for feature in term.features
    }


def read_inputs(subject: Subject, X: Any, y: ArrayLike | None, l0: int | None) -> Inputs:
    """Encode the rows once, certify them and check the labels."""
    most = len(subject.model.categorical_features)
    asked = DEFAULT_L0 if l0 is None else as_budget(l0)
    start = time.perf_counter()
    budgets = range(min(most, asked) + 1)
    if subject.estimator is None:
        certificates = certify(subject.model, X, subject.noise, l0=budgets)
        matrix = np.asarray(X, dtype=np.float64)
    else:
        matrix = subject.estimator.encode_rows(X)
        certificates = subject.estimator.certify_encoded(matrix, as_threats(budgets, None, None))
    seconds = time.perf_counter() - start
    if not len(matrix):
        raise ValueError("`X` must hold at least one row, got none.")
    return Inputs(subject, matrix, _read_labels(y, certificates[0]), tuple(certificates), seconds)


def _read_labels(y: ArrayLike | None, certificates: Certificates) -> LabelArray | None:
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (len(certificates),):
        raise ValueError(f"`y` must hold one label per row, {len(certificates)} in all, got shape {labels.shape}.")
    strange = labels[~np.isin(labels, certificates.classes)]
    if strange.size:
        known = certificates.classes.tolist()
        raise ValueError(f"`y` must hold labels among {known}, got {strange[:1].tolist()[0]!r}.")
    return labels
