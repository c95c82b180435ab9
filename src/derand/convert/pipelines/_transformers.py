"""Steps of scikit-learn's pipelines as functions of single columns.

Owns which transformers act column by column, and on which column each of their outputs rests; one function per kind in
`TRACERS`. What a step computes is asked of the step itself. Must not know models or readings.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.origin import Cell, Fitted, Frame
from derand.convert._columns import clean_categories, decode_rows
from derand.convert._edges import after
from derand.convert.pipelines._links import REFUSED, Bins, Column, Encoder, Fill, IsMissing, IsWhole, Link, Ordered
from derand.tables import TableEncoding

Columns = Sequence[Column]


@dataclass(frozen=True, slots=True)
class Seen:
    """What steps read of the user's table, whether or not the last one is given anything of it.

    Attributes
    ----------
    categories : dict of column number to set
        Columns that some step reads, with the categories that encoders know of them.
    dropped : list of Column
        Columns that a selector left out: the steps before it refuse what they refuse.
    """

    categories: dict[int, set[Cell]] = field(default_factory=dict)
    dropped: list[Column] = field(default_factory=list)


def trace(step: object, name: str, columns: Columns, seen: Seen) -> list[Column]:
    """The columns behind a fitted step.

    `name`: of the step, as errors are to name it; `columns`: those before it; `seen`: takes note of the columns that
    the step reads, of their categories where it encodes them, and of what it drops.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return list(columns)
    kind = type(step)
    called = f"Step {name!r} ({kind.__name__})"
    tracer = TRACERS.get(kind.__name__) if kind.__module__.partition(".")[0] == "sklearn" else None
    if tracer is None:
        known = ", ".join(sorted(TRACERS))
        raise TypeError(
            f"{called} is not known to act on every column by itself and to keep the order of numbers, so that the "
            f"pipeline cannot be certified in its own columns. Steps that can be read: {known}."
        )
    width = getattr(step, "n_features_in_", None)
    if width is None and kind.__name__ not in ("FunctionTransformer", "Pipeline"):
        raise ValueError(f"{called} must be fitted: call `fit` of the pipeline first.")
    if width is not None and width != len(columns):
        raise ValueError(f"{called} was fitted on {width} columns and is given {len(columns)}: fit the pipeline again.")
    if kind.__name__ not in CONTAINERS:
        for column in columns:
            seen.categories.setdefault(column.source, set())
    return tracer(step, called, columns, seen)


def run(step: Fitted, table: Frame) -> FloatArray:
    """What a step makes of a table, as an array; its warnings are not of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = step.transform(table)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made)


def _refuse(called: str, why: str) -> NoReturn:
    raise ValueError(f"{called} cannot be read: {why}.")


def _trace_pipeline(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    found = list(columns)
    for name, part in step.steps:
        found = trace(part, name, found, seen)
    return found


def _trace_column_transformer(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    if step.transformer_weights:
        _refuse(called, "it weighs its parts; leave `transformer_weights` out")
    found: list[Column] = []
    for name, part, _ in step.transformers_:
        chosen = [columns[at] for at in step._transformer_to_input_indices[name]]
        if chosen and not (isinstance(part, str) and part == "drop"):
            found += trace(part, name, chosen, seen)
    return found


def _trace_union(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    if step.transformer_weights:
        _refuse(called, "it weighs its parts; leave `transformer_weights` out")
    parts = [(name, part) for name, part in step.transformer_list if not (isinstance(part, str) and part == "drop")]
    return [column for name, part in parts for column in trace(part, name, columns, seen)]


def _trace_selector(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    takes_missing = bool(step.__sklearn_tags__().input_tags.allow_nan)
    found = [column.then(Link(called, takes_missing)) for column in columns]
    is_kept = step.get_support()
    seen.dropped.extend(column for column, kept in zip(found, is_kept, strict=True) if not kept)
    return [column for column, kept in zip(found, is_kept, strict=True) if kept]


def _slim(step: Fitted, at: int) -> object:
    """A copy of a scaler that knows one of its columns, with the same arithmetic."""
    slim = copy.copy(step)
    for name, value in vars(step).items():
        if isinstance(value, np.ndarray) and value.shape[:1] == (step.n_features_in_,):
            setattr(slim, name, value[at : at + 1])
    slim.n_features_in_ = 1
    for name in ("feature_names_in_", "_sklearn_output_config"):
        vars(slim).pop(name, None)
    return slim


def _trace_scaler(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    takes_missing = bool(step.__sklearn_tags__().input_tags.allow_nan)

    def follow(at: int) -> Ordered:
        slim = _slim(step, at)
        line = _read_line(slim)
        return Ordered(called, takes_missing, function=lambda x: run(slim, x.reshape(-1, 1))[:, 0], line=line)

    return [column.then(follow(at)) for at, column in enumerate(columns)]


def _read_line(slim: Fitted) -> tuple[float, float] | None:
    """Slope and shift of a scaler of one column; None where it clips, or is no line."""
    kind = type(slim).__name__
    if getattr(slim, "clip", False):
        return None
    scale = 1.0 if slim.scale_ is None else float(slim.scale_[0])
    if kind == "MinMaxScaler":
        return scale, float(slim.min_[0])
    center = getattr(slim, "mean_", None) if kind == "StandardScaler" else getattr(slim, "center_", None)
    if kind == "StandardScaler" and not slim.with_mean:
        center = None
    if kind == "StandardScaler" and not slim.with_std:
        scale = 1.0
    return 1.0 / scale, 0.0 if center is None else -float(center[0]) / scale


def _trace_imputer(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        _refuse(called, f"it fills cells that hold {missing!r}, not NaN: a number may not stand for a missing one")
    found = []
    for column, value in zip(columns, step.statistics_.tolist(), strict=True):
        is_kept = step.strategy == "constant" or step.keep_empty_features or value == value  # noqa: PLR0124 - NaN
        if is_kept:
            found.append(column.then(Fill(called, value=value)))
    if step.add_indicator:
        found += [columns[at].then(IsMissing(called)) for at in step.indicator_.features_]
    return found


def _trace_indicator(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        _refuse(called, f"it looks for {missing!r}, not for NaN")
    return [columns[at].then(IsMissing(called)) for at in step.features_]


def _trace_encoder(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    """Each column's categories are shown to the encoder itself, beside the first one of all others."""
    names = getattr(step, "feature_names_in_", None)
    names = None if names is None else tuple(map(str, names))
    label = TableEncoding(len(columns), names, {}).name
    known = [clean_categories(values, label(at)) for at, values in enumerate(step.categories_)]
    encoding = TableEncoding(len(columns), names, {at: values for at, values in enumerate(known) if values})
    counts = list(getattr(step, "_n_features_outs", None) or [1] * len(columns))
    ends = np.cumsum(counts)
    found: list[Column] = []
    for at, (column, values) in enumerate(zip(columns, known, strict=True)):
        if not values:
            _refuse(called, f"it has seen no category of column {label(at)!r}")
        if column.encoder is None:
            seen.categories[column.source].update(values)
        own = slice(int(ends[at]) - counts[at], int(ends[at]))

        def show(codes: Sequence[float], at: int = at, own: slice = own) -> Cell:
            rows = np.zeros((len(codes), len(columns)))
            rows[:, at] = codes
            made = run(step, decode_rows(encoding, rows))
            if made.shape[1] != ends[-1]:
                _refuse(called, "it makes several columns of one")
            return made[:, own].astype(np.float64)

        table = show(range(len(values)))
        unseen, missing = (_try(show, code, counts[at]) for code in (-1.0, np.nan))
        found += [
            column.then(
                Encoder(
                    called,
                    numbers=dict(zip(values, table[:, output].tolist(), strict=True)),
                    unseen=unseen[output],
                    missing=missing[output],
                )
            )
            for output in range(counts[at])
        ]
    return found


