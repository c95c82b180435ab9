"""Reasons and promises of fitted estimators: their domain, from names and values, and what is asked.

Owns the default domain: whole numbers within their training range, any other number, categories of training. A function
of cells is the same beyond its outermost edges, which lie within the training range, so that any number says the same
as that range. Must not know how anything is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from derand._core.arrays import FloatArray, is_number
from derand._core.origin import Cell
from derand.certificates import Domain, Reason, Reasons, compute_reasons, find_labels, list_reasons, make_domain, prove
from derand.estimators._base import Request
from derand.estimators._showing import Shown, name_all
from derand.explain import ModelPromises, Names, name_promises
from derand.model import Model
from derand.noise import Noise
from derand.tables import TableEncoding
from derand.threat import find_column

Columns = str | int | Sequence[str | int] | Sequence[Sequence[str | int]]
DomainOption = Mapping[str | int, object] | None
_EXPLAIN_BUDGET = 2_000
"""Nodes of each search for the reasons of one row that is explained, of models with trees."""
_DIRECTIONS = {1: "increasing", -1: "decreasing"}


def read_domain(
    model: Model,
    encoding: TableEncoding,
    domain: DomainOption,
    *,
    unseen: bool = False,
    missing: bool = False,
    table: FloatArray | None = None,
) -> Domain:
    """The domain of a fitted estimator; `domain` names ends of numbers and values of categories.

    `table`: whose ranges numbers get that a line multiplies, and that have no ends otherwise.
    """
    ranges = {at: (float(low), float(high)) for at, (low, high) in encoding.whole.items()}
    ranges = {at: pair for at, pair in ranges.items() if at in model.numerical_features}
    whole = list(ranges)
    codes = {at: np.arange(float(len(values))) for at, values in encoding.categories.items()}
    codes = {at: own for at, own in codes.items() if at in model.categorical_features}
    if table is not None and model.is_linear:
        ranges = {**_measure_ranges(model, table), **ranges}
    for column, given in (domain or {}).items():
        at = find_column(column, encoding.names, encoding.n_features, "`domain`")
        if at in encoding.categories:
            codes[at] = _read_values(given, encoding.categories[at], column)
        else:
            ranges[at] = _read_ends(given, column)
    return make_domain(model, ranges, codes, whole=whole, unseen=unseen, missing=missing)


def _measure_ranges(model: Model, table: FloatArray) -> dict[int, tuple[float, float]]:
    found = {}
    for at in model.numerical_features:
        known = table[:, at][~np.isnan(table[:, at])]
        if known.size:
            found[at] = float(known.min()), float(known.max())
    return found


def _read_ends(given: object, column: str | int) -> tuple[float, float]:
    if not isinstance(given, tuple | list) or len(given) != 2 or not all(is_number(one) for one in given):
        raise TypeError(f"`domain` must give {column!r} a pair (lowest, highest), got {given!r}.")
    low, high = float(given[0]), float(given[1])
    if not low <= high:
        raise ValueError(f"`domain` must give {column!r} a pair (lowest, highest) in this order, got {given!r}.")
    return low, high


def _read_values(given: object, categories: Sequence[object], column: str | int) -> FloatArray:
    known = {value: float(code) for code, value in enumerate(categories)}
    values = [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
    strange = [value for value in values if value not in known]
    if strange or not values:
        raise ValueError(
            f"`domain` must give {column!r} values that training saw, such as {categories[0]!r}, got "
            f"{strange[0] if strange else values!r}."
        )
    return np.array([known[value] for value in values])


def require_inside(estimator: Shown, rows: FloatArray, domain: DomainOption, read: Domain) -> None:
    """Refuse a domain that excludes rows whose columns it names."""
    encoding = estimator.encoding_
    for column in domain or {}:
        at = find_column(column, encoding.names, encoding.n_features, "`domain`")
        own = rows[:, at]
        inside = np.isin(own, read.codes[at]) if at in read.codes else (own >= read.low[at]) & (own <= read.high[at])
        outside = np.flatnonzero(~inside & ~np.isnan(own))
        if outside.size:
            value = name_all(estimator).quote_value(at, float(own[outside[0]]))
            raise ValueError(
                f"`domain` must hold the rows' own values, got {value} for {column!r} in row {int(outside[0])}: widen "
                "the domain, or leave such rows out."
            )


def compute_table_reasons(
    estimator: Shown,
    request: Request,
    domain: DomainOption,
    *,
    costs: Mapping[str | int, int] | None,
    unseen: bool,
    missing: bool,
    budget: int | None = None,
) -> Reasons:
    """The reasons of rows that were encoded, with classes by number."""
    encoding, model, rows = estimator.encoding_, estimator.ensemble_, request.rows
    read = read_domain(model, encoding, domain, unseen=unseen, missing=missing, table=rows)
    require_inside(estimator, rows, domain, read)
    priced = {
        find_column(column, encoding.names, encoding.n_features, "`costs`"): cost
        for column, cost in (costs or {}).items()
    }
    return compute_reasons(model, rows, request.noise, read, rule=request.rule, costs=priced, budget=budget)


def list_row_reasons(estimator: Shown, row: FloatArray, noise: Noise | None, rule: str) -> tuple[Reason, ...]:
    """Up to three reasons of a row over the default domain; none where the model has none to give."""
    model = estimator.ensemble_
    if model.weights is not None or model.is_linear or (noise is not None and (rule == "vote" or model.has_trees)):
        return ()
    domain = read_domain(model, estimator.encoding_, None)
    return tuple(list_reasons(model, row, noise, domain, rule=rule, budget=_EXPLAIN_BUDGET)[1])


def _read_sets(columns: Columns | None, encoding: TableEncoding) -> list[list[int]]:
    """Sets of protected columns: a name, a list of names that change together, or several such lists."""
    if columns is None:
        return []
    given: list[Cell] = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    if not given:
        raise ValueError("`protected` must name a column, got an empty list.")
    is_nested = any(isinstance(one, list | tuple) for one in given)
    sets: list[Cell] = given if is_nested else [given]
    found = []
    for one in sets:
        members = [one] if isinstance(one, str | int | np.integer) else list(one)
        own = {find_column(column, encoding.names, encoding.n_features, "`protected`") for column in members}
        found.append(sorted(own))
    return found


def prove_encoded(
    estimator: Shown,
    table: FloatArray | None,
    noise: Noise | None,
    rule: str,
    *,
    protected: Columns | None = None,
    monotone: Mapping[str | int, object] | None = None,
    domain: DomainOption = None,
    unseen: bool = False,
    missing: bool = False,
    radius: float | None = None,
    norm: float = np.inf,
    budget: int | None = None,
) -> ModelPromises:
    """`prove` for rows as the model reads them, or for none; a regressor has no classes."""
    encoding, model = estimator.encoding_, estimator.ensemble_
    classes = getattr(estimator, "classes_", np.empty(0))
    if monotone is None and classes.size:
        monotone = getattr(estimator, "monotone", None)
    read = read_domain(model, encoding, domain, unseen=unseen, missing=missing, table=table)
    if table is not None:
        require_inside(estimator, table, domain, read)
    directions = {
        find_column(column, encoding.names, encoding.n_features, "`monotone`"): str(
            _DIRECTIONS.get(direction, direction)  # type: ignore[call-overload]
        )
        for column, direction in (monotone or {}).items()
        if direction != 0
    }
    if radius is not None and not (is_number(radius) and 0 <= radius < np.inf):
        raise ValueError(f"`radius` must be a number, 0 or larger, got {radius!r}.")
    if norm not in (1, 2, np.inf):
        raise ValueError(f"`norm` must be 1, 2 or inf, got {norm!r}.")
    found = prove(
        model,
        noise,
        read,
        rule=rule,
        protected=_read_sets(protected, encoding),
        monotone=directions,
        radius=radius,
        norm=norm,
        units=None if estimator.units is None else np.array(estimator.units),
        table=table,
        budget=budget,
    )
    labels = [
        ()
        if one.rows is None or not classes.size
        else tuple(classes[find_labels(model, one.rows, noise, rule="mean")].tolist())
        for one in found.promises
    ]
    text = describe_domain(name_all(estimator), read, encoding, domain, unseen=unseen, missing=missing)
    unit = "units of the target" if not classes.size else "units of the score"
    unit = "log-odds" if classes.size and estimator._points != 1 else unit
    return name_promises(found, name_all(estimator), classes, labels, unit, text)


def describe_domain(
    names: Names, read: Domain, encoding: TableEncoding, domain: DomainOption, *, unseen: bool, missing: bool
) -> str:
    """The domain in words."""
    named = [find_column(column, encoding.names, encoding.n_features, "`domain`") for column in domain or {}]
    told = [_describe_column(names, read, at) for at in named]
    numbers = [at for at in range(encoding.n_features) if at not in encoding.categories and at not in named]
    ranged = [at for at in numbers if np.isfinite(read.low[at]) and not read.whole[at]]
    if any(read.whole[at] for at in numbers):
        told.append("whole numbers within their training range")
    if ranged:
        told.append("numbers within the range of the table")
    elif not all(read.whole[at] for at in numbers):
        told.append("any other number" if told else "any number")
    if encoding.categories:
        told.append("any category, unseen ones too" if unseen else "any category of training")
    told.append("missing values wherever the model takes them" if missing else "nothing missing")
    return ", ".join(told)


def _describe_column(names: Names, read: Domain, at: int) -> str:
    if at in read.codes:
        known = [names.quote_value(at, code) for code in read.codes[at].tolist() if code >= 0]
        return f"{names.quote(at)} in {', '.join(known)}"
    return f"{names.quote(at)} from {names.write(at, float(read.low[at]))} to {names.write(at, float(read.high[at]))}"
