"""What is given to constructors and to `fit`, read and refused: parameters, names of columns, targets and weights.

Owns the errors that bad input gets there. Must not know how anything is trained or certified.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from derand._core.arrays import Cells, FloatArray, Labels, Targets, is_number, is_whole
from derand._core.origin import Fitted, Frame
from derand._core.text import quote_short
from derand.tables import FEW_CLASSES, MOST_CLASSES, refuse_identifiers
from derand.threat import Column, find_column
from derand.train import MOST_COLUMNS, MOST_JOINED, TrainingTable

ClassWeight = str | dict[object, float] | None


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number, `least` or larger."""
    if not is_whole(value) or value < least:
        raise ValueError(f"`{name}` must be a whole number, {least} or larger, got {value!r}.")


def check_number(name: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number in (low, high]."""
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    if not low < value <= high or not np.isfinite(value):
        limit = "positive and finite" if high == np.inf else f"above {low:g} and at most {high:g}"
        raise ValueError(f"`{name}` must be {limit}, got {value!r}.")


def check_least(name: str, value: Any, least: float) -> None:
    """Refuse what is not a finite number, `least` or larger."""
    if not (is_number(value) and np.isfinite(value) and value >= least):
        raise ValueError(f"`{name}` must be a finite number, {least:g} or larger, got {value!r}.")


def check_regularization(value: object) -> None:
    """Refuse what is neither "cv" nor a positive number."""
    if not isinstance(value, str):
        check_number("regularization", value, 0.0, np.inf)
    elif value != "cv":
        raise ValueError(f"`regularization` must be 'cv' or a number, got {value!r}.")


def check_stump_parameters(estimator: Fitted) -> None:
    """Refuse parameters with which no independent ensemble can be trained."""
    check_whole("levels", estimator.levels, 1)
    if estimator.split_step is not None:
        check_number("split_step", estimator.split_step, 0.0, np.inf)
    check_number("max_entropy", estimator.max_entropy, 0.0, np.inf)
    if estimator.categorical_leaf is not None:
        check_number("categorical_leaf", estimator.categorical_leaf, 0.0, 0.5)


def refuse_double_names(X: object) -> None:
    """Refuse a frame in which two columns have the same name."""
    names = _list_names(X)
    name, count = max(Counter(names).items(), key=lambda pair: pair[1], default=(None, 1))
    if count > 1:
        raise ValueError(f"`X` must have columns of different names, got {name!r} {count} times.")


def _list_names(X: Frame) -> list[object]:
    """Names of a frame's columns."""
    return list(X.columns if hasattr(X, "iloc") or not hasattr(X, "column_names") else X.column_names)


def hint_columns(X: object, wanted: Cells | None) -> str:
    """What to do where a frame has all columns of the training table, in another order or with others beside them."""
    if wanted is None or not set(wanted) <= set(_list_names(X)):
        return ""
    chosen = "X.select(clf.feature_names_in_.tolist())"
    return (
        "All columns of the training table are there: give "
        f"`{'X[clf.feature_names_in_]' if hasattr(X, 'iloc') else chosen}`, where clf is the estimator."
    )


def is_row_mapping(X: object) -> bool:
    """Whether X is one row as a mapping of columns to values, as a service gets it."""
    return isinstance(X, Mapping) and not hasattr(X, "shape")  # a sparse matrix may be a mapping, too


def refuse_one_row(X: object) -> None:
    """Refuse a pandas Series, and where a model is fitted a mapping: a row without a table."""
    if is_row_mapping(X):
        raise ValueError(
            f"`X` must be a table of rows, got a {type(X).__name__}: a model is fitted to many rows; give "
            "`pandas.DataFrame(columns)` for a mapping of columns."
        )
    if hasattr(X, "iloc"):
        raise ValueError(
            f"`X` must be a table of rows, got a {type(X).__name__}: give `frame.iloc[[0]]`, in two pairs of brackets, "
            "for one row, or `frame[['name']]` for one column."
        )


def read_labels(X: object, y: ArrayLike, *, several: bool) -> tuple[Labels, NDArray[np.uint8]]:
    """The classes, sorted, and for each row which of them it has; more than two only where `several` are taken."""
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    refuse_gaps(labels, "a label")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    _refuse_mixed_labels(labels)
    _refuse_fractions(labels)
    check_classification_targets(labels)
    classes, target = np.unique(labels, return_inverse=True)
    many = looks_like_numbers(classes, labels.size)
    if classes.size > 2 and not several:
        cure = _REGRESSORS if many else "keep two, or use AdditiveClassifier or StumpClassifier"
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"`y` holds {_name_classes(classes, many)}; {cure}."
        )
    refuse_identifiers(classes.size, labels.size, "`y`", f" Or {_REGRESSORS}." if many else "")
    if classes.size > MOST_CLASSES:
        cure = _REGRESSORS if many else "merge rare ones"
        raise ValueError(f"`y` must hold at most {MOST_CLASSES} classes, got {_name_classes(classes, many)}: {cure}.")
    return classes, target.astype(np.uint8)


