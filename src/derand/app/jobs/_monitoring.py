"""Watching a model on files of rows, one batch each.

Owns the way from files to a Monitor. Must not know the command line, nor what is counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derand._core.files import PathLike, require_writable
from derand._core.origin import Fitted
from derand._core.text import Facts
from derand.app import Summary
from derand.app.jobs._classifiers import load_estimator
from derand.app.jobs._request import read_named, require_domains
from derand.app.settings import MonitorSettings, fill_settings
from derand.fitted import answers_numbers
from derand.report import Monitor
from derand.storage import mark_file
from derand.tables import match_file


def monitor_file(
    model: PathLike,
    data: Sequence[PathLike],
    output: PathLike,
    settings: MonitorSettings | None = None,
    **options: object,
) -> Summary:
    """Compare what holds of later batches of rows with the first one, and write a page about it.

    Parameters
    ----------
    model : path-like
        A saved classifier.
    data : sequence of path-like
        CSV or Parquet files, the first of which the others are compared with. Columns are matched as for
        `certify_file`.
    output : path-like
        .html, .md or .json.
    settings : MonitorSettings or None
        What is asked for; None is the model's own.
    **options
        Fields of MonitorSettings, which replace those of `settings`.

    Returns
    -------
    dict
        Where the page is, and of each batch its name, rows, `held` (the share of answers that hold, with its interval)
        and `alarm`.
    """
    start, asked = time.perf_counter(), fill_settings(MonitorSettings, settings, options)
    others = [] if asked.train is None else [asked.train]
    require_writable(output, model, *data, *others)
    twice = {os.fspath(path) for path in data if [os.fspath(one) for one in data].count(os.fspath(path)) > 1}
    if twice:
        raise ValueError(f"Each batch must be a file of its own, got {min(twice)} more than once.")
    estimator = load_estimator(model)
    if answers_numbers(estimator):
        raise ValueError(
            f"{os.fspath(model)} holds a regressor, whose answers are numbers: `monitor` is for classes. Certify each "
            "batch, and compare the widths."
        )
    batches: Facts = {}
    labels: Facts = {}
    groups: Facts = {name: {} for name in asked.subgroups}
    threat: Any = None
    for name, path in zip(_name_files(data), data, strict=True):
        source = match_file(
            path, estimator.encoding_, target=asked.target, classes=estimator.classes_, copied=asked.subgroups
        )
        _, threat = read_named(estimator, source, None, asked.threat, asked.changes)
        table = source.read_all(list(asked.subgroups))
        require_domains(source, threat, table, 1)
        batches[name], labels[name] = source.split(table, first_row=1)
        for title in asked.subgroups:
            groups[title][name] = title if title in source.names else table.column(title).to_pylist()
    found = Monitor(
        estimator,
        batches,
        y=None if asked.target is None else labels,
        threat=threat,
        radius=asked.radius,
        rule=asked.rule,
        noise=asked.noise,
        subgroups={title: _join_group(parts) for title, parts in groups.items()} or None,
        X_train=None if asked.train is None else _read_training(asked.train, estimator),
        rate=asked.rate,
        title=asked.title or f"Monitor: {Path(model).name}",
        marks={"model": mark_file(model), **{name: mark_file(path) for name, path in zip(batches, data, strict=True)}},
    )
    found.write(output)
    told = found.to_dict()
    return {
        "output": os.fspath(output),
        "sentence": told["sentence"],
        "rate": told["rate"],
        "alarms": found.alarms,
        "batches": [
            {
                "name": one["name"],
                "rows": one["n_rows"],
                "held": one["measures"][0]["share"],
                "held_text": one["measures"][0]["text"],
                "outside": one["outside"],
                "alarm": one["alarm"],
                "sentence": one["sentence"],
            }
            for one in told["batches"]
        ],
        "seconds": time.perf_counter() - start,
    }


def _read_training(path: PathLike, estimator: Fitted) -> Any:
    """The rows of the training table."""
    source = match_file(path, estimator.encoding_, classes=None)
    return source.split(source.read_all(), first_row=1)[0]


def _name_files(data: Sequence[PathLike]) -> list[str]:
    """The names of files, in full where two are alike."""
    short = [Path(path).name for path in data]
    return short if len(set(short)) == len(short) else [os.fspath(path) for path in data]


def _join_group(parts: Facts) -> Any:
    """A feature by its name, or one group per row of each batch."""
    first = next(iter(parts.values()))
    return first if isinstance(first, str) else parts
