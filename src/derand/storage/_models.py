"""Ensembles, votes and noises as JSON, and built again from it with every value checked.

Terms and decisions describe themselves: a new one needs no line here. What a term says only sometimes, such as the
score of a missing value, is left out of a file that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from dataclasses import fields as fields_of
from typing import Any, TypeVar

from derand._core.units import NamedUnits
from derand.model import DECISIONS, TERMS, AdditiveEnsemble, Decision, Model, Term, WeightedVote
from derand.noise import NOISES, Noise
from derand.storage._fields import Field, construct

Part = TypeVar("Part", Term, Decision)


def describe_noise(noise: Noise) -> dict[str, object]:
    own = noise.units
    units = own.by_name if isinstance(own, NamedUnits) else None if own is None else list(own)
    return {"kind": noise.name, noise.parameter: noise.magnitude, "units": units}


def build_noise(field: Field) -> Noise:
    kind = NOISES[field.kind(list(NOISES))]
    fields = field.members("kind", kind.parameter, "units")
    arguments: dict[str, object] = {
        kind.parameter: fields[kind.parameter].number(),
        "units": fields["units"].or_none(_build_units),
    }
    return construct(kind, field, **arguments)


def _build_units(field: Field) -> tuple[float, ...] | dict[str, float]:
    """One number per column, or by name, as a parameter of a constructor may have them."""
    if isinstance(field.value, dict):
        return {name: one.number() for name, one in field.entries()}
    return tuple(field.numbers())


def _describe_part(part: Term | Decision) -> dict[str, object]:
    return {"kind": part.kind, **part.describe()}


def _build_part(field: Field, kinds: Mapping[str, type[Part]]) -> Part:
    """A term or a decision from the arguments of its constructor; those that have a default may be left out."""
    kind: Any = kinds[field.kind(list(kinds))]
    needed = [one.name for one in fields_of(kind) if one.default is MISSING]
    optional = [one.name for one in fields_of(kind) if one.default is not MISSING]
    fields = field.members("kind", *needed, optional=optional)
    uneven = getattr(kind, "uneven", ())
    read = {name: value.plain_numbers(uneven=name in uneven) for name, value in fields.items() if name != "kind"}
    part: Part = construct(kind, field, **read)
    return part


def _describe_ensemble(model: AdditiveEnsemble) -> dict[str, object]:
    return {
        **model.describe(),
        "decision": None if model.decision is None else _describe_part(model.decision),
        "terms": [_describe_part(term) for term in model.terms],
    }


def _build_ensemble(field: Field) -> AdditiveEnsemble:
    fields = field.members("n_features", "levels", "score_error", "decision", "terms")
    return construct(
        AdditiveEnsemble,
        field,
        n_features=fields["n_features"].whole(),
        levels=fields["levels"].whole(),
        threshold=fields["decision"].or_none(lambda one: _build_part(one, DECISIONS)),
        score_error=fields["score_error"].number(),
        terms=tuple(_build_part(term, TERMS) for term in fields["terms"].items()),
    )


def _describe_vote(model: WeightedVote) -> dict[str, object]:
    return {**model.describe(), "members": [_describe_ensemble(member) for member in model.members]}


def _build_vote(field: Field) -> WeightedVote:
    fields = field.members("weights", "members")
    return construct(
        WeightedVote,
        field,
        weights=fields["weights"].numbers(),
        members=tuple(_build_ensemble(member) for member in fields["members"].items()),
    )


def describe_model(model: Model) -> dict[str, object]:
    """An ensemble or a vote as JSON, with its kind."""
    describe: Callable[[Any], object] = MODEL_KINDS[model.kind][0]
    return {"kind": model.kind, "model": describe(model)}


def build_model(field: Field) -> Model:
    """An ensemble or a vote from its JSON."""
    fields = field.members("kind", "model")
    return MODEL_KINDS[fields["kind"].choice(list(MODEL_KINDS))][1](fields["model"])


MODEL_KINDS: Mapping[str, tuple[Callable[[Any], object], Callable[[Field], Model]]] = {
    AdditiveEnsemble.kind: (_describe_ensemble, _build_ensemble),
    WeightedVote.kind: (_describe_vote, _build_vote),
}
"""How each kind of bare model is written and read."""