def refuse_gaps(values: Cells, what: str) -> None:
    """Refuse a target of which some rows have nothing: None, NaN, or what pandas has for it."""
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.array([value is None or type(value).__name__ == "NAType" or value != value for value in values])  # noqa: PLR0124
    else:
        return
    gaps = np.flatnonzero(missing)
    if gaps.size:
        raise ValueError(
            f"`y` must hold {what} in every row. Input y contains NaN or None in {gaps.size} of {values.size} rows, "
            f"the first of them at position {gaps[0]}: leave those rows out of X and y."
        )


def _refuse_fractions(labels: Labels) -> None:
    """Numbers with fractions are no labels."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise ValueError(
            f"Unknown label type: `y` holds {np.unique(labels).size} different numbers with fractions, which look like "
            f"numbers to be predicted and not like classes: {_REGRESSORS}."
        )


_REGRESSORS = "use AdditiveRegressor or StumpRegressor to predict a number, or turn it into classes first"


def looks_like_numbers(classes: Labels, n_rows: int) -> bool:
    """Whether labels are more like numbers to be predicted: more than 20 different ones, of fewer than 5 rows each."""
    return classes.dtype.kind in "iuf" and classes.size > FEW_CLASSES and 5 * classes.size > n_rows


def _name_classes(classes: Labels, many: bool) -> str:
    if not many:
        return f"{classes.size} classes"
    return f"{classes.size} different numbers, which look like numbers to be predicted and not like classes"


def keep_present(classes: Labels, target: NDArray[np.uint8]) -> tuple[Labels, NDArray[np.uint8]]:
    """The classes that rows of positive weight have, and for each row which of them it has."""
    present, places = np.unique(target, return_inverse=True)
    if present.size < 2:
        raise ValueError(
            f"`y` must hold two classes among the rows of positive weight, got only one class, "
            f"{classes.tolist()[int(present[0])]!r}: there is nothing to learn."
        )
    return classes[present], places.astype(np.uint8)


def warn_of_lone_labels(classes: Labels, target: NDArray[np.uint8]) -> tuple[str, ...]:
    """What to say where one of several classes is there once, or labels look like numbers to be predicted."""
    if looks_like_numbers(classes, target.size):
        return (f"`y` holds {_name_classes(classes, True)}: {_REGRESSORS}.",)
    counts = np.bincount(target, minlength=classes.size)
    lone = [quote_short(name) for name, count in zip(classes.tolist(), counts, strict=True) if count == 1]
    if classes.size == 2 or not lone:
        return ()
    names = ", ".join(lone[:5]) + (", ..." if len(lone) > 5 else "")
    return (
        f"{len(lone)} of {classes.size} classes {'is' if len(lone) == 1 else 'are'} there in only one row ({names}): "
        "next to nothing can be learnt of that. Leave such rows out, or merge them into another class.",
    )


def _refuse_mixed_labels(labels: Labels) -> None:
    """Labels that cannot be sorted, such as text beside None: scikit-learn says of them what Python says of `<`."""
    try:
        np.unique(labels)
    except TypeError:
        kinds = " and ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(f"`y` must hold labels of one kind, all of them there, got {kinds}.") from None


def read_weights(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    """Weights of the rows, of mean 1 over those that are positive."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"`sample_weight` must hold one number per row, {n_rows} in all, got shape {weights.shape}.")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("`sample_weight` must be finite and not negative, got a negative weight, NaN or infinity.")
    if not weights.any():
        raise ValueError("`sample_weight` must be positive for some row, got only zeros.")
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def resolve_class_weight(class_weight: ClassWeight, classes: Labels, totals: FloatArray) -> FloatArray:
    """Weight of each class, for the total weight of the rows of each."""
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(totals.sum() / (classes.size * totals))
    if not isinstance(class_weight, dict):
        raise ValueError(f"`class_weight` must be None, 'balanced' or a dict of weights, got {class_weight!r}.")
    names = classes.tolist()
    strange = [name for name in class_weight if name not in names]
    if strange:
        raise ValueError(f"`class_weight` must name classes among {names}, got {strange[0]!r}.")
    weights = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"`class_weight` must hold positive, finite weights, got {class_weight!r}.")
    return weights


