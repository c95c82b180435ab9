"""Records of certificates on disk: what was asked and of which files, beside the certificates themselves.

Owns the layout of `NAME.json` beside a certified table, with the schema "derand/certified/1", and every check of what
is read. Must not know how certificates are made or audited.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from derand._core.files import PathLike, open_plain, replace_when_done
from derand._core.units import NamedUnits
from derand.noise import Noise
from derand.storage._document import MAX_RECORD_BYTES, parse_document, read_bytes
from derand.storage._fields import Field
from derand.storage._models import build_noise, describe_noise
from derand.storage._values import build_threat, describe_threat
from derand.threat import Threat

RECORD_SCHEMA = "derand/certified/1"


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file by its name and the SHA-256 of its bytes."""

    file: str
    sha256: str

    def matches(self, path: PathLike) -> bool:
        """Whether a file has the same bytes, whatever its name."""
        return hash_file(path) == self.sha256


@dataclass(frozen=True, slots=True)
class NumbersRequest:
    """What was asked about answers that are numbers: intervals at a radius, or radii of a tolerance.

    Attributes
    ----------
    radius : float or None
        Of intervals; None within limits alone, and where a tolerance was given.
    tolerance : float or None
        Of radii; None for intervals.
    """

    radius: float | None
    tolerance: float | None


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """What certificates are about.

    Attributes
    ----------
    version : str
        Of the package that made them.
    model, data, certified : FileMark
    n_rows : int
    rule, proof : str
    noise : Noise or None
    threat : Threat
        Resolved: columns by number, categories by code.
    numbers : NumbersRequest or None
        None where answers are labels.
    """

    version: str
    model: FileMark
    data: FileMark
    certified: FileMark
    n_rows: int
    rule: str
    proof: str
    noise: Noise | None
    threat: Threat
    numbers: NumbersRequest | None = None


def find_record(certified: PathLike) -> Path:
    """Where the record of a certified table stands: beside it, with `.json` after its name."""
    return Path(f"{os.fspath(certified)}.json")


def hash_file(path: PathLike) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    with open_plain(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def mark_file(path: PathLike) -> FileMark:
    """A file's mark."""
    return FileMark(Path(path).name, hash_file(path))


def save_record(record: CertificateRecord, path: PathLike) -> None:
    """Write a record, whole or not at all."""
    content: dict[str, object] = {"schema": RECORD_SCHEMA}
    for name, entry in _LAYOUT.items():
        value = getattr(record, entry.attribute)
        if value is not None or name not in _OPTIONAL:
            content[name] = entry.write(value)
    with replace_when_done(path) as draft:
        draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="ascii")


def _describe_numbers(asked: NumbersRequest) -> dict[str, float | str | None]:
    """JSON has no infinity: a radius without end is a word."""
    return {"radius": "inf" if asked.radius == math.inf else asked.radius, "tolerance": asked.tolerance}


def load_record(path: PathLike) -> CertificateRecord:
    """Read a record that `save_record` wrote.

    Raises ValueError where the file is not a record; the message names the field.
    """
    try:
        missing = (
            f"{os.fspath(path)} does not exist: `derand certify` writes it, beside the certificates that it is about."
        )
        return _build_record(parse_document(read_bytes(path, MAX_RECORD_BYTES, missing)))
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a record of certificates: {error}") from None


def _build_record(document: object) -> CertificateRecord:
    needed = [name for name in _LAYOUT if name not in _OPTIONAL]
    fields = Field(document, "").members("schema", *needed, optional=_OPTIONAL)
    fields["schema"].choice([RECORD_SCHEMA])
    values = {one.attribute: one.read(fields[name]) for name, one in _LAYOUT.items() if name in fields}
    record = CertificateRecord(**values)
    for name, held in (("noise", record.noise), ("threat", record.threat)):
        if held is not None and isinstance(held.units, NamedUnits):
            fields[name].refuse("have `units` of one number per column")
    return record


def _build_numbers(field: Field) -> NumbersRequest:
    fields = field.members("radius", "tolerance")
    radius, tolerance = fields["radius"].or_none(_build_radius), fields["tolerance"].or_none(Field.number)
    if radius is not None and tolerance is not None:
        fields["tolerance"].refuse("be null where there is a radius")
    return NumbersRequest(radius, tolerance)


def _build_radius(field: Field) -> float:
    return math.inf if field.value == "inf" else field.number()


def _build_mark(field: Field) -> FileMark:
    fields = field.members("file", "sha256")
    return FileMark(fields["file"].text(), fields["sha256"].text())


class _Entry(NamedTuple):
    """The attribute of a record that a field holds, and how it is written and read."""

    attribute: str
    write: Callable[[Any], object]
    read: Callable[[Field], Any]


def _as_it_is(value: object) -> object:
    return value


_LAYOUT: Mapping[str, _Entry] = {
    "derand": _Entry("version", _as_it_is, Field.text),
    "model": _Entry("model", asdict, _build_mark),
    "data": _Entry("data", asdict, _build_mark),
    "certified": _Entry("certified", asdict, _build_mark),
    "rows": _Entry("n_rows", _as_it_is, Field.whole),
    "rule": _Entry("rule", _as_it_is, lambda field: field.choice(["vote", "mean"])),
    "proof": _Entry("proof", _as_it_is, lambda field: field.choice(["best", "paper"])),
    "noise": _Entry(
        "noise",
        lambda noise: None if noise is None else describe_noise(noise),
        lambda field: field.or_none(build_noise),
    ),
    "threat": _Entry("threat", lambda threat: describe_threat(threat, "threat"), build_threat),
    "numbers": _Entry("numbers", _describe_numbers, _build_numbers),
}
"""The fields of a file, in their order."""
_OPTIONAL = ("numbers",)
