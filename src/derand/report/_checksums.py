"""Checksums of what a report was made from: files where there were any, else the model as it would be saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from derand.report._audit_types import Checksum
from derand.storage import FileMark, hash_model

Marks = Mapping[str, FileMark]
"""The files that a report was made from, by what they hold: "model", "data", "training data", "other model"."""


def list_checksums(marks: Marks, rows_sha256: str, model: Any, other: Any = None) -> list[Checksum]:
    """Checksums of the models, of files, and of the rows.

    `marks`: of files. `rows_sha256`: of the rows as the model reads them, and of what is known to be true of them.
    `model`, `other`: what was reported on, and what it was compared with, if anything: hashed as they would be saved
    where they came from no file. One that cannot be saved has no checksum.
    """
    found = [
        _mark_model("model", marks, model),
        None if other is None else _mark_model("other model", marks, other),
        *(_mark(what, mark) for what, mark in marks.items() if what not in ("model", "other model")),
    ]
    rows: Checksum = {
        "what": "rows",
        "file": None,
        "sha256": rows_sha256,
        "of": "the rows and labels as they were read",
    }
    return [*(one for one in found if one is not None), rows]


def _mark(what: str, mark: FileMark) -> Checksum:
    return {"what": what, "file": mark.file, "sha256": mark.sha256, "of": "the bytes of the file"}


def _mark_model(what: str, marks: Marks, model: Any) -> Checksum | None:
    if what in marks:
        return _mark(what, marks[what])
    try:
        return {"what": what, "file": None, "sha256": hash_model(model), "of": "the file that `save` would write"}
    except (TypeError, ValueError):
        return None
