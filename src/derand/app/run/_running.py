"""All of a `derand.toml`, one step after the other: train, certify, audit, report, and the record of how it was done.

Owns the order of steps, what is handed from one to the next, and when results of before may be replaced. Must not know
how a step does its work, what the file may say (`_config`), nor the command line.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from derand import __version__
from derand._core.files import (
    PathLike,
    fill_when_done,
    is_half_filled,
    replace_when_done,
    require_folder,
    restore_folder,
)
from derand._core.text import Facts, as_plain_json
from derand.app import Summary
from derand.app.jobs._auditing import audit_file
from derand.app.jobs._certifying import certify_file
from derand.app.jobs._classifiers import choose_model, load_estimator, make_estimator
from derand.app.jobs._reporting import report_file, tell_unread
from derand.app.jobs._request import read_named
from derand.app.jobs._tasks import require_task, require_trainer
from derand.app.jobs._training import list_doubts, train_file
from derand.app.jobs._training_table import TrainingData, read_training_data
from derand.app.run._config import CONFIG, VERBS, RunConfig, read_config
from derand.app.run._splitting import choose_held_out, split_file
from derand.app.settings import (
    CLASSES,
    NUMBER,
    AuditSettings,
    CertifySettings,
    ReportFileSettings,
    RunSettings,
    TrainSettings,
    list_keys,
)
from derand.app.values import EVIDENCE, MODEL, RECORD
from derand.fitted import answers_numbers
from derand.report import to_evidence
from derand.storage import mark_file, read_json
from derand.tables import inspect_file, match_file
from derand.threat_text import read_threat

SCHEMA = "derand/run/1"

Told = Callable[[int, int, str], None]
"""Told how many steps are done, of how many, and what is being done."""


def run_file(path: PathLike = CONFIG, *, force: bool = False, told: Told = lambda done, total, text: None) -> Summary:
    """Do all that a `derand.toml` says: train, certify, audit, report.

    Results appear in the folder that it names when all steps are done, or not at all, with the record `run.json`:
    checksums of what was read and written, the configuration, versions and figures.

    Parameters
    ----------
    path : path-like
        The configuration; `init_file` writes one. Paths in it count from its own folder.
    force : bool
        Replace results in the folder that another configuration made.
    told : callable
        Told how many steps are done, of how many, and what is being done.

    Returns
    -------
    dict
        A dict, as it is written to `run.json`.
        `changed`: inputs that are not what they were when the same configuration was run before.
        `task`: "classes" or "number".
        `files`: what was written there, but for the record itself.
    """
    start, config = time.perf_counter(), read_config(path)
    restore_folder(config.folder)
    task = _check(config, force)["task"]
    inputs: list[Summary] = [_mark(one, config) for one in config.inputs.values()]
    changed = _find_changed(config, inputs)
    with fill_when_done(config.folder, RECORD) as draft:
        with _name_folder(config.folder, draft), tempfile.TemporaryDirectory(dir=draft, prefix=".") as work:
            run = _Run(config, task, draft, Path(work), told)
            steps = run.do_all()
        summary: Summary = {
            "schema": SCHEMA,
            "derand": __version__,
            "python": platform.python_version(),
            "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "configuration": {"file": config.path.name, "sha256": config.sha256, "settings": config.settings},
            "inputs": inputs,
            "changed": changed,
            "task": task,
            "held_out": run.held_out,
            "steps": steps,
        }
        if run.report is not None:
            (draft / EVIDENCE).write_text(to_evidence(run.report, summary), encoding="utf-8")
        summary |= {
            "folder": _relate(config.folder, config),
            "files": [{"file": one.name, "sha256": mark_file(one).sha256} for one in sorted(draft.iterdir())],
            "seconds": time.perf_counter() - start,
        }
        summary["sha256"] = _hash_record(summary)
        with replace_when_done(draft / RECORD) as record:
            text = json.dumps(as_plain_json(summary), indent=2, allow_nan=False, ensure_ascii=False)
            record.write_text(text + "\n", encoding="utf-8")
    return summary


def check_run(path: PathLike = CONFIG, *, force: bool = False) -> Summary:
    """Look whether a `derand.toml`, its data and results that it has made fit together, and write nothing.

    Parameters
    ----------
    path, force
        As for `run_file`; with `force`, results are not compared with the checksums of their record.

    Returns
    -------
    dict
        What would be done. What is wrong is an error.
        `has_target`: whether the rows to be certified have a target, by which errors are measured.
        `warnings`: what is doubtful about columns that would be learnt from.
        `changed`: inputs that are not what they were when the same configuration was run before.
        `unchanged_results`: files in the folder that have the checksums of the record.
    """
    config = read_config(path)
    found = _check(config, force)
    found["changed"] = _find_changed(config, [_mark(one, config) for one in config.inputs.values()])
    if is_half_filled(config.folder):
        told = f"A run was stopped while it moved results into {config.folder}: the next one puts back what was there."
        found["warnings"].append(told)
    elif not force:
        found["unchanged_results"] = _compare_results(config)
    return found


def _check(config: RunConfig, force: bool) -> Summary:
    for key, path in config.inputs.items():
        if not path.is_file():
            raise FileNotFoundError(f"{config.path}: {key} is {path}, which does not exist.")
    if config.does("audit") and find_spec("flint") is None:
        raise ValueError(
            f"{config.path}: [audit] needs python-flint, which the extra `audit` installs: install it, or leave the "
            "section out."
        )
    data = config.section("data")
    task, doubts = (_check_model(config), []) if config.find_input("model", "file") else _check_training(config)
    _refuse_other_task(config, task)
    rows = config.find_input("data", "test") or config.find_input("data", "train")
    assert rows is not None  # `read_config` saw to that
    table = inspect_file(rows)
    certify = config.ask(CertifySettings)
    copied = [*([] if certify.identity is None else [certify.identity]), *certify.keep]
    table.require_columns([*copied, *config.ask(ReportFileSettings).subgroups])
    require_folder(config.folder)
    if not force and not is_half_filled(config.folder):
        _refuse_others(config)
    return {
        "configuration": os.fspath(config.path),
        "task": task,
        "steps": config.steps,
        "inputs": [os.fspath(path) for path in config.inputs.values()],
        "has_target": data.get("target") in table.names,
        "folder": os.fspath(config.folder),
        "files": [*(["held_out" + _find_ending(rows)] if "holdout" in data else []), *config.outputs.values(), RECORD],
        "warnings": doubts,
        "changed": [],
        "unchanged_results": 0,
    }


def _check_training(config: RunConfig) -> tuple[str, list[str]]:
    """Look whether a model can be trained as asked; what the target holds, and which columns are doubtful."""
    from derand.estimators import check_parameters

    read, asked = _read_training(config), config.ask(TrainSettings)
    name, n_classes = asked.model or choose_model(), len(set(read.labels.tolist()))
    require_trainer(name, read.task, config.section("data")["target"], n_classes, _spell)
    estimator = make_estimator(name, asked.list_parameters(), asked.scaling, task=read.task.name, spell=_spell)
    check_parameters(estimator, n_classes)
    if config.threat is not None:
        names = read.rows.column_names
        read_threat(config.threat, names).name_columns(names)
    test = config.find_input("data", "test")
    if test is not None:
        inspect_file(test).require_columns(read.rows.column_names)
    return read.task.name, list_doubts(read)


def _read_training(config: RunConfig) -> TrainingData:
    asked, path = config.ask(TrainSettings), config.find_input("data", "train")
    assert path is not None  # `read_config` saw to that
    require_task(asked.task, _spell)
    return read_training_data(path, config.section("data")["target"], asked)


def _check_model(config: RunConfig) -> str:
    """Look whether a model fits its rows and the threat; what it answers."""
    path, rows = config.find_input("model", "file"), config.find_input("data", "test")
    assert path is not None  # `read_config` saw to that
    assert rows is not None
    estimator = load_estimator(path)
    is_number = answers_numbers(estimator)
    classes = None if is_number else estimator.classes_
    source = match_file(rows, estimator.encoding_, target=_find_target(config, rows), classes=classes)
    read_named(estimator, source, None, config.threat, {})
    return NUMBER if is_number else CLASSES


def _find_target(config: RunConfig, rows: PathLike) -> str | None:
    """The target, where these rows have it: new rows may not."""
    target: str | None = config.section("data").get("target")
    return target if target in inspect_file(rows).names else None


def _find_ending(data: PathLike) -> str:
    """How names of parts of a table end."""
    return ".parquet" if inspect_file(data).delimiter is None else ".csv"


def _refuse_other_task(config: RunConfig, task: str) -> None:
    """Refuse keys that are for answers of the other kind."""
    whom, what = ("numbers", "classes") if task == CLASSES else ("classes", "a number")
    for section in config.settings:
        for verb in VERBS:
            for key, option in list_keys(verb, section).items():
                if option.task not in (None, task) and key in config.section(section):
                    raise ValueError(
                        f"{config.path}: [{section}] {key} is for {whom}, and the answer is {what}: leave it out."
                    )


def _spell(parameter: str) -> str:
    """The key that sets a parameter."""
    return {"model": "[model] trainer", "task": "[data] task"}.get(parameter, f"[model] {parameter}")


def _mark(path: Path, config: RunConfig) -> Summary:
    return {"file": _relate(path, config), "sha256": mark_file(path).sha256}


def _relate(path: Path, config: RunConfig) -> str:
    """A path that counts from the folder of the configuration: a record is moved, and says nothing of the machine."""
    try:
        return os.path.relpath(path, config.path.parent)
    except ValueError:  # another drive of Windows
        return path.name


def _read_record(config: RunConfig) -> Facts | None:
    """The record of what stands in the folder; None where there is none that can be read."""
    try:
        record = read_json(config.folder / RECORD)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def _is_same(record: Mapping[str, object], config: RunConfig) -> bool:
    """Whether a record is of the same settings, whatever the file's comments."""
    configuration = record.get("configuration")
    return isinstance(configuration, dict) and configuration.get("settings") == as_plain_json(config.settings)


