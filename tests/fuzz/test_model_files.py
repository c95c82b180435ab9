"""Random models and damaged files of them: read back to the bit, or refused in one clear error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note

from derand import load, save
from derand.model import Model, is_model
from tests.fuzz.drawing import Case
from tests.fuzz.strategies import CASES, RANDOMS, draw_document, share
from tests.storage.models import as_bytes, make_classifier


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models") / "model.json"


@pytest.fixture(scope="module")
def classifier(path: Path) -> dict[str, Any]:
    """The document of a trained classifier."""
    save(make_classifier(noise="gaussian:0.5"), path)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def find_scores(term: dict[str, Any], value: float) -> list[int]:
    """The scores of one value, one per output, by the fields of a term in a file, read plainly."""
    if math.isnan(value) and term.get("missing") is not None:
        found = term["missing"]
    elif "edges" in term:
        found = term["scores"][sum(edge <= value for edge in term["edges"])]
    else:
        known = [score for code, score in zip(term["categories"], term["scores"], strict=True) if code == value]
        found = known[0] if known else term["other"]
    return [int(score) for score in found] if isinstance(found, list | tuple) else [int(found)]


def find_grid_scores(term: dict[str, Any], row: list[float]) -> list[int]:
    """Those of a term of several columns, which are told flat, box after box."""
    place = 0
    for at, feature in enumerate(term["features"]):
        value, edges, takes = row[feature], term["edges"][at], term.get("missing", [0] * 9)[at]
        cell = len(edges) + 1 if math.isnan(value) else sum(edge <= value for edge in edges)
        place = place * (len(edges) + 1 + takes) + cell
    found = term["scores"][place]
    return [int(score) for score in found] if isinstance(found, list | tuple) else [int(found)]


def require_same_scores(model: Model) -> None:
    """A model scores rows as its description says."""
    random = Random(0)
    for member in model.members:
        described = [term.describe() for term in member.terms]
        refuses = set(member.refuses_missing)
        for _ in range(3):
            row = [random.choice((0.0, 1.0, 2.0, -3.5, 1e6)) for _ in range(member.n_features)]
            row = [v if at in refuses or random.random() < 0.8 else math.nan for at, v in enumerate(row)]
            totals = np.zeros(member.n_outputs, dtype=np.int64)
            for term in described:
                totals += find_grid_scores(term, row) if "features" in term else find_scores(term, row[term["feature"]])
            assert member.score(np.reshape(row, (1, -1))).ravel().tolist() == totals.tolist()


@share(0.5)
@given(case=CASES)
def test_models_come_back_to_the_bit(path: Path, case: Case) -> None:
    """What is saved, loaded and saved again is the same file."""
    save(case.model, path)
    content, again = path.read_bytes(), load(path)
    assert as_bytes(again) == as_bytes(case.model)
    require_same_scores(again)
    save(again, path)
    assert path.read_bytes() == content


@share(1.0)
@given(case=CASES, random=RANDOMS)
def test_damaged_models_are_refused_or_mean_what_they_say(path: Path, case: Case, random: Random) -> None:
    """One ValueError of one line, or a model that scores as its description says and can be saved."""
    save(case.model, path)
    require_clear_end(path, draw_document(random, json.loads(path.read_text())))


@share(0.5)
@given(random=RANDOMS)
def test_damaged_classifiers_are_refused_or_load(path: Path, classifier: dict[str, Any], random: Random) -> None:
    """The same for the file of a classifier, with its names, categories and parameters."""
    require_clear_end(path, draw_document(random, classifier))


def require_clear_end(path: Path, content: bytes) -> None:
    note(repr(content))
    path.write_bytes(content)
    told, model = "", None
    try:
        model = load(path)
    except ValueError as error:
        told = str(error) or "nothing\n"
    assert "\n" not in told, told
    assert len(told) < 2000, told
    if told:
        return
    if is_model(model):
        require_same_scores(model)
    save(model, path)
    again = load(path)
    if is_model(model):
        assert as_bytes(again) == as_bytes(model)
