"""Explainable boosting machines of interpret: one table of scores per column, and per pair of columns.

Owns what these models mean: a cut belongs to the bin above it, the first bin of a table is the one of missing values,
the last that of values that training did not see. Must not know how sums become functions (`_cells`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.origin import Fitted
from derand.convert._cells import CellAxis, CellFunctions, Total, connect, is_small
from derand.convert._columns import choose_values, require_fitted
from derand.convert._forests import Forest, join_forests, shape_forest
from derand.convert._grids import grow_cells
from derand.convert._reading import RawScores, Reading
from derand.convert._trees import DOUBLE, bound_sum_error
from derand.tables import Labels, TableEncoding

_LINKS = {"logit": "logit", "mlogit": "logit", "vlogit": "none"}
Term = tuple[tuple[int, ...], FloatArray]
"""Columns of a table of scores, and the table."""


def read(model: Fitted) -> Reading:
    """A fitted ExplainableBoostingClassifier or ExplainableBoostingRegressor, or one of its private siblings."""
    kind = type(model).__name__
    require_fitted(model, getattr(model, "has_fitted_", False))
    classes = getattr(model, "classes_", None)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    _require_link(model, classes, intercept.size)
    texts = _read_category_texts(model)
    encoding = _read_columns(model, texts)
    n_outputs = intercept.size
    terms: list[Term] = [
        (tuple(map(int, features)), np.asarray(scores, dtype=np.float64).reshape(*_count_bins(model, features), -1))
        for features, scores in zip(model.term_features_, model.term_scores_, strict=True)
    ]
    functions, joined = CellFunctions(), set[int]()
    losses = bound_sum_error(len(terms) + 1, 1.0, DOUBLE)
    for features, own in connect((features, (features, scores)) for features, scores in terms):
        axes = {one: _make_axis(model, one, own, texts) for one in features}
        if is_small({one: axis.size for one, axis in axes.items()}, encoding):
            functions.take(axes, _sum_terms(model, axes, own, texts, n_outputs))
        else:
            joined.update(features)
            forest = join_forests([_grow_term(model, one, texts) for one in own])
            shape, _ = shape_forest(forest, encoding, losses)
            assert shape is not None  # its columns have bins
            functions.trees.append(shape)
    alone = [scores for features, scores in terms if not joined & set(features)]
    magnitude = float(np.abs(intercept).max()) + math.fsum(float(np.abs(scores).max()) for scores in alone)
    return Reading(
        encoding,
        functions.shapes,
        functions.grids,
        functions.tables,
        intercept if n_outputs > 1 else float(intercept[0]),
        classes,
        functions.error + bound_sum_error(len(terms) + 1, magnitude, DOUBLE),
        "none" if classes is None else _LINKS[model.link_],
        _make_raw_scores(model, texts),
        f"interpret.{kind}",
        trees=functions.trees,
    )


def _require_link(model: Fitted, classes: Labels | None, n_outputs: int) -> None:
    """Refuse answers that are no raw scores, their sign or their largest."""
    kind = type(model).__name__
    if classes is None:
        if model.link_ != "identity":
            raise ValueError(
                f"The {kind} answers through the link {model.link_!r}, so its numbers are no sum of functions: "
                "train it with objective='rmse', on logarithms of the target where these are meant."
            )
    elif len(classes) < 2:
        raise ValueError(f"The {kind} must tell two classes or more apart, got {len(classes)}.")
    elif model.link_ not in _LINKS or n_outputs != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(
            f"The {kind} answers through the link {model.link_!r} with {n_outputs} scores for {len(classes)} classes, "
            "which cannot be read: train it with objective='log_loss'."
        )


def _read_category_texts(model: Fitted) -> dict[int, tuple[str, ...]]:
    """For each categorical column its categories as the model keeps them, in the order of the user's values.

    A column that no term reads has none: whatever stands there, the answer is the same.
    """
    found: dict[int, tuple[str, ...]] = {}
    for column, kind in enumerate(model.feature_types_in_):
        if kind == "continuous":
            continue
        levels = model.bins_[column]
        texts = [str(text) for text in levels[0]] if levels else []
        values = choose_values(texts)
        found[column] = tuple(texts[at] for at in sorted(range(len(texts)), key=lambda at: values[at]))
    return found


def _read_columns(model: Fitted, texts: Mapping[int, Sequence[str]]) -> TableEncoding:
    """Names of columns, where the user gave any, and categories."""
    names = tuple(map(str, model.feature_names_in_))
    made_up = [tuple(form.format(column) for column in range(len(names))) for form in ("feature_{:04d}", "{}")]
    return TableEncoding(
        len(names),
        None if names in made_up else names,
        {column: tuple(choose_values(own)) for column, own in texts.items()},
    )


def _select_bins(model: Fitted, feature: int, n_columns: int) -> Fitted:
    """The bins of a column in a term of several columns: cuts, or bins by category; these may be coarser."""
    levels = model.bins_[feature]
    return levels[min(len(levels), n_columns) - 1]


def _count_bins(model: Fitted, features: Sequence[int]) -> tuple[int, ...]:
    """Of each column of a term, those for missing and unknown values included."""
    bins = [_select_bins(model, feature, len(features)) for feature in features]
    return tuple(max(own.values(), default=0) + 2 if isinstance(own, dict) else len(own) + 3 for own in bins)


def _make_axis(model: Fitted, feature: int, terms: Sequence[Term], texts: Mapping[int, Sequence[str]]) -> CellAxis:
    """The cells of a column in terms; the smallest number that is no less than a cut is the cut itself."""
    if feature in texts:
        return CellAxis(feature, np.empty(0), len(texts[feature]), True)
    own = [_select_bins(model, feature, len(features)) for features, _ in terms if feature in features]
    return CellAxis(feature, np.unique(np.concatenate(own).astype(np.float64)), None, True)


def _sum_terms(
    model: Fitted,
    axes: Mapping[int, CellAxis],
    terms: Sequence[Term],
    texts: Mapping[int, Sequence[str]],
    n_outputs: int,
) -> Total:
    """The sum of terms over the joint cells of their columns."""
    total = Total(tuple(axis.size for axis in axes.values()), n_outputs)
    order = list(axes)
    for features, scores in terms:
        bins = [_match_bins(_select_bins(model, one, len(features)), axes[one], texts.get(one, ())) for one in features]
        spread = scores[np.ix_(*bins)]
        spread = spread.transpose(*np.argsort([order.index(one) for one in features]), len(features))
        others = [axis for axis, feature in enumerate(order) if feature not in features]
        total.add((), np.expand_dims(spread, others))
    return total


def _grow_term(model: Fitted, term: Term, texts: Mapping[int, Sequence[str]]) -> Forest:
    """A term as a tree of splits over the bins of its columns."""
    features, scores = term
    axes = [_make_axis(model, one, [term], texts) for one in features]
    bins = [_select_bins(model, one, len(features)) for one in features]
    cells = [_match_bins(own, axis, texts.get(axis.feature, ())) for own, axis in zip(bins, axes, strict=True)]
    return grow_cells(axes, scores[np.ix_(*cells)])


def _match_bins(bins: Fitted, axis: CellAxis, texts: Sequence[str]) -> IntArray:
    """The bin of each cell: the first bin is that of missing values, the last that of unseen ones."""
    if axis.is_category:
        return np.array([*(bins[text] for text in texts), -1, 0], dtype=np.int64)
    above = np.searchsorted(bins, axis.edges, side="right") + 1  # a cut belongs to the bin above it
    return np.array([1, *above, 0], dtype=np.int64)


def _make_raw_scores(model: Fitted, texts: Mapping[int, Sequence[str]]) -> RawScores:
    """Raw scores of encoded rows: categories are given to the model as the text that it keeps of them."""
    score = model.decision_function if hasattr(model, "decision_function") else model.predict

    def raw_scores(rows: FloatArray) -> FloatArray:
        if not texts:
            return np.asarray(score(rows))
        cells = rows.astype(object)
        for column, own in texts.items():
            unseen = "unseen" + "".join(own)
            codes = np.where(np.isnan(rows[:, column]), -2, rows[:, column]).astype(np.int64)
            cells[:, column] = np.array([*own, None, unseen], dtype=object)[codes]
        return np.asarray(score(cells))

    return raw_scores
