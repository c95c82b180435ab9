"""Several classes: which one is taken for which, and how far each answer is from its nearest rival.

A row's radius is limited by one class, its nearest rival (`Certificates.runner_up`): a pair is judged by the rows that
lie between its two classes.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from markupsafe import Markup, escape

from derand._core.arrays import BoolArray, IntArray
from derand._core.text import format_count, format_exactly, format_short, format_short_down, plural, shorten
from derand.metrics import certified_share
from derand.report._charts import UNITS, WIDTH, Frame, choose_ticks, cut_radius, wrap_svg
from derand.report._facts import Facts, Size
from derand.report._inputs import LabelArray, LabelInputs
from derand.report._markup import make_pipe_table, mark_text, render
from derand.report._text import percent
from derand.report.sections import Section


class ClassAnswers(TypedDict):
    """The rows of one true class: how often each class was the answer, and what is certified."""

    name: str
    n_rows: int
    answers: list[int]
    right_text: str
    certified: float | None
    certified_text: str


class Confusion(TypedDict):
    """Of several classes: answers by true class."""

    classes: list[str]
    rows: list[ClassAnswers]


class AnswerClass(TypedDict):
    """The rows that got one class as their answer.

    `spread` holds the radii that 90, 75, 50, 25 and 10 per cent of them reach; nothing where limits alone say what may
    change, or where no row got that answer.
    """

    name: str
    n_rows: int
    right: int | None
    certified: int
    """Rows whose answer is proven at the quoted radius, right or wrong."""
    right_text: str
    certified_text: str
    spread: list[Size]
    median_text: str
    rival: str | None
    """The class that limits most of their radii."""
    rival_rows: int


class RivalCell(TypedDict):
    """Rows of one answer whose radius is limited by one rival."""

    n_rows: int
    certified: int
    median: Size | None
    median_text: str
    weakness: float
    """From 0 to 1, for the tint: how far the median lies below the largest of the table."""


class ClassPair(TypedDict):
    """Two classes, either of which is the answer and the other its nearest rival."""

    names: list[str]
    n_rows: int
    open: int
    """Rows between them that are not certified at the quoted radius."""
    confused: int | None
    """Rows of one of them that got the other as their answer; null without labels."""
    median: Size | None
    median_text: str
    smallest_text: str


class Rivals(TypedDict):
    """Several classes: how far each answer is from its nearest rival, and which rival that is."""

    classes: list[str]
    answers: list[AnswerClass]
    cells: list[list[RivalCell]]
    pairs: list[ClassPair]
    n_pairs: int
    """How many pairs limit some row's radius; `pairs` lists the weakest."""
    sentences: list[str]


class Parts(Facts):
    """What this section reads."""

    confusion: Confusion | None
    rivals: Rivals | None


MAX_CLASSES = 20
"""Classes in the table: the largest; all others are put together."""
_OTHERS = "(others)"
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
_LISTED_PAIRS = 12
_LINE, _LEFT = 22, 118


def summarize_confusion(inputs: LabelInputs, radius: float) -> Confusion | None:
    """Answers by true class, with what is certified of each; None for two classes, or without labels."""
    if inputs.truth is None or inputs.subject.classes.size == 2:
        return None
    truth, answers = (np.searchsorted(inputs.subject.classes, one) for one in (inputs.truth, inputs.plain.label))
    titles, place = place_classes(truth, inputs.subject.classes)
    counts = np.zeros((len(titles), len(titles)), dtype=np.int64)
    np.add.at(counts, (place[truth], place[answers]), 1)
    return {
        "classes": titles,
        "rows": [
            _count_class(inputs, title, np.flatnonzero(place[truth] == at), counts[at].tolist(), radius)
            for at, title in enumerate(titles)
        ],
    }


def place_classes(codes: IntArray, classes: LabelArray) -> tuple[list[str], IntArray]:
    """Names of the classes of a table in their own order, and the place of each class: all, or the largest ones."""
    names = [str(name) for name in classes.tolist()]
    shown = list(range(len(names)))
    if len(names) > MAX_CLASSES:
        counts = np.bincount(codes, minlength=len(names))
        shown = sorted(np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1].tolist())
    place = np.full(len(names), len(shown))
    place[shown] = np.arange(len(shown))
    return [*(names[at] for at in shown), *([] if len(shown) == len(names) else [_OTHERS])], place


def _count_class(inputs: LabelInputs, name: str, at: IntArray, answers: list[int], radius: float) -> ClassAnswers:
    assert inputs.correct is not None
    right = inputs.correct[at]
    share = float(certified_share(right, inputs.plain.radius[at], [radius])[0]) if at.size else None
    return {
        "name": name,
        "n_rows": int(at.size),
        "answers": answers,
        "right_text": "" if share is None else percent(float(right.mean())),
        "certified": share,
        "certified_text": "" if share is None else percent(share),
    }


