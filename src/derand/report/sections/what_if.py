"""What the page needs to answer for rows that its reader moves: the model's tables, the rows, what may change.

Owns which of that goes into a page, and how much of it. Must not compute answers: the page's script does, from these
tables. It proves nothing: what is proven are the certificates of the rows themselves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.text import as_plain_json, format_count
from derand.model import AdditiveEnsemble, Model, Term
from derand.report import _blocks as ui
from derand.report._facts import Facts, Size
from derand.report._inputs import Inputs
from derand.report._markup import render
from derand.report._packing import count_bytes, pack
from derand.report._settings import ReportSettings
from derand.threat import EVERY

Decides = Literal["score", "line", "mean", "vote", "median", "none"]
"""What the page computes: the score, a sum of products, the expected score, the share of copies, their median; or no
answer."""


class WhatIfOption(TypedDict):
    """A value of a category, and whether a change to it is covered by certificates."""

    code: float | None
    text: str
    allowed: bool


class WhatIfColumn(TypedDict):
    """A column that the model reads: how it is moved, and what the threat says of it.

    Of numbers, `limit` is a share of the value ("share") or how far down and up ("down", "up").
    """

    feature: int
    name: str
    kind: Literal["number", "category"]
    frozen: bool
    date: NotRequired[bool]
    """Whether it was a column of dates, and its numbers are days since 1970-01-01."""
    low: NotRequired[float]
    high: NotRequired[float]
    middle: NotRequired[float]
    grain: NotRequired[float]
    whole: NotRequired[bool]
    ends: NotRequired[list[float] | None]
    """What it cannot leave: 0 and 1, where training rows held nothing else."""
    takes_missing: NotRequired[bool]
    unit: NotRequired[float]
    noise_scale: NotRequired[float | None]
    limit: NotRequired[dict[str, Size] | None]
    domain: NotRequired[list[float | str] | None]
    step: NotRequired[float]
    options: NotRequired[list[WhatIfOption]]


class WhatIfTerm(TypedDict):
    """A function of the sum; `at` are places among the columns.

    Of numbers: the edges of each axis, whether it ends with a cell for missing values, and the scores of all cells, one
    output after the other within a cell. Of a category: the scores of its options. Of a line: slopes instead.
    """

    at: list[int]
    edges: NotRequired[list[list[float]]]
    gaps: NotRequired[list[bool]]
    scores: NotRequired[list[int]]
    slopes: NotRequired[list[float]]
    missing: NotRequired[list[float] | None]


class WhatIfMember(TypedDict):
    """A sum: what it is compared with (of several classes, what is added to each), and the ends of its range."""

    shift: list[int]
    low: float
    high: float
    terms: list[WhatIfTerm]


class WhatIf(TypedDict):
    """All that the page needs to answer for moved rows of the row table, the first ones of it: a list of `cells` per
    column, in the order of the table."""

    answer: Literal["label", "number"]
    decides: Decides
    noise: str | None
    norm: Size | None
    missing_budget: int
    budgets: list[int]
    points: float
    odds: list[float] | None
    """Slope and shift from a score's lead to log-odds; None where the classifier gives no probabilities."""
    n_outputs: int
    weights: list[float] | None
    columns: list[WhatIfColumn]
    members: list[WhatIfMember]
    n_rows: int
    cells: list[list[float | None]]
    sentence: str


class Parts(Facts):
    """What this section reads."""

    what_if: WhatIf | None


MOST_BYTES = 2_000_000
"""Of a page that the tables may take, as JSON."""
MOST_ROW_BYTES = 4_000_000
"""Of a page that the rows may take, packed."""
_MOST_NUMBERS = MOST_BYTES // 2
_SOME_ROWS = 2_000
_GRAINS = 200
_OF_ODDS = " The score counts from a point of its own: differences of it are log-odds, before calibration."
_NEW, _MISSING = "(new)", "(missing)"
_NOT_ASKED = "“What if”, and with it the model's tables, was left out on request."


