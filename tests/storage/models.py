"""Models of every kind, their bits, and files of them with changed fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from derand import AdditiveEnsemble, CategoryTable, GridTerm, StepFunction, WeightedVote, save
from derand.estimators import StumpClassifier


def make_ensemble() -> AdditiveEnsemble:
    terms = (
        StepFunction(2, [-1e300, -0.0, 5e-324, 0.1, 1 / 3], [-4, 0, 1, 2**40, -7, 3]),
        CategoryTable(0, [0, 1, 4.5], [3, -3, 0], other=2),
        StepFunction(1, [], [12]),
    )
    return AdditiveEnsemble(terms, threshold=3, n_features=4, levels=200, score_error=0.1 + 0.2)


def make_with_gaps() -> AdditiveEnsemble:
    """Terms that have cells for missing values beside one that has none."""
    terms = (
        StepFunction(0, [0.1, 2.0], [-4, 0, 3], missing=-9),
        CategoryTable(1, [0, 1], [3, -3], other=2, missing=0),
        StepFunction(2, [], [12]),
    )
    return AdditiveEnsemble(terms, threshold=3, n_features=3)


def make_vote() -> WeightedVote:
    member = AdditiveEnsemble((StepFunction(2, [0.5], [0, 1]),), threshold=0, n_features=4)
    return WeightedVote((make_ensemble(), member), [0.7, -1e-17])


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.normal(size=80),
            "color": rng.choice(["red", "green"], size=80),
            "known": rng.choice([True, False], size=80),
            "floor": pd.Categorical(rng.integers(1, 4, size=80)),
            "nothing": 1.0,
        }
    )


def make_classifier(labels: Any = ("no", "yes"), **parameters: Any) -> StumpClassifier:
    frame = make_frame()
    y = np.asarray(labels)[(frame["x"] > 0.1).astype(int)]
    return StumpClassifier(**parameters).fit(frame, y)


def as_bytes(model: Any) -> Any:
    """Everything a model holds, down to the bits of its numbers."""
    if isinstance(model, StumpClassifier):
        values = {name: as_bytes(value) for name, value in vars(model).items() if name not in ("encoding_", "_seen")}
        return (
            dict(sorted(values.items())),
            model.encoding_.names,
            repr((model.encoding_.categories, model.encoding_.whole)),
        )
    if isinstance(model, np.ndarray):
        return model.dtype, model.tolist() if model.dtype == object else model.tobytes()
    if not isinstance(model, AdditiveEnsemble | WeightedVote):
        return repr(model)
    if isinstance(model, WeightedVote):
        return model.weights.tobytes(), [as_bytes(member) for member in model.members]
    terms = []
    for term in model.terms:
        if isinstance(term, GridTerm):
            edges = [part.tobytes() for part in term.edges]
            terms.append((GridTerm, term.features, edges, term.scores.tobytes(), term.scores.shape, term.missing))
            continue
        positions = term.edges if isinstance(term, StepFunction) else term.categories
        other = None if isinstance(term, StepFunction) else term.other
        numbers = positions.tobytes(), term.scores.tobytes(), term.scores.shape
        terms.append((type(term), term.feature, *numbers, other, term.missing))
    return terms, model.threshold, model.n_features, model.levels, model.score_error.hex()


def write_changed(path: Path, model: Any, change: Callable[[Any], Any]) -> None:
    """Change the parsed document of a saved model and write it back, with the checksum of what it holds now."""
    save(model, path)
    document = json.loads(path.read_text())
    change(document)
    if "sha256" in document:
        document["sha256"] = compute_checksum(document)
    path.write_text(json.dumps(document))


def compute_checksum(document: Any) -> str:
    """The checksum as the module's docstring describes it."""
    content = {"kind": document.get("kind"), "model": document.get("model")}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def set_field(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def drop_field(*path: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return change