def summarize_rivals(inputs: LabelInputs, radius: float) -> Rivals | None:
    """Answers and rivals of several classes at the quoted radius; None for two."""
    rivals = inputs.plain.runner_up
    if rivals is None or inputs.subject.classes.size == 2:
        return None
    answers, nearest = (np.searchsorted(inputs.subject.classes, one) for one in (inputs.plain.label, rivals))
    held = (inputs.plain.radius > 0) & (inputs.plain.radius >= radius)
    titles, place = place_classes(answers, inputs.subject.classes)
    pairs = _list_pairs(inputs, answers, nearest, held)
    by_answer = [
        _describe_answers(inputs, title, place[answers] == at, nearest, held) for at, title in enumerate(titles)
    ]
    found = [
        [
            _describe_cell(inputs, (place[answers] == at) & (place[nearest] == other), held)
            for other in range(len(titles))
        ]
        for at in range(len(titles))
    ]
    _tint(found)
    return {
        "classes": titles,
        "answers": by_answer,
        "cells": found,
        "pairs": pairs[:_LISTED_PAIRS],
        "n_pairs": len(pairs),
        "sentences": _say_rivals(inputs, answers, held, pairs, radius),
    }


def _take_spread(inputs: LabelInputs, at: BoolArray | IntArray) -> list[float]:
    """Radii that most to few of some rows reach; none where there are no rows, or no radii."""
    radius = inputs.plain.radius[at]
    if inputs.plain.verdict is not None or not radius.size:
        return []
    return [float(one) for one in np.quantile(radius, _SHARES, method="lower")]


def _describe_answers(inputs: LabelInputs, name: str, at: BoolArray, nearest: IntArray, held: BoolArray) -> AnswerClass:
    n_rows, certified = int(at.sum()), int(held[at].sum())
    right = None if inputs.correct is None else int(inputs.correct[at].sum())
    spread = _take_spread(inputs, at)
    counts = np.bincount(nearest[at], minlength=inputs.subject.classes.size)
    return {
        "name": name,
        "n_rows": n_rows,
        "right": right,
        "certified": certified,
        "right_text": "" if right is None or not n_rows else percent(right / n_rows),
        "certified_text": percent(certified / n_rows) if n_rows else "",
        "spread": list(spread),
        "median_text": format_short_down(spread[2]) if spread else "",
        "rival": str(inputs.subject.classes[int(counts.argmax())]) if n_rows else None,
        "rival_rows": int(counts.max()) if n_rows else 0,
    }


def _describe_cell(inputs: LabelInputs, at: BoolArray, held: BoolArray) -> RivalCell:
    spread = _take_spread(inputs, at)
    return {
        "n_rows": int(at.sum()),
        "certified": int(held[at].sum()),
        "median": spread[2] if spread else None,
        "median_text": format_short_down(spread[2], 2) if spread else "",
        "weakness": 0.0,
    }


def _tint(cells: list[list[RivalCell]]) -> None:
    """How weak each cell is beside the strongest; without radii by the share that is not proven."""
    every = [cell for line in cells for cell in line if cell["n_rows"]]
    finite = [
        float(cell["median"]) for cell in every if cell["median"] is not None and np.isfinite(float(cell["median"]))
    ]
    largest = max(finite, default=0.0)
    for cell in every:
        if cell["median"] is None:
            cell["weakness"] = round(1 - cell["certified"] / cell["n_rows"], 3)
        elif np.isfinite(float(cell["median"])):
            cell["weakness"] = round(1 - float(cell["median"]) / largest, 3) if largest > 0 else 1.0


def _list_pairs(inputs: LabelInputs, answers: IntArray, nearest: IntArray, held: BoolArray) -> list[ClassPair]:
    """All pairs between which rows lie: those with most rows that are wrong or not certified first, then by radius."""
    n_classes = inputs.subject.classes.size
    low, high = np.minimum(answers, nearest), np.maximum(answers, nearest)
    codes = low * n_classes + high
    confused = _count_confused(inputs, answers)
    order = np.argsort(codes, kind="stable")
    found = []
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        one, other = divmod(int(codes[rows[0]]), n_classes)
        number = None if confused is None else int(confused[one, other] + confused[other, one])
        found.append(_describe_pair(inputs, (one, other), rows, held, number))
    return sorted(found, key=lambda pair: (-_weigh(pair), _as_size(pair), -pair["n_rows"]))


