"""Another classifier on the same rows, against the same changes: what is asked of it, and what is refused.

Owns the way from the columns, categories and units of the one model to those of the other. Must not know what is said
of the two.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from derand._core.text import join_words, quote_short
from derand.certificates import Certificates
from derand.perturbation import Perturbation
from derand.report._inputs import LabelInputs, Subject, name_estimator, name_features
from derand.report._settings import ReportSettings
from derand.threat import EVERY, Threat

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier

_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class OtherModel:
    """A second classifier, certified as that of the report."""

    name: str
    classifier: CertifiedClassifier
    certificates: tuple[Certificates, ...]
    """One per certificate of the report, in the same order."""
    places: tuple[int, ...]
    """The number that each of its columns has in the table of the report."""

    @property
    def kind(self) -> str:
        """What it is."""
        return name_estimator(self.classifier)


def read_other(other: Any, X: Any, inputs: LabelInputs, asked: ReportSettings) -> OtherModel:
    """Certify the rows of a report by another classifier, against the report's own threats.

    A rule that was asked for holds for both, and so does a report on the model as deployed, without its noise.
    """
    from derand.estimators import CertifiedClassifier, certify_encoded, encode_rows

    if not isinstance(other, CertifiedClassifier) or not hasattr(other, "ensemble_"):
        raise TypeError(f"`compare` must be a fitted classifier of derand, got {type(other).__name__}.")
    subject = inputs.subject
    _require_classes(subject, other)
    places = _match_columns(subject, other)
    threats = [_translate(one.threat, subject, other, places) for one in inputs.certificates]
    as_deployed = subject.noise is None and (subject.estimator is None or subject.estimator.noise_ is not None)
    rule, noise = (inputs.plain.rule, "none") if as_deployed else (asked.rule, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model of the report has said what is to be said
            rows = encode_rows(other, _take_columns(X, places, other.encoding_.names is not None))
            found = certify_encoded(other, rows, threats, rule=rule, proof=asked.proof, noise=noise)
    except ValueError as error:
        raise ValueError(f"`compare`: the other model cannot be certified as that of the report: {error}") from None
    return OtherModel(asked.compare_name or "the other model", other, tuple(found), places)


def _require_classes(subject: Subject, other: CertifiedClassifier) -> None:
    own, theirs = (list(map(repr, np.asarray(one).tolist())) for one in (subject.classes, other.classes_))
    if sorted(own) != sorted(theirs):
        raise ValueError(
            f"`compare` must answer with the same classes, {join_words(own[:_NAMED])}, got a model that answers with "
            f"{join_words(theirs[:_NAMED])}."
        )


def _match_columns(subject: Subject, other: CertifiedClassifier) -> tuple[int, ...]:
    """Which column of the report's table each column of the other model is, by name, or by number without names."""
    names, own = other.encoding_.names, subject.names
    n_features = other.ensemble_.n_features
    if names is None or own == name_features(subject.model, None):
        if n_features != len(own):
            raise ValueError(
                f"`compare` has {n_features} columns without names, and the model of the report has {len(own)}: "
                "without names both must read the same table."
            )
        places = tuple(range(n_features))
    else:
        unknown = [quote_short(one) for one in names if one not in own]
        if unknown:
            raise ValueError(
                f"`compare` reads {join_words(unknown[:_NAMED])}, which the model of the report does not know: nothing "
                "says what may change there. Make the report on the other model, and compare it with this one."
            )
        places = tuple(own.index(one) for one in names)
    for at, place in enumerate(places):
        if (at in other.encoding_.categories) != (place in subject.categories):
            kinds = ("a category", "a number") if at in other.encoding_.categories else ("a number", "a category")
            raise ValueError(
                f"`compare` reads {quote_short(own[place])} as {kinds[0]}, and the model of the report as {kinds[1]}: "
                "they cannot be certified against the same changes. Train both on columns of the same kinds."
            )
    return places


def _take_columns(X: Any, places: tuple[int, ...], has_names: bool) -> Any:
    """Columns of a table by number, in a table of the same kind; an array for a model without names."""
    if hasattr(X, "iloc"):
        taken = X.iloc[:, list(places)]
    elif hasattr(X, "select") and hasattr(X, "columns"):  # polars, pyarrow
        names = getattr(X, "column_names", X.columns)
        taken = X.select([names[at] for at in places])
    else:
        return np.asarray(X)[:, list(places)]
    return taken if has_names or not hasattr(taken, "to_numpy") else taken.to_numpy()


def _translate(threat: Threat, subject: Subject, other: CertifiedClassifier, places: Sequence[int]) -> Threat:
    """The same changes in the columns, and the codes of categories, of the other model."""
    at = {place: number for number, place in enumerate(places)}
    units = Perturbation.of(threat, subject.model.n_features, ()).units
    kept: dict[str, Any] = {
        name: {
            column if column == EVERY else at[int(column)]: value
            for column, value in getattr(threat, name).items()
            if column == EVERY or int(column) in at
        }
        for name in ("limits", "domain", "steps")
    }
    kept["may_become"] = {
        at[int(column)]: tuple(_translate_value(subject, other, int(column), at[int(column)], code) for code in codes)
        for column, codes in threat.may_become.items()
        if int(column) in at
    }
    takes_gaps = bool(other.ensemble_.missing_features)
    return replace(
        threat,
        units=tuple(float(units[place]) for place in places),
        frozen=tuple(at[int(column)] for column in threat.frozen if int(column) in at),
        missing=threat.missing if takes_gaps else "fixed",
        **kept,
    )


def _translate_value(subject: Subject, other: CertifiedClassifier, own: int, theirs: int, code: float) -> Any:
    """A category as the other model's threat takes it: its value, None for a missing one; a code without values."""
    known = subject.categories.get(own, ())
    if math.isnan(code):
        return None
    if not other.encoding_.categories.get(theirs):
        return code
    return known[int(code)] if 0 <= code < len(known) else _NEVER_SEEN


class _Never:
    """A category that no table holds."""

    def __repr__(self) -> str:
        return "(never seen)"


_NEVER_SEEN = _Never()
