"""What a report is made of: the model with its noise and names, the rows, their labels, their certificates.

Owns the checks of what the user gave. Must not know what the report says or how it looks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates, certify
from derand.ensemble import AdditiveEnsemble, CategoryTable, Model, StepFunction, Term, WeightedVote
from derand.noise import Noise, as_noise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DEFAULT_L0 = 3
"""How many categorical changes are looked at where nothing is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The model that is reported on."""

    model: Model
    noise: Noise
    classes: NDArray[Any]
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...]]
    estimator: Any
    """The fitted classifier; None where a bare model was given."""

    @property
    def additive(self) -> AdditiveEnsemble | None:
        """The model where it is one sum, which has shapes and laws; None for a vote."""
        return self.model if isinstance(self.model, AdditiveEnsemble) else None

    @property
    def terms(self) -> list[Term]:
        """Terms of the model, of all its members for a vote."""
        members = self.model.members if isinstance(self.model, WeightedVote) else (self.model,)
        return [term for member in members for term in member.terms]

    @property
    def numerical(self) -> list[int]:
        """Numerical features that the model reads."""
        return sorted({term.feature for term in self.terms if isinstance(term, StepFunction) and term.edges.size})

    @property
    def categorical(self) -> list[int]:
        """Categorical features that the model reads."""
        return sorted({term.feature for term in self.terms if isinstance(term, CategoryTable)})

    @property
    def units(self) -> FloatArray:
        """What one unit of radius is worth in each column's own unit."""
        given = self.noise.units
        return np.ones(self.model.n_features) if given is None else np.asarray(given, dtype=np.float64)

    def describe_value(self, feature: int, value: float) -> str:
        """A cell of the encoded table as the user wrote it."""
        from derand.text import format_short

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
    labels: NDArray[Any] | None
    certificates: list[Certificates]
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
    def correct(self) -> NDArray[np.bool_] | None:
        return None if self.labels is None else np.asarray(self.labels == self.plain.label)


def read_subject(model: Any, noise: Noise | str | None, feature_names: Sequence[str] | None) -> Subject:
    """The model, its noise and its names, from a fitted classifier or a bare model."""
    if isinstance(model, AdditiveEnsemble | WeightedVote):
        if noise is None:
            raise ValueError(
                f"`noise` must be given with a bare {type(model).__name__}, such as 'gaussian:0.25': only a fitted "
                "classifier knows its own."
            )
        categories: Mapping[int, tuple[Any, ...]] = {}
        names: tuple[Any, ...] | None = None
        classes, ensemble, kept, estimator = np.array([0, 1]), model, as_noise(noise), None
    else:
        ensemble, kept, classes, encoding, estimator = _read_classifier(model, noise)
        categories, names = encoding.categories, encoding.names
    if feature_names is not None:
        names = tuple(feature_names)
        if len(names) != ensemble.n_features:
            raise ValueError(
                f"`feature_names` must hold {ensemble.n_features} names, one per feature of the model, "
                f"got {len(names)}."
            )
    shown = [str(name) for name in names or (f"feature {column}" for column in range(ensemble.n_features))]
    subject = Subject(ensemble, kept, classes, tuple(shown), categories, estimator)
    if not categories:
        codes = {
            term.feature: tuple(range(int(term.categories.max(initial=-1)) + 1))
            for term in subject.terms
            if isinstance(term, CategoryTable)
        }
        subject = Subject(ensemble, kept, classes, tuple(shown), codes, estimator)
    return subject


def _read_classifier(model: Any, noise: Noise | str | None) -> tuple[Model, Noise, NDArray[Any], Any, Any]:
    if not hasattr(model, "certify") or not hasattr(model, "get_params"):
        raise TypeError(
            "`clf` must be a fitted classifier of derand, an AdditiveEnsemble or a WeightedVote, "
            f"got {type(model).__name__}."
        )
    if not hasattr(model, "ensemble_"):
        raise ValueError(f"`clf` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    if noise is not None:
        raise ValueError(
            f"`noise` must be left out for a classifier, which is certified under its own noise, "
            f"{model.noise_}, got {noise!r}."
        )
    return model.ensemble_, model.noise_, np.asarray(model.classes_), model.encoding_, model


def read_inputs(subject: Subject, X: Any, y: Any, l0: int | None) -> Inputs:
    """Certify the rows and check the labels."""
    most = len(subject.categorical)
    if l0 is not None and (isinstance(l0, bool) or not isinstance(l0, int | np.integer) or l0 < 0):
        raise ValueError(f"`l0` must be a number of categorical features that may change, 0 or larger, got {l0!r}.")
    budgets = list(range(min(most, DEFAULT_L0 if l0 is None else int(l0)) + 1))
    start = time.perf_counter()
    if subject.estimator is not None:
        certificates = subject.estimator.certify(X, l0=budgets)
        matrix = np.asarray(subject.estimator.encoding_.encode(X), dtype=np.float64)
    else:
        certificates = certify(subject.model, X, subject.noise, l0=budgets)
        matrix = np.asarray(X, dtype=np.float64)
    seconds = time.perf_counter() - start
    if not len(certificates[0]):
        raise ValueError("`X` must hold at least one row, got none.")
    return Inputs(subject, matrix, _read_labels(y, certificates[0]), certificates, seconds)


def _read_labels(y: Any, certificates: Certificates) -> NDArray[Any] | None:
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
