"""Models on disk: `save` and `load`, as JSON with the schema "derand/1".

Owns the layout of the file, its limits and every check of what is read: a file that was cut, edited or made up gives a
ValueError that names the field, and loading never executes anything. Must not know how models are trained or used.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from derand.ensemble import AdditiveEnsemble, CategoryTable, StepFunction, Term, WeightedVote
from derand.files import PathLike, replace_when_done
from derand.noise import NOISES, Noise

IntArray = NDArray[np.int64]

SCHEMA = "derand/1"
MAX_BYTES = 2**26
"""Largest file that is written or read, 64 MiB: some two million cells."""
T = TypeVar("T")
_MAX_WHOLE = 2**63 - 1
_MAX_EXACT = 2**53


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
    kind = _kind_of(model)
    document = {"schema": SCHEMA, "kind": kind, "model": _KINDS[kind].describe(model)}
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
        return _load_document(_read_json(Path(path)))
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a model file: {error}") from None


def _read_json(path: Path) -> Any:
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes.")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_as_object)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start}).") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it holds {text}, which is not a number of JSON.")


def _as_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {_shorten(twice)} stands twice in one object.")
    return result


def _load_document(content: Any) -> Any:
    root = Field(content, "")
    fields = root.members("schema", "kind", "model")
    if fields["schema"].value != SCHEMA:
        fields["schema"].refuse(f"be {SCHEMA!r} (another version of derand wrote this file)")
    return _KINDS[fields["kind"].choice(list(_KINDS))].build(fields["model"])


@dataclass(frozen=True, slots=True)
class Field:
    """A value read from a file and where it stood; what does not hold raises a ValueError that names the place."""

    value: Any
    path: str

    def refuse(self, rule: str) -> NoReturn:
        raise ValueError(f"`{self.path or 'the file'}` must {rule}, got {_shorten(self.value)}.")

    def members(self, *names: str) -> dict[str, Field]:
        """The fields of an object that has exactly these."""
        if not isinstance(self.value, dict):
            self.refuse(f"be an object with the fields {', '.join(names)}")
        for name in names:
            if name not in self.value:
                raise ValueError(f"`{self._inside(name)}` is missing.")
        for name in self.value:
            if name not in names:
                raise ValueError(f"`{self._inside(name)}` is unknown: the fields here are {', '.join(names)}.")
        return {name: Field(self.value[name], self._inside(name)) for name in names}

    def kind(self, options: Sequence[str]) -> str:
        """The field `kind` of an object, which says what other fields it has."""
        if not isinstance(self.value, dict):
            self.refuse("be an object")
        if "kind" not in self.value:
            raise ValueError(f"`{self._inside('kind')}` is missing.")
        return Field(self.value["kind"], self._inside("kind")).choice(options)

    def items(self) -> list[Field]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.refuse("be a list")
        return [Field(value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def whole(self) -> int:
        """A whole number of at most 64 bits."""
        if not _is_whole(self.value):
            self.refuse("be a whole number within 64 bits")
        return int(self.value)

    def number(self) -> float:
        """A finite number."""
        if not _is_number(self.value):
            self.refuse("be a finite number")
        return float(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.refuse("be text")
        return str(self.value)

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse("be true or false")
        return bool(self.value)

    def choice(self, options: Sequence[str]) -> str:
        if not isinstance(self.value, str) or self.value not in options:
            self.refuse(f"be one of {', '.join(options)}")
        return self.value

    def numbers(self) -> list[float]:
        """A list of finite numbers."""
        if isinstance(self.value, list) and all(map(_is_number, self.value)):
            return [float(value) for value in self.value]
        return [item.number() for item in self.items()]

    def wholes(self) -> list[int]:
        """A list of whole numbers."""
        return [item.whole() for item in self.items()]

    def or_none(self, read: Callable[[Field], T]) -> T | None:
        return None if self.value is None else read(self)

    def _inside(self, name: str) -> str:
        shown = name if re.fullmatch(r"\w{1,40}", name, flags=re.ASCII) else _shorten(name)
        return f"{self.path}.{shown}" if self.path else shown


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_WHOLE


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_whole(value) and abs(value) <= _MAX_EXACT


def _shorten(value: Any) -> str:
    """What was given, in few words: a file may hold anything."""
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"a list of {len(value)} entries"
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _construct(constructor: Callable[..., T], field: Field, **arguments: Any) -> T:
    """Call a constructor with values from the fields of the same names; its complaint gets the place in the file."""
    try:
        return constructor(**arguments)
    except (ValueError, TypeError, OverflowError) as error:
        blamed = re.search(r"`(\w+)`", str(error))
        inside = f".{blamed[1]}" if blamed and blamed[1] in arguments else ""
        raise ValueError(f"`{field.path}{inside}`: {error}") from None


def _describe_noise(noise: Noise) -> dict[str, Any]:
    units = None if noise.units is None else list(noise.units)
    return {"kind": noise.name, noise.parameter: noise.magnitude, "units": units}


def _build_noise(field: Field) -> Noise:
    kind = NOISES[field.kind(list(NOISES))]
    fields = field.members("kind", kind.parameter, "units")
    units = fields["units"].or_none(Field.numbers)
    arguments: dict[str, Any] = {
        kind.parameter: fields[kind.parameter].number(),
        "units": None if units is None else tuple(units),
    }
    return _construct(kind, field, **arguments)


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
        return _construct(
            StepFunction,
            field,
            feature=fields["feature"].whole(),
            edges=fields["edges"].numbers(),
            scores=_read_scores(fields["scores"]),
        )
    fields = field.members("kind", "feature", "categories", "scores", "other")
    return _construct(
        CategoryTable,
        field,
        feature=fields["feature"].whole(),
        categories=fields["categories"].numbers(),
        scores=_read_scores(fields["scores"]),
        other=fields["other"].whole(),
    )


def _read_scores(field: Field) -> IntArray:
    """Scores as written, cells x outputs; a model has one output for now."""
    cells = [cell.wholes() for cell in field.items()]
    for index, cell in enumerate(cells):
        if len(cell) != 1:
            raise ValueError(f"`{field.path}[{index}]` must hold one whole number, got {len(cell)}.")
    return np.array(cells, dtype=np.int64).reshape(-1, 1)


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
    return _construct(
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
    return _construct(
        WeightedVote,
        field,
        weights=fields["weights"].numbers(),
        members=tuple(_build_ensemble(member) for member in fields["members"].items()),
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one kind of model is written as JSON and built from it again."""

    describe: Callable[[Any], dict[str, Any]]
    build: Callable[[Field], Any]


_KINDS: Mapping[str, _Kind] = {
    "additive_ensemble": _Kind(_describe_ensemble, _build_ensemble),
    "weighted_vote": _Kind(_describe_vote, _build_vote),
}


def _kind_of(model: Any) -> str:
    if isinstance(model, AdditiveEnsemble):
        return "additive_ensemble"
    if isinstance(model, WeightedVote):
        return "weighted_vote"
    raise TypeError(
        "`model` must be an AdditiveEnsemble, a WeightedVote or a fitted classifier of derand, "
        f"got {type(model).__name__}."
    )
