"""What `derand.toml` says: sections and keys, each with what it may hold, and one line for each way to be wrong.

Owns the layout of the file and which keys go together. Must not know what is done with it, nor how it is written. What
a threat may say, `derand.threat_text` knows.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derand._core.files import PathLike
from derand._core.text import quote_short
from derand.app.settings import CertifySettings, list_keys
from derand.storage import mark_file
from derand.threat_text import KEYS as THREAT_KEYS
from derand.threat_text import ThreatSection, read_toml

CONFIG = "derand.toml"
"""How the file is called unless it is named."""
RECORD = "run.json"
"""The record of a run, beside its results."""
MODEL = "model.json"
FOLDER = "results"

COLUMN_KEYS = ("ignored", "categorical", "numerical", "dates")
"""Keys of [data] that `train_file` takes by the same names."""

Reader = Callable[[Any, str], Any]
"""Takes a value of the file and how its key is named in errors; gives the value that is worked with."""


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
    settings: dict[str, dict[str, Any]]
    threat: ThreatSection | None

    def section(self, name: str) -> dict[str, Any]:
        """What a section says; nothing where it is not there."""
        return self.settings.get(name, {})

    def does(self, step: str) -> bool:
        """Whether a step is asked for: its section is there."""
        return step in self.settings

    def find_input(self, section: str, key: str) -> Path | None:
        """A file that is read; paths count from the folder of the configuration."""
        name = self.section(section).get(key)
        return None if name is None else self.path.parent / name

    @property
    def columns(self) -> dict[str, Any]:
        """What is said of columns of the training table, as `train_file` takes it."""
        return {key: value for key, value in self.section("data").items() if key in COLUMN_KEYS}

    @property
    def folder(self) -> Path:
        """Where results go."""
        return self.path.parent / str(self.section("output").get("folder", FOLDER))

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that are read, by the key that names them."""
        named = (("data", "train"), ("data", "test"), ("model", "file"))
        found = {f"[{section}] {key}": self.find_input(section, key) for section, key in named}
        found["[report] compare"] = self.other_model
        return {key: path for key, path in found.items() if path is not None}

    @property
    def other_model(self) -> Path | None:
        """A saved model that the report sets beside the first."""
        return self.find_input("report", "compare") if isinstance(self.section("report").get("compare"), str) else None

    @property
    def outputs(self) -> dict[str, str]:
        """The names of files that are written into the folder, by step."""
        certify, report = self.section("certify"), self.section("report")
        given = {
            "certify": certify.get("output", "certified.csv") if self.does("certify") else None,
            "witness": certify.get("witness"),
            "audit": self.section("audit").get("output"),
            "report": report.get("output", "report.html") if self.does("report") else None,
        }
        found = {} if self.find_input("model", "file") else {"train": MODEL}
        return {**found, **{step: name for step, name in given.items() if name is not None}}


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


def _read_section(name: str, value: Any) -> dict[str, Any]:
    if name not in SECTIONS:
        raise ValueError(f"there is no section [{name}]{_suggest(name, SECTIONS)}")
    if not isinstance(value, dict):
        raise ValueError(f"[{name}] must be a section, got {quote_short(value)}: write [{name}] on a line of its own.")
    known = SECTIONS[name]
    for key in value:
        if key not in known:
            raise ValueError(f"[{name}] has no key {quote_short(key)}{_find_home(key) or _suggest(key, known)}")
    return {key: known[key](one, f"[{name}] {key}") for key, one in value.items()}


def _find_home(key: str) -> str | None:
    """Where a key belongs that stands in another section."""
    homes = [f"[{section}]" for section, keys in SECTIONS.items() if key in keys]
    return f": it belongs to {' or '.join(homes)}." if homes else None


def _suggest(name: str, known: Mapping[str, object]) -> str:
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


def _read_text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} must be text in quotes, got {quote_short(value)}.")
    return value


