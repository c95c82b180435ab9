"""All of a `derand.toml`, one step after the other: train, certify, audit, report, and the record of how it was done.

Owns the order of steps, what is handed from one to the next, and when results of before may be replaced. Must not know
how a step does its work, what the file may say (`_run_config`), nor the command line.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from derand import __version__
from derand._core.files import (
    PathLike,
    fill_when_done,
    is_half_filled,
    replace_when_done,
    require_folder,
    restore_folder,
)
from derand._core.text import as_plain_json
from derand.estimators import CertifiedRegressor, check_parameters
from derand.jobs._auditing import AuditingSummary, audit_file
from derand.jobs._certifying import CertifyingSummary, certify_file
from derand.jobs._classifiers import OWN, choose_model, load_estimator, make_estimator
from derand.jobs._reporting import ReportSummary, report_file, report_numbers_file, tell_unread
from derand.jobs._request import read_named
from derand.jobs._run_config import CONFIG, MODEL, RECORD, RunConfig, read_config
from derand.jobs._settings import CLASSES, NUMBER, CertifySettings, list_keys, read_keys
from derand.jobs._splitting import choose_held_out, split_file
from derand.jobs._tasks import require_task, require_trainer
from derand.jobs._training import TrainingSummary, list_doubts, train_file
from derand.jobs._training_table import TrainingData, read_training_data
from derand.storage import mark_file, read_json
from derand.tables import inspect_file, match_file
from derand.threat_text import read_threat

SCHEMA = "derand/run/1"

Told = Callable[[int, int, str], None]
"""Told how many steps are done, of how many, and what is being done."""


class Mark(TypedDict):
    """A file that was read or written."""

    file: str
    sha256: str


class ConfigurationMark(Mark):
    """The file that was run, and all that it says."""

    settings: dict[str, Any]


class HeldOut(TypedDict):
    """Rows of the one table that were not trained on."""

    file: str
    rows: int
    share: float
    seed: int


class RunSteps(TypedDict):
    """What each step told; a step that was not asked for is not there."""

    train: NotRequired[TrainingSummary]
    certify: NotRequired[CertifyingSummary]
    audit: NotRequired[AuditingSummary]
    report: NotRequired[ReportSummary]


class RunSummary(TypedDict):
    """What `run_file` did: it is written to `run.json` beside the results.

    Paths count from the folder of the configuration.
    """

    schema: str
    derand: str
    python: str
    when: str
    configuration: ConfigurationMark
    inputs: list[Mark]
    changed: list[str]
    """Inputs that are not what they were when the same configuration was run before."""
    task: str
    """"classes" or "number"."""
    held_out: HeldOut | None
    steps: RunSteps
    folder: str
    files: list[Mark]
    """What was written there, but for the record itself."""
    seconds: float


class CheckSummary(TypedDict):
    """What `check_run` found: all is well where there is no error."""

    configuration: str
    task: str
    steps: list[str]
    inputs: list[str]
    has_target: bool
    """Whether the rows to be certified have a target, by which errors are measured."""
    folder: str
    files: list[str]
    warnings: list[str]
    """What is doubtful about columns that would be learnt from."""
    changed: list[str]
    """Inputs that are not what they were when the same configuration was run before."""
    unchanged_results: int
    """Files in the folder that have the checksums of the record."""


def run_file(
    path: PathLike = CONFIG, *, force: bool = False, told: Told = lambda done, total, text: None
) -> RunSummary:
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
    RunSummary
        A dict, as it is written to `run.json`.
    """
    start, config = time.perf_counter(), read_config(path)
    restore_folder(config.folder)
    task = _check(config, force)["task"]
    inputs: list[Mark] = [_mark(one, config) for one in config.inputs.values()]
    changed = _find_changed(config, inputs)
    with fill_when_done(config.folder, RECORD) as draft:
        with _name_folder(config.folder, draft), tempfile.TemporaryDirectory(dir=draft, prefix=".") as work:
            run = _Run(config, task, draft, Path(work), told)
            steps = run.do_all()
        summary: RunSummary = {
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
            "folder": _relate(config.folder, config),
            "files": [{"file": one.name, "sha256": mark_file(one).sha256} for one in sorted(draft.iterdir())],
            "seconds": time.perf_counter() - start,
        }
        with replace_when_done(draft / RECORD) as record:
            text = json.dumps(as_plain_json(summary), indent=2, allow_nan=False, ensure_ascii=False)
            record.write_text(text + "\n", encoding="utf-8")
    return summary


