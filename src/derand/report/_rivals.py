"""Several classes: how far each answer is from its nearest rival, and which pairs of classes are least apart.

A row's radius is limited by one class, its nearest rival (`Certificates.runner_up`): a pair is judged by the rows that
lie between its two classes. Must not know how it is shown.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import BoolArray, IntArray
from derand._core.text import format_count, format_exactly, format_short_down
from derand.report._confusion import place_classes
from derand.report._inputs import Inputs
from derand.report._rival_types import AnswerClass, ClassPair, RivalCell, Rivals
from derand.report._text import percent, plural, shorten

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
_LISTED_PAIRS = 12


def summarize_rivals(inputs: Inputs, radius: float) -> Rivals | None:
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


def _take_spread(inputs: Inputs, at: BoolArray | IntArray) -> list[float]:
    """Radii that most to few of some rows reach; none where there are no rows, or no radii."""
    radius = inputs.plain.radius[at]
    if inputs.plain.verdict is not None or not radius.size:
        return []
    return [float(one) for one in np.quantile(radius, _SHARES, method="lower")]


def _describe_answers(inputs: Inputs, name: str, at: BoolArray, nearest: IntArray, held: BoolArray) -> AnswerClass:
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


def _describe_cell(inputs: Inputs, at: BoolArray, held: BoolArray) -> RivalCell:
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


def _list_pairs(inputs: Inputs, answers: IntArray, nearest: IntArray, held: BoolArray) -> list[ClassPair]:
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


def _count_confused(inputs: Inputs, answers: IntArray) -> IntArray | None:
    """Rows by true class and answer."""
    if inputs.labels is None:
        return None
    counts = np.zeros((inputs.subject.classes.size,) * 2, dtype=np.int64)
    np.add.at(counts, (np.searchsorted(inputs.subject.classes, inputs.labels), answers), 1)
    return counts


def _describe_pair(
    inputs: Inputs, pair: tuple[int, int], at: IntArray, held: BoolArray, confused: int | None
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


def _say_rivals(inputs: Inputs, answers: IntArray, held: BoolArray, pairs: list[ClassPair], radius: float) -> list[str]:
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


def _say_mistakes(inputs: Inputs, answers: IntArray) -> list[str]:
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
