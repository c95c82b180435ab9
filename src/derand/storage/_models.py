"""Ensembles, votes and noises as JSON, and built again from it with every value checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.ensemble import AdditiveEnsemble, CategoryTable, StepFunction, Term, WeightedVote
from derand.noise import NOISES, Noise
from derand.storage._fields import Field, construct

IntArray = NDArray[np.int64]


def describe_noise(noise: Noise) -> dict[str, Any]:
    units = None if noise.units is None else list(noise.units)
    return {"kind": noise.name, noise.parameter: noise.magnitude, "units": units}


def build_noise(field: Field) -> Noise:
    kind = NOISES[field.kind(list(NOISES))]
    fields = field.members("kind", kind.parameter, "units")
    units = fields["units"].or_none(Field.numbers)
    arguments: dict[str, Any] = {
        kind.parameter: fields[kind.parameter].number(),
        "units": None if units is None else tuple(units),
    }
    return construct(kind, field, **arguments)


def _describe_term(term: Term) -> dict[str, Any]:
    if isinstance(term, StepFunction):
        return {
            "kind": "step_function",
            "feature": term.feature,
            "edges": term.edges.tolist(),
            "scores": term.scores.tolist(),
        }
    return {
        "kind": "category_table",
        "feature": term.feature,
        "categories": term.categories.tolist(),
        "scores": term.scores.tolist(),
        "other": term.other,
    }


def _build_term(field: Field) -> Term:
    if field.kind(["step_function", "category_table"]) == "step_function":
        fields = field.members("kind", "feature", "edges", "scores")
        return construct(
            StepFunction,
            field,
            feature=fields["feature"].whole(),
            edges=fields["edges"].numbers(),
            scores=_read_scores(fields["scores"]),
        )
    fields = field.members("kind", "feature", "categories", "scores", "other")
    return construct(
        CategoryTable,
        field,
        feature=fields["feature"].whole(),
        categories=fields["categories"].numbers(),
        scores=_read_scores(fields["scores"]),
        other=fields["other"].whole(),
    )


def _read_scores(field: Field) -> IntArray:
    """Scores as written, cells x outputs; a model has one output for now."""
    for cell in field.items():
        if not isinstance(cell.value, list) or len(cell.value) != 1:
            cell.refuse("be a list of one whole number")
        cell.wholes()
    return np.array(field.value, dtype=np.int64).reshape(-1, 1)


def _describe_ensemble(model: AdditiveEnsemble) -> dict[str, Any]:
    return {
        "n_features": model.n_features,
        "levels": model.levels,
        "threshold": model.threshold,
        "score_error": model.score_error,
        "terms": [_describe_term(term) for term in model.terms],
    }


def _build_ensemble(field: Field) -> AdditiveEnsemble:
    fields = field.members("n_features", "levels", "threshold", "score_error", "terms")
    return construct(
        AdditiveEnsemble,
        field,
        n_features=fields["n_features"].whole(),
        levels=fields["levels"].whole(),
        threshold=fields["threshold"].or_none(Field.whole),
        score_error=fields["score_error"].number(),
        terms=tuple(_build_term(term) for term in fields["terms"].items()),
    )


def _describe_vote(model: WeightedVote) -> dict[str, Any]:
    return {"weights": model.weights.tolist(), "members": [_describe_ensemble(member) for member in model.members]}


def _build_vote(field: Field) -> WeightedVote:
    fields = field.members("weights", "members")
    return construct(
        WeightedVote,
        field,
        weights=fields["weights"].numbers(),
        members=tuple(_build_ensemble(member) for member in fields["members"].items()),
    )


def describe_model(model: AdditiveEnsemble | WeightedVote) -> dict[str, Any]:
    """An ensemble or a vote as JSON, with its kind."""
    if isinstance(model, WeightedVote):
        return {"kind": "weighted_vote", "model": _describe_vote(model)}
    return {"kind": "additive_ensemble", "model": _describe_ensemble(model)}


def build_model(field: Field) -> AdditiveEnsemble | WeightedVote:
    """An ensemble or a vote from its JSON."""
    fields = field.members("kind", "model")
    return MODEL_BUILDERS[fields["kind"].choice(list(MODEL_BUILDERS))](fields["model"])


MODEL_BUILDERS: Mapping[str, Callable[[Field], AdditiveEnsemble | WeightedVote]] = {
    "additive_ensemble": _build_ensemble,
    "weighted_vote": _build_vote,
}
