"""Subgroups beside all other rows: shares, differences, and which differences chance hardly explains.

Every interval and probability comes from `derand.metrics`. Must not know how groups are formed, nor how they are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from derand._core.arrays import BoolArray
from derand._core.text import format_exactly, format_percent_interval
from derand.metrics import Estimate, find_chance, find_wilson_interval, raise_chances, subtract_shares
from derand.report._audit_types import Contrast, ContrastKind, GroupComparison
from derand.report._inputs import Inputs
from derand.report._text import percent, plural, shorten

LEVEL = 0.05
"""How probable it may be that any difference is marked where there is none."""
_WAYS: dict[ContrastKind, Literal["down", "up", "nearest"]] = {"certified": "down", "wrong": "up", "answer": "nearest"}
_MOST_ANSWERS = 6
_NONE = "\N{EN DASH}"
_SPACE = "\N{NO-BREAK SPACE}"


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


def contrast_groups(
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
                    tests[column, group, measure] = find_chance(*one[2:])
    raised = dict(zip(tests, raise_chances(list(tests.values())), strict=True))
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
    every, radii = np.ones(inputs.n_rows, dtype=bool), inputs.plain.radius
    held = np.asarray((radii >= radius) & (radii > 0))
    title = f"Certified at {format_exactly(radius)}" if radius else "Certified"
    if inputs.correct is None or inputs.labels is None:
        return [_Measure("certified", title, every, held), *_list_answers(inputs)]
    found = [
        _Measure("certified", title, every, held & inputs.correct),
        _Measure("wrong", "Wrong", every, ~inputs.correct),
    ]
    if inputs.subject.classes.size == 2:
        for name in inputs.subject.classes.tolist():
            truth = np.asarray(inputs.labels == name)
            found.append(_Measure("wrong", f"Wrong of true “{shorten(str(name), 24)}”", truth, ~inputs.correct))
    return [*found, *_list_answers(inputs)]


def _list_answers(inputs: Inputs) -> list[_Measure]:
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
    share = find_wilson_interval(one.counted, one.total) if one.total else None
    others = find_wilson_interval(one.other_count, one.other_total) if one.other_total else None
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