def _refuse_others(config: RunConfig) -> None:
    """Refuse to replace what another configuration made, or nobody knows who."""
    record = _read_record(config)
    if record is not None and _is_same(record, config):
        return
    taken = [name for name in (RECORD, *config.outputs.values()) if (config.folder / name).exists()]
    if taken:
        whose = "another configuration" if record is not None else "something else"
        raise ValueError(
            f"{config.folder / taken[0]} was made by {whose}: name another [output] folder in {config.path}, or "
            "replace it by --force (`force=True`)."
        )


def _find_changed(config: RunConfig, inputs: list[Summary]) -> list[str]:
    record = _read_record(config)
    if record is None or not _is_same(record, config) or not isinstance(record.get("inputs"), list):
        return []
    before = [one for one in record["inputs"] if isinstance(one, dict)]
    known = {one.get("file"): one.get("sha256") for one in before}
    return [one["file"] for one in inputs if known.get(one["file"], one["sha256"]) != one["sha256"]]


def _hash_record(record: Mapping[str, object]) -> str:
    """The checksum of all that a record says beside it: of JSON text with sorted keys, without spaces, in ASCII."""
    said = as_plain_json({name: value for name, value in record.items() if name != "sha256"})
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def _compare_results(config: RunConfig) -> int:
    """Refuse results that are not what their record says, and a record that was changed; how many files it names."""
    record = _read_record(config)
    if record is None:
        return 0
    if record.get("sha256") != _hash_record(record):
        raise ValueError(
            f"{config.folder / RECORD} does not match its own checksum: it was damaged, or edited by hand. Put the "
            "file back, or run `derand run` again."
        )
    try:
        sums = {Path(one["file"]).name: one["sha256"] for one in record["files"]}
    except (TypeError, KeyError):
        raise ValueError(f"{config.folder / RECORD} is damaged: run `derand run` again.") from None
    for name, sha256 in sums.items():
        path = config.folder / name
        if not path.is_file() or mark_file(path).sha256 != sha256:
            what = "has another checksum than" if path.is_file() else "is missing, but stands in"
            raise ValueError(f"{path} {what} {RECORD}: put the file back, or run `derand run` again.")
    return len(sums)


