"""Reporting on the rows of a file.

Owns the way from files to a Report. Must not know the command line, nor what a report
says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from derand._core.files import PathLike, require_writable
from derand._core.text import quote_short
from derand.app.jobs._classifiers import load_classifier, load_regressor
from derand.app.jobs._request import read_named, read_request, require_domains
from derand.estimators import choose_radius
from derand.report import Report
from derand.storage import mark_file
from derand.tables import match_file
from derand.threat import Threat
from derand.threat_text import read_threat

_MOST_NAMED = 20


class ReportSummary(TypedDict):
    """Where the report of `report_file` is, and its guarantee."""

    output: str
    rows: int
    guarantee: str
    comparison: str | None
    """Two models side by side in a few sentences; None where there is one."""
    warnings: list[str]
    """What a reader must know first: that the model is worth no more than a constant answer."""
    notes: list[str]
    unseen_categories: dict[str, int]
    empty_columns: list[str]
    seconds: float


def report_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    train: PathLike | None = None,
    groups: Sequence[str] = (),
    radius: float | None = None,
    l0: int | None = None,
    title: str | None = None,
    rule: str | None = None,
    noise: str | None = None,
    threat: Threat | PathLike | None = None,
    configuration: str | None = None,
    whole: bool = False,
    what_if: bool = True,
    max_rows: int = 100_000,
    identity: str | None = None,
    compare: PathLike | None = None,
    notes: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> ReportSummary:
    """Certify the rows of a CSV or Parquet file and write a Report about them.

    Parameters
    ----------
    model : path-like
        A saved classifier.
    data : path-like
        Columns are matched as for `certify_file`.
    output : path-like
        .html, .md, .tex or .json.
    target : str or None
        Column with the true labels.
    train : path-like or None
        The training table, with the target: a twin trained on it without noise becomes a baseline.
    groups : sequence of str
        Columns whose groups are compared; they need not be features.
    radius, l0, title, rule, noise, configuration
        As for Report.
    threat : Threat, path-like or None
        What may change, or a TOML file that says so; instead of `l0`. None is the classifier's `default_threat`.
    whole : bool
        Whether columns that held whole numbers alone in training stay whole; not beside `threat`, which says so itself.
    what_if, max_rows
        As for Report.
    identity : str or None
        Column whose values name the rows; it need not be a feature.
    compare : path-like or None
        Another saved classifier, which stands beside the first on the same rows.
    notes, left_out
        As for Report; without `left_out` it is told which columns of the file the model does not read.

    Returns
    -------
    ReportSummary
        A dict: where the report is, and its guarantee.
    """
    start = time.perf_counter()
    if train is not None and target is None:
        raise ValueError("The training table needs the target, to train the baseline: name it.")
    require_writable(output, model, data, *(one for one in (train, compare) if one is not None))
    classifier = load_classifier(model, "use `report_numbers_file`")
    other = None if compare is None else load_classifier(compare, "it cannot stand beside answers that are classes")
    source = match_file(data, classifier.encoding_, target=target, classes=classifier.classes_)
    files = {"model": model, "data": data, "other model": compare}
    marks = {what: mark_file(path) for what, path in files.items() if path is not None}
    table = source.read_all([*groups, *([] if identity is None or identity in groups else [identity])])
    rows, labels = source.split(table, first_row=1)
    X_train, y_train = None, None
    if train is not None:
        known = match_file(train, classifier.encoding_, target=target, classes=classifier.classes_)
        marks["training data"] = mark_file(train)
        training = known.read_all()
        known.require_finite(training)
        X_train, y_train = known.split(training, first_row=1)
    if whole:
        threat, l0 = read_request(classifier, source.names, l0, threat, {"whole": True}), None
    if threat is not None and not isinstance(threat, Threat):
        threat = read_threat(threat, source.names, classifier.units)
    n_rows, unseen, empty = table.num_rows, source.count_unseen(table), source.find_empty(table)
    with source.name_gaps(table, first_row=1):
        report = Report(
            classifier,
            rows,
            labels,
            X_train=X_train,
            y_train=y_train,
            groups={name: name if name in source.names else table.column(name).to_pylist() for name in groups} or None,
            radius=radius,
            l0=l0,
            title=title or f"Certificate report: {Path(data).name}",
            feature_names=source.names,
            row_names=None if identity is None else table.column(identity).to_pylist(),
            rule=rule,
            noise=noise,
            threat=threat,
            configuration=configuration,
            notes=notes,
            left_out=left_out or tell_unread(source.not_used),
            what_if=what_if,
            compare=other,
            compare_name=None if compare is None else Path(compare).name,
            marks=marks,
            max_rows=max_rows,
        )
        del rows, table  # the report has them as the model reads them: of a long table, half of all memory
        report.write(output)
    banner, compared = report.to_dict()["banner"], report.to_dict()["comparison"]
    told = [] if banner is None else [banner["text"]]
    is_warning = banner is not None and banner["level"] == "warning"
    return {
        "output": os.fspath(output),
        "rows": n_rows,
        "guarantee": report.to_dict()["guarantee"]["paragraph"],
        "comparison": None if compared is None else compared["sentence"],
        "warnings": told if is_warning else [],
        "notes": [] if is_warning else told,
        "unseen_categories": unseen,
        "empty_columns": sorted(empty),
        "seconds": time.perf_counter() - start,
    }


def report_numbers_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    radius: float | None = None,
    l0: int | None = None,
    title: str | None = None,
    rule: str | None = None,
    noise: str | None = None,
    threat: Threat | PathLike | None = None,
    configuration: str | None = None,
    whole: bool = False,
    what_if: bool = True,
    max_rows: int = 100_000,
    identity: str | None = None,
    tolerance: float | None = None,
    notes: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> ReportSummary:
    """Certify the rows of a CSV or Parquet file by a regressor and write a Report about them.

    Parameters
    ----------
    model : path-like
        A saved regressor.
    data, output, title, rule, noise, threat, configuration, whole, what_if, max_rows, identity, notes, left_out
        As for `report_file`.
    tolerance : float or None
        As for Report.
    target : str or None
        Column with the true numbers.
    radius : float or None
        Of the intervals; None is what the regressor was trained for.
    l0 : int or None
        How many categorical features may change; None is what the regressor was trained for.

    Returns
    -------
    ReportSummary
        A dict: where the report is, and its guarantee.
    """
    start = time.perf_counter()
    require_writable(output, model, data)
    regressor = load_regressor(model)
    source = match_file(data, regressor.encoding_, target=target, classes=None)
    _, named = read_named(regressor, source, l0, threat, {"whole": True} if whole else {})
    size = choose_radius(regressor, named, radius)
    table = source.read_all([] if identity is None else [identity])
    rows, numbers = source.split(table, first_row=1)
    require_domains(source, named, table, 1)
    with source.name_gaps(table, first_row=1):
        report = Report(
            regressor,
            rows,
            numbers,
            radius=size,
            threat=named,
            rule=rule,
            noise=noise,
            title=title or f"Interval report: {Path(data).name}",
            feature_names=source.names,
            row_names=None if identity is None else table.column(identity).to_pylist(),
            tolerance=tolerance,
            what_if=what_if,
            max_rows=max_rows,
            configuration=configuration,
            marks={"model": mark_file(model), "data": mark_file(data)},
            notes=notes,
            left_out=left_out or tell_unread(source.not_used),
        )
        report.write(output)
    return {
        "output": os.fspath(output),
        "rows": table.num_rows,
        "guarantee": report.to_dict()["guarantee"]["paragraph"],
        "comparison": None,
        "warnings": [],
        "notes": [],
        "unseen_categories": source.count_unseen(table),
        "empty_columns": sorted(source.find_empty(table)),
        "seconds": time.perf_counter() - start,
    }


def tell_unread(names: Sequence[str], reasons: Mapping[str, str] | None = None) -> list[str]:
    """A sentence on columns of a table that the model does not read, with reasons where they are known."""
    known = reasons or {}
    told = [f"{quote_short(name)}{f' ({known[name]})' if known.get(name) else ''}" for name in names]
    if len(told) > _MOST_NAMED:
        told = [*told[:_MOST_NAMED], f"{len(told) - _MOST_NAMED:,} more"]
    return [f"The model does not read these columns of the table: {', '.join(told)}."] if told else []