def _weigh(pair: ClassPair) -> int:
    """How much is wrong between two classes: rows that are not proven, and rows that are confused."""
    return pair["open"] + (pair["confused"] or 0)


def _as_size(pair: ClassPair) -> float:
    return 0.0 if pair["median"] is None else float(pair["median"])


def _count_confused(inputs: LabelInputs, answers: IntArray) -> IntArray | None:
    """Rows by true class and answer."""
    if inputs.truth is None:
        return None
    counts = np.zeros((inputs.subject.classes.size,) * 2, dtype=np.int64)
    np.add.at(counts, (np.searchsorted(inputs.subject.classes, inputs.truth), answers), 1)
    return counts


def _describe_pair(
    inputs: LabelInputs, pair: tuple[int, int], at: IntArray, held: BoolArray, confused: int | None
) -> ClassPair:
    spread, radius = _take_spread(inputs, at), inputs.plain.radius[at]
    return {
        "names": [str(inputs.subject.classes[one]) for one in pair],
        "n_rows": int(at.size),
        "open": int((~held[at]).sum()),
        "confused": confused,
        "median": spread[2] if spread else None,
        "median_text": format_short_down(spread[2]) if spread else "",
        "smallest_text": format_short_down(float(radius.min())) if spread else "",
    }


def _say_rivals(
    inputs: LabelInputs, answers: IntArray, held: BoolArray, pairs: list[ClassPair], radius: float
) -> list[str]:
    """What stands out, in sentences: the commonest mistake, the weakest pair, and what never happens."""
    where = "within the limits" if inputs.plain.verdict is not None else f"at radius {format_exactly(radius)}"
    told = _say_mistakes(inputs, answers)
    n_open, weakest = int((~held).sum()), max(pairs, key=lambda pair: (pair["open"], -_as_size(pair)))
    if n_open:
        which = f", {format_count(weakest['open'])} of them between {_join(weakest)}" if weakest["open"] > 1 else ""
        told.append(
            f"{plural(n_open, 'answer')} of {format_count(inputs.n_rows)} {'is' if n_open == 1 else 'are'} not proven "
            f"{where}{which}."
        )
    else:
        told.append(f"Every answer is proven {where}.")
    most = max(pairs, key=lambda pair: pair["n_rows"])
    told.append(f"The rival of most rows: {plural(most['n_rows'], 'row')} between {_join(most)}.")
    n_classes = inputs.subject.classes.size
    never = n_classes * (n_classes - 1) // 2 - len(pairs)
    if never:
        told.append(
            f"{format_count(never)} of {format_count(never + len(pairs))} pairs of classes are never nearest to one "
            "another."
        )
    return told


def _join(pair: ClassPair) -> str:
    return " and ".join(f"“{shorten(name, 30)}”" for name in pair["names"])


def _say_mistakes(inputs: LabelInputs, answers: IntArray) -> list[str]:
    """The commonest mistake; nothing without labels."""
    counts = _count_confused(inputs, answers)
    if counts is None:
        return []
    n_true = counts.sum(axis=1)
    np.fill_diagonal(counts, 0)
    truth, answer = np.unravel_index(int(counts.argmax()), counts.shape)
    if not counts[truth, answer]:
        return ["No row of one class is taken for another."]
    names = [shorten(str(inputs.subject.classes[at]), 30) for at in (truth, answer)]
    return [
        f"The commonest mistake: “{names[0]}” is taken for “{names[1]}”, in {format_count(int(counts[truth, answer]))} "
        f"of {plural(int(n_true[truth]), 'row')}."
    ]


def draw_shares(summary: Parts) -> Markup | None:
    """For each true class which share is right and certified, right alone, or wrong; None without labels."""
    if summary["confusion"] is None:
        return None
    lines = [one for one in summary["confusion"]["rows"] if one["certified"] is not None]
    frame = _open_frame(len(lines), (0.0, 1.0))
    body, told = [], []
    for k, one in enumerate(lines):
        n_right = one["answers"][summary["confusion"]["classes"].index(one["name"])]
        right, certified = n_right / one["n_rows"], float(one["certified"] or 0.0)
        body.append(_name_line(frame, k, one["name"]))
        for kind, start, stop in (("right", 0.0, certified), ("tint", certified, right), ("wrong", right, 1.0)):
            if stop > start:
                body.append(_draw_bar(frame, k, f"bar-{kind}", start, stop))
        told.append(f"{one['name']}: {percent(right)} right, {one['certified_text']} right and certified")
    body.append(frame.ticks(((share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)), "rows of the class"))
    return wrap_svg(frame, "".join(body), "Right and certified answers by true class", "; ".join(told))