@contextmanager
def _name_folder(folder: Path, draft: Path) -> Iterator[None]:
    """Let errors name files where they were to be, not where they are being made."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        raise ValueError(str(error).replace(str(draft), str(folder))) from None


class _Run:
    """The steps of one run; results go to `draft`, what is needed on the way to `work`."""

    def __init__(self, config: RunConfig, task: str, draft: Path, work: Path, told: Told) -> None:
        self._config, self._task, self._draft, self._told = config, task, draft, told
        self.held_out: Summary | None = None
        self.report: Summary | None = None
        self._trained: Summary | None = None
        self._train = config.find_input("data", "train")
        test = config.find_input("data", "test")
        if test is None:
            told(0, 1, "holding rows out")
            self._train, test = self._hold_out(work)
        self._test, self._target = test, _find_target(config, test)
        self._model = config.find_input("model", "file") or draft / MODEL

    def _hold_out(self, work: Path) -> tuple[Path, Path]:
        """Two parts of the one table."""
        asked, read = self._config.ask(RunSettings), _read_training(self._config)
        share, seed, whole = asked.holdout, asked.seed, self._config.find_input("data", "train")
        assert share is not None  # `read_config` saw to that
        assert whole is not None
        ending = _find_ending(whole)
        train, test = work / f"train{ending}", self._draft / f"held_out{ending}"
        held = split_file(whole, choose_held_out(read.labels, self._task, share, seed), train, test)
        self.held_out = {"file": test.name, "rows": int(held.size), "share": share, "seed": seed}
        return train, test

    def do_all(self) -> Summary:
        """Every step that is asked for, in order."""
        doing: dict[str, tuple[str, Callable[[Callable[[int], None]], object]]] = {
            "train": ("training", self._do_training),
            "certify": ("certifying", self._do_certifying),
            "audit": ("auditing", self._do_auditing),
            "report": ("writing the report", self._do_report),
        }
        wanted, done = self._config.steps, Facts()
        for at, step in enumerate(wanted):
            words, do = doing[step]
            self._told(at, len(wanted), words)
            done[step] = self._place(do(_count(partial(self._told, at, len(wanted)), words)))
        self._told(len(wanted), len(wanted), "done")
        steps: Summary = done
        return steps

    def _place(self, told: object) -> object:
        """The same with files where they will be."""
        if isinstance(told, Mapping):
            return {key: self._place(value) for key, value in told.items()}
        if isinstance(told, list):
            return [self._place(value) for value in told]
        if isinstance(told, str):
            told = told.replace(os.fspath(self._draft), _relate(self._config.folder, self._config))
            for path in self._config.inputs.values():
                told = told.replace(os.fspath(path), _relate(path, self._config))
        return told

    def _do_training(self, advance: Callable[[int], None]) -> Summary:
        config, asked = self._config, self._config.ask(TrainSettings, task=self._task)
        assert self._train is not None  # `read_config` saw to that
        estimator = make_estimator(asked.model or choose_model(), {}, task=self._task)
        if "threat" in estimator.get_params(deep=False):
            asked = replace(asked, threat=config.threat)
        target = config.section("data")["target"]
        self._trained = train_file(self._train, target, self._model, asked, spell=_spell)
        return self._trained

    def _do_certifying(self, advance: Callable[[int], None]) -> Summary:
        outputs = {step: self._draft / name for step, name in self._config.outputs.items()}
        places = {"target": self._target, "threat": self._config.threat, "witness": outputs.get("witness")}
        asked = self._config.ask(CertifySettings, **places)
        return certify_file(self._model, self._test, outputs["certify"], asked, advance=advance)

    def _do_auditing(self, advance: Callable[[int], None]) -> Summary:
        outputs = {step: self._draft / name for step, name in self._config.outputs.items()}
        asked = self._config.ask(AuditSettings, target=self._target, output=outputs.get("audit"))
        found = audit_file(self._model, self._test, outputs["certify"], asked, advance=advance)
        if not found["passed"]:
            raise ValueError(_explain_audit(found))
        return found

    def _do_report(self, advance: Callable[[int], None]) -> Summary:
        config, certify = self._config, self._config.ask(CertifySettings)
        asked = config.ask(
            ReportFileSettings,
            target=self._target,
            threat=config.threat,
            rule=certify.rule,
            noise=certify.noise,
            identity=certify.identity,
            configuration=f"{config.path.name}, sha256 {config.sha256}",
            train=self._train if config.section("report").get("compare") is True else None,
            compare=config.find_input("report", "compare"),
            one_page=False,
            page=self._draft / config.outputs["page"] if "page" in config.outputs else None,
        )
        if self._trained is not None:
            unread = {one["name"]: one["detail"] for one in self._trained["columns"] if one["use"] == "ignored"}
            asked = replace(asked, notes=self._trained["warnings"], left_out=tell_unread(list(unread), unread))
        asked = replace(asked, title=asked.title or self._name_report())
        output = self._draft / config.outputs["report"]
        return report_file(self._model, self._test, output, asked, keep=self._keep_report)

    def _keep_report(self, report: Summary) -> None:
        self.report = report

    def _name_report(self) -> str | None:
        """The title where rows were held out: the report's own would name a file that nobody knows."""
        if self.held_out is None:
            return None
        kind, table = "Interval" if self._task == NUMBER else "Certificate", self._config.section("data")["train"]
        return f"{kind} report: {Path(table).name}, {self.held_out['rows']:,} rows held out"


def _count(tell: Callable[[str], None], words: str) -> Callable[[int], None]:
    """What is told of more rows that are done: how many in all."""
    total = 0

    def advance(more: int) -> None:
        nonlocal total
        total += more
        tell(f"{words}, {total:,} rows")

    return advance


def _explain_audit(found: Summary) -> str:
    """Why an audit did not pass, in one line."""
    failed = [check["name"] for check in found["machine"] if not check["passed"]]
    if failed:
        return f"This machine failed a test of its arithmetic ({', '.join(failed)}): nothing is written."
    rows = ", ".join(f"{one['row']} ({one['claim']})" for one in found["not_proven"][:5])
    return (
        f"The audit proved {found['proven']:,} of {found['audited']:,} rows again, not {rows}: nothing is written. "
        "Certify by `derand certify` and look closer by `derand audit`."
    )