def compute(inputs: Inputs, listed: Sequence[int], settings: ReportSettings) -> tuple[WhatIf | None, list[str]]:
    """What the page needs to move as many of the listed rows, which count from 1, as there is room for; and why not."""
    model = inputs.subject.model
    why = _explain_left_out(model) if settings.what_if else _NOT_ASKED
    if why is not None:
        return None, [why]
    columns = _list_columns(inputs)
    members = [_list_member(member, columns) for member in model.members]
    threat = inputs.threat
    found: WhatIf = {
        "answer": "number" if model.n_classes == 0 else "label",
        "decides": _choose_decision(inputs),
        "noise": None if inputs.subject.noise is None else inputs.subject.noise.name,
        "norm": None if threat.norm is None else float(threat.ball_norm or 0),
        "missing_budget": threat.missing_budget,
        "budgets": inputs.budgets,
        "points": float(model.members[0].levels) if model.n_classes == 0 else inputs.subject.points,
        "odds": _read_odds(inputs),
        "n_outputs": model.members[0].n_outputs,
        "weights": None if model.weights is None else model.weights.tolist(),
        "columns": columns,
        "members": members,
        "n_rows": 0,
        "cells": [],
        "sentence": _describe_how(inputs),
    }
    taken = _measure(found)
    if taken <= MOST_BYTES:
        matrix = inputs.matrix[np.asarray(listed) - 1]
        cells = [_place_values(column, matrix[:, column["feature"]]) for column in columns]
        found["n_rows"] = _count_fitting(cells, len(listed))
        found["cells"] = [column[: found["n_rows"]] for column in cells]
    if not found["n_rows"]:
        return None, [_describe_too_large(taken)]
    if found["n_rows"] == len(listed):
        return found, []
    note = f"“What if” offers the first {format_count(found['n_rows'])} rows of the table: the page stays small."
    return found, [note]


def _explain_left_out(model: Model) -> str | None:
    """Why a model cannot be moved in the page; None where it can."""
    if not any(term.features for term in model.member_terms):
        return "“What if” is left out: the model reads no column."
    if model.has_trees:
        return "“What if” is left out: trees join many columns, and the page computes functions of a few columns only."
    too_large = sum(_count_numbers(term) for term in model.member_terms) > _MOST_NUMBERS
    return _describe_too_large(None) if too_large else None


def _count_fitting(cells: Sequence[list[float | None]], n_rows: int) -> int:
    """Of how many rows, the first ones, there is room for the cells."""
    per_row = sum(count_bytes(pack(column)) for column in cells) / n_rows
    return min(n_rows, int(MOST_ROW_BYTES / per_row))


def _read_odds(inputs: Inputs) -> list[float] | None:
    """Slope and shift from a lead to calibrated log-odds, where the answer is the classifier's own."""
    estimator = inputs.subject.estimator
    if estimator is None or inputs.subject.additive is None:
        return None
    from derand.fitted import read_odds

    is_own = inputs.rule == estimator.rule and inputs.subject.noise == estimator.noise_
    found = read_odds(estimator) if is_own else None
    return None if found is None else list(found)


def _describe_too_large(taken: int | None) -> str:
    size = "" if taken is None else f" {math.ceil(taken / 1e5) / 10} MB,"
    return (
        f"“What if” is left out: the model's tables would take{size} more than {MOST_BYTES // 10**6} MB of this page."
    )


def _measure(value: object) -> int:
    return len(json.dumps(as_plain_json(value), separators=(",", ":")))


def _count_numbers(term: Term) -> int:
    if term.slope is not None:
        return term.n_outputs
    return int(term.scores.size) + sum(int(axis.edges.size) for axis in term.axes)


def _choose_decision(inputs: Inputs) -> Decides:
    model = inputs.subject.model
    if model.is_linear:
        return "line"
    if inputs.subject.noise is None:
        return "score"
    if inputs.rule == "mean":
        return "mean"
    if model.n_classes == 0:
        return "median"
    return "vote" if model.n_classes == 2 else "none"


def _describe_how(inputs: Inputs) -> str:
    """What the page computes, and how exactly, in words."""
    model, decides = inputs.subject.model, _choose_decision(inputs)
    whose = "each member's " if model.weights is not None else "the "
    told = {
        "score": f"{whose}score is the sum of whole numbers from the model's own tables, exactly what `predict` adds.",
        "line": (
            f"{whose}score is the sum of the columns times their weights, to some 15 digits"
            f"{'; noise does not move it on average' if inputs.subject.noise is not None else ''}."
        ),
        "mean": (
            f"{whose}expected score, the mean over all noisy copies, is computed from the model's own tables, to "
            "some 10 digits."
        ),
        "vote": (
            f"{whose}share of noisy copies is computed from the distribution of the score, by the model's own tables; "
            "if its grid is very fine, on a coarser one, and shown as a range that holds the true one."
        ),
        "median": (
            "the median of noisy copies is computed from the distribution of the score, by the model's own tables; if "
            "its grid is very fine, on a coarser one, and shown as a range that holds the true one."
        ),
        "none": (
            "the scores are those without noise. The vote of noisy copies among several classes is not computed in "
            "this page: ask `predict`."
        ),
    }[decides]
    if model.n_classes == 0:
        return f"{told[0].upper()}{told[1:]}".replace("score", "value")
    told += "" if inputs.subject.points == 1 else _OF_ODDS
    sure = " Where that does not decide, the page says so." if decides not in ("score", "none") else ""
    return f"{told[0].upper()}{told[1:]}{sure}"


