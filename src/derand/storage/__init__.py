"""Models on disk: `save` and `load`, as JSON with the schema "derand/2"; files of "derand/1" are read as well.

Owns the layout of the file, its limits and every check of what is read: a file that was cut, edited or made up gives a
ValueError that names the field, and loading never executes anything. Must not know how models are trained or used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from derand.files import PathLike, replace_when_done
from derand.model import is_model
from derand.storage._classifiers import build_classifier, describe_classifier, list_estimators
from derand.storage._fields import Field, shorten
from derand.storage._models import MODEL_BUILDERS, describe_model

__all__ = ["MAX_BYTES", "SCHEMA", "load", "save"]

SCHEMA = "derand/2"
READABLE = ("derand/1", SCHEMA)
"""Schemas that are read."""
MAX_BYTES = 2**26
"""Largest file that is written or read, 64 MiB: some two million cells."""


def save(model: Any, path: PathLike) -> None:
    """Write a model to a JSON file, whole or not at all; every number comes back bit for bit.

    Parameters
    ----------
    model : AdditiveEnsemble, WeightedVote or a fitted classifier of derand
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
    document = {"schema": SCHEMA, **_describe(model)}
    text = json.dumps(document, allow_nan=False) + "\n"
    if len(text) > MAX_BYTES:  # json writes plain ASCII: one byte per character
        raise ValueError(f"`model` takes {len(text)} bytes, more than the {MAX_BYTES} that a file may have.")
    with replace_when_done(path) as draft:
        draft.write_text(text, encoding="ascii")


def load(path: PathLike) -> Any:
    """Read a model that `save` wrote; the same kind comes back.

    Parameters
    ----------
    path : path-like
        A file of at most 64 MiB.

    Returns
    -------
    AdditiveEnsemble, WeightedVote or a fitted classifier

    Raises
    ------
    ValueError
        Where the file is not a sound model; the message names the field, such as `model.terms[3].edges`.
    """
    try:
        return _build(_read_json(Path(path)))
    except RecursionError:
        raise ValueError(f"{os.fspath(path)} is not a model file: it is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a model file: {error}") from None


def _read_json(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"The model file {path} does not exist: check its name and folder.") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes.")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_as_object)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start}).") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it holds {text}, which is not a number of JSON.")


def _as_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {shorten(twice)} stands twice in one object.")
    return result


def _describe(model: Any) -> dict[str, Any]:
    """Kind and content of a model."""
    if is_model(model):
        return describe_model(model)
    if type(model) in list_estimators().values():
        return {"kind": "classifier", "model": describe_classifier(model)}
    raise TypeError(
        "`model` must be an AdditiveEnsemble, a WeightedVote or a fitted classifier of derand, "
        f"got {type(model).__name__}."
    )


def _build(document: Any) -> Any:
    schema = document.get("schema") if isinstance(document, dict) else None
    fields = Field(document, "", schema if schema in READABLE else SCHEMA).members("schema", "kind", "model")
    if fields["schema"].value not in READABLE:
        fields["schema"].refuse(f"be {SCHEMA!r} or 'derand/1' (another version of derand wrote this file)")
    builders = {**MODEL_BUILDERS, "classifier": build_classifier}
    return builders[fields["kind"].choice(list(builders))](fields["model"])
