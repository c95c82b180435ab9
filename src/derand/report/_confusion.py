"""Several classes: which one is taken for which, and how much of each is certified. Must not know how it is shown."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import IntArray
from derand.metrics import certified_share
from derand.report._inputs import Inputs, LabelArray
from derand.report._text import percent
from derand.report._types import ClassAnswers, Confusion

MAX_CLASSES = 20
"""Classes in the table: the largest; all others are put together."""
_OTHERS = "(others)"


def summarize_confusion(inputs: Inputs, radius: float) -> Confusion | None:
    """Answers by true class, with what is certified of each; None for two classes, or without labels."""
    if inputs.labels is None or inputs.subject.classes.size == 2:
        return None
    truth, answers = (np.searchsorted(inputs.subject.classes, one) for one in (inputs.labels, inputs.plain.label))
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


def _count_class(inputs: Inputs, name: str, at: IntArray, answers: list[int], radius: float) -> ClassAnswers:
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
