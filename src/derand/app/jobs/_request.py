"""What is asked about the rows of a file: rule, proof, noise, and what may change.

Owns the way from a threat as a user names it (columns as in the file, or a TOML file) to one of this classifier, and
the refusal of what makes no sense before any row is read. Must not know what is written of the results.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.files import PathLike
from derand._core.text import Facts, quote_short
from derand.app import Summary
from derand.app.settings import CertifySettings
from derand.certificates import Certificates, Intervals, ToleranceRadii
from derand.fitted import (
    FittedModel,
    certify_encoded,
    certify_interval_encoded,
    certify_radius_encoded,
    choose_radius,
    encode_rows,
)
from derand.noise import Noise
from derand.perturbation import describe_unused
from derand.storage import NumbersRequest
from derand.tables import MatchedFile
from derand.threat import Column, Link, Threat, as_threats
from derand.threat_text import change_threat, read_threat

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_VALUES = 8


def read_request(
    classifier: FittedModel,
    names: Sequence[str],
    l0: int | None,
    threat: Threat | PathLike | None,
    changes: Mapping[str, object],
) -> Threat:
    """The threat that is asked for, or that of the classifier, with what is asked to be different.

    `names`: of the columns, as in the file; `l0`, `threat`: as for `certify_file`; `changes`: fields of Threat; not
    beside `threat`.
    """
    if threat is not None:
        if changes:
            given = next(iter(changes))
            raise ValueError(f"Give `{given}` or `threat`, got both: the threat says all of what may change.")
        read = threat if isinstance(threat, Threat) else read_threat(threat, names, classifier.units)
        return as_threats(l0, None, read)[0]
    own = {} if l0 is None else {"l0": l0}
    return change_threat(classifier.default_threat, {**changes, **own})


def read_named(
    estimator: FittedModel,
    source: MatchedFile,
    l0: int | None,
    threat: Threat | PathLike | None,
    changes: Mapping[str, object],
) -> tuple[Threat, Threat]:
    """The threat that is asked for, as it was given and with columns by number; refused where it names what is not."""
    given = read_request(estimator, source.names, l0, threat, changes)
    _refuse_categories(given, source)
    named = given.name_columns(source.names, units=estimator.units, whole=estimator.encoding_.whole)
    _refuse_unseen(named, source)
    return given, named


def note_other_answers(estimator: FittedModel, rule: str, noise: Noise | None) -> list[str]:
    """What to say where certificates are by another rule or noise than `predict`; nothing where they are not."""
    if rule == estimator.rule and noise == estimator.noise_:
        return []
    asked, own = (_name_way(*way) for way in ((rule, noise), (estimator.rule, estimator.noise_)))
    other = " in other units" if asked == own else ""
    return [f"Answers here are by {asked}{other}: they may differ from those of `predict`, which go by {own}."]


def _name_way(rule: str, noise: Noise | None) -> str:
    return f"rule {rule}, {'no noise' if noise is None else f'noise {noise}'}"


def require_domains(source: MatchedFile, named: Threat, batch: pa.Table, first_row: int) -> None:
    """Refuse numbers of a batch outside of the domain of their column."""
    for column, ends in named.domain.items():
        assert isinstance(column, int)  # `name_columns` saw to that
        source.require_between(batch, column, ends, first_row)


class Request:
    """What is asked of a classifier about the rows of a file; refused at once where it makes no sense."""

    numbers: NumbersRequest | None = None

    def __init__(self, estimator: FittedModel, source: MatchedFile, settings: CertifySettings) -> None:
        self._estimator, self._source = estimator, source
        self._how: Facts = {
            "rule": settings.rule,
            "proof": settings.proof,
            "noise": settings.noise,
            "n_jobs": settings.n_jobs,
            "budget": settings.budget,
        }
        self.given, self.named = read_named(estimator, source, settings.l0, settings.threat, settings.changes)
        self._prepare(settings)

    def _prepare(self, settings: CertifySettings) -> None:
        """Certify no rows: that is refused as rows would be, and tells rule, noise and threat."""
        self._learn(self._certify_encoded(np.empty((0, self._estimator.encoding_.n_features))))

    def _learn(self, found: Certificates | Intervals | ToleranceRadii) -> None:
        self.rule, self.noise, self.resolved = found.rule, found.noise, found.threat

    def _certify_encoded(self, encoded: FloatArray) -> Any:
        return certify_encoded(self._estimator, encoded, [self.named], **self._how)[0]

    def certify(self, rows: object, batch: pa.Table, first_row: int) -> Any:
        """The certificates of a batch; of a regressor intervals, or radii of a tolerance."""
        require_domains(self._source, self.named, batch, first_row)
        found = self._certify_encoded(encode_rows(self._estimator, rows))
        self._learn(found)
        return found

    def list_notes(self) -> list[str]:
        """What to say of limits that change nothing."""
        unused = describe_unused(self.named, self._estimator.ensemble_, self._source.names)
        return [] if unused is None else [unused]

    def summarize(self) -> Summary:
        """What may change, with columns by name."""
        return summarize_threat(self.given, self.named, self.resolved, self._source)


class ValueRequest(Request):
    """What is asked of a regressor about the rows of a file: intervals of a radius, or radii of a tolerance."""

    numbers: NumbersRequest

    def _prepare(self, settings: CertifySettings) -> None:
        radius, tolerance = settings.radius, settings.tolerance
        if radius is not None and tolerance is not None:
            raise ValueError(f"Give `radius` or `tolerance`, got both, {radius!r} and {tolerance!r}.")
        size = choose_radius(self._estimator, self.named, radius) if tolerance is None else None
        self.numbers = NumbersRequest(size, tolerance)

    def _certify_encoded(self, encoded: FloatArray) -> Intervals | ToleranceRadii:
        model, radius, tolerance = self._estimator, self.numbers.radius, self.numbers.tolerance
        if tolerance is None:
            return certify_interval_encoded(model, encoded, radius, self.named, **self._how)
        return certify_radius_encoded(model, encoded, tolerance, self.named, **self._how)


def summarize_threat(given: Threat, named: Threat, resolved: Threat, source: MatchedFile) -> Summary:
    """What may change, with columns by name.

    `given`: as it was asked for; columns by name or number; `named`: the same by number; `resolved`: the same with its
    norm and units. Units are those of the numerical columns in a ball, None where all are 1; `whole` are columns that
    stay whole numbers, `fixed` numerical ones that cannot change: frozen, or without limits where there is no ball.
    """
    names, numerical = source.names, source.encoding.numerical

    def by_name(values: Mapping[Column, object]) -> Facts:
        return {names[at] if isinstance(at, int) else at: value for at, value in values.items()}

    return {
        "norm": resolved.ball_norm,
        "l0": given.l0,
        "unseen": bool(given.unseen),
        "units": None if resolved.units is None else {names[at]: resolved.units[at] for at in numerical},
        "frozen": list(by_name(dict.fromkeys(given.frozen))),
        "limits": by_name(given.limits),
        "domain": by_name(named.domain),
        "steps": by_name(given.steps),
        "whole": [name for name in by_name(named.steps) if name not in by_name(given.steps)],
        "may_become": {name: list(values) for name, values in by_name(given.may_become).items()},
        "missing": given.missing_budget,
        "linked": {names[int(at)]: _write_link(link, names) for at, link in named.linked.items()},
        "fixed": [names[at] for at in numerical if not named.may_move(at)],
    }


def _write_link(link: Link, names: Sequence[str]) -> str:
    """What a number follows from, such as "debt / income"."""
    left, sign, right, tolerance = link
    rounded = f" +- {tolerance:g}" if tolerance else ""
    return f"{names[int(left)]} {sign} {names[int(right)]}{rounded}"


def _refuse_categories(threat: Threat, source: MatchedFile) -> None:
    """Refuse limits of categorical columns by the names that the user knows."""
    categorical = {source.names[at] for at in source.encoding.categorical}
    named: dict[str, list[Column]] = {field: list(getattr(threat, field)) for field in ("limits", "domain", "steps")}
    named["linked"] = [at for column, link in threat.linked.items() for at in (column, link[0], link[2])]
    for field, columns in named.items():
        for column in columns:
            if column in categorical:
                raise ValueError(
                    f"`{field}` of Threat must name numerical columns, got {column!r}, which is categorical: `l0` says "
                    "how many of those may change, `frozen` which may not."
                )


def _refuse_unseen(threat: Threat, source: MatchedFile) -> None:
    """Refuse values that training did not see among those that a category may become: in a file they are slips."""
    for column, values in threat.may_become.items():
        known = source.encoding.categories.get(int(column), ())
        for value in values if known else ():
            if value not in known:
                near = difflib.get_close_matches(str(value), [one for one in known if isinstance(one, str)], n=1)
                more = ", ..." if len(known) > _SHOWN_VALUES else ""
                listed = f": its values are {', '.join(map(quote_short, known[:_SHOWN_VALUES]))}{more}."
                meant = f"; did you mean {quote_short(near[0])}?" if near else listed
                raise ValueError(
                    f"`may_become` of Threat names {quote_short(value)} for {quote_short(source.names[int(column)])}, "
                    f"which training did not see{meant}"
                )
