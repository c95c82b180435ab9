"""What `derand.toml` says: sections and keys, and which of them go together.

Owns the layout of the file. Which keys there are, `settings` says, how their values are written, `values`, and what a
threat may say, `derand.threat_text`. Must not know what is done with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from derand._core.files import PathLike
from derand._core.text import Facts, quote_short
from derand.app.settings import (
    AuditSettings,
    CertifySettings,
    Option,
    ReportFileSettings,
    RunSettings,
    TrainSettings,
    list_keys,
    read_keys,
)
from derand.app.values import EVIDENCE, KINDS, MODEL, RECORD
from derand.storage import mark_file
from derand.threat_text import KEYS as THREAT_KEYS
from derand.threat_text import ThreatSection, read_toml

CONFIG = "derand.toml"
"""How the file is called unless it is named."""
ONE_PAGE = "one_page.html"
"""The page to sign."""
VERBS = (RunSettings, TrainSettings, CertifySettings, AuditSettings, ReportFileSettings)
"""What the file can set."""

Settings = TypeVar("Settings")


def _list_section(name: str) -> dict[str, Option]:
    if name == "threat":
        return dict.fromkeys(THREAT_KEYS, Option("A field of Threat."))
    return {key: option for verb in VERBS for key, option in list_keys(verb, name).items()}


SECTIONS = {name: _list_section(name) for name in ("data", "model", "threat", "certify", "audit", "report", "output")}
"""Sections and their keys."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A run as a file describes it; `read_config` makes it.

    Attributes
    ----------
    path : Path
        The file.
    sha256 : str
        Of its bytes.
    settings : dict
        All that it says, as read, by section.
    threat : ThreatSection or None
        What may change; None is what the model was trained for.
    """

    path: Path
    sha256: str
    settings: dict[str, dict[str, object]]
    threat: ThreatSection | None

    def section(self, name: str) -> Facts:
        """What a section says; nothing where it is not there."""
        return self.settings.get(name, {})

    def does(self, step: str) -> bool:
        """Whether a step is asked for: its section is there; without a model of its own, one is trained."""
        return "file" not in self.section("model") if step == "train" else step in self.settings

    @property
    def steps(self) -> list[str]:
        """The steps that are asked for, in order."""
        return [step for step in ("train", "certify", "audit", "report") if self.does(step)]

    def ask(self, verb: type[Settings], **more: object) -> Settings:
        """What the file asks of a verb, and more."""
        return verb(**{**read_keys(verb, self.settings), **more})

    def find_input(self, section: str, key: str) -> Path | None:
        """A file that is read; paths count from the folder of the configuration."""
        name = self.section(section).get(key)
        return self.path.parent / name if isinstance(name, str) else None

    @property
    def folder(self) -> Path:
        """Where results go."""
        return self.path.parent / self.ask(RunSettings).folder

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that are read, by the key that names them."""
        named = (("data", "train"), ("data", "test"), ("model", "file"), ("report", "compare"))
        found = {f"[{section}] {key}": self.find_input(section, key) for section, key in named}
        return {key: path for key, path in found.items() if path is not None}

    @property
    def outputs(self) -> dict[str, str]:
        """The names of files that are written into the folder, by step."""
        names = self.ask(RunSettings)
        found = {
            "train": MODEL if self.does("train") else None,
            "certify": names.certified if self.does("certify") else None,
            "witness": self.section("certify").get("witness"),
            "audit": self.section("audit").get("output"),
            "report": names.report if self.does("report") else None,
            "page": ONE_PAGE if self.section("report").get("one_page") else None,
            "evidence": EVIDENCE if self.does("report") else None,
        }
        return {step: name for step, name in found.items() if name is not None}


def read_config(path: PathLike) -> RunConfig:
    """Read a configuration; keys that it does not have, and values that cannot be, are refused by name."""
    place = Path(path)
    try:
        content, mark = read_toml(place), mark_file(place)
    except FileNotFoundError:
        raise FileNotFoundError(f"{place} does not exist: `derand init DATA --target COLUMN` writes one.") from None
    try:
        settings = {name: _read_section(name, value) for name, value in content.items()}
        threat = ThreatSection(place) if settings.get("threat") else None
        config = RunConfig(place, mark.sha256, settings, threat)
        _require_together(config)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    return config


def _read_section(name: str, value: object) -> dict[str, object]:
    if name not in SECTIONS:
        raise ValueError(f"there is no section [{name}]{_suggest(name, SECTIONS)}")
    if not isinstance(value, dict):
        raise ValueError(f"[{name}] must be a section, got {quote_short(value)}: write [{name}] on a line of its own.")
    known = SECTIONS[name]
    for key in value:
        if key not in known:
            raise ValueError(f"[{name}] has no key {quote_short(key)}{_find_home(key) or _suggest(key, known)}")
    if name == "threat":
        return value  # `derand.threat_text` reads it
    return {key: KINDS[known[key].kind].read(one, f"[{name}] {key}", known[key]) for key, one in value.items()}


def _find_home(key: str) -> str | None:
    """Where a key belongs that stands in another section."""
    homes = [f"[{section}]" for section, keys in SECTIONS.items() if key in keys]
    return f": it belongs to {' or '.join(homes)}." if homes else None


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f": there are {', '.join(known)}."


def _require_together(config: RunConfig) -> None:
    """Refuse a configuration that lacks what its other parts need."""
    data = config.section("data")
    (_require_rows if "file" in config.section("model") else _require_training)(config)
    if "seed" in data and "holdout" not in data:
        raise ValueError("[data] seed chooses the rows that holdout leaves out, and there is no holdout: leave it out.")
    if config.does("audit") and not config.does("certify"):
        raise ValueError("[audit] proves certificates again, and there is no [certify]: add it, or leave [audit] out.")
    if not any(map(config.does, ("model", "certify", "report"))):
        raise ValueError("there is nothing to do: give a [model], [certify] or [report].")
    if config.section("report").get("compare") is True and "train" not in data:
        raise ValueError("[report] compare needs the training rows: name them by [data] train, or leave it out.")
    names = [*config.outputs.values(), RECORD]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two results go to {name!r}: name another file.")


def _require_rows(config: RunConfig) -> None:
    """What a model that is trained already needs, and what it does not."""
    data = config.section("data")
    others = ", ".join(f"[model] {key}" for key in config.section("model") if key != "file")
    if others:
        raise ValueError(f"[model] file is a model that is trained already: leave {others} out.")
    if "test" not in data or "holdout" in data:
        raise ValueError("[model] file is trained already: name the rows to certify by [data] test, no holdout.")


def _require_training(config: RunConfig) -> None:
    """What training needs."""
    data = config.section("data")
    for key in ("train", "target"):
        if key not in data:
            raise ValueError(f"[data] has no {key}, which training needs: write one, or name a [model] file.")
    if ("test" in data) == ("holdout" in data):
        got = "both" if "test" in data else "neither"
        raise ValueError(f"[data] must say test (a file of its own) or holdout (a share of train), got {got}.")
