"""Threats as text and in TOML files: what they mean, and one line for each way in which they make no sense."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from derand import Threat
from derand.threat_text import KEYS, NORMS, change_threat, parse_changes, read_threat


def parse_threat(**texts: Any) -> Threat:
    """A threat that is nothing but what the texts say."""
    return change_threat(Threat(), parse_changes(**texts))


def test_texts_become_the_threat_that_they_describe() -> None:
    """Percentages, numbers and pairs; a name may hold the sign between name and value."""
    threat = parse_threat(
        norm="inf",
        l0=2,
        limits=["income=5%", "amount=500", "score=0:30", "*=5 %", "a=b=1e3", "up=0:inf"],
        domain=["rate=0:1", "debt=-inf:0"],
        frozen=["age", "a=c"],
    )
    limits = {"income": "5%", "amount": 500.0, "score": (0, 30), "*": "5 %", "a=b": 1000.0, "up": (0, math.inf)}
    domain = {"rate": (0, 1), "debt": (-math.inf, 0)}
    assert threat == Threat(norm=math.inf, l0=2, limits=limits, domain=domain, frozen=("age", "a=c"))
    assert parse_threat() == Threat()
    assert parse_threat(whole=True) == Threat(whole=True)


@pytest.mark.parametrize("norm", NORMS)
def test_norms_are_written_as_text(norm: str) -> None:
    """The same words on the command line and in files."""
    expected: Any = {"auto": "auto", "inf": math.inf, "none": None}.get(norm, norm)
    assert parse_threat(norm=norm).norm == (int(expected) if expected in ("0", "1", "2") else expected)


def test_steps_are_numbers_by_column() -> None:
    """As limits are."""
    threat: Any = parse_threat(steps=["children=1", "rate=0.25"])
    assert threat.steps == {"children": 1.0, "rate": 0.25}


BAD_TEXTS: dict[str, tuple[dict[str, Any], str]] = {
    "no value": ({"limits": ["income"]}, "A limit must be written COLUMN=VALUE, got 'income'"),
    "an empty value": ({"limits": ["income="]}, "A limit must be written COLUMN=VALUE"),
    "no column": ({"limits": ["=5"]}, "A limit must be written COLUMN=VALUE"),
    "words": ({"limits": ["income=much"]}, "limit of 'income' must be such as 5%, 500 or 0:30, got 'much'"),
    "a negative limit": ({"limits": ["income=-5"]}, "'income' must be 0 or larger"),
    "a negative end": ({"limits": ["income=0:-5"]}, "'income' must be 0 or larger"),
    "NaN": ({"limits": ["income=nan"]}, "got 'nan'"),
    "NaN per cent": ({"limits": ["income=nan%"]}, "must be a percentage"),
    "a negative percentage": ({"limits": ["income=-5%"]}, "must be a percentage"),
    "three ends": ({"limits": ["income=1:2:3"]}, "limit of 'income' must be"),
    "a limit twice": ({"limits": ["income=1", "income=2"]}, "limit of 'income' is given twice"),
    "one end": ({"domain": ["rate=1"]}, "domain of 'rate' must be such as 0:1"),
    "ends in the wrong order": ({"domain": ["rate=1:0"]}, "in this order"),
    "an end that is NaN": ({"domain": ["rate=nan:1"]}, "domain of 'rate' must be"),
    "a domain without column": ({"domain": ["0:1"]}, "A domain must be written COLUMN=LOW:HIGH"),
    "a step of 0": ({"steps": ["children=0"]}, "step of 'children' must be a positive number, got '0'"),
    "an infinite step": ({"steps": ["children=inf"]}, "step of 'children' must be a positive number"),
    "a frozen column with a limit": ({"limits": ["a=1"], "frozen": ["a"]}, "must not name 'a'"),
    "an unknown norm": ({"norm": "3"}, "The norm must be one of auto, 0, 1, 2, inf, none, got '3'"),
    "a negative budget": ({"l0": -1}, "`l0` must be"),
}


@pytest.mark.parametrize(("given", "message"), BAD_TEXTS.values(), ids=BAD_TEXTS.keys())
def test_texts_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    """One line that says what was expected."""
    with pytest.raises(ValueError, match=message) as told:
        parse_threat(**given)
    assert "\n" not in str(told.value)


def test_a_file_says_what_the_fields_of_a_threat_do(tmp_path: Path) -> None:
    """Limits and domains as numbers, lists or text; infinity as TOML or we write it."""
    path = tmp_path / "threat.toml"
    path.write_text(
        'norm = "none"\nl0 = 1\nunseen = false\nfrozen = ["age", 3]\nunits = [1, 2.5]\n'
        '[limits]\nincome = "5%"\namount = 500\nscore = [0, 30]\nother = "0:30"\n"*" = "1%"\n'
        "[domain]\nrate = [0, inf]\n"
    )
    assert read_threat(path) == Threat(
        norm=None,
        l0=1,
        unseen=False,
        frozen=("age", 3),
        units=(1, 2.5),
        limits={"income": "5%", "amount": 500, "score": (0, 30), "other": (0, 30), "*": "1%"},
        domain={"rate": (0, math.inf)},
    )
    for text, norm in (("norm = inf", math.inf), ("norm = 2", 2), ('norm = "inf"', math.inf), ("", "auto")):
        path.write_text(text)
        assert read_threat(path) == Threat(norm=norm)  # type: ignore[arg-type]


def test_units_by_name_leave_the_others_as_they_are(tmp_path: Path) -> None:
    """1, or what the noise counts in."""
    path = tmp_path / "threat.toml"
    path.write_text("[units]\nincome = 3\n")
    assert read_threat(path, ["a", "income"]).units == (1.0, 3.0)
    assert read_threat(path, ["a", "income"], [0.5, 0.7]).units == (0.5, 3.0)
    with pytest.raises(ValueError, match="need a table with names"):
        read_threat(path)
    with pytest.raises(ValueError, match="'income', which does not exist; did you mean 'incomes'"):
        read_threat(path, ["a", "incomes"])
    with pytest.raises(ValueError, match="'income', which does not exist: the columns are x, y"):
        read_threat(path, ["x", "y"])


def test_a_file_names_steps_and_values(tmp_path: Path) -> None:
    """As the library does."""
    path = tmp_path / "threat.toml"
    path.write_text('[steps]\nchildren = 1\n[may_become]\njob = ["clerk", "cook"]\n')
    threat: Any = read_threat(path)
    assert threat.steps == {"children": 1.0}
    assert list(threat.may_become["job"]) == ["clerk", "cook"]


BAD_FILES = {
    "an unknown key": (
        b"limit = 3",
        r"has the unknown key 'limit'; did you mean 'limits'\? A threat has the keys norm,",
    ),
    "a strange key": (b"xyz = 3", r"has the unknown key 'xyz'\. A threat has the keys " + ", ".join(KEYS)),
    "not TOML": (b"norm: 3", "is not a TOML file"),
    "not text": (b"\x89PNG\xff", "is not a TOML file"),
    "a key twice": (b"l0 = 1\nl0 = 2", "is not a TOML file"),
    "a limit of no sense": (b"[limits]\na = true", r"threat\.toml: The limit of 'a' must be such as"),
    "a limit that is a date": (b"[limits]\na = 2024-01-01", "The limit of 'a' must be such as"),
    "a negative limit": (b"[limits]\na = -1", "must be 0 or larger"),
    "limits that are no table": (b"limits = 3", "`limits` must be a table by column name, got 3"),
    "a domain of words": (b'[domain]\na = ["x", 1]', "The domain of 'a' must be such as"),
    "a step that is a list": (b"[steps]\na = [1]", "The step of 'a' must be a positive number"),
    "a budget that is true": (b"l0 = true", "`l0` must be"),
    "whole that is a name": (b'whole = "months"', "`whole` of Threat must be True or False, got 'months'"),
    "unseen that is a number": (b"unseen = 3", "`unseen` of Threat must be True or False"),
    "frozen that is text": (b'frozen = "a"', "must be a list of columns"),
    "frozen that are numbers with commas": (b"frozen = [1.5]", "must name columns by number or name"),
    "a norm that is a word": (b'norm = "max"', "The norm must be one of auto"),
    "a norm between": (b"norm = 0.5", "`norm` of Threat must be"),
    "a norm that is a list": (b"norm = [1]", "`norm` of Threat must be"),
    "a negative unit": (b"units = [-1]", "units"),
    "a unit that is text": (b'units = ["a"]', "units"),
    "a unit by name that is text": (b'units = {a = "1:2"}', "`units` for 'a' must be a positive number, got '1:2'"),
    "a number beyond doubles": (b"limits = {a = 1e309}", "the number '1e309' is too large"),
    "a whole number of 400 digits": (b"l0 = " + b"9" * 400, r"the number '9{60}'\.\.\. is too large"),
    "more than 16 MiB": (b"#" * 2**24 + b"\n", "it has more than 16777216 bytes"),
    "units that are a number": (b"units = 3", "`units` must be a table by column name, got 3"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_files_that_make_no_sense_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """One line with the name of the file."""
    path = tmp_path / "threat.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as told:
        read_threat(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, or a folder."""
    with pytest.raises(FileNotFoundError, match=r"absent\.toml does not exist"):
        read_threat(tmp_path / "absent.toml")
    with pytest.raises(OSError, match="cannot be read"):
        read_threat(tmp_path)


def test_numbers_that_may_go_missing_are_counted(tmp_path: Path) -> None:
    """By an option, and by a key of a file."""
    assert parse_threat(missing=2) == Threat(missing=2)
    assert parse_threat(missing=None) == Threat()
    file = tmp_path / "threat.toml"
    file.write_text('norm = "inf"\nmissing = 2\n')
    assert read_threat(file) == Threat(norm=math.inf, missing=2)
    file.write_text('missing = "fixed"\n')
    assert read_threat(file) == Threat()
    for wrong in ("-1", "1.5", "true", '"many"'):
        file.write_text(f"missing = {wrong}\n")
        with pytest.raises(ValueError, match=r"threat\.toml: `missing` of Threat must be 'fixed' or how many"):
            read_threat(file)
