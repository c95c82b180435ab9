"""What a report is made of: the model with its noise and names, the rows, their truth, their certificates or intervals.

Owns the checks of what the user gave. Must not know what the report says or how it looks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, FloatArray, Numbers
from derand._core.origin import Cell, Fitted, Frame, Origin
from derand._core.text import format_short
from derand.certificates import (
    Certificates,
    Intervals,
    ToleranceRadii,
    certify,
    certify_interval_checked,
    certify_radius_checked,
    check_request,
    rank_rows,
)
from derand.explain import name_category
from derand.metrics import RowGrades
from derand.model import AdditiveEnsemble, Model, is_model
from derand.noise import Noise, resolve_noise
from derand.perturbation import Perturbation
from derand.report._settings import ReportSettings
from derand.tables import format_moment
from derand.threat import Threat, as_budget, as_threats

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier

LabelArray = Numbers
"""Labels, groups or classes: numbers or text, as the user has them."""

MISSING = "(missing)"
"""How a missing number is shown."""

DEFAULT_L0 = 3
"""How many categorical changes are looked at where nothing is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The model that is reported on."""

    model: Model
    noise: Noise | None
    """None for the model as deployed."""
    classes: LabelArray
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Cell, ...]]
    estimator: CertifiedClassifier | None
    """The fitted classifier; None where a bare model was given."""
    whole: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Columns that held whole numbers alone in training, with the least and the largest of them."""

    @property
    def additive(self) -> AdditiveEnsemble | None:
        """The model where it is one sum of two classes, which has laws; None for votes, several classes and numbers."""
        return self.shaped if self.model.n_classes == 2 else None

    @property
    def shaped(self) -> AdditiveEnsemble | None:
        """The model where it is one sum, which has shapes; None for a vote, and for several classes."""
        return self.model.members[0] if self.model.weights is None and self.model.n_classes in (0, 2) else None

    @property
    def points(self) -> float:
        """How many whole scores are one unit of what is shown: of log-odds, or of the target of numbers; else 1."""
        is_number = self.model.n_classes == 0
        is_unit = is_number or (self.estimator is not None and self.estimator.score_is_log_odds)
        return float(self.shaped.levels) if is_unit and self.shaped is not None else 1.0

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


def name_estimator(estimator: object) -> str:
    """The class of an estimator, and what it was read from where that is another library's model."""
    source = getattr(estimator, "source_", None)
    return type(estimator).__name__ + (f" of a {source}" if source else "")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Inputs:
    """What every report is computed from, whatever the model answers."""

    subject: Subject
    matrix: FloatArray
    """The rows, categories as codes."""
    truth: LabelArray | None
    """True labels or numbers."""
    threat: Threat
    """What may change, its columns by number, its norm and units resolved."""
    rule: str
    """How the answer is found."""
    proof: str
    has_threat: bool
    whole: Mapping[int, tuple[int, int]]
    """Columns of whole numbers, in training and in these rows."""
    row_names: tuple[str | None, ...] | None
    """What rows are called, such as by an id; None, of all or of one, is their number."""
    certify_seconds: float

    def name_row(self, row: int) -> str | None:
        """What a row is called where that is not its number."""
        return None if self.row_names is None else self.row_names[row]

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
        return [at for at in self.subject.model.numerical_features if self.threat.may_move(at)]

    @property
    def budgets(self) -> list[int]:
        """How many categories may change."""
        return [self.threat.l0]

    @property
    def n_rows(self) -> int:
        return len(self.matrix)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LabelInputs(Inputs):
    """The same with certificates of labels."""

    certificates: tuple[Certificates, ...]
    """One per number of categorical changes, from 0 on; one alone where a threat was given."""
    grades: RowGrades | None
    """What the model says of each row besides its label; None without labels."""

    @property
    def plain(self) -> Certificates:
        """The certificates without categorical changes, or those under the threat that was given."""
        return self.certificates[0]

    @property
    def budgets(self) -> list[int]:
        """How many categories may change, for each of the certificates."""
        return [one.threat.l0 for one in self.certificates]

    @property
    def has_percentile(self) -> bool:
        """Whether the failure mass of the unchanged row is what certifies a radius."""
        noise, threat = self.subject.noise, self.threat
        same = noise is not None and threat.norm == noise.norm and threat.units == noise.units
        return same and self.rule == "vote" and threat.l0 == threat.missing_budget == 0

    @property
    def correct(self) -> BoolArray | None:
        return None if self.truth is None else np.asarray(self.truth == self.plain.label)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IntervalInputs(Inputs):
    """The same with intervals of numbers."""

    intervals: Intervals
    n_jobs: int | None

    @property
    def moves(self) -> FloatArray:
        """By how much the answer of each row can move, at most."""
        found = self.intervals
        return np.maximum(found.value - found.low, found.high - found.value)

    def certify_part(self, rows: FloatArray, radius: float) -> Intervals:
        """Intervals of encoded rows under the same threat, at another radius."""
        model, noise, rule, proof = self.subject.model, self.subject.noise, self.rule, self.proof
        return certify_interval_checked(
            model, rows, noise, self.threat, radius=radius, rule=rule, proof=proof, n_jobs=self.n_jobs
        )

    def certify_tolerance(self, rows: FloatArray, tolerance: float) -> ToleranceRadii:
        """Radii of encoded rows under the same threat, within which answers move by the tolerance at most."""
        model, noise, rule, proof = self.subject.model, self.subject.noise, self.rule, self.proof
        return certify_radius_checked(
            model, rows, noise, self.threat, tolerance=tolerance, rule=rule, proof=proof, n_jobs=self.n_jobs
        )


