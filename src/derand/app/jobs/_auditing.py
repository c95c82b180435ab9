"""Auditing a certified file: its claims proven again from the model and the data.

Owns which rows of the files are looked at, and what is told of them. Must not know how a claim is proven or read, nor
the command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.files import PathLike, require_writable
from derand.app import Summary
from derand.app.jobs._audit_claims import list_columns, list_unread, read_claims
from derand.app.jobs._classifiers import load_fitted
from derand.app.jobs._copying import NUMBER_COLUMNS, RESULT_COLUMNS, find_copies
from derand.app.jobs._request import summarize_threat
from derand.app.settings import AuditSettings, fill_settings
from derand.auditing import Audit, audit_rows, choose_rows
from derand.certificates import Certificates, Intervals, ToleranceRadii
from derand.fitted import FittedModel, answers_numbers, encode_rows
from derand.storage import CertificateRecord, find_record, load_record
from derand.tables import MatchedFile, inspect_file, match_file, write_batches
from derand.threat import Threat

_SHOWN = 20


def audit_file(
    model: PathLike,
    data: PathLike,
    certified: PathLike,
    settings: AuditSettings | None = None,
    *,
    advance: Callable[[int], None] = lambda rows: None,
    **options: object,
) -> Summary:
    """Prove again what a file of certificates claims, from the model and the data alone.

    Parameters
    ----------
    model, data : path-like
        What was certified.
    certified : path-like
        What `certify_file` wrote, with its record beside it.
    settings : AuditSettings or None
        What is asked for.
    advance : callable
        Called after each row.
    **options
        Fields of AuditSettings, which replace those of `settings`.

    Returns
    -------
    dict
        `passed`: whether all that was checked was proven, the files are those of the record and the machine
        passed its tests.
        `checked`: the columns of the certified file that were proven.
        `not_checked`: its columns, or what they say beside what is proven, that were not looked at, each with
        a reason.
        `labels_alone`: rows that claim no more than their label or number: not certified, or within limits
        "flips" or "undecided".
        `not_proven`: the first rows of which a claim was not proven, counted from 1: which claim (label, failure,
        radius or proof; of numbers value, low, high or radius), the verdict of the audit, the label or number as
        claimed, the radius that is claimed, and one that was proven instead (the claimed one where that is not what
        failed).
        `changed`: files that are not those that the record is about.
        `version`: of the package that made the certificates.
        `radius`: of intervals; None for others, and within limits alone.
        `tolerance`: of radii of numbers.
        `own_units`: whether radii count in the model's own units.
    """
    start, asked = time.perf_counter(), fill_settings(AuditSettings, settings, options)
    output, seed = asked.output, asked.seed or 0
    if output is not None:
        require_writable(output, model, data, certified)
    if not Path(certified).exists():
        raise FileNotFoundError(f"{os.fspath(certified)} does not exist: name a table that `derand certify` wrote.")
    estimator = load_fitted(model)
    classes = None if answers_numbers(estimator) else estimator.classes_
    record = load_record(find_record(certified))
    changed = _find_changed(record, model, data, certified)
    taken = RESULT_COLUMNS if classes is not None else NUMBER_COLUMNS
    written = inspect_file(certified).names
    copied = find_copies(written, inspect_file(data).names, taken)
    source = match_file(data, estimator.encoding_, target=asked.target, classes=classes, copied=copied)
    chosen = choose_rows(record.n_rows, asked.rows or None, seed)
    table = _read_rows(source, estimator, chosen, record.n_rows)
    claims = read_claims(certified, estimator, record, chosen)
    found = audit_rows(estimator.ensemble_, table, claims, advance)
    if output is not None:
        _write_rows(found, chosen, output)
    failed = np.flatnonzero(found.verdict != "proven")
    return {
        "passed": found.passed and not changed,
        "checked": [name for name in list_columns(record) if name in (*found.checked, "verdict")],
        "not_checked": {
            **list_unread(written, copied, record),
            **{name: reason for name, reason in found.not_checked.items() if name in written},
            **_name_verdicts(claims),
        },
        "rows": record.n_rows,
        "audited": len(found),
        "proven": len(found) - int(failed.size),
        "labels_alone": _count_bare(claims),
        "not_proven": [_describe_row(found, claims, int(at), int(chosen[at]), estimator) for at in failed[:_SHOWN]],
        "changed": changed,
        "machine": [{"name": one.name, "passed": one.passed, "detail": one.detail} for one in found.machine],
        "version": record.version,
        "rule": record.rule,
        "noise": "none" if record.noise is None else str(record.noise),
        "norm": record.threat.ball_norm,
        "radius": None if record.numbers is None else record.numbers.radius,
        "tolerance": None if record.numbers is None else record.numbers.tolerance,
        "threat": _summarize_record(record.threat, source),
        "own_units": record.threat.units == estimator.units,
        "seed": seed,
        "seconds_per_row": float(found.seconds.mean()),
        "slowest_row": float(found.seconds.max()),
        "output": None if output is None else os.fspath(output),
        "seconds": time.perf_counter() - start,
    }


def _find_changed(record: CertificateRecord, model: PathLike, data: PathLike, certified: PathLike) -> list[str]:
    """The files whose bytes are not those that the record is about."""
    marks = ((record.model, model), (record.data, data), (record.certified, certified))
    return [os.fspath(path) for mark, path in marks if not mark.matches(path)]


def _read_rows(source: MatchedFile, estimator: FittedModel, chosen: IntArray, n_rows: int) -> FloatArray:
    """The chosen rows as the model reads them."""
    parts, first = [], 0
    for batch in source.read_batches():
        at = chosen[(chosen >= first) & (chosen < first + batch.num_rows)] - first
        if at.size:
            rows, _ = source.split(batch.take(at), first_row=first + 1)
            with source.name_gaps(batch, first_row=first + 1):
                parts.append(encode_rows(estimator, rows))
        first += batch.num_rows
    if first != n_rows:
        raise ValueError(f"{source.file.path} has {first} rows, but {n_rows} were certified: audit the same table.")
    return np.concatenate(parts)


def _summarize_record(threat: Threat, source: MatchedFile) -> Summary:
    """What may change by a record, with columns by name and categories by value."""
    values = {
        column: tuple(dict(enumerate(source.encoding.categories.get(int(column), ()))).get(code) for code in codes)
        for column, codes in threat.may_become.items()
    }
    named = replace(threat, may_become=values)
    return summarize_threat(named, named, named, source)


def _count_bare(claims: Certificates | Intervals | ToleranceRadii) -> int:
    """Rows that claim nothing of changes."""
    if isinstance(claims, Intervals):
        return int((np.isinf(claims.low) & np.isinf(claims.high)).sum())
    return int((claims.radius == 0).sum())


def _name_verdicts(claims: Certificates | Intervals | ToleranceRadii) -> dict[str, str]:
    """Which verdicts are not looked at: that a change flips is said without the change."""
    if not isinstance(claims, Certificates) or claims.threat.norm is not None or (claims.radius > 0).all():
        return {}
    return {"verdict": '"flips" and "undecided" are not distinguished: the changes are in another file'}


def _describe_row(
    found: Audit,
    claims: Certificates | Intervals | ToleranceRadii,
    at: int,
    row: int,
    estimator: FittedModel,
) -> Summary:
    if isinstance(claims, Certificates):
        label = str(estimator.classes_[claims.label[at]])
    else:
        label = str(float(claims.value[at]))
    return {
        "row": row + 1,
        "claim": str(found.claim[at]),
        "verdict": str(found.verdict[at]),
        "label": label,
        "claimed": float(found.claimed[at]),
        "proven": float(found.proven[at]),
    }


def _write_rows(found: Audit, chosen: IntArray, output: PathLike) -> None:
    columns = {name: getattr(found, name) for name in ("claimed", "proven", "verdict", "claim")}
    with write_batches(output) as write:
        write({"row": chosen + 1, **columns})