def _read_texts(value: Any, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError(f'{key} must be a list of names, such as ["a", "b"], got {quote_short(value)}.')
    return value


def _read_name(value: Any, key: str) -> str:
    """The name of a file in the folder of results."""
    name = _read_text(value, key)
    if Path(name).name != name or "\\" in name or name in (".", "..", RECORD, MODEL):
        raise ValueError(
            f"{key} must be the name of a file in the folder of [output], not a path and neither {MODEL} nor {RECORD}, "
            f"got {quote_short(value)}."
        )
    return name


def _read_number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{key} must be a number, 0 or larger, got {quote_short(value)}.")
    return float(value)


def _read_noise(value: Any, key: str) -> str | float:
    """Text such as "gaussian:0.25", or a number: then the kind follows from the norm."""
    return _read_text(value, key) if isinstance(value, str) else _read_number(value, key)


def _read_share(value: Any, key: str) -> float:
    share = _read_number(value, key)
    if not 0 < share < 1:
        raise ValueError(f"{key} must be a share above 0 and below 1, such as 0.25, got {quote_short(value)}.")
    return share


def _read_numbers(value: Any, key: str) -> list[float]:
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list of numbers, such as [0, 0.25], got {quote_short(value)}.")
    return [_read_number(one, key) for one in value]


def _read_whole(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{key} must be a whole number, 0 or larger, got {quote_short(value)}.")
    return value


def _read_count(value: Any, key: str) -> int:
    if _read_whole(value, key) == 0:
        raise ValueError(f"{key} must be 1 or larger, got 0.")
    return int(value)


def _read_truth(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {quote_short(value)}.")
    return value


def _read_compare(value: Any, key: str) -> bool | str:
    """Whether to train a twin to compare with, or a saved model."""
    if not isinstance(value, bool | str) or value == "":
        raise ValueError(f"{key} must be true, false, or a saved model in quotes, got {quote_short(value)}.")
    return value


def _read_number_or_cv(value: Any, key: str) -> float | None:
    return None if value == "cv" else _read_number(value, key)


def _read_directions(value: Any, key: str) -> dict[str, str]:
    directions = ("increasing", "decreasing")
    if not isinstance(value, dict) or not all(one in directions for one in value.values()):
        raise ValueError(
            f'{key} must be such as {{age = "increasing", debt = "decreasing"}}, got {quote_short(value)}.'
        )
    return value


def _read_costs(value: Any, key: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be such as {{false_negative = 5, false_positive = 1}}, got {quote_short(value)}.")
    return {name: _read_number(one, f"{key}, {name},") for name, one in value.items()}


def _read_groups(value: Any, key: str) -> str | list[list[str]]:
    if value == "auto":
        return "auto"
    if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
        raise ValueError(f'{key} must be "auto" or lists of columns, such as [["a", "b"]], got {quote_short(value)}.')
    return [_read_texts(group, key) for group in value]


def _keep(value: Any, key: str) -> Any:
    """What somebody else reads."""
    return value


READERS: dict[str, Reader] = {
    "text": _read_text,
    "texts": _read_texts,
    "number": _read_number,
    "numbers": _read_numbers,
    "truth": _read_truth,
    "whole": _read_whole,
    "count": _read_count,
    "name": _read_name,
    "noise": _read_noise,
    "compare": _read_compare,
}
"""What reads each kind of option."""


def _read_by(settings: type) -> dict[str, Reader]:
    """The keys of a verb."""
    return {key: READERS[option.kind] for key, option in list_keys(settings).items()}


SECTIONS: dict[str, dict[str, Reader]] = {
    "data": {
        "train": _read_text,
        "target": _read_text,
        "test": _read_text,
        "holdout": _read_share,
        "seed": _read_whole,
        "task": _read_text,
        **dict.fromkeys(COLUMN_KEYS, _read_texts),
    },
    "model": {
        "file": _read_text,
        "trainer": _read_text,
        "radius": _read_number,
        "regularization": _read_number_or_cv,
        "class_weight": _read_text,
        "decision_threshold": _read_share,
        "cost": _read_costs,
        "monotone": _read_directions,
        "min_rows_per_category": _read_whole,
        "groups": _read_groups,
        "rule": _read_text,
        "noise": _read_noise,
        "scaling": _read_text,
    },
    "threat": dict.fromkeys(THREAT_KEYS, _keep),
    "certify": {"output": _read_name, **_read_by(CertifySettings)},
    "audit": {"rows": _read_whole, "seed": _read_whole, "output": _read_name},
    "report": {
        "output": _read_name,
        "title": _read_text,
        "groups": _read_texts,
        "radius": _read_number,
        "compare": _read_compare,
        "what_if": _read_truth,
        "rows": _read_count,
    },
    "output": {"folder": _read_text},
}
"""Sections and their keys, each with what reads it."""
