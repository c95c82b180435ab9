"""What a report is made of: the model with its noise and names, the rows, their labels, their certificates.

Owns the checks of what the user gave. Must not know what the report says or how it looks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import BoolArray, FloatArray
from derand._core.origin import Origin
from derand._core.text import format_short
from derand.certificates import Certificates, certify, check_request, rank_rows
from derand.explaining import name_category
from derand.frames import format_moment
from derand.metrics import RowGrades
from derand.model import AdditiveEnsemble, Model, is_model
from derand.noise import Noise, as_noise_or_none
from derand.perturbation import Perturbation
from derand.threat import Threat, as_budget, as_threats

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier

LabelArray = NDArray[Any]
"""Labels, groups or classes: numbers or text, as the user has them."""

Groups = str | int | Sequence[str | int] | Mapping[str, str | int | ArrayLike]
"""Columns, or titles with one group per row or a column."""

MISSING = "(missing)"
"""How a missing number is shown."""

DEFAULT_L0 = 3
"""How many categorical changes are looked at where nothing is asked for."""


class Request(NamedTuple):
    """What is to be proven; `CertificateReport` says what each field means."""

    l0: int | None = None
    rule: str | None = None
    proof: str = "best"
    threat: Threat | None = None


class Training(NamedTuple):
    """Rows and labels for a twin of the classifier."""

    X: Any
    y: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The model that is reported on."""

    model: Model
    noise: Noise | None
    """None for the model as deployed."""
    classes: LabelArray
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...]]
    estimator: CertifiedClassifier | None
    """The fitted classifier; None where a bare model was given."""
    whole: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Columns that held whole numbers alone in training, with the least and the largest of them."""

    @property
    def additive(self) -> AdditiveEnsemble | None:
        """The model where it is one sum, which has shapes and laws; None for a vote, and for several classes."""
        return self.model.members[0] if self.model.weights is None and self.model.n_classes == 2 else None

    @property
    def points(self) -> float:
        """How many whole scores are one unit of what is shown: of log-odds, where the score is one; else 1."""
        is_odds = self.estimator is not None and self.estimator.score_is_log_odds
        return float(self.additive.levels) if is_odds and self.additive is not None else 1.0

    @property
    def dates(self) -> tuple[int, ...]:
        """Columns that were dates, whose numbers are days."""
        return () if self.estimator is None else self.estimator.encoding_.dates

    @property
    def digits(self) -> int:
        """Digits after the point with which scores and pushes are kept."""
        return 2 if self.points == 1 else 4

    def describe_value(self, feature: int, value: float) -> str:
        """A cell of the encoded table as the user wrote it."""
        if feature not in self.categories:
            if np.isnan(value):
                return MISSING
            return format_moment(value) if feature in self.dates else format_short(value, 6)
        return name_category(value, self.categories[feature], has_new=self.estimator is not None)


class ThreatInputs(Protocol):
    """What the words about a threat are made of."""

    @property
    def subject(self) -> Subject: ...

    @property
    def threat(self) -> Threat: ...

    @property
    def units(self) -> FloatArray: ...

    @property
    def moving(self) -> list[int]: ...

    @property
    def has_threat(self) -> bool: ...


def find_moving(model: Model, threat: Threat) -> list[int]:
    """Numerical features of a model that may change."""
    return [at for at in model.numerical_features if threat.may_move(at)]


def check_count(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number that large."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"`{name}` must be a whole number, {least} or larger, got {value!r}.")


def name_estimator(estimator: Any) -> str:
    """The class of an estimator, and what it was read from where that is another library's model."""
    source = getattr(estimator, "source_", None)
    return type(estimator).__name__ + (f" of a {source}" if source else "")


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Everything that the summary is computed from."""

    subject: Subject
    matrix: FloatArray
    """The rows, categories as codes."""
    labels: LabelArray | None
    certificates: tuple[Certificates, ...]
    """One per number of categorical changes, from 0 on; one alone where a threat was given."""
    certify_seconds: float
    proof: str = "best"
    has_threat: bool = False
    whole: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Columns of whole numbers, in training and in these rows."""
    grades: RowGrades | None = None
    """What the model says of each row besides its label; None without labels."""
    row_names: tuple[str | None, ...] | None = None
    """What rows are called, such as by an id; None, of all or of one, is their number."""

    def name_row(self, row: int) -> str | None:
        """What a row is called where that is not its number."""
        return None if self.row_names is None else self.row_names[row]

    @property
    def plain(self) -> Certificates:
        """The certificates without categorical changes, or those under the threat that was given."""
        return self.certificates[0]

    @property
    def threat(self) -> Threat:
        """What may change, its columns by number, its norm and units resolved."""
        return self.plain.threat

    @property
    def perturbation(self) -> Perturbation:
        """What may change, as arrays."""
        model = self.subject.model
        return Perturbation.of(self.threat, model.n_features, model.numerical_features)

    @property
    def units(self) -> FloatArray:
        """What one unit of radius is worth in each column's own unit."""
        return self.perturbation.units

    @property
    def moving(self) -> list[int]:
        """Numerical features of the model that may change."""
        return find_moving(self.subject.model, self.threat)

    @property
    def rule(self) -> str:
        """How the answer is found."""
        return self.plain.rule

    @property
    def budgets(self) -> list[int]:
        """How many categories may change, for each of the certificates."""
        return [one.threat.l0 for one in self.certificates]

    @property
    def has_percentile(self) -> bool:
        """Whether the failure mass of the unchanged row is what certifies a radius."""
        noise, threat = self.subject.noise, self.threat
        same = noise is not None and threat.norm == noise.norm and threat.units == noise.units
        return same and self.plain.rule == "vote" and threat.l0 == threat.missing_budget == 0

    @property
    def n_rows(self) -> int:
        return len(self.plain)

    @property
    def correct(self) -> BoolArray | None:
        return None if self.labels is None else np.asarray(self.labels == self.plain.label)