def check_run(path: PathLike = CONFIG, *, force: bool = False) -> CheckSummary:
    """Look whether a `derand.toml`, its data and results that it has made fit together, and write nothing.

    Parameters
    ----------
    path, force
        As for `run_file`; with `force`, results are not compared with the checksums of their record.

    Returns
    -------
    CheckSummary
        A dict: what would be done. What is wrong is an error.
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


def _check(config: RunConfig, force: bool) -> CheckSummary:
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
    certify = config.section("certify")
    copied = [*([certify["id"]] if "id" in certify else []), *certify.get("keep", ())]
    table.require_columns([*copied, *config.section("report").get("groups", ())])
    require_folder(config.folder)
    if not force and not is_half_filled(config.folder):
        _refuse_others(config)
    steps = [step for step in ("train", "certify", "audit", "report") if step == "train" or config.does(step)]
    return {
        "configuration": os.fspath(config.path),
        "task": task,
        "steps": [step for step in steps if step != "train" or "train" in config.outputs],
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
    read = _read_training(config)
    name, options = _list_options(config)
    n_classes = len(set(read.labels.tolist()))
    require_trainer(name, read.task, config.section("data")["target"], n_classes, _spell)
    estimator = make_estimator(name, options, _choose_scaling(config), task=read.task.name, spell=_spell)
    check_parameters(estimator, n_classes)
    if config.threat is not None:
        names = read.rows.column_names
        read_threat(config.threat, names).name_columns(names)
    test = config.find_input("data", "test")
    if test is not None:
        inspect_file(test).require_columns(read.rows.column_names)
    return read.task.name, list_doubts(read)


def _read_training(config: RunConfig) -> TrainingData:
    data, path = config.section("data"), config.find_input("data", "train")
    assert path is not None  # `read_config` saw to that
    require_task(data.get("task"), _spell)
    columns = {"categorical": (), "ignored": (), **config.columns}
    return read_training_data(path, data["target"], task=data.get("task"), **columns)


def _check_model(config: RunConfig) -> str:
    """Look whether a model fits its rows and the threat; what it answers."""
    path, rows = config.find_input("model", "file"), config.find_input("data", "test")
    assert path is not None  # `read_config` saw to that
    assert rows is not None
    estimator = load_estimator(path)
    is_number = isinstance(estimator, CertifiedRegressor)
    classes = None if isinstance(estimator, CertifiedRegressor) else estimator.classes_
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
    report = {CLASSES: (), NUMBER: ("groups", "compare")}[task]
    certify = [key for key, option in list_keys(CertifySettings).items() if option.task not in (None, task)]
    known = {"certify": certify, "report": report}
    for section, keys in known.items():
        for key in keys:
            if key in config.section(section):
                whom, what = ("numbers", "classes") if task == CLASSES else ("classes", "a number")
                raise ValueError(
                    f"{config.path}: [{section}] {key} is for {whom}, and the answer is {what}: leave it out."
                )


def _list_options(config: RunConfig) -> tuple[str, dict[str, Any]]:
    """The trainer, and its parameters as the configuration gives them."""
    model = config.section("model")
    options = {key: value for key, value in model.items() if key not in ("trainer", "scaling") and value is not None}
    return model.get("trainer", choose_model()), options


def _choose_scaling(config: RunConfig) -> str | None:
    scaling = config.section("model").get("scaling", OWN)
    return None if scaling == "none" else scaling


def _spell(parameter: str) -> str:
    """The key that sets a parameter."""
    return {"model": "[model] trainer", "task": "[data] task"}.get(parameter, f"[model] {parameter}")


def _mark(path: Path, config: RunConfig) -> Mark:
    return {"file": _relate(path, config), "sha256": mark_file(path).sha256}


def _relate(path: Path, config: RunConfig) -> str:
    """A path that counts from the folder of the configuration: a record is moved, and says nothing of the machine."""
    try:
        return os.path.relpath(path, config.path.parent)
    except ValueError:  # another drive of Windows
        return path.name


def _read_record(config: RunConfig) -> dict[str, Any] | None:
    """The record of what stands in the folder; None where there is none that can be read."""
    try:
        record = read_json(config.folder / RECORD)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def _is_same(record: Mapping[str, Any], config: RunConfig) -> bool:
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


def _find_changed(config: RunConfig, inputs: list[Mark]) -> list[str]:
    record = _read_record(config)
    if record is None or not _is_same(record, config) or not isinstance(record.get("inputs"), list):
        return []
    before = [one for one in record["inputs"] if isinstance(one, dict)]
    known = {one.get("file"): one.get("sha256") for one in before}
    return [one["file"] for one in inputs if known.get(one["file"], one["sha256"]) != one["sha256"]]


def _compare_results(config: RunConfig) -> int:
    """Refuse results that are not what their record says; how many there are."""
    record = _read_record(config)
    if record is None:
        return 0
    try:
        sums = {Path(one["file"]).name: one["sha256"] for one in record["files"]}
    except (TypeError, KeyError):
        raise ValueError(f"{config.folder / RECORD} is damaged: make the results anew by `derand run`.") from None
    for name, sha256 in sums.items():
        path = config.folder / name
        if not path.is_file() or mark_file(path).sha256 != sha256:
            what = "has another checksum than" if path.is_file() else "is missing, but stands in"
            raise ValueError(f"{path} {what} {RECORD}: put the file back, or make the results anew by `derand run`.")
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
        self.held_out: HeldOut | None = None
        self._trained: TrainingSummary | None = None
        self._train = config.find_input("data", "train")
        test = config.find_input("data", "test")
        if test is None:
            told(0, 1, "holding rows out")
            self._train, test = self._hold_out(work)
        self._test, self._target = test, _find_target(config, test)
        self._model = config.find_input("model", "file") or draft / MODEL

    def _hold_out(self, work: Path) -> tuple[Path, Path]:
        """Two parts of the one table."""
        data, read = self._config.section("data"), _read_training(self._config)
        share, seed, whole = data["holdout"], data.get("seed", 0), self._config.find_input("data", "train")
        assert whole is not None  # `read_config` saw to that
        ending = _find_ending(whole)
        train, test = work / f"train{ending}", self._draft / f"held_out{ending}"
        held = split_file(whole, choose_held_out(read.labels, self._task, share, seed), train, test)
        self.held_out = {"file": test.name, "rows": int(held.size), "share": share, "seed": seed}
        return train, test

    def do_all(self) -> RunSteps:
        """Every step that is asked for, in order."""
        doing: dict[str, tuple[str, Callable[[Callable[[int], None]], Any]]] = {
            "train": ("training", self._do_training),
            "certify": ("certifying", self._do_certifying),
            "audit": ("auditing", self._do_auditing),
            "report": ("writing the report", self._do_report),
        }
        wanted = [
            one for one in doing if ("train" in self._config.outputs if one == "train" else self._config.does(one))
        ]
        done: dict[str, Any] = {}
        for place, step in enumerate(wanted):
            words, do = doing[step]
            self._told(place, len(wanted), words)
            done[step] = self._place(do(_count(partial(self._told, place, len(wanted)), words)))
        self._told(len(wanted), len(wanted), "done")
        steps: RunSteps = done  # type: ignore[assignment] # its keys are those of `doing`
        return steps

    def _place(self, told: Any) -> Any:
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

    def _do_training(self, advance: Callable[[int], None]) -> TrainingSummary:
        config, data = self._config, self._config.section("data")
        assert self._train is not None  # `read_config` saw to that
        name, options = _list_options(config)
        makes_use = "threat" in make_estimator(name, {}, task=self._task).get_params(deep=False)
        self._trained = train_file(
            self._train,
            data["target"],
            self._model,
            task=self._task,
            model=name,
            scaling=_choose_scaling(config),
            threat=config.threat if makes_use else None,
            spell=_spell,
            **config.columns,
            **options,
        )
        return self._trained

    def _do_certifying(self, advance: Callable[[int], None]) -> CertifyingSummary:
        outputs = {step: self._draft / name for step, name in self._config.outputs.items()}
        asked = read_keys(CertifySettings, self._config.section("certify"))
        asked |= {"target": self._target, "threat": self._config.threat, "witness": outputs.get("witness")}
        return certify_file(self._model, self._test, outputs["certify"], CertifySettings(**asked), advance=advance)

    def _do_auditing(self, advance: Callable[[int], None]) -> AuditingSummary:
        asked, outputs = self._config.section("audit"), self._config.outputs
        found = audit_file(
            self._model,
            self._test,
            self._draft / outputs["certify"],
            target=self._target,
            rows=asked.get("rows", 200) or None,
            random_state=asked.get("seed", 0),
            output=self._draft / outputs["audit"] if "audit" in outputs else None,
            advance=advance,
        )
        if not found["passed"]:
            raise ValueError(_explain_audit(found))
        return found

    def _do_report(self, advance: Callable[[int], None]) -> ReportSummary:
        asked, config = dict(self._config.section("report")), self._config
        asked.pop("output", None)
        groups, compare = asked.pop("groups", ()), asked.pop("compare", False)
        asked |= {key: value for key, value in config.section("certify").items() if key in ("rule", "noise")}
        asked |= {
            "target": self._target,
            "threat": config.threat,
            "configuration": f"{config.path.name}, sha256 {config.sha256}",
            "title": asked.get("title") or self._name_report(),
        }
        if self._trained is not None:
            unread = {one["name"]: one["detail"] for one in self._trained["columns"] if one["use"] == "ignored"}
            asked |= {"notes": self._trained["warnings"], "left_out": tell_unread(list(unread), unread)}
        output = self._draft / config.outputs["report"]
        if "rows" in asked:
            asked["max_rows"] = asked.pop("rows")
        asked["identity"] = config.section("certify").get("id")
        if self._task == NUMBER:
            return report_numbers_file(self._model, self._test, output, **asked)
        return report_file(
            self._model,
            self._test,
            output,
            groups=groups,
            train=self._train if compare is True else None,
            compare=config.other_model,
            **asked,
        )

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


def _explain_audit(found: AuditingSummary) -> str:
    """Why an audit did not pass, in one line."""
    failed = [check["name"] for check in found["machine"] if not check["passed"]]
    if failed:
        return f"This machine failed a test of its arithmetic ({', '.join(failed)}): nothing is written."
    rows = ", ".join(f"{one['row']} ({one['claim']})" for one in found["not_proven"][:5])
    return (
        f"The audit proved {found['proven']:,} of {found['audited']:,} rows again, not {rows}: nothing is written. "
        "Certify by `derand certify` and look closer by `derand audit`."
    )