def read_subject(clf: object, noise: Noise | str | float | None, feature_names: Sequence[str] | None) -> Subject:
    """The model, its noise and its names, from a fitted classifier or a bare model."""
    if is_model(clf):
        if noise is None:
            raise ValueError(
                f"`noise` must be given with a bare {type(clf).__name__}, such as 'gaussian:0.25', or 'none' for the "
                "model as deployed: only a fitted classifier knows its own."
            )
        names = name_features(clf, feature_names)
        return Subject(clf, resolve_noise(noise), np.arange(clf.n_classes), names, _list_codes(clf), None)
    fitted = _check_classifier(clf, noise)
    model, encoding = fitted.ensemble_, fitted.encoding_
    names = name_features(model, encoding.names if feature_names is None else feature_names)
    categories = encoding.categories or _list_codes(model)
    own = fitted.noise_ if noise is None else None
    return Subject(model, own, np.asarray(fitted.classes_), names, categories, fitted, encoding.whole)


def _check_classifier(clf: Fitted, noise: Noise | str | float | None) -> CertifiedClassifier:
    if not hasattr(clf, "certify") or not hasattr(clf, "get_params"):
        raise TypeError(
            "`model` must be a fitted classifier or regressor of derand, an AdditiveEnsemble or a WeightedVote, "
            f"got {type(clf).__name__}."
        )
    if not hasattr(clf, "ensemble_"):
        raise ValueError(f"`model` must be fitted, got a {type(clf).__name__} that is not: call `fit` first.")
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
        feature: tuple(range(int(codes.max(initial=-1)) + 1))
        for term in model.member_terms
        for feature, codes in term.category_codes.items()
    }


