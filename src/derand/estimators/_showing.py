"""Fitted estimators shown: their names for pictures and sentences, one row as a table, facts for notebooks.

Owns the way from an estimator to `derand.explain`. Must not know how anything is drawn or said.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from derand._core.arrays import FloatArray, PlotAxes
from derand._core.markup import write_block, write_table
from derand._core.origin import Fitted
from derand._core.text import Facts, format_count, format_exactly, join_words, plural, quote_short, shorten
from derand.explain import SCALING_UNITS, Names
from derand.explain.densities import Density, measure_density
from derand.model import Model
from derand.noise import Noise
from derand.tables import TableEncoding, is_frame, is_missing
from derand.threat import Threat

_KEPT_ROWS = 5_000
_LISTED_CLASSES = 12


class Shown(Protocol):
    """What is asked of a fitted estimator."""

    ensemble_: Model
    noise_: Noise | None
    encoding_: TableEncoding
    rule: str
    scaling: str | None

    @property
    def units(self) -> tuple[float, ...] | None:
        """What counts as a change of 1 of each feature."""

    @property
    def default_threat(self) -> Threat:
        """What may change."""

    def get_params(self, deep: bool = True) -> Facts:
        """Parameters of the constructor."""

    @property
    def _points(self) -> float:
        """How many whole scores are one unit of what is shown."""

    @property
    def _height(self) -> str:
        """What that unit is called."""

    def _encode_rows(self, X: object) -> FloatArray:
        """Rows as the model reads them."""


def name_all(estimator: Shown) -> Names:
    """Names of an estimator's columns and categories."""
    encoding = estimator.encoding_
    columns = encoding.names or tuple(f"feature {at}" for at in range(encoding.n_features))
    return Names(tuple(map(str, columns)), encoding.categories, encoding.dates)


def name_unit(estimator: Shown, threat: Threat) -> str:
    """By what a change of a column is divided, in words; nothing where it counts as it is."""
    if threat.units is None or all(unit == 1 for unit in threat.units):
        return ""
    if estimator.scaling in SCALING_UNITS and threat.units == estimator.units:
        return f"its {SCALING_UNITS[estimator.scaling]}"
    return "the unit given for it"


