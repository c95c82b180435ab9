"""Models on disk: exact round trips, whole writes, and clear errors for anything that is not a sound file."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import AdditiveEnsemble, Laplace, StepFunction, load, save, storage
from derand.estimators import StumpClassifier
from tests.storage.models import (
    as_bytes,
    compute_checksum,
    drop_field,
    make_classifier,
    make_ensemble,
    make_frame,
    make_vote,
    make_with_gaps,
    set_field,
    write_changed,
)

doubles = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("make", [make_ensemble, make_with_gaps, make_vote, make_classifier])
def test_a_round_trip_is_exact_to_the_bit(make: Callable[[], Any], tmp_path: Path) -> None:
    """What is loaded has the same kind and the same bits as what was saved."""
    model = make()
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert type(loaded) is type(model)
    assert as_bytes(loaded) == as_bytes(model)


@given(edges=st.lists(doubles, unique=True, max_size=8).map(sorted), threshold=st.none() | st.integers(-(2**53), 2**53))
def test_any_double_comes_back(edges: list[float], threshold: int | None, tmp_path: Path) -> None:
    """Every finite split point and every threshold, also none, survives the file."""
    edges = [edge for at, edge in enumerate(edges) if at == 0 or edge > edges[at - 1]]
    model = AdditiveEnsemble((StepFunction(0, edges, range(len(edges) + 1)),), threshold, n_features=1)
    save(model, tmp_path / "model.json")
    assert as_bytes(load(tmp_path / "model.json")) == as_bytes(model)


@pytest.mark.parametrize(
    "labels",
    [
        ("no", "yes"),
        (0, 1),
        (-1, 1),
        (1.0, 2.0),
        (False, True),
        np.array(["a", "b"], dtype=object),
        np.array([3, 7], dtype=np.uint8),
        np.array([-1, 3], dtype=np.float32),
        ("é\n", "\U0001f600"),
    ],
)
def test_a_classifier_keeps_its_labels(labels: Any, tmp_path: Path) -> None:
    """Text, whole numbers, floats and truth values come back with their type, and predictions with them."""
    model = make_classifier(labels)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert as_bytes(loaded) == as_bytes(model)
    assert loaded.predict(make_frame()).tolist() == model.predict(make_frame()).tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": Laplace(0.5), "scaling": "range", "split_step": None},
        {"noise": "uniform:2", "class_weight": {"yes": 3.0, "no": 0.5}, "categorical_features": ["color", 2, "floor"]},
        {"noise": Laplace(0.5, units=(1, 2, 3, 4, 5.5)), "levels": np.int64(7), "categorical_leaf": None, "n_jobs": 1},
        {"categorical_features": np.array([False, True, True, True, False])},
        {"categorical_features": ("color", "known", "floor")},
    ],
)
def test_a_classifier_keeps_its_parameters_and_certificates(parameters: dict[str, Any], tmp_path: Path) -> None:
    """Noise with units, weights, lists, masks: all come back, and so do the certificates, to the bit."""
    model = make_classifier(**parameters)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.noise_ == model.noise_
    assert loaded.encoding_.categories == model.encoding_.categories
    assert loaded.ignored_features_ == model.ignored_features_
    before, after = model.certify(make_frame(), l0=2), loaded.certify(make_frame(), l0=2)
    assert before.radius.tobytes() == after.radius.tobytes()
    assert repr(loaded.get_params()).replace("np.int64(7)", "7") == repr(model.get_params()).replace("np.int64(7)", "7")


def test_a_classifier_of_nameless_columns_stays_nameless(tmp_path: Path) -> None:
    """A model trained on an array has no column names, before and after."""
    model = StumpClassifier().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.encoding_.names is None
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.predict([[0.5], [6.0]]).tolist() == [0, 1]


def test_a_classifier_that_is_not_fitted_or_not_plain_is_refused(tmp_path: Path) -> None:
    """What could not be loaded is not saved: no model yet, a parameter that is an arbitrary object, a subclass."""
    path = tmp_path / "model.json"
    with pytest.raises(ValueError, match="call `fit` first"):
        save(StumpClassifier(), path)
    strange = make_classifier()
    strange.n_jobs = object()
    with pytest.raises(ValueError, match="`n_jobs` cannot be saved: a object"):
        save(strange, path)

    class Derived(StumpClassifier):
        pass

    with pytest.raises(TypeError, match="got Derived"):
        save(Derived().fit([[0.0], [1.0]], [0, 1]), path)
    assert not path.exists()


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fails in the middle, the earlier model is still there, whole, with no leftovers."""
    path = tmp_path / "model.json"
    save(make_ensemble(), path)
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(make_vote(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_a_link_keeps_pointing_at_the_file_that_is_replaced(tmp_path: Path) -> None:
    """Saving through a symbolic link replaces its target, not the link."""
    (tmp_path / "link.json").symlink_to(tmp_path / "model.json")
    save(make_ensemble(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert as_bytes(load(tmp_path / "model.json")) == as_bytes(make_ensemble())


def test_a_missing_folder_or_a_folder_as_target_is_named(tmp_path: Path) -> None:
    """A path that cannot be written gives an OSError with the path."""
    with pytest.raises(FileNotFoundError, match=r"absent.model\.json: No such file"):
        save(make_ensemble(), tmp_path / "absent" / "model.json")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(make_ensemble(), tmp_path)


@pytest.mark.parametrize("model", [None, {"a": 1}, StepFunction(0, [], [1]), AdditiveEnsemble])
def test_only_models_are_saved(model: Any, tmp_path: Path) -> None:
    """Anything else is refused before a file appears."""
    with pytest.raises(TypeError, match="`model` must be an AdditiveEnsemble"):
        save(model, tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_a_model_too_large_for_the_limit_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be read back is not written either."""
    monkeypatch.setattr(storage, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="more than the 100 that a file may have"):
        save(make_ensemble(), tmp_path / "model.json")


EDGES = ("model", "terms", 0, "edges")
DAMAGE = {
    "another schema": (set_field("schema", value="derand/3"), "`schema` must be 'derand/2', got"),
    "no checksum": (drop_field("sha256"), "`sha256` is missing"),
    "no schema": (drop_field("schema"), "`schema` is missing"),
    "unknown kind": (set_field("kind", value="pickle"), "`kind` must be one of additive_ensemble, weighted_vote"),
    "kind of the wrong type": (set_field("kind", value=["x"]), "`kind` must be one of"),
    "extra field at the top": (set_field("code", value="import os"), "`code` is unknown"),
    "model is a list": (set_field("model", value=[]), "`model` must be an object with the fields n_features"),
    "missing terms": (drop_field("model", "terms"), r"`model\.terms` is missing"),
    "extra field": (set_field("model", "noise", value=1), r"`model\.noise` is unknown"),
    "strange field name": (set_field("model", "a\nb`c" * 99, value=1), r'`model\."a\\nb`ca.*\.\.\.` is unknown'),
    "terms is text": (set_field("model", "terms", value="x"), r'`model\.terms` must be a list, got "x"'),
    "term without kind": (drop_field("model", "terms", 1, "kind"), r"`model\.terms\[1\]\.kind` is missing"),
    "term is a number": (set_field("model", "terms", 1, value=3), r"`model\.terms\[1\]` must be an object, got 3"),
    "unknown term": (set_field("model", "terms", 0, "kind", value="tree"), r"`model\.terms\[0\]\.kind` must be one of"),
    "unsorted edges": (set_field(*EDGES, value=[1, 0, 2, 3, 4]), r"`model\.terms\[0\]\.edges`: .*strictly increase"),
    "text among edges": (set_field(*EDGES, 1, value="0"), r'`model\.terms\[0\]\.edges\[1\]` must be a finite .*"0"'),
    "truth among edges": (set_field(*EDGES, 1, value=True), r"`model\.terms\[0\]\.edges\[1\]` must be a finite"),
    "nested edges": (
        set_field(*EDGES, 1, value=[[1]]),
        r"`model\.terms\[0\]\.edges\[1\]` must be like .* got a list of 1",
    ),
    "whole edge beyond doubles": (set_field(*EDGES, 4, value=2**53 + 1), r"`model\.terms\[0\]\.edges\[4\]` must be"),
    "too few scores": (set_field("model", "terms", 0, "scores", value=[[1]]), r"`model\.terms\[0\]\.scores`: .*6 entr"),
    "flat scores": (
        set_field("model", "terms", 0, "scores", 0, value=1),
        r"terms\[0\]\.scores\[1\]` must be like the entry before it, 1, got a list",
    ),
    "two outputs": (
        set_field("model", "terms", 0, "scores", 0, value=[1, 2]),
        r"scores\[1\]` must be like .* a list of 2",
    ),
    "fractional score": (
        set_field("model", "terms", 0, "scores", 0, value=[0.5]),
        r"terms\[0\]\.scores`: .* must be whole",
    ),
    "huge score": (
        set_field("model", "terms", 0, "scores", 0, value=[2**60]),
        r"scores\[0\]\[0\]` must be .* within 2\*\*53",
    ),
    "endless score": (
        set_field("model", "terms", 0, "scores", 0, value=[10**4000]),
        r"scores\[0\]\[0\]` must be a finite",
    ),
    "negative feature": (set_field("model", "terms", 0, "feature", value=-1), r"`model\.terms\[0\]\.feature`: "),
    "feature in two terms": (set_field("model", "terms", 0, "feature", value=1), r"`model`: Feature 1 is in two terms"),
    "feature out of range": (set_field("model", "n_features", value=2), r"`model.*: A term .* reads feature 2"),
    "no features": (set_field("model", "n_features", value=-5), r"`model\.n_features`: "),
    "levels of zero": (set_field("model", "levels", value=0), r"`model\.levels`: "),
    "levels as truth": (set_field("model", "levels", value=True), r"`model\.levels` must be a whole number"),
    "fractional threshold": (set_field("model", "decision", "level", value=0.5), r"`model\.decision\.level`: .* whole"),
    "unknown decision": (
        set_field("model", "decision", "kind", value="dice"),
        r"`model\.decision\.kind` must be one of",
    ),
    "negative error": (set_field("model", "score_error", value=-1.0), r"`model\.score_error`: "),
    "no score of a missing value": (
        set_field("model", "terms", 0, "missing", value=None),
        r"`model\.terms\[0\]\.missing` must be a finite number",
    ),
    "fractional score of a missing value": (
        set_field("model", "terms", 0, "missing", value=0.5),
        r"`model\.terms\[0\]\.missing`: .* must be whole",
    ),
    "unknown field of a term": (set_field("model", "terms", 0, "gap", value=1), r"\.gap` is unknown: .*, missing\."),
    "missing other": (drop_field("model", "terms", 1, "other"), r"`model\.terms\[1\]\.other` is missing"),
}


def test_a_file_without_cells_for_missing_values_does_not_name_them(tmp_path: Path) -> None:
    """Older readers know such files to the letter; a file that has such cells does name them."""
    save(make_ensemble(), tmp_path / "model.json")
    assert "missing" not in (tmp_path / "model.json").read_text()
    save(make_with_gaps(), tmp_path / "gaps.json")
    terms = json.loads((tmp_path / "gaps.json").read_text())["model"]["terms"]
    assert [term.get("missing") for term in terms] == [-9, 0, None]


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_gives_an_error_that_names_the_field(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    """Every wrong field is named by its path, after the name of the file."""
    path = tmp_path / "model.json"
    write_changed(path, make_ensemble(), change)
    with pytest.raises(ValueError, match=r"model\.json is not a model file: .*" + message):
        load(path)


M = "model"
CLASSIFIER_DAMAGE = {
    "an estimator from elsewhere": (set_field(M, "estimator", value="os.system"), r"`model\.estimator` must be one of"),
    "a function as estimator": (set_field(M, "estimator", value="make_certified_scorer"), r"`model\.estimator` must"),
    "an unknown parameter": (
        set_field(M, "parameters", "loud", value=1),
        r"`model\.parameters\.loud` is unknown",
    ),
    "a missing parameter": (drop_field(M, "parameters", "levels"), r"`model\.parameters\.levels` is missing"),
    "a wrong parameter": (set_field(M, "parameters", "scaling", value="log"), r"`model\.parameters`: `scaling` must"),
    "an unknown tag": (
        set_field(M, "parameters", "noise", value={"code": "x"}),
        r"`model\.parameters\.noise` must have",
    ),
    "one class": (
        set_field(M, "classes", "values", value=["a"]),
        r'`model\.classes` must hold two different labels of one kind, .* got "a"',
    ),
    "equal classes": (set_field(M, "classes", "values", value=["a", "a"]), r"`model\.classes` must hold two different"),
    "classes of nan": (
        set_field(M, "classes", value={"type": "<f8", "values": [{"float": "nan"}, {"float": "nan"}]}),
        r"`model\.classes` must hold two different .* got NaN, NaN",
    ),
    "an infinite class": (
        set_field(M, "classes", value={"type": "<f8", "values": [0.5, {"float": "inf"}]}),
        r"`model\.classes` must hold two different .* got 0\.5, Infinity",
    ),
    "no label as class": (
        set_field(M, "classes", value={"type": "|O", "values": [None, 1]}),
        r"`model\.classes` must hold two different .* got null, 1",
    ),
    "classes of two kinds": (
        set_field(M, "classes", value={"type": "|O", "values": [1, "1"]}),
        r"`model\.classes` must hold two different .* got 1, \"1\"",
    ),
    "a truth value beside a number": (
        set_field(M, "classes", value={"type": "|O", "values": [0, True]}),
        r"`model\.classes` must hold two different .* got 0, true",
    ),
    "long labels": (set_field(M, "classes", "values", value=["a", "bbbb"]), r"`model\.classes\.values` must be of the"),
    "a wild type": (
        set_field(M, "classes", "type", value="O8"),
        r"`model\.classes\.type` must be the type of an array",
    ),
    "labels of another type": (
        set_field(M, "classes", "type", value="<i8"),
        r"`model\.classes\.values` must be of the",
    ),
    "a negative noise": (set_field(M, "noise", "sigma", value=-1), r"`model\.noise\.sigma`: .*must be positive"),
    "an unknown noise": (
        set_field(M, "noise", "kind", value="cauchy"),
        r"`model\.noise\.kind` must be one of gaussian",
    ),
    "wrong units": (set_field(M, "noise", "units", value=[1.0]), r"`model\.noise` must have `units` of 5 entries"),
    "a zero unit": (set_field(M, "noise", "units", value=[1, 1, 0, 1, 1]), r"`model\.noise\.units`: .*positive"),
    "a noise of nan": (
        set_field(M, "parameters", "noise", value={"float": "nan"}),
        r"`model\.parameters\.noise` must hold finite numbers",
    ),
    "a number that is no noise": (
        set_field(M, "parameters", "noise", value=-0.5),
        r"`model\.parameters\.noise`: .*must be positive and finite",
    ),
    "text that is no noise": (
        set_field(M, "parameters", "noise", value="pink:1"),
        r"`model\.parameters\.noise`: .*pink",
    ),
    "a class weight of nan": (
        set_field(M, "parameters", "class_weight", value={"dict": [["no", {"float": "nan"}]]}),
        r"`model\.parameters\.class_weight` must hold finite numbers",
    ),
    "a name twice": (
        set_field(M, "feature_names", 1, value="x"),
        r'`model\.feature_names` must hold different names, got "x" twice',
    ),
    "too few names": (set_field(M, "feature_names", value=["x"]), r"`model\.feature_names` must hold 5 names"),
    "a number as name": (set_field(M, "feature_names", 0, value=3), r"`model\.feature_names\[0\]` must be text"),
    "a category twice": (
        set_field(M, "categories", 0, "values", value=["a", "a"]),
        r"categories\[0\]\.values` must be inc",
    ),
    "a category removed": (
        set_field(M, "categories", 0, "values", value=["a"]),
        r"categories` must hold as many values for feature \d as its category table has",
    ),
    "mixed categories": (
        set_field(M, "categories", 0, "values", value=["a", 1]),
        r"categories\[0\]\.values` must be incr",
    ),
    "a category list": (
        set_field(M, "categories", 0, "values", value=[["a"]]),
        r"categories\[0\]\.values\[0\]` must be a",
    ),
    "a feature far away": (
        set_field(M, "categories", 0, "feature", value=9),
        r"categories\[0\]\.feature` must be a feature",
    ),
    "a number as category": (
        set_field(M, "categories", 0, "feature", value=0),
        r"`model\.categories` must name the feat",
    ),
    "no categories": (set_field(M, "categories", value=[]), r"`model\.categories` must name the features for which"),
    "no threshold": (
        set_field(M, "ensemble", M, "decision", value=None),
        r"ensemble\.model` must have a decision",
    ),
    "a method replaced": (set_field(M, "training", "fit", value=1), r"`model\.training\.fit` is unknown"),
    "a dunder set": (set_field(M, "training", "__class__", value=1), r"`model\.training\.__class__` is unknown"),
    "a wild float": (
        set_field(M, "training", "a_", value={"float": "1"}),
        r"`model\.training\.a_\.float` must be one of",
    ),
    "a broken dict": (set_field(M, "training", "a_", value={"dict": [[1]]}), r"training\.a_\.dict\[0\]` must be a key"),
    "uneven text in an array": (
        set_field(M, "training", "a_", value={"array": {"type": "<U9999", "values": [""] * 999 + ["a" * 9999]}}),
        r"`model\.training\.a_\.array\.values` must hold text of similar lengths",
    ),
    "a number in an array of text": (
        set_field(M, "training", "a_", value={"array": {"type": "<U9999", "values": ["a", 1]}}),
        r"`model\.training\.a_\.array\.values` must be of the type <U9999",
    ),
    "whole numbers of a category": (
        set_field(M, "whole", value=[{"feature": 1, "least": 0, "largest": 1}]),
        r"`model\.whole\[0\]\.feature` must be a numerical feature, each only once, got 1",
    ),
    "whole numbers without an order": (
        set_field(M, "whole", value=[{"feature": 0, "least": 3, "largest": 3}]),
        r"`model\.whole\[0\]\.largest` must be above `least`",
    ),
    "whole numbers that are fractions": (
        set_field(M, "whole", value=[{"feature": 0, "least": 0.5, "largest": 3}]),
        r"`model\.whole\[0\]\.least` must be a whole number",
    ),
    "a nested array": (
        set_field(M, "training", "a_", value={"array": {"type": "<f8", "values": [[1.0]]}}),
        r"`model\.training\.a_\.array\.values` must hold plain values",
    ),
}


@pytest.mark.parametrize(("change", "message"), CLASSIFIER_DAMAGE.values(), ids=CLASSIFIER_DAMAGE.keys())
def test_a_damaged_classifier_gives_an_error_that_names_the_field(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    """Nothing in the file is called or imported; every wrong field is named."""
    path = tmp_path / "model.json"
    write_changed(path, make_classifier(), change)
    with pytest.raises(ValueError, match=r"model\.json is not a model file: .*" + message):
        load(path)


def test_a_wide_type_allocates_no_more_than_its_text_needs(tmp_path: Path) -> None:
    """Arrays that a file calls 9999 letters wide are as wide as their text: memory stays in proportion to the file."""
    path = tmp_path / "model.json"
    array = {"array": {"type": "<U9999", "values": ["a"] * 50_000}}
    write_changed(path, make_classifier(), set_field("model", "training", "a_", value=array))
    tracemalloc.start()
    loaded = load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.a_.dtype == "<U1"
    assert peak < 100e6


def test_uneven_text_is_saved_as_objects(tmp_path: Path) -> None:
    """An array of which nearly all would be padding comes back with its values, as objects."""
    model = make_classifier()
    model.names_ = np.array(["x"] * 99 + ["y" * 500])
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.names_.dtype == object
    assert loaded.names_.tolist() == model.names_.tolist()


def test_columns_of_one_name_are_not_saved(tmp_path: Path) -> None:
    """What could not be loaded is not saved: `certify` finds columns by name."""
    model = make_classifier()
    model.encoding_ = dataclasses.replace(model.encoding_, names=("x", "color", "known", "floor", "x"))
    with pytest.raises(ValueError, match="two columns named 'x' and cannot be saved"):
        save(model, tmp_path / "model.json")


def test_a_missing_file_is_not_called_damaged(tmp_path: Path) -> None:
    """A path without a file is a FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.json")


def save_to_bytes(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.json")
        return (Path(folder) / "model.json").read_bytes()


CONTENTS = {"vote": save_to_bytes(make_vote()), "classifier": save_to_bytes(make_classifier(scaling="standard"))}


def load_or_refuse(path: Path) -> None:
    """Load a changed file: it is refused with a ValueError, or it is a model that survives another round trip."""
    try:
        model = load(path)
    except ValueError:
        return
    save(model, path)
    assert as_bytes(load(path)) == as_bytes(model)


@given(
    cuts=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 20), st.binary(max_size=6)), min_size=1, max_size=4),
    which=st.sampled_from(["vote", "classifier"]),
)
@settings(max_examples=300)
def test_changed_bytes_are_a_sound_model_or_a_value_error(
    cuts: list[tuple[int, int, bytes]], which: str, tmp_path: Path
) -> None:
    """However the bytes of a file are cut and replaced, no other error leaves `load`."""
    path = tmp_path / "model.json"
    content = CONTENTS[which]
    for at, length, insert in cuts:
        start = at % len(content) if content else 0
        content = content[:start] + insert + content[start + length :]
    path.write_bytes(content)
    load_or_refuse(path)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | doubles
    | st.sampled_from([math.inf, math.nan, "", "step_function", "category_table", 2**63, -(2**53)])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data())
@settings(max_examples=300)
def test_changed_fields_are_a_sound_model_or_a_value_error(data: st.DataObject, tmp_path: Path) -> None:
    """Whatever stands in place of any one field, no other error leaves `load`."""
    path = tmp_path / "model.json"
    document = json.loads(CONTENTS[data.draw(st.sampled_from(["vote", "classifier", "classifier"]))])
    at: Any = document
    while True:
        key = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        deeper = isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans())
        if not deeper:
            break
        at = at[key]
    at[key] = data.draw(json_values)
    document["sha256"] = compute_checksum(document)
    path.write_text(json.dumps(document))
    load_or_refuse(path)


def test_many_cells_are_read_and_written(tmp_path: Path) -> None:
    """A large model fits the limit and comes back."""
    edges = np.arange(300_000) / 7
    model = AdditiveEnsemble((StepFunction(0, edges, np.arange(300_001)),), threshold=5, n_features=1)
    save(model, tmp_path / "model.json")
    assert as_bytes(load(tmp_path / "model.json")) == as_bytes(model)
