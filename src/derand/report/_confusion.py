"""Several classes: which one is taken for which, and which rival decides. Must not know how it is shown."""

from __future__ import annotations

import numpy as np

from derand._arrays import IntArray
from derand.metrics import certified_share
from derand.report._inputs import Inputs
from derand.report._text import percent
from derand.report._types import ClassAnswers, Confusion

MAX_CLASSES = 20
"""Classes in the table: the largest; all others are put together."""
_OTHERS = "(others)"


def summarize_confusion(inputs: Inputs, radius: float) -> Confusion | None:
    """Answers by true class, with what is certified of each; None for two classes, or without labels."""
    rivals = inputs.plain.runner_up
    if inputs.labels is None or rivals is None or inputs.subject.classes.size == 2:
        return None
    truth, answers, nearest = (
        np.searchsorted(inputs.subject.classes, one) for one in (inputs.labels, inputs.plain.label, rivals)
    )
    names = [str(name) for name in inputs.subject.classes.tolist()]
    shown = _choose_classes(truth, len(names))
    place = np.full(len(names), len(shown))
    place[shown] = np.arange(len(shown))
    n_shown = len(shown) + int(len(shown) < len(names))
    counts, deciding = (np.zeros((n_shown, n_shown), dtype=np.int64) for _ in range(2))
    np.add.at(counts, (place[truth], place[answers]), 1)
    np.add.at(deciding, (place[answers], place[nearest]), 1)
    titles = [*(names[at] for at in shown), _OTHERS][:n_shown]
    return {
        "classes": titles,
        "rows": [
            _count_class(inputs, title, np.flatnonzero(place[truth] == at), counts[at].tolist(), radius)
            for at, title in enumerate(titles)
        ],
        "deciding": deciding.tolist(),
    }


def _choose_classes(truth: IntArray, n_classes: int) -> list[int]:
    """The classes of the table in their own order: all, or the largest ones."""
    if n_classes <= MAX_CLASSES:
        return list(range(n_classes))
    counts = np.bincount(truth, minlength=n_classes)
    largest = np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1]
    return sorted(int(at) for at in largest)


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
