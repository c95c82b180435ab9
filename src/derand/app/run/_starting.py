"""The first `derand.toml` of a table: what was found in its columns, and every usual key with a word on what it does.

Owns the text of the file. Must not know how it is read (`_config`) or run (`_running`).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from derand import __version__
from derand._core.files import PathLike, replace_when_done, require_writable
from derand._core.text import format_percent, format_short, quote_short
from derand.app import Summary
from derand.app.jobs._classifiers import choose_model, make_estimator
from derand.app.jobs._copying import NUMBER_COLUMNS, RESULT_COLUMNS
from derand.app.jobs._tasks import list_trainers, require_task
from derand.app.jobs._training_table import TrainingData, read_training_data
from derand.app.run._config import CONFIG, SECTIONS
from derand.app.settings import CLASSES, InitSettings, RunSettings, TrainSettings, fill_settings
from derand.estimators.tuning import tune
from derand.tables import ColumnKind, ColumnUse, TableFile, inspect_file

HOLDOUT = 0.25
RARE = 0.2
"""Below this share of rows a class is told to be rare."""
_COMMENT = 34
"""Where comments behind values begin."""
_SHOWN = 12
_USUAL = 0.25
_TUNED_ROWS, _TUNED_COLUMNS, _TUNED_CLASS, _TUNED_FOLDS = 600, 100, 10, 3
"""Rows on which radii are compared, the most columns and the fewest rows of a class with which they are, and folds."""
_TUNED_RADII, _TUNED_PENALTY = (0.0, 0.1, 0.25, 0.5), 0.1
_NAMED_GROUPS = 5


def init_file(
    data: PathLike,
    target: str | None = None,
    output: PathLike = CONFIG,
    settings: InitSettings | None = None,
    **options: object,
) -> Summary:
    """Look at a table and write a commented `derand.toml` for it, which `run_file` runs.

    Parameters
    ----------
    data : path-like
        CSV or Parquet.
    target : str or None
        Column to be predicted; where it is None, the error lists the columns.
    output : path-like
        Where to write it.
    settings : InitSettings or None
        What is asked for.
    **options
        Fields of InitSettings, which replace those of `settings`.

    Returns
    -------
    dict
        What was found in the table.
        `radius`, `radius_reason`: what is proposed to train for, and what it costs.
        `used`: columns to learn from.
        `left_out`: columns that are left out, with the reason.
        `doubts`: what is doubtful about columns that are used.
    """
    asked = fill_settings(InitSettings, settings, options)
    test = asked.test
    if Path(output).exists() and not asked.force:
        raise ValueError(f"{os.fspath(output)} exists: name another file, or replace it by --force (`force=True`).")
    require_writable(output, data, *([] if test is None else [test]))
    file = inspect_file(data)
    if target is None:
        raise ValueError(_ask_for_target(file))
    require_task(asked.task)
    columns = TrainSettings(task=asked.task, categorical=asked.categorical, ignored=asked.ignored)
    read = read_training_data(data, target, columns)
    if test is not None:
        inspect_file(test).require_columns(read.rows.column_names)
    places = [None if one is None else _find_relative(one, output) for one in (data, test)]
    proposal = propose_radius(read)
    text = "\n".join(_write_sections(places, target, read, asked, _find_identity(file, read, target), proposal)) + "\n"
    with replace_when_done(output) as draft:
        draft.write_text(text, encoding="utf-8")
    return {
        "output": os.fspath(output),
        "rows": len(read.labels),
        "target": target,
        "task": read.task.name,
        "task_reason": read.task.reason,
        "classes": _count_classes(read) if read.task.name == CLASSES else None,
        "used": list(read.rows.column_names),
        "left_out": _list_left_out(read),
        "doubts": _list_doubts(read),
        "radius": proposal.radius,
        "radius_reason": proposal.reason,
    }


class Proposal(NamedTuple):
    """A radius to train for, and what it costs."""

    radius: float
    reason: str


def propose_radius(read: TrainingData) -> Proposal:
    """A radius that costs little accuracy, by a quick tuning on some rows; a usual one where that says nothing."""
    n_rows, n_columns = len(read.labels), len(read.rows.column_names)
    if read.task.name != CLASSES or n_columns > _TUNED_COLUMNS:
        return Proposal(_USUAL, "a usual one, not tried: compare radii by `derand tune`")
    some = np.sort(np.random.default_rng(0).permutation(n_rows)[:_TUNED_ROWS])
    labels = read.labels[some]
    if np.unique(labels, return_counts=True)[1].min(initial=n_rows) < _TUNED_CLASS:
        return Proposal(_USUAL, "a usual one, not tried: some class has few rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of radii at which the model collapses: they are not proposed
        estimator = make_estimator(choose_model(), {"regularization": _TUNED_PENALTY})
        found = tune(estimator, read.rows.take(some), labels, values=_TUNED_RADII, cv=_TUNED_FOLDS)
    where = f"{some.size:,} rows, {_TUNED_FOLDS} folds"
    at = found.chosen
    if at is None or not found.values[at]:
        return Proposal(0.0, f"none: a larger one costs more than a point of accuracy, or certifies little ({where})")
    cost = 100 * float(found.natural[0] - found.natural[at])
    costs = f"costs {cost:.1f} points of accuracy" if cost > 0 else "costs no accuracy"
    certified = format_percent(float(found.own_certified[at, at]))
    return Proposal(float(found.values[at]), f"{costs}, certifies {certified} of rows ({where})")


def _ask_for_target(file: TableFile) -> str:
    """What to do where no target is named: the columns, those of two values first."""
    table = file.read()
    two = [name for name in file.names if len(table.column(name).drop_null().unique()) == 2]
    found = f"; of two values: {', '.join(map(quote_short, two[:_SHOWN]))}" if two else ""
    more = ", ..." if len(file.names) > _SHOWN else ""
    return (
        f"Say which column is to be predicted, such as --target {quote_short((two or file.names)[-1])}: {file.label} "
        f"has the columns {', '.join(map(quote_short, file.names[:_SHOWN]))}{more}{found}."
    )


def _find_identity(file: TableFile, read: TrainingData, target: str) -> str | None:
    """The first column without use for training whose cells all differ: it says which row is which."""
    left = [name for name in _list_left_out(read) if name not in (target, *RESULT_COLUMNS, *NUMBER_COLUMNS)]
    if not left:
        return None
    table = file.read()
    return next((name for name in left if len(table.column(name).drop_null().unique()) == table.num_rows), None)


def _find_relative(path: PathLike, output: PathLike) -> str:
    """A path from the folder of the configuration, with slashes, which every system reads."""
    try:
        return Path(os.path.relpath(path, Path(output).parent)).as_posix()
    except ValueError:  # another drive of Windows
        return Path(path).absolute().as_posix()


def _count_classes(read: TrainingData) -> dict[str, int]:
    names, counts = np.unique(read.labels, return_counts=True)
    return dict(zip(map(str, names.tolist()), counts.tolist(), strict=True))


def _list_left_out(read: TrainingData) -> dict[str, str]:
    return {str(one.name): one.reason or "" for one in read.checks if one.use is ColumnUse.IGNORED}


def _list_doubts(read: TrainingData) -> dict[str, list[str]]:
    used = [one for one in read.checks if one.use is not ColumnUse.IGNORED]
    return {str(one.name): list(one.doubts) for one in used if one.doubts}


def _write_sections(
    places: Sequence[str | None],
    target: str,
    read: TrainingData,
    asked: InitSettings,
    identity: str | None,
    proposal: Proposal,
) -> Iterable[str]:
    """The lines of the file."""
    yield f"# What `derand run` does: train, certify, audit, report. Begun by `derand init` of derand {__version__}."
    yield "# A line that begins with # does nothing: take the # away where you want it. Paths count from this file."
    yield from _write_data(places, target, read, asked)
    yield from _write_model(read, proposal)
    yield from _write_threat(read)
    yield from _write_steps(read, target, identity)


def _write_data(places: Sequence[str | None], target: str, read: TrainingData, asked: InitSettings) -> Iterable[str]:
    train, test = places
    yield "\n[data]"
    yield _write("data.train", train, f"{len(read.labels):,} rows to learn from, CSV or Parquet")
    yield _write("data.target", target, f"the column to be predicted: {_describe_target(read)}")
    if test is None:
        yield _write("data.holdout", HOLDOUT)
        yield _write("data.seed", 0)
        yield _write_off("data.test", "new.csv")
    else:
        yield _write("data.test", test, "rows to certify; with the target, errors are measured as well")
    if asked.task is not None or read.task.other is not None:
        name, other = read.task.name, "" if read.task.other is None else f', or "{read.task.other}"'
        yield _write("data.task", name, f"what the target holds{other}: {read.task.reason}")
    yield _write("data.ignored", list(asked.ignored))
    yield _write("data.categorical", list(asked.categorical))
    dates = [str(one.name) for one in read.checks if one.kind is ColumnKind.DATE]
    if dates:
        yield _write_off("data.dates", dates)
    for name, reason in _list_left_out(read).items():
        if name not in asked.ignored:
            yield f"# left out by itself: {_quote(name)}, {' '.join(reason.split())}"
    gaps = [f"{_quote(str(one.name))} ({one.missing:,})" for one in read.checks if one.missing]
    for name, doubts in _list_doubts(read).items():
        yield from (f"# look at {_quote(name)}: it {' '.join(doubt.split())}" for doubt in doubts)
    if gaps:
        yield f"# missing numbers, which are a value of their own: {', '.join(gaps[:_SHOWN])}"


def _describe_target(read: TrainingData) -> str:
    if read.task.name != CLASSES:
        return f"a number from {format_short(read.labels.min())} to {format_short(read.labels.max())}"
    counts = [f"{' '.join(name.split())} ({count:,})" for name, count in _count_classes(read).items()]
    return ", ".join(counts[:_SHOWN]) + (", ..." if len(counts) > _SHOWN else "")


def _write_model(read: TrainingData, proposal: Proposal) -> Iterable[str]:
    others = ", ".join(one for one in list_trainers(read.task.name) if one != choose_model())
    yield "\n[model]"
    yield _write("model.trainer", choose_model(), f"or {others}")
    yield _write("model.radius", proposal.radius, more=f"; {proposal.reason}")
    if read.task.name == CLASSES:
        counts = _count_classes(read)
        rarest = min(counts, key=lambda name: counts[name])
        share = counts[rarest] / len(read.labels)
        if share < RARE:
            rare = " ".join(rarest.split())
            yield f"# {format_percent(share)} of the rows are {rare}: where they must be found, use this:"
        yield _write_off("model.class_weight", "balanced")
        if len(counts) == 2:
            is_positive, positive = list(counts)[1] == rarest, " ".join(list(counts)[1].split())
            costs = {"false_negative": 5 if is_positive else 1, "false_positive": 1 if is_positive else 5}
            yield _write_off("model.cost", costs, more=f"; “{positive}” is the positive answer")
    yield _write_off("model.regularization", "cv")
    numbers = [str(one.name) for one in read.checks if one.use is ColumnUse.NUMERICAL]
    if numbers:
        yield _write_off("model.monotone", {numbers[0]: "increasing"})
    yield _write_off("model.file", "model.json")


def _write_threat(read: TrainingData) -> Iterable[str]:
    categories = any(one.use is ColumnUse.CATEGORICAL for one in read.checks)
    numbers = [str(one.name) for one in read.checks if one.use is ColumnUse.NUMERICAL]
    yield "\n[threat]   # what may change, in training and in certificates; see docs/threats.md"
    yield _write("threat.norm", 2, 'how changes of all numbers are added up: 1, 2, "inf"; "none": limits alone')
    if categories:
        yield _write("threat.l0", 0, "how many categorical columns may change as well")
    yield _write_off("threat.frozen", [str(one) for one in read.rows.column_names[:1]], "columns that cannot change")
    if numbers:
        yield _write_off(
            "threat.limits", {numbers[0]: "5%"}, 'by how much a number may change: "5%", 500 or "0:30" (down:up)'
        )


def _write_steps(read: TrainingData, target: str, identity: str | None) -> Iterable[str]:
    is_classes, can_audit = read.task.name == CLASSES, find_spec("flint") is not None
    yield "\n[certify]"
    yield _write("certify.output", "certified.csv")
    write = _write_off if identity is None else _write
    yield write("certify.id", identity or "...")
    yield _write_off("certify.keep", [target])
    yield _write("certify.radii", [0, 0.25, 0.5, 1]) if is_classes else _write_off("certify.radius", 0.25)
    write, mark = (_write, "") if can_audit else (_write_off, "# ")
    yield f"\n{mark}[audit]   # certificates proven again by other code" + (
        "" if can_audit else "; needs derand[audit]"
    )
    yield write("audit.rows", 200)
    yield write("audit.seed", 0)
    yield "\n[report]"
    yield _write("report.output", "report.html")
    yield _write_off("report.title", "...")
    yield _write_off("report.one_page", True)
    groups = [str(one.name) for one in read.checks if one.use is ColumnUse.CATEGORICAL]
    write = _write if groups else _write_off
    yield write("report.subgroups", groups[:1] or ["..."], more=_name_more(groups[1:]))
    if is_classes:
        yield _write_off("report.radius", 0.25)
        yield _write("report.compare", True)
    yield "\n[output]"
    yield _write("output.folder", RunSettings().folder)


def _name_more(columns: list[str]) -> str:
    """Further columns that a key could name, in a comment."""
    if not columns:
        return ""
    more = ", ..." if len(columns) > _NAMED_GROUPS else ""
    return f"; there are also {', '.join(_write_value(name) for name in columns[:_NAMED_GROUPS])}{more}"


def _write(place: str, value: object, comment: str | None = None, more: str = "", sign: str = "") -> str:
    """A key, its value, and a word on it, by default that of its option; `place` is its section and its name."""
    section, key = place.split(".")
    words = (SECTIONS[section][key].comment if comment is None else comment) or ""
    return f"{f'{sign}{key} = {_write_value(value)}':<{_COMMENT - 1}} # {words}{more}"


_write_off = partial(_write, sign="# ")
"""The same as a comment, to be used by taking the sign away."""


def _write_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_write_key(key)} = {_write_value(one)}' for key, one in value.items())}}}"
    return _quote(value) if isinstance(value, str) else repr(value)


def _write_key(name: str) -> str:
    """A name of a column as a key of TOML: bare where that is allowed."""
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _quote(name)


def _quote(text: str) -> str:
    """Text in quotes, as TOML has it: what JSON has, but for one sign."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