_LABELS = "labels are learnt by a classifier, such as AdditiveClassifier"
_LARGEST = 1e15
"""Of targets: whole scores beside them must fit into doubles."""


def read_targets(X: object, y: ArrayLike) -> FloatArray:
    """The number of each row, all of them finite and of a size that can be computed with."""
    if np.asarray(y).dtype.kind == "c":
        raise ValueError("Complex data not supported: `y` must hold numbers, got complex ones.")
    given: Targets = column_or_1d(y, warn=True)
    check_consistent_length(X, given)
    refuse_gaps(given, "a number")
    if given.dtype.kind not in "biufO":
        found = "text" if given.dtype.kind in "US" else f"the type {given.dtype}"
        raise ValueError(f"`y` must hold numbers, got {found}: {_LABELS}.")
    try:
        target = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Unknown label type: `y` must hold numbers, got text or something else among them: {_LABELS}."
        ) from None
    assert_all_finite(target, input_name="y")
    largest = float(np.abs(target).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(f"`y` must lie within +-{_LARGEST:g}, got {largest:g}: divide it by some large number.")
    return target


_DIRECTIONS = {"increasing": 1, "decreasing": -1, 1: 1, -1: -1, 0: 0}


def read_monotone(monotone: Mapping[Column, object] | None, table: TrainingTable) -> dict[int, int]:
    """The monotone columns by number, each with its direction."""
    if monotone is None:
        return {}
    if not isinstance(monotone, Mapping):
        raise TypeError(f"`monotone` must be a dict of column to direction, got {monotone!r}.")
    found = {}
    for column, direction in monotone.items():
        number = find_column(column, table.names, table.n_features, "`monotone`")
        if number in table.n_categories:
            raise ValueError(
                f"`monotone` must name numerical columns, got {column!r}, which is categorical: it has no order."
            )
        if isinstance(direction, bool) or direction not in _DIRECTIONS:
            raise ValueError(
                f"`monotone` must be 'increasing' (1) or 'decreasing' (-1), got {direction!r} for {column!r}."
            )
        found[number] = _DIRECTIONS[direction]
    return {number: direction for number, direction in found.items() if direction}


_GROUPS = "None, 'auto', 'patches:3' (of images) or a list of lists of columns such as [['age', 'income'], [3, 4]]"
_PATCHES = re.compile(r"patches:(\d+)(?:x(\d+))?(?::(\d+)x(\d+))?")


def read_groups(
    groups: object, table: TrainingTable, monotone: Collection[int], *, may_overlap: bool = False
) -> tuple[tuple[int, ...], ...] | None:
    """The groups by column numbers; None to look for them. Groups of one column are no groups.

    `monotone`: columns that must not be in a group; `may_overlap`: whether a column may be in several groups, with
    categories and missing values: a search certifies such models without noise.
    """
    if groups is None:
        return ()
    if isinstance(groups, str) and groups == "auto":
        return None
    if isinstance(groups, str) and groups.startswith("patches"):
        groups = _list_patches(groups, table)
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise ValueError(f"`groups` must be {_GROUPS}, got {groups!r}.")
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    most = MOST_JOINED if may_overlap else MOST_COLUMNS
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise ValueError(f"`groups` must be {_GROUPS}, got the group {group!r}.")
        if len(group) > most:
            raise ValueError(
                f"`groups` must have at most {most} columns each, got {len(group)} in {list(group)!r}: joint "
                f"cells multiply with every column. Split it{'' if may_overlap else _OR_JOIN}."
            )
        numbers = tuple(find_column(column, table.names, table.n_features, "`groups`") for column in group)
        for column, number in zip(group, numbers, strict=True):
            if numbers.count(number) > 1:
                raise ValueError(f"`groups` must name each column once, got {column!r} twice in {list(group)!r}.")
            if number in seen and not may_overlap:
                raise ValueError(
                    f"`groups` must name each column once, got {column!r} twice: a column is in one group, because "
                    "certificates need terms that share no column. Join the groups, or leave it out of one"
                    f"{_OR_JOIN}."
                )
            _check_grouped(column, number, table, monotone, len(numbers), may_overlap=may_overlap)
        seen.update(numbers)
        if len(numbers) > 1:
            found.append(numbers)
    return tuple(found)


_OR_JOIN = "; or train two classes without noise in norm inf (norm=inf), where a search certifies what overlaps"


def _list_patches(text: str, table: TrainingTable) -> list[list[int]]:
    """Overlapping patches of an image, such as "patches:3" or "patches:2x3:28x28", whose columns are pixels row by row.

    Without its shape the image is a square.
    """
    found = _PATCHES.fullmatch(text)
    if found is None:
        raise ValueError(
            f"`groups` must name patches as 'patches:3', 'patches:2x3' or 'patches:3:28x28' (rows x columns of the "
            f"image), got {text!r}."
        )
    height, width, n_rows, n_columns = (0 if part is None else int(part) for part in found.groups())
    width = width or height
    count = table.n_features
    side = math.isqrt(count)
    shape = (n_rows, n_columns) if found[3] is not None else (side, side)
    if shape[0] * shape[1] != count or table.n_categories:
        what = "categories among them" if table.n_categories else f"not {shape[0]} x {shape[1]} pixels"
        raise ValueError(
            f"`groups={text!r}` needs an image, whose columns are all of its pixels row by row, got {count} columns, "
            f"{what}. Say its shape, as in 'patches:3:28x28', or give groups of columns."
        )
    if not (0 < height <= shape[0] and 0 < width <= shape[1] and 1 < height * width <= MOST_JOINED):
        raise ValueError(
            f"`groups={text!r}` must be patches of 2 to {MOST_JOINED} pixels that fit into {shape[0]} x {shape[1]}."
        )
    pixels = np.arange(count).reshape(shape)
    return [
        pixels[row : row + height, column : column + width].ravel().tolist()
        for row in range(shape[0] - height + 1)
        for column in range(shape[1] - width + 1)
    ]


def name_groups(groups: Sequence[Sequence[int]], table: TrainingTable) -> tuple[tuple[str | int, ...], ...]:
    """Groups of columns by name, or by number where the table has no names."""
    return tuple(tuple(table.name(column) for column in group) for group in groups)


def warn_of_gaps(groups: object, table: TrainingTable) -> tuple[str, ...]:
    """Say which columns were not looked at where groups are to be found."""
    asked = isinstance(groups, str) and groups == "auto"
    gaps = [quote_short(table.name(column)) for column in table.list_missing()] if asked else []
    if not gaps:
        return ()
    more = ", ..." if len(gaps) > 5 else ""
    return (
        f"groups='auto' looks only at columns without missing values, and so not at {', '.join(gaps[:5])}{more}: "
        "fill the missing values for these to be grouped.",
    )


def _check_grouped(
    column: object, number: int, table: TrainingTable, monotone: Collection[int], size: int, *, may_overlap: bool
) -> None:
    """Refuse what a function of several columns cannot be trained on."""
    if size < 2:
        return
    if number in monotone:
        raise ValueError(f"`groups` must not name columns of `monotone`, got {column!r}: leave it out of one of both.")
    if may_overlap:
        return
    if number in table.n_categories:
        raise ValueError(
            f"`groups` must name numerical columns, got {column!r}, which is categorical: leave it out{_OR_JOIN}."
        )
    if np.isnan(table.X[:, number]).any():
        raise ValueError(
            f"`groups` must name columns without missing values, got {column!r}, which has some: fill them, or leave "
            f"the column out of its group{_OR_JOIN}."
        )