def _try(show: Callable[[Sequence[float]], Cell], code: float, count: int) -> list[object]:
    """What an encoder makes of a cell that it may refuse."""
    try:
        return list(show([code])[0].tolist())
    except ValueError:
        return [REFUSED] * count


def _trace_bins(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    if step.dtype is not None and np.dtype(step.dtype) != np.float64:
        _refuse(called, f"it compares in {np.dtype(step.dtype).name}; leave `dtype` out")
    found = []
    for column, edges in zip(columns, step.bin_edges_, strict=True):
        binned = column.then(Bins(called, takes_missing=False, edges=np.asarray(edges, dtype=np.float64)[1:-1]))
        if step.encode == "ordinal":
            found.append(binned)
        else:
            found += [binned.then(IsWhole(called, whole=float(whole))) for whole in range(len(edges) - 1)]
    return found


def _trace_binarizer(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    edges = after([float(step.threshold)])
    return [column.then(Bins(called, takes_missing=False, edges=edges)) for column in columns]


ORDERED_FUNCTIONS = ("ceil", "floor", "negative", "positive", "rint", "sign", "trunc")
"""Functions of numpy that keep the order of numbers, or turn it, and are computed exactly on every machine.

Logarithms and the like are off by some ulps, other ones elsewhere, so that no edge behind them is known exactly.
"""


def _trace_function(step: Fitted, called: str, columns: Columns, seen: Seen) -> list[Column]:
    function = step.func
    if function is None:
        return list(columns)
    name = next((one for one in ORDERED_FUNCTIONS if getattr(np, one) is function), None)
    if name is None or step.kw_args:
        given = getattr(function, "__name__", repr(function))
        _refuse(
            called,
            f"its function {given!r} is not known to keep the order of numbers and to be the same on every machine; "
            f"known are {', '.join(ORDERED_FUNCTIONS)} of numpy. Trees need no such step",
        )
    line = {"negative": (-1.0, 0.0), "positive": (1.0, 0.0)}.get(name)
    return [column.then(Ordered(called, function=function, line=line)) for column in columns]


TRACERS: dict[str, Callable[[Fitted, str, Columns, Seen], list[Column]]] = {
    "Binarizer": _trace_binarizer,
    "ColumnTransformer": _trace_column_transformer,
    "FeatureUnion": _trace_union,
    "FunctionTransformer": _trace_function,
    "KBinsDiscretizer": _trace_bins,
    "MaxAbsScaler": _trace_scaler,
    "MinMaxScaler": _trace_scaler,
    "MissingIndicator": _trace_indicator,
    "OneHotEncoder": _trace_encoder,
    "OrdinalEncoder": _trace_encoder,
    "Pipeline": _trace_pipeline,
    "RobustScaler": _trace_scaler,
    "SelectFdr": _trace_selector,
    "SelectFpr": _trace_selector,
    "SelectFromModel": _trace_selector,
    "SelectFwe": _trace_selector,
    "SelectKBest": _trace_selector,
    "SelectPercentile": _trace_selector,
    "SimpleImputer": _trace_imputer,
    "StandardScaler": _trace_scaler,
    "TargetEncoder": _trace_encoder,
    "VarianceThreshold": _trace_selector,
}
"""What each transformer does, by the name of its class."""
CONTAINERS = ("ColumnTransformer", "FeatureUnion", "Pipeline")
"""Those that give columns to others and do nothing to them themselves."""
