"""The document around a model: its layout, its checksum, and the limits of its text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from derand import AdditiveEnsemble, load, save, storage
from derand.storage import _document
from tests.counting import CountedName, count_names
from tests.storage.models import (
    as_bytes,
    compute_checksum,
    make_classifier,
    make_ensemble,
    set_field,
    write_changed,
)


def test_the_file_is_versioned_json_with_scores_per_output(tmp_path: Path) -> None:
    """The schema stands first and scores are lists of lists, cells x outputs."""
    save(make_ensemble(), tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert list(document) == ["schema", "sha256", "kind", "model"]
    assert document["sha256"] == compute_checksum(document)
    assert document["schema"] == "derand/2"
    assert document["model"]["decision"] == {"kind": "threshold", "level": 3}
    assert document["model"]["terms"][1]["scores"] == [[3], [-3], [0]]


TEXTS = {
    "empty": (b"", "it holds something else than `save`"),
    "not JSON": (b"label,x\n1,2\n", "it holds something else than `save`"),
    "not text": (b"\xff\xfe\x00", "not UTF-8 text"),
    "a list": (b"[]", "`the file` must be an object"),
    "nan": (b'{"schema": NaN}', "it holds NaN"),
    "a field twice": (b'{"schema": 1, "schema": 2}', 'the field "schema" stands twice'),
    "ten million brackets": (b"[" * 10_000_000, "nested too deeply"),
    "ten million pairs": (b'{"a":' * 2_000_000, "nested too deeply"),
    "sixty-six brackets": (b"[" * 66 + b"]" * 66, "nested too deeply"),
    "brackets in an open text": (b'{"a": "' + b'\\"[' * 1000, "Unterminated string"),
    "many lists": (b"[" + b"[]," * 2**23 + b"1]", "it holds 8388609 lists, more than"),
    "many objects": (b"[" + b"{}," * (2**20 + 1) + b"1]", "it holds 1048577 objects, more than"),
    "an endless number": (b'{"schema": ' + b"9" * 10_000 + b"}", "not a model file"),
}


@pytest.mark.parametrize(("content", "message"), TEXTS.values(), ids=TEXTS.keys())
def test_what_is_not_json_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """Text that is no JSON document of ours is a ValueError, however long or deep."""
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_numbers_that_overflow_are_refused(tmp_path: Path) -> None:
    """A number that no double holds is not quietly infinite."""
    path = tmp_path / "model.json"
    save(make_ensemble(), path)
    text = path.read_text().replace("-1e+300", "-1e+999")
    document = json.loads(text)
    path.write_text(text.replace(document["sha256"], compute_checksum(document)))
    with pytest.raises(ValueError, match=r"edges\[0\]` must be a finite number, .* got -Infinity"):
        load(path)


def test_an_edited_file_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    """One changed digit is found; the message tells the checksum with which the edit would be accepted."""
    path = tmp_path / "model.json"
    save(make_ensemble(), path)
    text = path.read_text().replace('"levels": 200', '"levels": 201')
    path.write_text(text)
    with pytest.raises(
        ValueError, match=r"damaged, or edited by hand\. Take a copy .* holds now is [0-9a-f]{64}\."
    ) as told:
        load(path)
    wanted = re.findall(r"[0-9a-f]{64}", str(told.value))[-1]
    path.write_text(text.replace(json.loads(text)["sha256"], wanted))
    assert load(path).levels == 201


def test_a_file_may_be_laid_out_anew(tmp_path: Path) -> None:
    """The checksum is over the content: indents and the order of fields do not matter."""
    path = tmp_path / "model.json"
    save(make_classifier(), path)
    before = as_bytes(load(path))
    document = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(document.items())), indent=4, sort_keys=True, ensure_ascii=False))
    assert as_bytes(load(path)) == before


@pytest.mark.parametrize("schema", ["derand/1", "derand/3", 2, None, ["derand/2"]])
def test_a_file_of_another_version_is_refused_in_one_line(schema: object, tmp_path: Path) -> None:
    """The line says which version is read, which one was found, and what to do."""
    path = tmp_path / "model.json"
    write_changed(path, make_ensemble(), set_field("schema", value=schema))
    found = re.escape(json.dumps(schema) if not isinstance(schema, list) else "a list of 1 entries")
    message = f"`schema` must be 'derand/2', got {found}: another version of derand .* Train or import the model again"
    with pytest.raises(ValueError, match=message) as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_many_fields_twice_are_found_in_linear_time(tmp_path: Path) -> None:
    """Of thousands of names the last is there twice: they are compared by a table of them, not each with all."""
    path = tmp_path / "model.json"
    names = list(map(str, range(4000)))
    path.write_text("{" + ", ".join(f'"{name}": 0' for name in [*names, names[-1]]) + "}")
    with pytest.raises(ValueError, match='the field "3999" stands twice'):
        load(path)
    pairs = [(name, 0) for name in count_names([*names, names[-1]])]
    with pytest.raises(ValueError, match='the field "3999" stands twice'):
        _document._as_object(pairs)
    assert 0 < CountedName.compared <= len(names)


def test_parameters_nested_too_deeply_are_not_saved(tmp_path: Path) -> None:
    """What could not be read back is not written."""
    model = make_classifier()
    model.deep_ = [1]
    for _ in range(70):
        model.deep_ = [model.deep_]
    with pytest.raises(ValueError, match="`model` cannot be saved, because it is nested too deeply"):
        save(model, tmp_path / "model.json")


def test_a_file_above_the_limit_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is checked before anything is read as JSON."""
    path = tmp_path / "model.json"
    save(make_ensemble(), path)
    monkeypatch.setattr(storage, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(ValueError, match="more than"):
        load(path)


def test_a_cut_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    """No beginning of a file is itself a model."""
    path = tmp_path / "model.json"
    save(make_ensemble(), path)
    content = path.read_bytes().rstrip()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="not a model file"):
            load(path)


def test_the_kind_of_a_file_is_read_alone(tmp_path: Path) -> None:
    """Without the model itself; files that are none are refused as by `load`."""
    path = tmp_path / "model.json"
    for model, kind in ((make_classifier(), "classifier"), (make_ensemble(), AdditiveEnsemble.kind)):
        save(model, path)
        assert storage.read_kind(path) == kind
    path.write_text("{}")
    with pytest.raises(ValueError, match="is not a model file"):
        storage.read_kind(path)