def read_inputs(
    subject: Subject, X: object, y: ArrayLike | None, settings: ReportSettings | None = None
) -> LabelInputs:
    """Encode the rows once, certify them and check the labels."""
    asked = settings or ReportSettings()
    threats, has_threat = _list_threats(subject, asked)
    own = "vote" if subject.estimator is None else subject.estimator.rule
    check_request(asked.rule or own, asked.proof, subject.noise, threats)
    start = time.perf_counter()
    if subject.estimator is None:
        certificates = _certify_bare(subject, X, threats, asked)
        matrix = np.asarray(X, dtype=np.float64)
    else:
        from derand.fitted import certify_encoded, encode_rows

        matrix = encode_rows(subject.estimator, X)
        noise = "none" if subject.noise is None else None
        certificates = certify_encoded(
            subject.estimator, matrix, threats, rule=asked.rule, proof=asked.proof, noise=noise
        )
    seconds = time.perf_counter() - start
    _require_rows(matrix)
    plain = certificates[0]
    labels = _read_labels(y, plain)
    return LabelInputs(
        subject=subject,
        matrix=matrix,
        truth=labels,
        threat=plain.threat,
        rule=plain.rule,
        proof=asked.proof,
        has_threat=has_threat,
        whole={} if subject.estimator is None else subject.estimator.encoding_.find_whole(matrix),
        row_names=name_rows(X, asked.row_names, len(matrix)),
        certify_seconds=seconds,
        certificates=tuple(certificates),
        grades=None if labels is None else _grade(subject, X, matrix, plain),
    )


def read_regression_inputs(reg: Fitted, X: object, y: ArrayLike | None, settings: ReportSettings) -> IntervalInputs:
    """Certify the rows by a regressor, encode them and check the true numbers."""
    from derand.fitted import encode_rows

    start = time.perf_counter()
    found = reg.certify_interval(
        X,
        settings.radius,
        l0=settings.l0,
        threat=settings.threat,
        rule=settings.rule,
        noise=settings.noise,
        proof=settings.proof,
    )
    seconds = time.perf_counter() - start
    _require_rows(found)
    encoding, given = reg.encoding_, settings.feature_names
    names = name_features(reg.ensemble_, encoding.names if given is None else given)
    matrix = encode_rows(reg, X)
    return IntervalInputs(
        subject=Subject(reg.ensemble_, found.noise, np.empty(0), names, encoding.categories, reg, encoding.whole),
        matrix=matrix,
        truth=_read_numbers(y, found),
        threat=found.threat,
        rule=found.rule,
        proof=settings.proof,
        has_threat=True,
        whole=encoding.find_whole(matrix),
        row_names=name_rows(X, settings.row_names, len(matrix)),
        certify_seconds=seconds,
        intervals=found,
        n_jobs=reg.n_jobs,
    )


def _require_rows(rows: Sized) -> None:
    if not len(rows):
        raise ValueError("`X` must hold at least one row, got none.")


def name_rows(X: object, given: Sequence[object] | None, n_rows: int) -> tuple[str | None, ...] | None:
    """What rows are called: as given, or by the index of a frame that has one of its own."""
    if given is None:
        index = Origin.find(X).index
        if index is None or list(index) == list(range(n_rows)):
            return None
        given = list(index)
    if len(given) != n_rows:
        raise ValueError(f"`row_names` must hold one name per row, {n_rows} in all, got {len(given)}.")
    return tuple(None if one is None else " ".join(str(one).split()) for one in given)


def _grade(subject: Subject, X: object, matrix: FloatArray, certificates: Certificates) -> RowGrades:
    """What the model says of each row besides its label."""
    if subject.estimator is not None:
        from derand.fitted import grade_rows

        return grade_rows(subject.estimator, X, certificates, encoded=matrix)
    score = rank_rows(subject.model, matrix, certificates)
    return RowGrades(score, None, "Log-loss and calibration need probabilities, and a bare model gives none.")


def _list_threats(subject: Subject, asked: ReportSettings) -> tuple[list[Threat], bool]:
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


def _certify_bare(subject: Subject, X: Frame, threats: list[Threat], asked: ReportSettings) -> list[Certificates]:
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


def _read_numbers(y: ArrayLike | None, found: Intervals) -> FloatArray | None:
    if y is None:
        return None
    targets = np.asarray(y, dtype=np.float64)
    if targets.shape != (len(found),) or not np.isfinite(targets).all():
        raise ValueError(
            f"`y` must hold one finite number per row, {len(found)} in all, got shape {targets.shape}"
            f"{'' if np.isfinite(targets).all() else ' with gaps or infinity'}."
        )
    return targets
