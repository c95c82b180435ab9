"""Models that answer one label, whatever the row, or never some class, or do no better than that: told in one place.

Owns which rows are looked at, and the text of the warnings. Must not know how anything is trained.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import format_percent, quote_short
from derand.certificates import find_labels
from derand.estimators._base import CertifiedEstimator
from derand.metrics import FEW_ROWS, Estimate, compute_wilson_interval, weigh_shares
from derand.train import TrainingTable

_ROUNDS = (64, 2000)
"""How many rows are looked at: few first, because most models tell them apart; a million would take too long."""
_MOVING = ("class_weight", "decision_threshold", "cost")
"""Parameters that move the decision away from the most right answers."""
_ROUNDING = 1e-12
"""By how much a share may be off for being a sum of rounded numbers."""
_FINER = "AdditiveClassifier"
"""What to try where one stump per feature does not outweigh the larger class."""


def warn_of_one_label(classifier: CertifiedEstimator, table: TrainingTable, totals: FloatArray) -> tuple[str, ...]:
    """What to say where all training rows get the same label, though several classes occur; nothing where they do not.

    `table`: what it was trained on; `totals` (n_classes,): how many rows each class has, or their weight.
    """
    n_rows = table.target.size
    for most in _ROUNDS:
        chosen = spread_rows(table.target, most)
        labels = _compute_labels(classifier, table.X[chosen])
        if (labels != labels[0]).any():
            return ()
        if chosen.size == n_rows:
            break
    names, larger = classifier.classes_.tolist(), int(totals.argmax())
    every = "both" if totals.size == 2 else "all"
    is_constant = not classifier.ensemble_.member_terms
    label = quote_short(names[int(labels[0])])
    if is_constant:
        start = f"No column was found to tell the classes apart, so the model is constant: every row gets {label}"
    elif chosen.size < n_rows:
        start = f"Each of {chosen.size:,} training rows, spread over {every} classes, gets the label {label}"
    else:
        start = f"Every training row gets the label {label}"
    text = (
        f"{start} (rule {classifier.rule!r}, {classifier.noise_ or 'no noise'}); "
        f"the {'larger' if totals.size == 2 else 'largest'} class, {quote_short(names[larger])}, has "
        f"{format_percent(float(totals[larger] / totals.sum()))} of the rows. "
        f"Try {_list_cures(classifier, is_constant=is_constant, is_even=bool((totals == totals[0]).all()))}."
    )
    return (text,)


def warn_of_no_gain(classifier: CertifiedEstimator, table: TrainingTable, totals: FloatArray) -> tuple[str, ...]:
    """What to say where no more training rows get the right label than by the constant answer; else nothing.

    Where classes or rows were given weights, or the decision was moved, right answers are meant to be given away: then
    the mean of the shares within each class counts. Of many rows some are looked at, and nothing is said while it may
    be chance.

    `table`: what it was trained on; `totals` (n_classes,): how many rows each class has, or their weight.
    """
    is_moved = any(getattr(classifier, name, None) is not None for name in _MOVING)
    is_weighted = is_moved or table.sample_weight is not None
    shares = np.full(totals.size, 1 / totals.size) if is_weighted else totals / totals.sum()
    constant = float(shares.max())
    if table.target.size < FEW_ROWS:
        return ()
    found, n_seen = _rate_labels(classifier, table, shares)
    is_whole = n_seen == table.target.size
    if (found.value if is_whole else found.high) > constant * (1 + _ROUNDING):
        return ()
    seen = "" if is_whole else f" ({n_seen:,} were looked at)"
    whose = f"{quote_short(classifier.classes_.tolist()[int(totals.argmax())])} for every row"
    text = (
        f"On training rows{seen} the {'balanced accuracy' if is_weighted else 'accuracy'} of this model is "
        f"{format_percent(found.value)}, not above the {format_percent(constant)} of "
        f"{'any constant answer' if is_weighted else whose} (rule {classifier.rule!r}, "
        f"{classifier.noise_ or 'no noise'}): its certificates say little. Try "
        f"{_list_cures(classifier, is_constant=False, is_even=bool((totals == totals[0]).all()))}."
    )
    return (text,)


def _rate_labels(classifier: CertifiedEstimator, table: TrainingTable, shares: FloatArray) -> tuple[Estimate, int]:
    """The share of right labels, classes weighing as told, and of how many rows: as many as are needed to be sure."""
    n_classes = shares.size
    for most in (number for number in _ROUNDS if number >= 2 * n_classes):  # some rows of every class
        chosen = spread_rows(table.target, most)
        target = table.target[chosen]
        right = _compute_labels(classifier, table.X[chosen]) == target
        counts, hits = (np.bincount(some, minlength=n_classes).tolist() for some in (target, target[right]))
        recalls = [compute_wilson_interval(hit, count) for hit, count in zip(hits, counts, strict=True)]
        found = weigh_shares(recalls, shares.tolist())
        if found.low > shares.max() or chosen.size == table.target.size:
            break
    return found, int(chosen.size)


def warn_of_unseen_classes(classifier: CertifiedEstimator, table: TrainingTable) -> tuple[str, ...]:
    """What to say where training rows have one of several classes, and none of them gets it; else nothing.

    `table`: what it was trained on.
    """
    names = classifier.classes_.tolist()
    if len(names) == 2:
        return ()
    counts = np.bincount(table.target, minlength=len(names))
    left = set(np.flatnonzero(counts > 1).tolist())  # of classes that are there once there is another warning
    seen = np.zeros(table.target.size, dtype=bool)
    for of_left, most in ((False, _ROUNDS[0]), (True, _ROUNDS[-1]), (False, _ROUNDS[-1])):  # own rows tell soonest
        rows = np.flatnonzero(np.isin(table.target, sorted(left)) if of_left else ~seen)
        chosen = rows[spread_rows(table.target[rows], most)]
        seen[chosen] = True
        left -= set(_compute_labels(classifier, table.X[chosen]).tolist())
        if not left or seen.all():
            break
    if not left:
        return ()
    listed = [f"{quote_short(names[code])} ({counts[code]:,} rows)" for code in sorted(left)]
    more = ", ..." if len(listed) > 5 else ""
    which = f"class {listed[0]}" if len(listed) == 1 else f"classes {', '.join(listed[:5])}{more}"
    text = (
        f"No training row, of {int(seen.sum()):,} that were looked at, gets the {which} (rule {classifier.rule!r}, "
        f"{classifier.noise_ or 'no noise'}): others outweigh it. Give its rows more weight by "
        f"{_name_weights(classifier)}, or try less noise."
    )
    return (text,)


def _name_weights(classifier: CertifiedEstimator) -> str:
    """How rows of a class get more weight, but for what was done already."""
    own = '`class_weight` (such as "balanced", --class-weight balanced) or '
    return f"{own if classifier.class_weight is None else ''}`sample_weight`"


def _compute_labels(classifier: CertifiedEstimator, rows: FloatArray) -> IntArray:
    return find_labels(classifier.ensemble_, rows, classifier.noise_, rule=classifier.rule, n_jobs=classifier.n_jobs)


def spread_rows(target: NDArray[np.uint8], most: int) -> IntArray:
    """Numbers of so many rows at most, like shares of each class or all of a smaller one, evenly over the table.

    Examples
    --------
    >>> spread_rows(np.array([0, 0, 0, 1, 0, 0, 0, 1, 0], dtype=np.uint8), 5).tolist()
    [0, 3, 4, 7, 8]
    """
    by_class = sorted((np.flatnonzero(target == code) for code in np.unique(target)), key=len)
    chosen: list[IntArray] = []
    for place, rows in enumerate(by_class):
        share = (most - sum(map(len, chosen))) // (len(by_class) - place)
        chosen.append(_spread(rows, share))
    return np.sort(np.concatenate(chosen))


def _spread(places: IntArray, number: int) -> IntArray:
    if number >= len(places):
        return places
    return places[np.linspace(0, len(places) - 1, number).round().astype(np.int64)]


def _list_cures(classifier: CertifiedEstimator, *, is_constant: bool, is_even: bool) -> str:
    """What to try, in words: only what this classifier has and has not done yet."""
    cures = ["less noise"]
    if classifier.class_weight is None and not is_even:
        cures.insert(0, 'class_weight="balanced" (--class-weight balanced)')
    if is_constant:
        cures.append("another scaling")
        cures += ["a larger max_entropy"] if "max_entropy" in classifier.get_params(deep=False) else []
    cures += [] if type(classifier).__name__ == _FINER else [_FINER]
    return cures[0] if len(cures) == 1 else f"{', '.join(cures[:-1])} or {cures[-1]}"
