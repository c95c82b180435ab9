"""Records of certificates on disk: what was asked and of which files, beside the certificates themselves.

Owns the layout of `NAME.json` beside a certified table, with the schema "derand/certified/1", and every check of what
is read. Must not know how certificates are made or audited.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from derand._core.files import PathLike, open_plain, replace_when_done
from derand._core.units import NamedUnits
from derand.noise import Noise
from derand.storage._classifiers import build_threat, describe_threat
from derand.storage._document import MAX_RECORD_BYTES, parse_document, read_bytes
from derand.storage._fields import Field
from derand.storage._models import build_noise, describe_noise
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
    content = {
        "schema": RECORD_SCHEMA,
        "derand": record.version,
        "model": asdict(record.model),
        "data": asdict(record.data),
        "certified": asdict(record.certified),
        "rows": record.n_rows,
        "rule": record.rule,
        "proof": record.proof,
        "noise": None if record.noise is None else describe_noise(record.noise),
        "threat": describe_threat(record.threat, "threat"),
        **({} if record.numbers is None else {"numbers": _describe_numbers(record.numbers)}),
    }
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


def _build_record(document: Any) -> CertificateRecord:
    names = ("schema", "derand", "model", "data", "certified", "rows", "rule", "proof", "noise", "threat")
    fields = Field(document, "").members(*names, optional=("numbers",))
    fields["schema"].choice([RECORD_SCHEMA])
    record = CertificateRecord(
        fields["derand"].text(),
        _build_mark(fields["model"]),
        _build_mark(fields["data"]),
        _build_mark(fields["certified"]),
        fields["rows"].whole(),
        fields["rule"].choice(["vote", "mean"]),
        fields["proof"].choice(["best", "paper"]),
        fields["noise"].or_none(build_noise),
        build_threat(fields["threat"]),
        _build_numbers(fields["numbers"]) if "numbers" in fields else None,
    )
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
