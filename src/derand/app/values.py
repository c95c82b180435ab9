"""How values of options are written: as text of the command line, and in `derand.toml`.

Owns both for every kind of option, and one line for each way to be wrong. Must not know which options there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from derand._core.text import quote_short

if TYPE_CHECKING:
    from derand.app.settings import Option

RECORD = "run.json"
"""The record of a run, beside its results."""
EVIDENCE = "evidence.md"
"""The facts of a run in words, beside its report."""
MODEL = "model.json"
"""The model that a run trains."""
_MISTAKES = "false_negative=5,false_positive=1"


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse the value of an option, named as the user writes it, that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}.")


def _bound(option: Option) -> str:
    """The bounds of a number in words."""
    return "above 0" if option.positive else f"{option.least or 0:g} or larger"


def _parse_numbers(text: str, flag: str, option: Option) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(math.isfinite(one) and (one > 0 or (one == 0 and not option.positive)) for one in numbers):
        raise ValueError(f"{flag} must be numbers, {_bound(option)}, separated by commas, got {text!r}.")
    return numbers


def _parse_norm(text: str, flag: str, option: Option) -> object:
    from derand.threat_text import NORMS

    return NORMS[text]  # one of the choices


def _parse_labels(text: str, flag: str, option: Option) -> list[str]:
    return [label.strip() for label in text.split(",")]


def _parse_directions(texts: Sequence[str], flag: str, option: Option) -> dict[str, str]:
    from derand.threat_text import parse_pairs

    def read(value: str, column: str) -> str:
        require_choice(f"{flag} {column}", value, ("increasing", "decreasing"))
        return value

    return parse_pairs(texts, "direction", "COLUMN=increasing", read)


def _parse_domains(texts: Sequence[str], flag: str, option: Option) -> dict[str, tuple[float, float] | list[str]]:
    """Ends of numbers, LOW:HIGH, or categories that are apart by commas."""
    from derand.threat_text import parse_pairs

    def read(value: str, column: str) -> tuple[float, float] | list[str]:
        ends = value.split(":")
        try:
            low, high = map(float, ends)
        except ValueError:
            return [one.strip() for one in value.split(",")]
        return low, high

    return parse_pairs(texts, "domain", "COLUMN=LOW:HIGH or COLUMN=A,B", read)


_PATCHES = "patches:"
"""What `groups` of images begin with."""


def _parse_groups(text: str, flag: str, option: Option) -> str | list[list[str]]:
    """Groups of columns: groups apart by semicolons, columns by commas."""
    if text.strip() == "auto" or text.startswith(_PATCHES):
        return text.strip()
    found = [[name.strip() for name in group.split(",")] for group in text.split(";")]
    for group in found:
        if len(group) < 2 or not all(group):
            raise ValueError(
                f'{flag} must be "auto" or groups of two columns or more such as "a,b;c,d", got {text!r}: columns of '
                "a group are apart by commas, groups by semicolons."
            )
    return found


def _parse_names(text: str, flag: str, option: Option) -> dict[str, str]:
    """What classes are called, such as 0=repaid,1=default."""
    pairs = [part.partition("=") for part in text.split(",")]
    found = {label.strip(): name.strip() for label, _, name in pairs}
    if len(found) < len(pairs) or not all(label and name for label, name in found.items()):
        raise ValueError(f"{flag} must be such as {option.metavar}, each class once, got {quote_short(text)}.")
    return found


def _parse_costs(text: str, flag: str, option: Option) -> dict[str, float]:
    """What mistakes cost, such as false_negative=5,false_positive=1."""
    from derand.threat_text import parse_pairs

    def read(value: str, name: str) -> float:
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{flag} must be numbers such as false_negative=5, got {name}={value}.") from None

    found = parse_pairs([part.strip() for part in text.split(",")], "cost", _MISTAKES, read)
    if set(found) != {"false_negative", "false_positive"} or not all(0 < one < math.inf for one in found.values()):
        raise ValueError(
            f"{flag} must say what both mistakes cost, each a number above 0, such as {_MISTAKES}, got "
            f"{quote_short(text)}."
        )
    return found


def _read_text(value: object, key: str, option: Option) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} must be text in quotes, got {quote_short(value)}.")
    return value


def _read_texts(value: object, key: str, option: Option) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError(f'{key} must be a list of names, such as ["a", "b"], got {quote_short(value)}.')
    return value


def _read_name(value: object, key: str, option: Option) -> str:
    """The name of a file in the folder of results."""
    name = _read_text(value, key, option)
    if Path(name).name != name or "\\" in name or name in (".", "..", RECORD, MODEL):
        raise ValueError(
            f"{key} must be the name of a file in the folder of [output], not a path and neither {MODEL} nor {RECORD}, "
            f"got {quote_short(value)}."
        )
    return name


def _read_number(value: object, key: str, option: Option) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{key} must be a number, 0 or larger, got {quote_short(value)}.")
    return float(value)


def _read_noise(value: object, key: str, option: Option) -> str | float:
    """Text such as "gaussian:0.25", or a number: then the kind follows from the norm."""
    return (_read_text if isinstance(value, str) else _read_number)(value, key, option)


def _read_share(value: object, key: str, option: Option) -> float:
    share = _read_number(value, key, option)
    if not 0 < share < 1:
        raise ValueError(f"{key} must be a share above 0 and below 1, such as 0.25, got {quote_short(value)}.")
    return share


def _read_numbers(value: object, key: str, option: Option) -> list[float]:
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list of numbers, such as [0, 0.25], got {quote_short(value)}.")
    return [_read_number(one, key, option) for one in value]


def _read_whole(value: object, key: str, option: Option) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{key} must be a whole number, 0 or larger, got {quote_short(value)}.")
    if value < (option.least or 0):
        raise ValueError(f"{key} must be {_bound(option)}, got {value}.")
    return value


def _read_truth(value: object, key: str, option: Option) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {quote_short(value)}.")
    return value


def _read_compare(value: object, key: str, option: Option) -> bool | str:
    """Whether to train a surrogate to compare with, or a saved model."""
    if not isinstance(value, bool | str) or value == "":
        raise ValueError(f"{key} must be true, false, or a saved model in quotes, got {quote_short(value)}.")
    return value


def _read_number_or_cv(value: object, key: str, option: Option) -> float | None:
    return None if value == "cv" else _read_number(value, key, option)


def _read_directions(value: object, key: str, option: Option) -> dict[str, str]:
    if not isinstance(value, dict) or not all(one in ("increasing", "decreasing") for one in value.values()):
        raise ValueError(
            f'{key} must be such as {{age = "increasing", debt = "decreasing"}}, got {quote_short(value)}.'
        )
    return value


def _read_costs(value: object, key: str, option: Option) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be such as {{false_negative = 5, false_positive = 1}}, got {quote_short(value)}.")
    return {name: _read_number(one, f"{key}, {name},", option) for name, one in value.items()}


def _read_names(value: object, key: str, option: Option) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value.values()):
        raise ValueError(f'{key} must be such as {{0 = "repaid", 1 = "default"}}, got {quote_short(value)}.')
    return value


def _read_groups(value: object, key: str, option: Option) -> str | list[list[str]]:
    if isinstance(value, str) and (value == "auto" or value.startswith(_PATCHES)):
        return value
    if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
        raise ValueError(f'{key} must be "auto" or lists of columns, such as [["a", "b"]], got {quote_short(value)}.')
    return [_read_texts(group, key, option) for group in value]


def _keep(value: object, name: str, option: Option) -> object:
    """What typer, or somebody else, has read."""
    return value


Reader = Callable[[Any, str, "Option"], Any]
"""Takes a value, how its option is named in errors, and the option; gives the value that is worked with."""


class Kind(NamedTuple):
    """How values of a kind are written: what typer reads of a flag, what is made of that, and what reads TOML."""

    type: Any
    read: Reader
    parse: Reader = _keep


KINDS = {
    "text": Kind(str, _read_text),
    "texts": Kind(list[str], _read_texts),
    "labels": Kind(str, _read_texts, _parse_labels),
    "number": Kind(float, _read_number),
    "numbers": Kind(str, _read_numbers, _parse_numbers),
    "number_or_cv": Kind(float, _read_number_or_cv),
    "share": Kind(float, _read_share),
    "whole": Kind(int, _read_whole),
    "truth": Kind(bool, _read_truth),
    "either": Kind(bool, _read_truth),
    "file": Kind(Path, _read_text),
    "name": Kind(Path, _read_name),
    "norm": Kind(str, _keep, _parse_norm),
    "noise": Kind(str, _read_noise),
    "compare": Kind(Path, _read_compare),
    "domains": Kind(list[str], _keep, _parse_domains),
    "directions": Kind(list[str], _read_directions, _parse_directions),
    "groups": Kind(str, _read_groups, _parse_groups),
    "costs": Kind(str, _read_costs, _parse_costs),
    "names": Kind(str, _read_names, _parse_names),
}
"""Kinds of options."""
