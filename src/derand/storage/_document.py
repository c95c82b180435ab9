"""The document around a model: JSON text within limits, its schema and its checksum.

Owns what is checked before anything is built: how deep the text is nested and how many lists and objects it makes,
both counted on the bytes, so that a small file cannot ask for much memory; fields that stand twice; and the checksum
(`derand.storage` says of what). Must not know what a model is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from derand._core.files import PathLike, open_plain
from derand.storage._fields import Field, shorten

SCHEMA = "derand/2"
MAX_DEPTH = 64
"""How deep lists and objects may be nested; a model takes a dozen."""
MAX_LISTS = 2**23
MAX_OBJECTS = 2**20
"""How many there may be in a file: a list of Python takes some 70 bytes, an object some 300."""
MAX_RECORD_BYTES = 2**24
"""Of a file that is no model."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', flags=re.DOTALL)  # one that does not end reaches to the end
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def write_document(content: Mapping[str, object]) -> bytes:
    """The bytes of a file, for the kind and the content of a model."""
    document = {"schema": SCHEMA, "sha256": compute_checksum(content), **content}
    return json.dumps(document, allow_nan=False).encode("ascii") + b"\n"


def compute_checksum(content: Mapping[str, object]) -> str:
    """The checksum of a file's `kind` and `model`, however they were laid out."""
    canonical = {name: content[name] for name in ("kind", "model")}
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check_size(content: bytes) -> None:
    """Refuse text that would make too many lists and objects, or too deep ones, before it is parsed."""
    brackets = _TEXT.sub(b"", content).translate(None, delete=_NO_BRACKETS)
    counts = {"lists": (brackets.count(b"["), MAX_LISTS), "objects": (brackets.count(b"{"), MAX_OBJECTS)}
    for _ in range(MAX_DEPTH):
        outer = brackets.replace(b"[]", b"").replace(b"{}", b"")  # without what is innermost
        if len(outer) == len(brackets):
            break
        brackets = outer
    if b"[]" in brackets or b"{}" in brackets or len(brackets) > MAX_DEPTH:
        raise ValueError(f"it is nested too deeply: {MAX_DEPTH} lists and objects inside each other are the limit.")
    for name, (count, most) in counts.items():
        if count > most:
            raise ValueError(f"it holds {count} {name}, more than the {most} that a file may have.")


def read_bytes(path: PathLike, most: int, missing: str) -> bytes:
    """The bytes of a file that is not too large; `missing` is told where there is none."""
    try:
        with open_plain(path) as stream:
            content = stream.read(most + 1)
    except FileNotFoundError:
        raise FileNotFoundError(missing) from None
    if len(content) > most:
        raise ValueError(f"it has more than {most} bytes.")
    check_size(content)
    return content


def read_json(path: PathLike) -> object:
    """What a small JSON file of this package holds, within the same limits as models; whoever asks checks the rest."""
    return parse_document(read_bytes(path, MAX_RECORD_BYTES, f"{path} does not exist."))


def parse_document(content: bytes) -> object:
    """The JSON document in the bytes of a file."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_as_object)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start}).") from None
    except json.JSONDecodeError:
        if content.lstrip().startswith(b"{"):  # damaged: the place helps
            raise
        raise ValueError("it holds something else than `save` and `derand train` write.") from None


def open_document(document: Any) -> dict[str, Field]:
    """The fields of a document of this schema, with the checksum of its content."""
    if isinstance(document, dict) and document.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(
            f"`schema` must be {SCHEMA!r}, got {shorten(document['schema'])}: another version of derand wrote this "
            "file. Train or import the model again with this version, or read the file with that one."
        )
    fields = Field(document, "").members("schema", "sha256", "kind", "model")
    _check_checksum(fields["sha256"].text(), document)
    return fields


def _check_checksum(stated: str, document: Mapping[str, object]) -> None:
    found = compute_checksum(document)
    if stated != found:
        raise ValueError(
            "its content does not match its checksum (`sha256`): the file was damaged, or edited by hand. Take a copy "
            "that is whole, or train and save the model again. If you meant to change it, the checksum of what it "
            f"holds now is {found}."
        )


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it holds {text}, which is not a number of JSON.")


def _as_object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the field {shorten(name)} stands twice in one object.")
            seen.add(name)
    return result
