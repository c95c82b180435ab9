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
from markupsafe import Markup
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, IntArray
from derand._core.text import (
    format_count,
    format_exactly,
    format_percent_interval,
    format_short,
    format_short_down,
    format_short_up,
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
from derand.report._facts import Size
from derand.report._inputs import MISSING, Inputs, IntervalInputs, LabelArray, LabelInputs
from derand.report._markup import NAME_LENGTH, NOTHING, percent
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
    marked: str
    """How many differences are larger than chance explains, in a sentence."""
    sentence: str


class Group(TypedDict):
    """Rows that have something in common; `facts` are pairs of a title and a text, the others are of labels alone."""

    name: str
    n_rows: int
    facts: list[list[str]]
    contrasts: list[Contrast]
    """Certified rows; with labels also wrong answers and, of two classes, those to the rows of each class; answers. Of
    numbers: rows that move little, that are far off, and whose answer is above the median."""
    median_radius: NotRequired[Size]
    certified: NotRequired[float]
    certified_text: NotRequired[str]
    accuracy: NotRequired[float]
    accuracy_text: NotRequired[str]
    flips: NotRequired[int]


class Subgroups(TypedDict):
    """The groups of one column."""

    column: str
    groups: list[Group]


class Parts(TypedDict):
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
_SPACE = "\N{NO-BREAK SPACE}"


class Grouping(NamedTuple):
    """A title, the group of each row, and the groups in the order in which they are shown."""

    title: str
    names: LabelArray
    order: list[str]


def compute(inputs: Inputs, groups: Groups | None, radius: float) -> tuple[list[Subgroups], GroupComparison | None]:
    """Every group of the chosen columns, measured beside all other rows; and how they were compared."""
    found = read_groups(inputs, groups)
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


def read_groups(inputs: Inputs, groups: Groups | None) -> list[Grouping]:
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


def _measure_group(inputs: Inputs, name: str, at: IntArray, radius: float, contrasts: list[Contrast]) -> Group:
    found: Group = {"name": name, "n_rows": int(at.size), "facts": [], "contrasts": contrasts}
    if isinstance(inputs, IntervalInputs):
        found["facts"] = _list_means(inputs, at)
    elif isinstance(inputs, LabelInputs):
        right = np.ones(at.size, dtype=bool) if inputs.correct is None else inputs.correct[at]
        share = float(certified_share(right, inputs.plain.radius[at], [radius])[0])
        median = float(np.quantile(inputs.plain.radius[at], 0.5, method="lower"))
        found |= {"median_radius": median, "certified": share, "certified_text": percent(share)}
        found["facts"] = [["Median radius", format_short_down(median)]]
        if inputs.correct is not None:
            found |= {"accuracy": float(right.mean()), "accuracy_text": percent(float(right.mean()))}
        if inputs.plain.flips is not None:
            found["flips"] = int(inputs.plain.flips[at].sum())
            found["facts"] = [["Can be flipped", format_count(found["flips"])]]
    return found


def _list_means(inputs: IntervalInputs, at: IntArray) -> list[list[str]]:
    """What rows of a group get on average, how far that is from the truth, and how far half of them can move."""
    answers = inputs.intervals.value[at]
    half = float(np.quantile(inputs.moves[at], 0.5, method="higher"))
    found = [["Mean answer", format_short(float(answers.mean()))]]
    if inputs.truth is not None:
        found.append(["Mean truth", format_short(float(inputs.truth[at].mean()))])
        found.append(["Mean error", format_short(float(np.abs(answers - inputs.truth[at]).mean()))])
    return [*found, ["Half move by, at most", format_short_up(half)]]


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
    inputs: Inputs, columns: Sequence[Sequence[BoolArray]], radius: float
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


def _list_measures(inputs: Inputs, radius: float) -> list[_Measure]:
    """Certified rows; with labels also wrong answers and, of two classes, those to the rows of each class; answers."""
    every = np.ones(inputs.n_rows, dtype=bool)
    if isinstance(inputs, IntervalInputs):
        return _list_of_numbers(inputs, every)
    assert isinstance(inputs, LabelInputs)
    radii = inputs.plain.radius
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


def _list_of_numbers(inputs: IntervalInputs, every: BoolArray) -> list[_Measure]:
    """Of numbers: which rows move no farther than half of all do, which are farther off than the mean error, and whose
    answer is above the median."""
    found, answers = [], inputs.intervals.value
    half = float(np.quantile(inputs.moves, 0.5, method="higher"))
    if math.isfinite(half):
        found.append(_Measure("certified", f"Moves by {format_short_up(half)} at most", every, inputs.moves <= half))
    if inputs.truth is not None:
        missed = np.abs(answers - inputs.truth)
        title = f"Off by more than {format_short(float(missed.mean()))}"
        found.append(_Measure("wrong", title, every, np.asarray(missed > missed.mean())))
    middle = float(np.median(answers))
    return [*found, _Measure("answer", f"Answer above {format_short(middle)}", every, np.asarray(answers > middle))]


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
        "share_text": NOTHING if share is None else percent(share.value, way),
        "interval_text": "" if share is None else write_interval(*share),
        "others": None if others is None else others.to_dict(),
        "others_text": NOTHING if others is None else percent(others.value, way),
        "difference": None if difference is None else difference.to_dict(),
        "difference_text": NOTHING if difference is None else write_points(difference.value),
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
    compared = plural(n_comparisons, "comparison")
    return {
        "n_comparisons": n_comparisons,
        "n_marked": n_marked,
        "level": LEVEL,
        "marked": f"{n_marked} of {compared} {'shows' if n_marked == 1 else 'show'} more than chance explains.",
        "sentence": (
            "Proven shares are cut after one decimal, shares of mistakes rounded up, shares of answers rounded to "
            "nearest. Differences are to all other rows, in percentage points, of exact shares and rounded to nearest: "
            "those of the shares as shown may be 0.1 off. A difference is marked where chance hardly "
            f"explains it: Fisher's exact test, all {compared} of this part taken together "
            f"(Holm's method), at 5{_SPACE}%. Where there is no mark, there may be a difference all the same "
            "that so few rows do not show."
        ),
    }


_CAPTIONS: tuple[tuple[ContrastKind, str, str], ...] = (
    ("certified", "proven", "subgroups"),
    ("wrong", "mistakes", "group-errors"),
    ("answer", "answers", "group-answers"),
)


def blocks(summary: Parts) -> list[ui.Block]:
    """Tables of each column: proven rows, mistakes, answers; how they were compared is folded."""
    comparison = summary["group_comparison"]
    assert comparison is not None  # there are groups
    wrong = ", get more wrong answers" if any(one["kind"] == "wrong" for one in _list_contrasts(summary)) else ""
    about = f"Whether some people or things are easier to sway than others{wrong}, or get one answer more often."
    small = (
        f"{comparison['sentence']} Intervals hold with 95 %, Wilson's for shares and Newcombe's for differences; they "
        "count each comparison by itself."
    )
    return [
        ui.Heading("Subgroups", "subgroups"),
        ui.Paragraph(f"{about} {comparison['marked']}"),
        *(_show_column(group, is_open=not at) for at, group in enumerate(summary["subgroups"])),
        ui.Details(
            "", [ui.Paragraph(small, "fine", "group-comparison")], summary="How they were compared, and how exact it is"
        ),
    ]


def _show_column(group: Subgroups, *, is_open: bool) -> ui.Details:
    """All tables of a column; the page opens those of the first."""
    kinds = {one["kind"] for one in group["groups"][0]["contrasts"]}
    n_marked = sum(one["mark"] != "" for row in group["groups"] for one in row["contrasts"])
    name = shorten(group["column"], NAME_LENGTH)
    tables = [_tabulate(group, kind, caption, test) for kind, caption, test in _CAPTIONS if kind in kinds]
    title = [f"By {name}", *([ui.quiet(f" {plural(n_marked, 'mark')}")] if n_marked else [])]
    heading = ui.in_markdown(ui.Heading(f"Subgroups: {name}"))
    return ui.Details("", [heading, *tables], summary=Markup("").join(title), is_open=is_open)


def _list_contrasts(summary: Parts) -> list[Contrast]:
    return [one for group in summary["subgroups"] for row in group["groups"] for one in row["contrasts"]]


def _tabulate(group: Subgroups, kind: ContrastKind, caption: str, test: str) -> ui.Table:
    """Groups beside all other rows, differences in percentage points, marked where chance hardly explains them."""
    is_first = group["groups"][0]["contrasts"][0]["kind"] == kind
    head: ui.Line = ["group", *(["rows"] if is_first else [])]
    lines: list[ui.Line] = []
    for row in group["groups"]:
        chosen = [one for one in row["contrasts"] if one["kind"] == kind]
        facts = row["facts"] if is_first else []
        if not lines:
            head += [text for one in chosen for text in (one["title"], "difference")] + [name for name, _ in facts]
        cells: ui.Line = [ui.name_cell(row["name"], 40), *([format_count(row["n_rows"])] if is_first else [])]
        for one in chosen:
            cells += [_write_share(one, has_bar=is_first), _write_difference(one)]
        lines.append([*cells, *(text for _, text in facts)])
    name = shorten(group["column"], NAME_LENGTH)
    label, style = f"By {name}: {caption}", "numeric bars contrasts" if is_first else "numeric contrasts"
    return ui.Table(head, lines, label, label, test, style)


def _write_share(one: Contrast, *, has_bar: bool) -> ui.Cell:
    bar: ui.Text = ""
    if has_bar and one["share"] is not None:
        bar = ui.tag("span", class_="meter", style=f"--share: {round(one['share']['value'], 4)}")
    page = Markup("").join([bar, ui.tag("span", one["share_text"]), ui.tag("small", one["interval_text"])])
    return ui.Cell(f"{one['share_text']} ({one['interval_text']})" if one["interval_text"] else one["share_text"], page)


def _write_difference(one: Contrast) -> ui.Cell:
    text, interval = one["difference_text"], one["difference_interval_text"]
    shown: ui.Text = text
    if one["mark"]:
        aside = ui.tag("span", f" {one['mark']} than chance explains", class_="aside")
        shown = ui.tag("span", f"{'▲' if one['mark'] == 'more' else '▼'} {text}", aside, class_="beyond")
    mark = " (beyond chance)" if one["mark"] else ""
    told = f"{text}{f' ({interval})' if interval else ''}{mark}"
    return ui.Cell(told, Markup("").join([shown, ui.tag("small", interval)]))


SECTION = ui.Section("subgroups", lambda s: "Subgroups" if s["subgroups"] else "", blocks)
