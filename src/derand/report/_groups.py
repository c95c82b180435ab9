"""Subgroups: whether some rows are less robust than others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import IntArray
from derand._core.text import format_short, format_short_down
from derand.frames import format_moment
from derand.metrics import certified_share
from derand.report._audit_types import Contrast, GroupComparison
from derand.report._group_contrasts import contrast_groups
from derand.report._inputs import MISSING, Groups, Inputs, LabelArray
from derand.report._text import percent
from derand.report._types import Group, GroupShare, Subgroups

MAX_GROUPS = 12
_MISSING = "(missing or new)"
_DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-([0-3]\d)(?=$|[T ])")


class Grouping(NamedTuple):
    """A title, the group of each row, and the groups in the order in which they are shown."""

    title: str
    names: LabelArray
    order: list[str]


def summarize_groups(
    inputs: Inputs, groups: Groups | None, radius: float
) -> tuple[list[Subgroups], GroupComparison | None]:
    """Every group of the chosen columns, measured beside all other rows; and how they were compared."""
    found = _read_groups(inputs, groups)
    masks = [[np.asarray(one.names == name) for name in one.order] for one in found]
    contrasts, comparison = contrast_groups(inputs, masks, radius)
    listed: list[Subgroups] = [
        {
            "column": one.title,
            "groups": [
                _measure(inputs, name, np.flatnonzero(mask), radius, told)
                for name, mask, told in zip(one.order, masks[at], contrasts[at], strict=True)
            ],
        }
        for at, one in enumerate(found)
    ]
    return listed, comparison


def find_groups(names: Sequence[str], groups: Groups | None, n_rows: int) -> list[tuple[str, int | LabelArray]]:
    """The title of each grouping with the number of its column, or with one group per row; others are refused.

    `names`: of the columns of the model; `groups`: as for CertificateReport.
    """
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return [
            (str(title), _find_feature(names, values))
            if isinstance(values, str | int | np.integer)
            else (str(title), _as_given(n_rows, title, values))
            for title, values in groups.items()
        ]
    features = [
        _find_feature(names, one) for one in ([groups] if isinstance(groups, str | int | np.integer) else groups)
    ]
    return [(names[feature], feature) for feature in features]


def _read_groups(inputs: Inputs, groups: Groups | None) -> list[Grouping]:
    return [
        _cut_column(inputs, found, title) if isinstance(found, int) else _by_size(title, found)
        for title, found in find_groups(inputs.subject.names, groups, inputs.n_rows)
    ]


def _as_given(n_rows: int, title: str, values: ArrayLike) -> LabelArray:
    names = np.asarray(values)
    if names.shape != (n_rows,):
        raise ValueError(f"`groups[{title!r}]` must hold one group per row, {n_rows} in all, got shape {names.shape}.")
    if names.dtype.kind == "M":  # numbers as a list, and text here
        names = np.where(np.isnat(names), _MISSING, np.datetime_as_string(names, unit="D"))
    return np.array([_MISSING if value is None else str(value) for value in names.tolist()])


def _by_size(title: str, names: LabelArray) -> Grouping:
    """Groups from the largest to the smallest, the rarest put together where there are too many; dates by time."""
    dated = _join_dates(names)
    if dated is not None:
        return Grouping(title, dated, sorted(set(dated.tolist()), key=lambda name: (name == _MISSING, name)))
    merged = _merge_small(names)
    found, counts = np.unique(merged, return_counts=True)
    return Grouping(title, merged, found[np.argsort(-counts, kind="stable")].tolist())


def _join_dates(names: LabelArray) -> LabelArray | None:
    """Dates by day, month, quarter or year, whatever gives few enough groups; None where they are no dates."""
    gaps = names == _MISSING
    found = [_DATE.match(name) for name in names[~gaps].tolist()]
    if not found or not all(found):
        return None
    dates = [one.groups() for one in found if one is not None]
    ways = (
        ["-".join(date) for date in dates],
        [f"{year}-{month}" for year, month, _ in dates],
        [f"{year}, quarter {(int(month) + 2) // 3}" for year, month, _ in dates],
        [year for year, _, _ in dates],
    )
    fitting = next((way for way in ways if len(set(way)) <= MAX_GROUPS), None)
    if fitting is None:
        return None
    joined = names.astype(object)
    joined[~gaps] = fitting
    return joined.astype(str)


def _find_feature(names: Sequence[str], one: object) -> int:
    if isinstance(one, str):
        if one not in names:
            known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise ValueError(
                f"`groups` names the column {one!r}, which the model does not have; it has {known}. "
                "Give other columns as a dict of a title and one group per row."
            )
        return names.index(one)
    if isinstance(one, bool) or not isinstance(one, int | np.integer) or not 0 <= one < len(names):
        raise ValueError(f"`groups` must name columns, by name or by number from 0 to {len(names) - 1}, got {one!r}.")
    return int(one)


def _cut_column(inputs: Inputs, feature: int, title: str) -> Grouping:
    """Groups of one feature: its categories or values, or four intervals with about a quarter of the rows each."""
    subject, column = inputs.subject, inputs.matrix[:, feature]
    there = column[~np.isnan(column)]
    values = np.unique(there)
    if feature in subject.categories or values.size <= MAX_GROUPS:
        return _by_size(title, np.array([subject.describe_value(feature, value) for value in column.tolist()]))
    cuts = np.unique(np.quantile(there, [0.25, 0.5, 0.75], method="lower"))
    is_date = feature in subject.dates
    ends = [format_moment(cut) if is_date else format_short(cut) for cut in cuts.tolist()]
    names = [
        f"up to {ends[0]}",
        *(f"{low} to {high}" for low, high in pairwise(ends)),
        f"{'after' if is_date else 'above'} {ends[-1]}",
    ]
    found = np.array([*names, MISSING])[np.where(np.isnan(column), len(names), np.searchsorted(cuts, column))]
    return Grouping(title, found, names if there.size == column.size else [*names, MISSING])


def _merge_small(names: LabelArray) -> LabelArray:
    """The same with the rarest groups put together where there are too many."""
    found, counts = np.unique(names, return_counts=True)
    if found.size <= MAX_GROUPS:
        return names
    kept = found[np.argsort(-counts, kind="stable")[: MAX_GROUPS - 1]]
    return np.where(np.isin(names, kept), names.astype(object), f"(other, {found.size - kept.size} kinds)").astype(str)


def _measure(inputs: Inputs, name: str, at: IntArray, radius: float, contrasts: list[Contrast]) -> Group:
    median = float(np.quantile(inputs.plain.radius[at], 0.5, method="lower"))
    return {
        "name": name,
        "n_rows": int(at.size),
        "median_radius": median,
        "median_radius_text": format_short_down(median),
        "contrasts": contrasts,
        **_count_certified(inputs, at, radius),
    }


def _count_certified(inputs: Inputs, at: IntArray, radius: float) -> GroupShare:
    right = np.ones(at.size, dtype=bool) if inputs.correct is None else inputs.correct[at]
    share = float(certified_share(right, inputs.plain.radius[at], [radius])[0])
    found: GroupShare = {"certified": share, "certified_text": percent(share)}
    if inputs.correct is not None:
        accuracy = float(right.mean())
        found |= {"accuracy": accuracy, "accuracy_text": percent(accuracy)}
    if inputs.plain.flips is not None:
        found["flips"] = int(inputs.plain.flips[at].sum())
    return found