def draw_spreads(summary: Parts) -> Markup | None:
    """For each answer the radii of its rows: the middle half as a bar, nine in ten to one in ten as a line."""
    rivals = summary["rivals"]
    lines = [] if rivals is None else [one for one in rivals["answers"] if one["spread"]]
    ends = [float(size) for one in lines for size in one["spread"] if math.isfinite(float(size))]
    end = max([summary["scale"]["quoted"], *ends], default=0.0) * 1.05
    if not lines or not ends or not end > 0:
        return None
    frame = _open_frame(len(lines), (0.0, end))
    body, told = [], []
    for k, one in enumerate(lines):
        least, low, middle, high, most = (min(float(size), end) for size in one["spread"])
        y = frame.top + _LINE * k + _LINE / 2
        body.append(_name_line(frame, k, one["name"]))
        body.append(f'<line class="whisker" x1="{frame.x(least)}" x2="{frame.x(most)}" y1="{y}" y2="{y}"/>')
        body.append(_draw_bar(frame, k, "bar-tint", low, high))
        body.append(f'<circle class="dot" cx="{frame.x(middle)}" cy="{y}" r="4"/>')
        told.append(f"{one['name']}: median {cut_radius(one['spread'][2])}")
    x = frame.x(summary["scale"]["quoted"])
    body.append(f'<line class="mark" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>')
    title = f"radius ({summary['threat']['norm_text']}{UNITS.get(summary['noise']['unit'], '')})"
    body.append(frame.ticks(((tick, format_short(tick)) for tick in choose_ticks(0.0, end)), title))
    return wrap_svg(frame, "".join(body), "Radii by answer", "; ".join(told))


def _open_frame(n_lines: int, x_range: tuple[float, float]) -> Frame:
    return Frame(WIDTH, 50 + _LINE * n_lines, x_range, (0.0, 1.0), _LEFT, 12, 6, 40)


def _name_line(frame: Frame, at: int, name: str) -> str:
    y = frame.top + _LINE * at + 15
    told, whole = escape(shorten(name, 15)), escape(name)
    return f'<text class="tick end" x="{frame.left - 8}" y="{y}">{told}<title>{whole}</title></text>'


def _draw_bar(frame: Frame, at: int, kind: str, start: float, stop: float) -> str:
    left, right = frame.x(start), frame.x(stop)
    width = round(max(right - left, 1.0), 1)
    return f'<rect class="{kind}" x="{left}" y="{frame.top + _LINE * at + 4}" width="{width}" height="{_LINE - 8}"/>'


def html(summary: Parts) -> Markup:
    """Tables of classes, answers and pairs, with their pictures."""
    return render("classes", summary, shares=draw_shares(summary), spreads=draw_spreads(summary))


def markdown(summary: Parts) -> list[str]:
    """Answers by true class, what stands out, and the pairs that are least apart."""
    return [*_mark_confusion(summary), *_mark_rivals(summary)]


def _mark_confusion(summary: Parts) -> list[str]:
    """Answers by true class, of several classes."""
    confusion = summary["confusion"]
    if confusion is None:
        return []
    head = ["truth", "rows", *(shorten(name, 16) for name in confusion["classes"]), "right", "certified"]
    rows = [
        [
            one["name"],
            format_count(one["n_rows"]),
            *map(format_count, one["answers"]),
            one["right_text"],
            one["certified_text"],
        ]
        for one in confusion["rows"]
    ]
    return ["## Which class is taken for which", make_pipe_table(head, rows)]


def _mark_rivals(summary: Parts) -> list[str]:
    """What stands out of several classes, and the pairs that are least apart."""
    rivals = summary["rivals"]
    if rivals is None:
        return []
    head = ["classes", "rows between them", "not certified", "confused", "median radius", "smallest"]
    kept = [True, True, True, summary["data"]["has_labels"], *[summary["threat"]["norm"] is not None] * 2]
    rows = [
        [
            f"{shorten(pair['names'][0], 24)} and {shorten(pair['names'][1], 24)}",
            *(format_count(number) for number in (pair["n_rows"], pair["open"], pair["confused"] or 0)),
            pair["median_text"],
            pair["smallest_text"],
        ]
        for pair in rivals["pairs"]
    ]
    chosen = [[cell for cell, is_kept in zip(line, kept, strict=True) if is_kept] for line in [head, *rows]]
    told = "\n".join(f"- {mark_text(sentence)}" for sentence in rivals["sentences"])
    return ["## Which classes are least apart", told, make_pipe_table(chosen[0], chosen[1:])]


SECTION = Section("classes", lambda s: "Classes" if s["rivals"] else "", html, markdown)