def _list_columns(inputs: Inputs) -> list[WhatIfColumn]:
    """The columns that the model reads, those first whose functions vary most over the rows."""
    model = inputs.subject.model
    some = inputs.matrix[:: max(1, -(-inputs.n_rows // _SOME_ROWS))]
    spread: dict[int, float] = {}
    for term in model.member_terms:
        size = float(np.asarray(term.score_rows(some), dtype=np.float64).std(axis=0).sum())
        for feature in term.features:
            spread[feature] = max(spread.get(feature, 0.0), size)
    categorical = set(model.categorical_features)
    ranked = sorted(spread, key=lambda feature: (-spread[feature], feature))
    return [
        _describe_category(inputs, feature) if feature in categorical else _describe_number(inputs, feature)
        for feature in ranked
    ]


def _describe_number(inputs: Inputs, feature: int) -> WhatIfColumn:
    subject, threat = inputs.subject, inputs.threat
    every = inputs.matrix[:, feature]
    values = every[np.isfinite(every)]
    low, high = _choose_range(inputs, feature, values)
    whole = feature in inputs.whole
    ends = [0.0, 1.0] if inputs.whole.get(feature) == (0, 1) else None
    low, high = (low, high) if ends is None else (0.0, 1.0)
    limit = threat.limits.get(feature, threat.limits.get(EVERY))
    middle = float(np.sort(values)[values.size // 2]) if values.size else low
    scale = None if subject.noise is None else float(subject.noise.scales(np.array([feature]))[0])
    return {
        "feature": feature,
        "name": subject.names[feature],
        "kind": "number",
        "date": feature in subject.dates,
        "frozen": not threat.may_move(feature),
        "low": low,
        "high": high,
        "middle": middle,
        "grain": _choose_grain(low, high, whole, float(threat.steps.get(feature, 0.0))),
        "whole": whole,
        "ends": ends,
        "takes_missing": feature in subject.model.missing_features,
        "unit": float(inputs.units[feature]),
        "noise_scale": scale,
        "limit": None if limit is None else _describe_limit(limit),
        "domain": list(threat.domain[feature]) if feature in threat.domain else None,
        "step": float(threat.steps.get(feature, 0.0)),
    }


def _describe_limit(limit: object) -> dict[str, Any]:
    """A limit as `Perturbation.box` reads it, to the last bit."""
    if isinstance(limit, str):
        return {"share": float(limit.rstrip("%")) / 100}
    down, up = limit if isinstance(limit, tuple) else (limit, limit)
    return {"down": down, "up": up}


def _choose_range(inputs: Inputs, feature: int, values: FloatArray) -> tuple[float, float]:
    """Between which numbers a slider moves: those of the rows, or the edges where the rows hold but one."""
    ends = values if values.size and values.min() < values.max() else np.empty(0)
    if not ends.size:
        edges = [axis.edges for term in inputs.subject.model.member_terms for axis in term.axes]
        own = [one.feature == feature for term in inputs.subject.model.member_terms for one in term.axes]
        ends = np.concatenate([values, *(edge for edge, is_own in zip(edges, own, strict=True) if is_own)])
    low, high = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 1.0)
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def _choose_grain(low: float, high: float, whole: bool, step: float) -> float:
    """By how much a slider moves at once: a round number, a whole one for whole numbers, or a multiple of a step."""
    target = max((high - low) / _GRAINS, 1e-300)
    power = 10.0 ** math.floor(math.log10(target))
    grain = next((size * power for size in (1, 2, 5) if size * power >= target), 10 * power)
    if step:
        return step * max(1, round(grain / step))
    return max(1.0, float(round(grain))) if whole else grain


def _describe_category(inputs: Inputs, feature: int) -> WhatIfColumn:
    subject = inputs.subject
    codes = {float(code) for code in range(len(subject.categories.get(feature, ())))}
    codes |= {float(code) for term in _list_terms(inputs, feature) for code in term.codes if code >= 0}
    texts = [(code, subject.describe_value(feature, code)) for code in sorted(codes)] + [(-1.0, _NEW)]
    options: list[WhatIfOption] = [
        {"code": code, "text": text, "allowed": _may_become(inputs, feature, code)} for code, text in texts
    ]
    options.append({"code": None, "text": _MISSING, "allowed": _may_become(inputs, feature, math.nan)})
    frozen = feature in inputs.threat.frozen
    return {
        "feature": feature,
        "name": subject.names[feature],
        "kind": "category",
        "frozen": frozen,
        "options": options,
    }


def _list_terms(inputs: Inputs, feature: int) -> list[Term]:
    return [term for term in inputs.subject.model.member_terms if feature in term.features]


def _may_become(inputs: Inputs, feature: int, code: float) -> bool:
    """Whether certificates cover a change of a category to this code."""
    threat = inputs.threat
    if feature in threat.may_become:
        return any(one == code or (math.isnan(one) and math.isnan(code)) for one in threat.may_become[feature])
    return bool(threat.unseen) or all(bool((term.codes == code).any()) for term in _list_terms(inputs, feature))


def _place_values(column: WhatIfColumn, values: FloatArray) -> list[float | None]:
    """Cells of a column: numbers, or the places of categories among their options."""
    if column["kind"] == "number":
        return [None if math.isnan(value) else value for value in values.tolist()]
    codes = [option["code"] for option in column["options"]]
    places: dict[float | None, int] = {code: at for at, code in enumerate(codes)}
    return [places[None] if math.isnan(code) else places.get(code, places[-1.0]) for code in values.tolist()]


def _list_member(member: AdditiveEnsemble, columns: Sequence[WhatIfColumn]) -> WhatIfMember:
    places = {column["feature"]: at for at, column in enumerate(columns)}
    ranges = [(0, 0) if term.slope is not None else term.score_range() for term in member.terms]
    return {
        "shift": list(member.offsets) if member.offsets else [(member.offset or 0) - (member.threshold or 0)],
        "low": float(sum(low for low, _ in ranges)),
        "high": float(sum(high for _, high in ranges)),
        "terms": [_list_term(term, columns, places) for term in member.terms],
    }


def _list_term(term: Term, columns: Sequence[WhatIfColumn], places: dict[int, int]) -> WhatIfTerm:
    at = [places[feature] for feature in term.features]
    if term.slope is not None:
        missing = term.slope.missing
        return {
            "at": at,
            "slopes": term.slope.values.tolist(),
            "missing": None if missing is None else missing.tolist(),
        }
    if not term.axes:
        codes = [math.nan if one["code"] is None else one["code"] for one in columns[at[0]]["options"]]
        return {"at": at, "scores": np.asarray(term.evaluate(codes)).ravel().tolist()}
    scores = term.scores
    inside = math.prod(axis.edges.size + 1 for axis in term.axes)
    if term.takes_missing and scores.shape[0] == inside:  # of one column: its cell for missing values stands beside
        scores = np.concatenate([scores, np.array(term.missing, dtype=np.int64).reshape(1, -1)])
    return {
        "at": at,
        "edges": [axis.edges.tolist() for axis in term.axes],
        "gaps": [axis.feature in term.missing_features for axis in term.axes],
        "scores": scores.ravel().tolist(),
    }


def list_data(summary: Parts) -> dict[str, object]:
    """What the page's script needs, its columns packed; nothing where the page has no such part."""
    found = summary["what_if"]
    return {} if found is None else {**found, "cells": [pack(column) for column in found["cells"]]}


def title_score(summary: Parts) -> str:
    """What the score is called."""
    found = summary["what_if"]
    assert found is not None
    if found["answer"] == "number":
        return "Value"
    if found["weights"] is not None:
        return "Weight of the members"
    unit = " (in its own units)" if summary["model"]["score_unit"] == "log-odds" else ""
    names = {"vote": "Share of noisy copies", "mean": f"Expected score{unit}", "none": "Score without noise"}
    return names.get(found["decides"], f"Score{unit}")


def blocks(summary: Mapping[str, object]) -> list[ui.Block]:
    """The controls, which the page's script fills; of the page alone."""
    return [ui.on_page(ui.Heading("What if", "whatif")), ui.Raw(render("whatif", summary))]


SECTION = ui.Section(
    "whatif", lambda s: "What if" if s["what_if"] else "", blocks, "move the columns of a row and see its answer"
)
