"""Models on disk: `save` and `load`, as JSON with the schema "derand/2".

A file is one object: `schema`, `sha256`, `kind` and `model`. The checksum is over the content, not over the bytes: the
SHA-256, in lower-case hexadecimal digits, of the JSON text {"kind":...,"model":...} with keys sorted, without spaces,
in ASCII, and with numbers as Python writes them. So a file may be indented or its fields reordered, but one changed
digit or letter is found. It guards against damage, not against malice: who edits a file on purpose is told the new
checksum.

Owns the layout of the file, its limits and every check of what is read: a file that was cut, edited or made up gives a
ValueError that names the field, and loading never executes anything. Must not know how models are trained or used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from derand._core.files import PathLike, replace_when_done
from derand._core.origin import Fitted
from derand.model import is_model
from derand.storage._document import (
    SCHEMA,
    check_size,
    open_document,
    parse_document,
    read_bytes,
    read_json,
    write_document,
)
from derand.storage._estimators import (
    CLASSIFIER,
    REGRESSOR,
    build_estimator,
    build_stored,
    describe_estimator,
    list_estimators,
)
from derand.storage._fields import Field
from derand.storage._models import MODEL_KINDS, describe_model
from derand.storage._records import (
    CertificateRecord,
    FileMark,
    NumbersRequest,
    find_record,
    load_record,
    mark_file,
    save_record,
)

__all__ = [
    "MAX_BYTES",
    "SCHEMA",
    "CertificateRecord",
    "FileMark",
    "NumbersRequest",
    "find_record",
    "hash_model",
    "load",
    "load_bytes",
    "load_record",
    "load_stored",
    "mark_file",
    "read_json",
    "read_kind",
    "save",
    "save_record",
    "write_bytes",
]

Found = TypeVar("Found")

MAX_BYTES = 2**26
"""Largest file that is written or read, 64 MiB: some two million cells."""
_KINDS = [*MODEL_KINDS, CLASSIFIER, REGRESSOR]


def save(model: object, path: PathLike) -> None:
    """Write a model to a JSON file, whole or not at all; every number comes back bit for bit.

    Parameters
    ----------
    model : AdditiveEnsemble, WeightedVote or a fitted classifier or regressor of derand
    path : path-like

    Examples
    --------
    >>> import tempfile
    >>> from derand import AdditiveEnsemble, load, save
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.json")
    ...     load(f"{folder}/model.json").terms[0].scores.ravel().tolist()
    [10, 90]
    """
    content = write_bytes(model)
    with replace_when_done(path) as draft:
        draft.write_bytes(content)


def hash_model(model: object) -> str:
    """The SHA-256, in hexadecimal digits, of the file that `save` would write; it is that of `mark_file` as well."""
    return hashlib.sha256(write_bytes(model)).hexdigest()


def write_bytes(model: object) -> bytes:
    """What `save` writes of a model."""
    content = write_document(_describe(model))
    if len(content) > MAX_BYTES:
        raise ValueError(f"`model` takes {len(content)} bytes, more than the {MAX_BYTES} that a file may have.")
    try:
        check_size(content)
    except ValueError as error:
        raise ValueError(f"`model` cannot be saved, because {error}") from None
    return content


def load_bytes(content: bytes) -> object:
    """The model of which `write_bytes` gave the content of a file."""
    return _build(open_document(parse_document(content)))


def load(path: PathLike) -> Fitted:
    """Read a model that `save` wrote; the same kind comes back.

    Parameters
    ----------
    path : path-like
        A file of at most 64 MiB.

    Returns
    -------
    AdditiveEnsemble, WeightedVote or a fitted classifier or regressor

    Raises
    ------
    ValueError
        Where the file is not a sound model; the message names the field, such as `model.terms[3].edges`.
    """
    return _check_file(path, _build)


def load_stored(path: PathLike) -> Any:
    """The same as `load`, but for estimators, of which what predicts and certifies is given: without scikit-learn."""
    return _check_file(path, lambda fields: _build(fields, build_stored))


def read_kind(path: PathLike) -> str:
    """What a model file holds, by its first fields: "classifier", "regressor", or a kind of bare model.

    Raises ValueError where the file is none, as for `load`; the model itself is not looked at.
    """
    return _check_file(path, lambda fields: fields["kind"].choice(_KINDS))


def _describe(model: object) -> dict[str, object]:
    """Kind and content of a model."""
    if is_model(model):
        return describe_model(model)
    from derand.estimators import as_stored

    model = as_stored(model)
    for kind in (CLASSIFIER, REGRESSOR):
        if type(model) in list_estimators(kind).values():
            return {"kind": kind, "model": describe_estimator(model)}
    raise TypeError(
        "`model` must be an AdditiveEnsemble, a WeightedVote or a fitted classifier or regressor of derand, "
        f"got {type(model).__name__}."
    )


def _check_file(path: PathLike, read: Callable[[dict[str, Field]], Found]) -> Found:
    """What is read of the fields of a file; errors say which file it is."""
    try:
        missing = f"The model file {os.fspath(path)} does not exist: check its name and folder."
        return read(open_document(parse_document(read_bytes(path, MAX_BYTES, missing))))
    except ValueError as error:
        suffix = Path(path).suffix.lower()
        is_other = "`schema` is missing" in str(error) or suffix not in ("", ".json", ".csv", ".tsv", ".parquet")
        hint = " A model file of another library is read by `derand import` first." if is_other else ""
        raise ValueError(f"{os.fspath(path)} is not a model file: {error}{hint}") from None


def _build(fields: dict[str, Field], build: Callable[[Field, str], object] = build_estimator) -> object:
    kind = fields["kind"].choice(_KINDS)
    if kind in MODEL_KINDS:
        return MODEL_KINDS[kind][1](fields["model"])
    return build(fields["model"], kind)
