"""Several classes: which one is taken for which, and how far each answer is from its nearest rival.

A row's radius is limited by one class, its nearest rival (`Certificates.runner_up`): a pair is judged by the rows that
lie between its two classes.
"""

from __future__ import annotations

import math
from itertools import compress
from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import BoolArray, IntArray
from derand._core.text import format_count, format_exactly, format_short, format_short_down, plural, shorten
from derand.metrics import certified_share, encode_labels
from derand.report import _blocks as ui
from derand.report._charts import SHARES, UNITS, WIDTH, Frame, choose_ticks, cut_radius, mark_radius, wrap_svg
from derand.report._facts import Facts, Size
from derand.report._inputs import LabelArray, LabelInputs
from derand.report._markup import percent, render


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
    truth, answers = (encode_labels(inputs.subject.classes, one) for one in (inputs.truth, inputs.plain.label))
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
    answers, nearest = (encode_labels(inputs.subject.classes, one) for one in (inputs.plain.label, rivals))
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
        "sentences": _describe_rivals(inputs, answers, held, pairs, radius),
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
    np.add.at(counts, (encode_labels(inputs.subject.classes, inputs.truth), answers), 1)
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


def _describe_rivals(
    inputs: LabelInputs, answers: IntArray, held: BoolArray, pairs: list[ClassPair], radius: float
) -> list[str]:
    """What stands out, in sentences: the commonest mistake, the weakest pair, and what never happens."""
    where = "within the limits" if inputs.plain.verdict is not None else f"at radius {format_exactly(radius)}"
    told = _describe_mistakes(inputs, answers)
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
    told.append(f"The runner-up of most rows: {plural(most['n_rows'], 'row')} between {_join(most)}.")
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


def _describe_mistakes(inputs: LabelInputs, answers: IntArray) -> list[str]:
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
        body.append(frame.name(frame.top + _LINE * k + 15, one["name"], 15))
        for kind, start, stop in (("right", 0.0, certified), ("tint", certified, right), ("wrong", right, 1.0)):
            if stop > start:
                body.append(_draw_bar(frame, k, f"bar-{kind}", start, stop))
        told.append(f"{one['name']}: {percent(right)} right, {one['certified_text']} right and certified")
    body.append(frame.ticks(SHARES, "rows of the class"))
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
        body.append(frame.name(frame.top + _LINE * k + 15, one["name"], 15))
        body.append(f'<line class="whisker" x1="{frame.x(least)}" x2="{frame.x(most)}" y1="{y}" y2="{y}"/>')
        body.append(_draw_bar(frame, k, "bar-tint", low, high))
        body.append(f'<circle class="dot" cx="{frame.x(middle)}" cy="{y}" r="4"/>')
        told.append(f"{one['name']}: median {cut_radius(one['spread'][2])}")
    body.append(mark_radius(frame, summary["scale"]["quoted"], "mark"))
    title = f"radius ({summary['threat']['norm_text']}{UNITS.get(summary['noise']['unit'], '')})"
    body.append(frame.ticks(((tick, format_short(tick)) for tick in choose_ticks(0.0, end)), title))
    return wrap_svg(frame, "".join(body), "Radii by answer", "; ".join(told))


def _open_frame(n_lines: int, x_range: tuple[float, float]) -> Frame:
    return Frame(WIDTH, 50 + _LINE * n_lines, x_range, (0.0, 1.0), _LEFT, 12, 6, 40)


def _draw_bar(frame: Frame, at: int, kind: str, start: float, stop: float) -> str:
    left, right = frame.x(start), frame.x(stop)
    width = round(max(right - left, 1.0), 1)
    return f'<rect class="{kind}" x="{left}" y="{frame.top + _LINE * at + 4}" width="{width}" height="{_LINE - 8}"/>'


def blocks(summary: Parts) -> list[ui.Block]:
    """Tables of classes, answers and pairs, with their pictures."""
    rivals = summary["rivals"]
    assert rivals is not None  # asked by the section
    has_radius = summary["threat"]["norm"] is not None
    where = f"at {format_exactly(summary['scale']['quoted'])}" if has_radius else "within the limits"
    confusion = []
    if summary["confusion"] is not None:
        confusion.append(_tabulate_confusion(summary["confusion"], where if has_radius else ""))
    pairs = _tabulate_pairs(rivals, where, summary["data"]["has_labels"], has_radius)
    page = render(
        "classes",
        summary,
        shares=draw_shares(summary),
        spreads=draw_spreads(summary),
        confusion=ui.write_html(confusion),
        pairs=pairs.html(),
    )
    return [
        ui.on_page(ui.Heading("Which class is taken for which", "classes")),
        ui.Raw(page),
        ui.in_markdown(
            *(ui.Heading("Which class is taken for which") for _ in confusion),
            *confusion,
            ui.Heading("Which classes are least apart"),
            ui.Bullets(rivals["sentences"]),
            pairs,
        ),
    ]


def _tabulate_confusion(confusion: Confusion, where: str) -> ui.Table:
    """Answers by true class."""
    lines: list[ui.Line] = []
    for at, row in enumerate(confusion["rows"]):
        counts = [_tint_count(number, row["n_rows"], k == at) for k, number in enumerate(row["answers"])]
        n_rows = format_count(row["n_rows"])
        lines.append([ui.name_cell(row["name"], 30), n_rows, *counts, row["right_text"], row["certified_text"]])
    heads = [ui.Cell(shorten(name, 16), title=name) for name in confusion["classes"]]
    head: ui.Line = ["truth", "rows", *heads, "right", ui.Cell("certified", f"Certified {where}".rstrip())]
    return ui.Table(head, lines, "Answers by true class", "Rows by true class and answer", "confusion")


def _tint_count(number: int, total: int, is_right: bool) -> ui.Cell:
    """A count of answers: right ones stand out, and wrong ones the more, the more there are."""
    kind = "quoted" if is_right else "weak" if number else "quiet"
    style = f"--weak: {round((number / total) ** 0.5, 3)}" if kind == "weak" else ""
    return ui.Cell(format_count(number), kind=kind, style=style)


def _tabulate_pairs(rivals: Rivals, where: str, has_labels: bool, has_radius: bool) -> ui.Table:
    """The pairs of classes that are least apart."""
    pairs, n_pairs = rivals["pairs"], rivals["n_pairs"]
    head = ["classes", "rows between them", "not certified", "confused", "median radius", "smallest"]
    lines: list[ui.Line] = []
    for pair in pairs:
        one, other = (shorten(name, 24) for name in pair["names"])
        counts = ui.count_cells(pair["n_rows"], pair["open"], pair["confused"] or 0)
        name = ui.Cell(f"{one} and {other}", title=" and ".join(pair["names"]))
        lines.append([name, *counts, pair["median_text"], pair["smallest_text"]])
    which = f"The {len(pairs)} weakest of {plural(n_pairs, 'pair')}" if n_pairs > len(pairs) else "All pairs"
    first = f"{which}, those first with most rows that are {'confused or ' if has_labels else ''}not certified {where}"
    kept = [True, True, True, has_labels, has_radius, has_radius]
    shown = [list(compress(line, kept)) for line in lines]
    return ui.Table(list(compress(head, kept)), shown, "The weakest pairs of classes", first, "pairs")


SECTION = ui.Section("classes", lambda s: "Classes" if s["rivals"] else "", blocks)