def read_subject(clf: Any, noise: Noise | str | float | None, feature_names: Sequence[str] | None) -> Subject:
    """The model, its noise and its names, from a fitted classifier or a bare model."""
    if is_model(clf):
        if noise is None:
            raise ValueError(
                f"`noise` must be given with a bare {type(clf).__name__}, such as 'gaussian:0.25', or 'none' for the "
                "model as deployed: only a fitted classifier knows its own."
            )
        names = name_features(clf, feature_names)
        return Subject(clf, as_noise_or_none(noise), np.arange(clf.n_classes), names, _list_codes(clf), None)
    fitted = _check_classifier(clf, noise)
    model, encoding = fitted.ensemble_, fitted.encoding_
    names = name_features(model, encoding.names if feature_names is None else feature_names)
    categories = encoding.categories or _list_codes(model)
    own = fitted.noise_ if noise is None else None
    return Subject(model, own, np.asarray(fitted.classes_), names, categories, fitted, encoding.whole)


def _check_classifier(clf: Any, noise: Noise | str | float | None) -> CertifiedClassifier:
    if not hasattr(clf, "certify") or not hasattr(clf, "get_params"):
        raise TypeError(
            "`clf` must be a fitted classifier of derand, an AdditiveEnsemble or a WeightedVote, "
            f"got {type(clf).__name__}."
        )
    if not hasattr(clf, "ensemble_"):
        raise ValueError(f"`clf` must be fitted, got a {type(clf).__name__} that is not: call `fit` first.")
    fitted: CertifiedClassifier = clf
    if noise is not None and not (isinstance(noise, str) and noise == "none"):
        raise ValueError(
            f"`noise` must be left out for a classifier, which is certified under its own noise, "
            f"{fitted.noise_ or 'none'}, or be 'none', got {noise!r}."
        )
    return fitted


def name_features(model: Model, given: Sequence[str] | None) -> tuple[str, ...]:
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


