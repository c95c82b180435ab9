"""Reporting on the rows of a file.

Owns the way from files to a Report. Must not know the command line, nor what a report
says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derand._core.files import PathLike, require_writable
from derand._core.text import Facts, quote_short
from derand.app import Spell, Summary, quote_parameter
from derand.app.jobs._classifiers import load_estimator, refuse_other_task
from derand.app.jobs._request import read_named, read_request, require_domains
from derand.app.settings import ReportFileSettings, fill_settings
from derand.fitted import answers_numbers, choose_radius
from derand.report import Report, require_format
from derand.storage import mark_file
from derand.tables import MatchedFile, match_file
from derand.threat import Threat
from derand.threat_text import read_threat

if TYPE_CHECKING:
    import pyarrow as pa

    from derand.estimators import CertifiedClassifier, CertifiedRegressor

_MOST_NAMED = 20


def report_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    settings: ReportFileSettings | None = None,
    *,
    spell: Spell = quote_parameter,
    keep: Callable[[Any], None] | None = None,
    **options: object,
) -> Summary:
    """Certify the rows of a CSV or Parquet file and write a Report about them.

    Parameters
    ----------
    model : path-like
        A saved classifier or regressor.
    data : path-like
        Columns are matched as for `certify_file`.
    output : path-like
        .html, .pdf, .md, .tex or .json; of one page .html or .pdf.
    settings : ReportFileSettings or None
        What is asked for; None is the model's own.
    spell : callable
        How a setting is named in errors.
    keep : callable or None
        Given the report as a dict (`Report.to_dict`).
    **options
        Fields of ReportFileSettings, which replace those of `settings`.

    Returns
    -------
    dict
        Where the report is, and its guarantee.
        `comparison`: two models side by side in a few sentences; None where there is one.
        `warnings`: what a reader must know first: that the model is worth no more than a constant answer.
    """
    start, asked = time.perf_counter(), fill_settings(ReportFileSettings, settings, options)
    others = {"other model": asked.compare, "training data": asked.train}
    files = {"model": model, "data": data, **{what: path for what, path in others.items() if path is not None}}
    require_format(output, one_page=asked.one_page)
    require_writable(output, *files.values())
    estimator = load_estimator(model)
    refuse_other_task(asked, estimator, model, spell)
    if asked.train is not None and asked.target is None:
        raise ValueError("The training table needs the target, to train the baseline: name it.")
    classes = None if answers_numbers(estimator) else estimator.classes_
    source = match_file(data, estimator.encoding_, target=asked.target, classes=classes)
    copied = dict.fromkeys([*asked.subgroups, *([] if asked.identity is None else [asked.identity])])
    given: Facts = {"marks": {what: mark_file(path) for what, path in files.items()}}
    if answers_numbers(estimator):
        given |= _ask_regressor(estimator, source, asked)
        table = source.read_all(list(copied))
        require_domains(source, given["threat"], table, 1)
    else:
        given |= _ask_classifier(estimator, source, asked)
        table = source.read_all(list(copied))
        given["protected"] = list(asked.protected) or None
    given["subgroups"] = _list_subgroups(asked.subgroups, source, table) or None
    rows, truth = source.split(table, first_row=1)
    n_rows, unseen, empty = table.num_rows, source.count_unseen(table), source.find_empty(table)
    with source.name_gaps(table, first_row=1):
        report = Report(
            estimator,
            rows,
            truth,
            title=asked.title or f"{'Certificate' if classes is not None else 'Interval'} report: {Path(data).name}",
            feature_names=source.names,
            row_names=None if asked.identity is None else table.column(asked.identity).to_pylist(),
            rule=asked.rule,
            noise=asked.noise,
            what_if=asked.what_if,
            max_rows=asked.rows,
            configuration=asked.configuration,
            notes=asked.notes,
            left_out=asked.left_out or tell_unread(source.not_used),
            **given,
        )
        del rows, table  # the report has them as the model reads them: of a long table, half of all memory
        report.write(output, one_page=asked.one_page)
        if asked.page is not None:
            report.write(asked.page, one_page=True)
    found = report.to_dict()
    if keep is not None:
        keep(found)
    banner, compared = (None, None) if classes is None else (found["banner"], found["comparison"])
    told = [] if banner is None else [banner["text"]]
    is_warning = banner is not None and banner["level"] == "warning"
    return {
        "output": os.fspath(output),
        "rows": n_rows,
        "guarantee": found["guarantee"]["paragraph"],
        "comparison": None if compared is None else compared["sentence"],
        "warnings": told if is_warning else [],
        "notes": [] if is_warning else told,
        "unseen_categories": unseen,
        "empty_columns": sorted(empty),
        "seconds": time.perf_counter() - start,
    }


def _ask_classifier(
    classifier: CertifiedClassifier, source: MatchedFile, asked: ReportFileSettings
) -> dict[str, object]:
    """What a report on a classifier is asked for beside what is common to all."""
    threat, l0 = asked.threat, asked.l0
    if asked.whole:
        threat, l0 = read_request(classifier, source.names, l0, threat, {"whole": True}), None
    if threat is not None and not isinstance(threat, Threat):
        threat = read_threat(threat, source.names, classifier.units)
    given: dict[str, object] = {"radius": asked.radius, "l0": l0, "threat": threat, "class_names": asked.class_names}
    if asked.train is not None:
        known = match_file(asked.train, classifier.encoding_, target=asked.target, classes=classifier.classes_)
        training = known.read_all()
        known.require_finite(training)
        given["X_train"], given["y_train"] = known.split(training, first_row=1)
    if asked.compare is not None:
        other = load_estimator(asked.compare)
        if answers_numbers(other):
            raise ValueError(
                f"{asked.compare} holds a regressor, {type(other).__name__}, whose answers are numbers: it cannot "
                "stand beside answers that are classes."
            )
        given |= {"compare": other, "compare_name": Path(asked.compare).name}
    return given


def _ask_regressor(regressor: CertifiedRegressor, source: MatchedFile, asked: ReportFileSettings) -> dict[str, object]:
    """What a report on a regressor is asked for beside what is common to all."""
    _, named = read_named(regressor, source, asked.l0, asked.threat, {"whole": True} if asked.whole else {})
    size = choose_radius(regressor, named, asked.radius)
    return {"radius": size, "threat": named, "tolerance": asked.tolerance}


def _list_subgroups(names: Sequence[str], source: MatchedFile, table: pa.Table) -> dict[str, object]:
    """The columns of subgroups: features by name, others by their values."""
    return {name: name if name in source.names else table.column(name).to_pylist() for name in names}


def tell_unread(names: Sequence[str], reasons: Mapping[str, str] | None = None) -> list[str]:
    """A sentence on columns of a table that the model does not read, with reasons where they are known."""
    known = reasons or {}
    told = [f"{quote_short(name)}{f' ({known[name]})' if known.get(name) else ''}" for name in names]
    if len(told) > _MOST_NAMED:
        told = [*told[:_MOST_NAMED], f"{len(told) - _MOST_NAMED:,} more"]
    return [f"The model does not read these columns of the table: {', '.join(told)}."] if told else []