def keep_densities(rows: FloatArray, encoding: TableEncoding) -> dict[int, Density]:
    """What pictures need of the training rows: counts in forty bins, or of categories."""
    some = rows[:: max(1, -(-len(rows) // _KEPT_ROWS))]
    return {at: measure_density(some[:, at], at in encoding.categories) for at in range(encoding.n_features)}


def as_table(X: object, encoding: TableEncoding) -> object:
    """Rows as a table; one row may be a Series, a mapping, or an array of one dimension."""
    if is_frame(X):
        return X
    names = encoding.names
    index = getattr(X, "index", None)
    if isinstance(X, Mapping) or (hasattr(X, "to_dict") and index is not None and not callable(index)):
        given = dict(X) if isinstance(X, Mapping) else X.to_dict()
        if names is None:
            return np.array([list(given.values())], dtype=object if encoding.categories else None)
        absent = [name for name in names if name not in given]
        if absent:
            raise ValueError(
                f"`X` must name every column of the training table, got a row without {quote_short(absent[0])}"
                f"{f' and {len(absent) - 1} more' if len(absent) > 1 else ''}."
            )
        return _name_cells([given[name] for name in names], encoding)
    cells = np.asarray(X) if not isinstance(X, list | tuple) else np.array(X, dtype=object)
    if cells.ndim != 1 or (cells.size and isinstance(cells[0], list | tuple | np.ndarray)):
        return X
    if names is not None and len(names) == cells.size:
        return _name_cells(list(cells), encoding)
    return cells[None] if encoding.categories else cells[None].astype(np.float64)


def _name_cells(cells: Sequence[object], encoding: TableEncoding) -> object:
    """One row as a table with the names of the training table."""
    import pyarrow

    assert encoding.names is not None  # asked by the caller
    restored = [
        _restore_date(cell) if at in encoding.dates else _restore(cell, encoding.categories.get(at))
        for at, cell in enumerate(cells)
    ]
    arrays = [pyarrow.array([cell]) for cell in restored]
    return pyarrow.table(arrays, names=[str(name) for name in encoding.names])


def _restore(cell: Any, categories: Sequence[object] | None) -> object:
    """A cell as it was in its table: a Series of mixed columns turns whole numbers into floats, gaps into NaN."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if categories is None:
        if isinstance(value, str | bool):  # whoever reads the table says which column it is
            return value
        try:
            return None if value is None else float(value)
        except (TypeError, ValueError):
            return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer() and categories and isinstance(categories[0], int):
        return int(value)
    return value


def _restore_date(cell: object) -> object:
    """A date, text or days, as a table can hold it; None for a missing one."""
    if isinstance(cell, np.datetime64):
        return cell.astype("datetime64[us]").item()
    value = cell.item() if isinstance(cell, np.generic) else cell
    return None if is_missing(value) else value


def draw_estimator(
    estimator: Shown,
    columns: Sequence[str | int] | str | int | None,
    X: object,
    *,
    max_columns: int,
    radius: float | None,
    threat: Threat,
) -> PlotAxes:
    """Shapes of an estimator's columns; `threat` by numbers of columns, in the estimator's units."""
    if isinstance(max_columns, bool) or operator.index(max_columns) < 1:
        raise ValueError(f"`max_columns` must be a whole number, 1 or larger, got {max_columns!r}.")
    if estimator.ensemble_.has_trees:
        raise ValueError(
            "`plot` draws what each column adds by itself, and the trees of this model join many columns: `explain` "
            "tells what flips a row."
        )
    from derand.explain.plots.model import Picture, draw_model

    importances = getattr(estimator, "feature_importances_", None)
    picture = Picture(
        columns=_read_columns(estimator.encoding_, columns),
        rows=None if X is None else estimator._encode_rows(X),
        kept=getattr(estimator, "_seen", None),
        importances=None if importances is None else np.asarray(importances, dtype=np.float64),
        radius=_choose_radius(estimator, radius, threat),
        max_columns=max_columns,
        ends=estimator.encoding_.whole,
    )
    classes = getattr(estimator, "classes_", np.empty(0))
    return draw_model(
        estimator.ensemble_,
        estimator.noise_,
        threat,
        name_all(estimator),
        picture,
        points=estimator._points,
        height=estimator._height,
        classes=classes.tolist() if classes.size > 2 else (),
    )


def _choose_radius(estimator: Shown, radius: float | None, threat: Threat) -> float | None:
    """Of the band: as asked, what it was trained for, or the size of its noise; None without any of these."""
    if threat.norm is None:
        return math.inf
    if radius is not None:
        if isinstance(radius, bool) or not radius >= 0:
            raise ValueError(f"`radius` must be a number, 0 or larger, got {radius!r}.")
        return float(radius)
    trained = estimator.get_params(deep=False).get("radius")
    if trained:
        return float(trained)
    return None if estimator.noise_ is None or threat.norm == 0 else estimator.noise_.magnitude


def _read_columns(encoding: TableEncoding, columns: Sequence[str | int] | str | int | None) -> list[int] | None:
    """Numbers of columns that are asked for by name or number."""
    if columns is None:
        return None
    asked = [columns] if isinstance(columns, str | int) else list(columns)
    known = {name: at for at, name in enumerate(encoding.names or ())}
    found = []
    for one in asked:
        at = known.get(one) if isinstance(one, str) else operator.index(one)
        if at is None or not 0 <= at < encoding.n_features:
            names = [quote_short(name) for name in (encoding.names or ())[:3]]
            raise ValueError(
                f"`columns` must be names or numbers of columns of the training table, got {quote_short(one)}: it has "
                f"{plural(encoding.n_features, 'column')}{f', such as {join_words(names)}' if names else ''}."
            )
        found.append(at)
    return found


def write_fitted(estimator: Fitted) -> str:
    """What there is to know of a fitted estimator, for notebooks."""
    encoding, model = estimator.encoding_, estimator.ensemble_
    facts: list[tuple[str, str]] = []
    if hasattr(estimator, "classes_"):
        listed = [shorten(str(name), 30) for name in estimator.classes_[:_LISTED_CLASSES].tolist()]
        left = len(estimator.classes_) - len(listed)
        facts.append(("classes", ", ".join(listed) + (f" and {left} more" if left else "")))
    n_categories = len(encoding.categories)
    kinds = [plural(encoding.n_features - n_categories, "number")]
    kinds += [plural(n_categories, "category", "categories")] if n_categories else []
    facts.append(("columns", f"{format_count(encoding.n_features)}: {join_words(kinds)}"))
    facts.append(
        ("read by the model", plural(len({at for one in model.member_terms for at in one.features}), "column"))
    )
    facts.append(("noise", str(estimator.noise_ or "none")))
    facts.append(("rule", str(estimator.rule)))
    threat, trained = estimator.default_threat, estimator.get_params(deep=False).get("radius")
    if trained:
        norm = f" (l{threat.norm})" if threat.norm not in (None, "auto") else ""
        facts.append(("trained for radius", f"{format_exactly(trained)}{norm}"))
    return write_block("Fitted", write_table([], facts))