def read_inputs(
    subject: Subject,
    X: Any,
    y: ArrayLike | None,
    request: Request | None = None,
    row_names: Sequence[Any] | None = None,
) -> Inputs:
    """Encode the rows once, certify them and check the labels."""
    asked = request or Request()
    threats, has_threat = _list_threats(subject, asked)
    own = "vote" if subject.estimator is None else subject.estimator.rule
    check_request(asked.rule or own, asked.proof, subject.noise, threats)
    start = time.perf_counter()
    if subject.estimator is None:
        certificates = _certify_bare(subject, X, threats, asked)
        matrix = np.asarray(X, dtype=np.float64)
    else:
        from derand.estimators import certify_encoded, encode_rows

        matrix = encode_rows(subject.estimator, X)
        noise = "none" if subject.noise is None else None
        certificates = certify_encoded(
            subject.estimator, matrix, threats, rule=asked.rule, proof=asked.proof, noise=noise
        )
    seconds = time.perf_counter() - start
    if not len(matrix):
        raise ValueError("`X` must hold at least one row, got none.")
    labels = _read_labels(y, certificates[0])
    grades = None if labels is None else _grade(subject, X, matrix, certificates[0])
    whole = {} if subject.estimator is None else subject.estimator.encoding_.find_whole(matrix)
    called = name_rows(X, row_names, len(matrix))
    return Inputs(subject, matrix, labels, tuple(certificates), seconds, asked.proof, has_threat, whole, grades, called)


def name_rows(X: Any, given: Sequence[Any] | None, n_rows: int) -> tuple[str | None, ...] | None:
    """What rows are called: as given, or by the index of a frame that has one of its own."""
    if given is None:
        index = Origin.find(X).index
        if index is None or list(index) == list(range(n_rows)):
            return None
        given = list(index)
    if len(given) != n_rows:
        raise ValueError(f"`row_names` must hold one name per row, {n_rows} in all, got {len(given)}.")
    return tuple(None if one is None else " ".join(str(one).split()) for one in given)


def _grade(subject: Subject, X: Any, matrix: FloatArray, certificates: Certificates) -> RowGrades:
    """What the model says of each row besides its label."""
    if subject.estimator is not None:
        from derand.estimators import grade_rows

        return grade_rows(subject.estimator, X, certificates, encoded=matrix)
    score = rank_rows(subject.model, matrix, certificates)
    return RowGrades(score, None, "Log-loss and calibration need probabilities, and a bare model gives none.")


def _list_threats(subject: Subject, asked: Request) -> tuple[list[Threat], bool]:
    """The threat that was given, its columns by number, or one per number of categorical changes; and which it is.

    A classifier that was trained for more than a norm, such as frozen columns, is certified against just that.
    """
    if asked.threat is not None:
        if not isinstance(asked.threat, Threat):
            raise TypeError(f"`threat` must be a Threat, got {type(asked.threat).__name__}.")
        units = None if subject.estimator is None else subject.estimator.units
        asked_for = as_threats(asked.l0, None, asked.threat)
        return [one.name_columns(subject.names, units=units) for one in asked_for], True
    own, names, units = Threat(), subject.names, None
    if subject.estimator is not None:
        own, names = subject.estimator.default_threat, subject.estimator.encoding_.names or names
        units = subject.estimator.units
    plain = replace(own, norm="auto", l0=0) == Threat()
    if plain and (asked.l0 is not None or not own.l0):
        most = DEFAULT_L0 if asked.l0 is None else as_budget(asked.l0)
        budgets = range(min(len(subject.model.categorical_features), most) + 1)
        return [replace(own, l0=budget) for budget in budgets], False
    own = own if asked.l0 is None else replace(own, l0=as_budget(asked.l0))
    return [own.name_columns(names, units=units)], True


def _certify_bare(subject: Subject, X: Any, threats: list[Threat], asked: Request) -> list[Certificates]:
    rule = asked.rule or "vote"
    if asked.threat is not None:
        return [certify(subject.model, X, subject.noise, rule=rule, proof=asked.proof, threat=threats[0])]
    budgets = [one.l0 for one in threats]
    return certify(subject.model, X, subject.noise, l0=budgets, rule=rule, proof=asked.proof)


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
