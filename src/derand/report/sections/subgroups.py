"""Subgroups beside all other rows: shares, differences, and which differences chance hardly explains.

Every interval and probability comes from `derand.metrics`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, IntArray
from derand._core.text import (
    format_count,
    format_exactly,
    format_percent_interval,
    format_short,
    format_short_down,
    plural,
    shorten,
)
from derand.metrics import (
    Estimate,
    EstimateSummary,
    adjust_chances,
    certified_share,
    compare_shares,
    compute_wilson_interval,
    subtract_shares,
)
from derand.report import _blocks as ui
from derand.report._facts import Facts, Size
from derand.report._inputs import MISSING, LabelArray, LabelInputs
from derand.report._markup import NAME_LENGTH, percent, render
from derand.report._settings import Groups
from derand.tables import format_moment

ContrastKind = Literal["certified", "wrong", "answer"]


class Contrast(TypedDict):
    """A share of the rows of a group, that of all other rows, and the difference, with 95 % intervals; null where there
    are no such rows."""

    kind: ContrastKind
    title: str
    count: int
    n_rows: int
    share: EstimateSummary | None
    share_text: str
    interval_text: str
    others: EstimateSummary | None
    others_text: str
    difference: EstimateSummary | None
    difference_text: str
    """In percentage points, as its interval."""
    difference_interval_text: str
    chance: float | None
    """The probability of so large a difference by chance, raised for the number of comparisons in the report."""
    mark: Literal["", "more", "less"]
    """Whether the difference is larger than chance explains, and which way."""


class GroupComparison(TypedDict):
    """How the subgroups of a report were compared."""

    n_comparisons: int
    n_marked: int
    level: float
    sentence: str


class GroupShare(TypedDict):
    """How many rows of a group are certified at the quoted radius, and right."""

    certified: float
    certified_text: str
    accuracy: NotRequired[float]
    accuracy_text: NotRequired[str]
    flips: NotRequired[int]


class Group(GroupShare):
    """Rows that have something in common."""

    name: str
    n_rows: int
    median_radius: Size
    median_radius_text: str
    contrasts: list[Contrast]
    """Certified rows; with labels also wrong answers and, of two classes, those to the rows of each class."""


class Subgroups(TypedDict):
    """The groups of one column."""

    column: str
    groups: list[Group]


class Parts(Facts):
    """What this section reads."""

    subgroups: list[Subgroups]
    group_comparison: GroupComparison | None


MAX_GROUPS = 12
_NO_GROUP = "(missing or new)"
_DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-([0-3]\d)(?=$|[T ])")
LEVEL = 0.05
"""How probable it may be that any difference is marked where there is none."""
_WAYS: dict[ContrastKind, Literal["down", "up", "nearest"]] = {"certified": "down", "wrong": "up", "answer": "nearest"}
_MOST_ANSWERS = 6
_NONE = "\N{EN DASH}"
_SPACE = "\N{NO-BREAK SPACE}"


class Grouping(NamedTuple):
    """A title, the group of each row, and the groups in the order in which they are shown."""

    title: str
    names: LabelArray
    order: list[str]


def compute(
    inputs: LabelInputs, groups: Groups | None, radius: float
) -> tuple[list[Subgroups], GroupComparison | None]:
    """Every group of the chosen columns, measured beside all other rows; and how they were compared."""
    found = _read_groups(inputs, groups)
    masks = [[np.asarray(one.names == name) for name in one.order] for one in found]
    contrasts, comparison = _contrast_groups(inputs, masks, radius)
    listed: list[Subgroups] = [
        {
            "column": one.title,
            "groups": [
                _measure_group(inputs, name, np.flatnonzero(mask), radius, told)
                for name, mask, told in zip(one.order, masks[at], contrasts[at], strict=True)
            ],
        }
        for at, one in enumerate(found)
    ]
    return listed, comparison


def resolve_groups(names: Sequence[str], groups: Groups | None, n_rows: int) -> list[tuple[str, int | LabelArray]]:
    """The title of each grouping with the number of its column, or with one group per row; others are refused.

    `names`: of the columns of the model; `groups`: as for Report.
    """
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return [
            (str(title), _resolve_feature(names, values))
            if isinstance(values, str | int | np.integer)
            else (str(title), _as_given(n_rows, title, values))
            for title, values in groups.items()
        ]
    features = [
        _resolve_feature(names, one) for one in ([groups] if isinstance(groups, str | int | np.integer) else groups)
    ]
    return [(names[feature], feature) for feature in features]


def _read_groups(inputs: LabelInputs, groups: Groups | None) -> list[Grouping]:
    return [
        _cut_column(inputs, found, title) if isinstance(found, int) else _by_size(title, found)
        for title, found in resolve_groups(inputs.subject.names, groups, inputs.n_rows)
    ]


def _as_given(n_rows: int, title: str, values: ArrayLike) -> LabelArray:
    names = np.asarray(values)
    if names.shape != (n_rows,):
        raise ValueError(f"`groups[{title!r}]` must hold one group per row, {n_rows} in all, got shape {names.shape}.")
    if names.dtype.kind == "M":  # numbers as a list, and text here
        names = np.where(np.isnat(names), _NO_GROUP, np.datetime_as_string(names, unit="D"))
    return np.array([_NO_GROUP if value is None else str(value) for value in names.tolist()])


def _by_size(title: str, names: LabelArray) -> Grouping:
    """Groups from the largest to the smallest, the rarest put together where there are too many; dates by time."""
    dated = _join_dates(names)
    if dated is not None:
        return Grouping(title, dated, sorted(set(dated.tolist()), key=lambda name: (name == _NO_GROUP, name)))
    merged = _merge_small(names)
    found, counts = np.unique(merged, return_counts=True)
    return Grouping(title, merged, found[np.argsort(-counts, kind="stable")].tolist())


def _join_dates(names: LabelArray) -> LabelArray | None:
    """Dates by day, month, quarter or year, whatever gives few enough groups; None where they are no dates."""
    gaps = names == _NO_GROUP
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


def _resolve_feature(names: Sequence[str], one: object) -> int:
    if isinstance(one, str):
        if one not in names:
            known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise ValueError(
                f"`subgroups` names the column {one!r}, which the model does not have; it has {known}. "
                "Give other columns as a dict of a title and one group per row."
            )
        return names.index(one)
    if isinstance(one, bool) or not isinstance(one, int | np.integer) or not 0 <= one < len(names):
        raise ValueError(
            f"`subgroups` must name columns, by name or by number from 0 to {len(names) - 1}, got {one!r}."
        )
    return int(one)


def _cut_column(inputs: LabelInputs, feature: int, title: str) -> Grouping:
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


def _measure_group(inputs: LabelInputs, name: str, at: IntArray, radius: float, contrasts: list[Contrast]) -> Group:
    median = float(np.quantile(inputs.plain.radius[at], 0.5, method="lower"))
    return {
        "name": name,
        "n_rows": int(at.size),
        "median_radius": median,
        "median_radius_text": format_short_down(median),
        "contrasts": contrasts,
        **_count_certified(inputs, at, radius),
    }


def _count_certified(inputs: LabelInputs, at: IntArray, radius: float) -> GroupShare:
    right = np.ones(at.size, dtype=bool) if inputs.correct is None else inputs.correct[at]
    share = float(certified_share(right, inputs.plain.radius[at], [radius])[0])
    found: GroupShare = {"certified": share, "certified_text": percent(share)}
    if inputs.correct is not None:
        accuracy = float(right.mean())
        found |= {"accuracy": accuracy, "accuracy_text": percent(accuracy)}
    if inputs.plain.flips is not None:
        found["flips"] = int(inputs.plain.flips[at].sum())
    return found


class _Measure(NamedTuple):
    """What is counted: which rows are looked at, and which of them count."""

    kind: ContrastKind
    title: str
    among: BoolArray
    counts: BoolArray


class _Counted(NamedTuple):
    """A measure of a group, and of all other rows."""

    kind: ContrastKind
    title: str
    counted: int
    total: int
    other_count: int
    other_total: int


def _contrast_groups(
    inputs: LabelInputs, columns: Sequence[Sequence[BoolArray]], radius: float
) -> tuple[list[list[list[Contrast]]], GroupComparison | None]:
    """For each column and each of its groups the contrasts with all other rows, and how they were compared.

    `columns`: which rows belong to which group, by column; `radius`: that of the text.
    """
    measures = _list_measures(inputs, radius)
    counted = [[[_count(one, mask) for one in measures] for mask in groups] for groups in columns]
    tests: dict[tuple[int, int, int], float] = {}
    for column, groups in enumerate(counted):
        # of two groups each is the rest of the other: one comparison, not two
        for group in range(1 if len(groups) == 2 else len(groups)):
            for measure, one in enumerate(groups[group]):
                if one.total and one.other_total:
                    tests[column, group, measure] = compare_shares(*one[2:])
    raised = dict(zip(tests, adjust_chances(list(tests.values())), strict=True))
    found = [
        [
            [
                _describe(one, raised.get((column, 0 if len(groups) == 2 else group, measure)))
                for measure, one in enumerate(row)
            ]
            for group, row in enumerate(groups)
        ]
        for column, groups in enumerate(counted)
    ]
    return found, _compare(len(raised), sum(chance <= LEVEL for chance in raised.values())) if columns else None


def _list_measures(inputs: LabelInputs, radius: float) -> list[_Measure]:
    """Certified rows; with labels also wrong answers and, of two classes, those to the rows of each class; answers."""
    every, radii = np.ones(inputs.n_rows, dtype=bool), inputs.plain.radius
    held = np.asarray((radii >= radius) & (radii > 0))
    title = f"Certified at {format_exactly(radius)}" if radius else "Certified"
    if inputs.correct is None or inputs.truth is None:
        return [_Measure("certified", title, every, held), *_list_answers(inputs)]
    found = [
        _Measure("certified", title, every, held & inputs.correct),
        _Measure("wrong", "Wrong", every, ~inputs.correct),
    ]
    if inputs.subject.classes.size == 2:
        for name in inputs.subject.classes.tolist():
            truth = np.asarray(inputs.truth == name)
            found.append(_Measure("wrong", f"Wrong of true “{shorten(str(name), 24)}”", truth, ~inputs.correct))
    return [*found, *_list_answers(inputs)]


def _list_answers(inputs: LabelInputs) -> list[_Measure]:
    """Who gets which answer: of two classes the second one, of many the most frequent answers."""
    every, classes, labels = np.ones(inputs.n_rows, dtype=bool), inputs.subject.classes, inputs.plain.label
    counts = np.array([(labels == name).sum() for name in classes.tolist()])
    shown = [1] if classes.size == 2 else sorted(np.argsort(-counts, kind="stable")[:_MOST_ANSWERS].tolist())
    return [
        _Measure("answer", f"Gets “{shorten(str(classes[at]), 24)}”", every, np.asarray(labels == classes[at]))
        for at in shown
    ]


def _count(measure: _Measure, mask: BoolArray) -> _Counted:
    among, others = measure.among & mask, measure.among & ~mask
    return _Counted(
        measure.kind,
        measure.title,
        int((measure.counts & among).sum()),
        int(among.sum()),
        int((measure.counts & others).sum()),
        int(others.sum()),
    )


def _describe(one: _Counted, chance: float | None) -> Contrast:
    share = compute_wilson_interval(one.counted, one.total) if one.total else None
    others = compute_wilson_interval(one.other_count, one.other_total) if one.other_total else None
    difference = None if share is None or others is None else subtract_shares(share, others)
    beyond = difference is not None and chance is not None and chance <= LEVEL
    way = _WAYS[one.kind]
    return {
        "kind": one.kind,
        "title": one.title,
        "count": one.counted,
        "n_rows": one.total,
        "share": None if share is None else share.to_dict(),
        "share_text": _NONE if share is None else percent(share.value, way),
        "interval_text": "" if share is None else write_interval(*share),
        "others": None if others is None else others.to_dict(),
        "others_text": _NONE if others is None else percent(others.value, way),
        "difference": None if difference is None else difference.to_dict(),
        "difference_text": _NONE if difference is None else write_points(difference.value),
        "difference_interval_text": "" if difference is None else _write_point_interval(difference),
        "chance": chance,
        "mark": "" if not beyond or difference is None else "more" if difference.value > 0 else "less",
    }


def write_interval(value: float, low: float, high: float) -> str:
    """The interval of a share, alone."""
    return format_percent_interval(value, low, high, space=_SPACE).removesuffix(")").split(" (")[1]


def write_points(difference: float) -> str:
    """A difference of shares in percentage points, to nearest.

    Examples
    --------
    >>> write_points(0.0421), write_points(-0.1), write_points(-0.0001)
    ('+4.2', '−10.0', '0.0')
    """
    return _sign(round(1000 * difference))


def _write_point_interval(difference: Estimate) -> str:
    """The interval of a difference in percentage points, its ends rounded outwards."""
    low, high = math.floor(1000 * difference.low), math.ceil(1000 * difference.high)
    return f"{_sign(low)} to {_sign(high)}"


def _sign(tenths: int) -> str:
    sign = "+" if tenths > 0 else "\N{MINUS SIGN}" if tenths < 0 else ""
    return f"{sign}{abs(tenths) / 10:.1f}"


def _compare(n_comparisons: int, n_marked: int) -> GroupComparison:
    marked = (
        "No difference is marked" if not n_marked else f"{plural(n_marked, 'difference is', 'differences are')} marked"
    )
    return {
        "n_comparisons": n_comparisons,
        "n_marked": n_marked,
        "level": LEVEL,
        "sentence": (
            "Certified shares are cut after one decimal, shares of mistakes rounded up, shares of answers rounded to "
            "nearest. Differences are to all other rows, in percentage points, of exact shares and rounded to nearest: "
            "those of the shares as shown may be 0.1 off. A difference is marked where chance hardly "
            f"explains it: Fisher's exact test, all {plural(n_comparisons, 'comparison')} of this part taken together "
            f"(Holm's method), at 5{_SPACE}%. {marked}. Where there is no mark, there may be a difference all the same "
            "that so few rows do not show."
        ),
    }


def blocks(summary: Parts) -> list[ui.Block]:
    """Tables of each column: certified rows, mistakes, answers; Markdown has them in one."""
    comparison = summary["group_comparison"]
    assert comparison is not None  # there are groups
    return [
        ui.Raw(render("subgroups", summary)),
        *(
            ui.in_markdown(
                ui.Heading(f"Subgroups: {shorten(group['column'], NAME_LENGTH)}"), _join_tables(summary, group)
            )
            for group in summary["subgroups"]
        ),
        ui.in_markdown(ui.Paragraph(f"{comparison['sentence']} The mark is “(beyond chance)”.")),
    ]


def _join_tables(summary: Parts, group: Subgroups) -> ui.Table:
    """Groups beside all other rows, differences in percentage points, marked where chance hardly explains them."""
    titles = [one["title"] for one in group["groups"][0]["contrasts"]]
    head = ["group", "rows", "median radius" if summary["threat"]["norm"] is not None else "can be flipped"]
    head += [text for title in titles for text in (title, "95 % interval", "difference")]
    lines: list[ui.Line] = []
    for one in group["groups"]:
        cells: ui.Line = [one["name"], format_count(one["n_rows"])]
        cells.append(format_count(one["flips"]) if "flips" in one else one["median_radius_text"])
        for contrast in one["contrasts"]:
            interval = contrast["difference_interval_text"]
            mark = " (beyond chance)" if contrast["mark"] else ""
            difference = f"{contrast['difference_text']}{f' ({interval})' if interval else ''}{mark}"
            cells += [contrast["share_text"], contrast["interval_text"], difference]
        lines.append(cells)
    return ui.Table(head, lines)


SECTION = ui.Section("subgroups", lambda s: "Subgroups" if s["subgroups"] else "", blocks)
