"""Whether answers are any good: answers, scores and probabilities beside the true labels.

Owns the counting, batch by batch. Must not know models, nor how anything is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, Frozen, IntArray, Labels, freeze
from derand._core.origin import Cell
from derand.certificates import Certificates
from derand.metrics._calibration import (
    CalibrationBin,
    CalibrationSummary,
    LossSums,
    draw_calibration,
    measure_entropy,
)
from derand.metrics._ranking import rank_classes
from derand.metrics._shares import Estimate, EstimateSummary, compute_wilson_interval, weigh_shares

_NO_SCORE = "AUC needs scores, and there are none."
_NO_PROBABILITY = "Log-loss and calibration need probabilities, and there are none."
_SEVERAL = "AUC and the calibration curve are for two classes."
_ONE_CLASS = "AUC needs rows of both classes."


class Costs(NamedTuple):
    """What mistakes cost; a positive is the second of two classes."""

    false_positive: float
    false_negative: float


class CostSummary(TypedDict):
    """What mistakes cost, and what the answers do, beside the cheapest constant answer."""

    false_positive: float
    false_negative: float
    total: float
    mean: float
    constant_label: str
    constant_total: float
    constant_mean: float


class RowGrades(NamedTuple):
    """What a model says of each row besides its answer."""

    score: FloatArray | None
    """Of two classes what speaks for the second, in any unit; None is the probability, where there is one."""
    probability: FloatArray | None
    """Of each class, shape (n_rows, n_classes); None where the model gives no probabilities."""
    reason: str = _NO_PROBABILITY
    """Why there is no probability."""
    costs: Costs | None = None
    """What mistakes cost where the model cuts for that; None where all count the same."""


class AnswerSummary(TypedDict):
    """AnswerMetrics as results for others hold them; labels as text."""

    rows: int
    classes: list[str]
    accuracy: EstimateSummary
    balanced_accuracy: EstimateSummary
    majority_label: str
    majority_share: float
    constant_balanced_accuracy: float
    confusion: list[list[int]]
    auc: EstimateSummary | None
    log_loss: EstimateSummary | None
    constant_log_loss: float
    calibration: list[CalibrationSummary] | None
    cost: CostSummary | None
    """None where all mistakes count the same."""
    left_out: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerMetrics(Frozen):
    """How good answers are, each figure with its 95 % interval, beside what a constant answer gets.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    confusion : array of shape (n_classes, n_classes)
        How many rows of each true class (first) got each answer.
    auc : Estimate or None
        How often a row of the second class ranks above one of the first, ties half; 0.5 says nothing. Its interval is
        a bootstrap with a fixed seed.
    log_loss : Estimate or None
        Mean of -log of the probability of the true class; only where there are probabilities.
    calibration : tuple of CalibrationBin, or None
        Predicted and observed shares of the second class.
    left_out : tuple of str
        What is None, and why.
    costs : Costs or None
        What mistakes cost; None where all count the same.
    """

    classes: Labels
    confusion: IntArray
    auc: Estimate | None
    log_loss: Estimate | None
    calibration: tuple[CalibrationBin, ...] | None
    left_out: tuple[str, ...]
    costs: Costs | None = None

    def __post_init__(self) -> None:
        for name in ("classes", "confusion"):
            object.__setattr__(self, name, freeze(np.array(getattr(self, name))))

    @property
    def n_rows(self) -> int:
        """How many rows were counted."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> Estimate:
        """Share of right answers; the interval is Wilson's."""
        return compute_wilson_interval(int(self.confusion.trace()), self.n_rows)

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean of the shares of right answers within each class that occurs.

        The interval joins Wilson's of the classes by Newcombe's method: distances to the ends are squared and added up.
        """
        totals = self.confusion.sum(axis=1)
        present = np.flatnonzero(totals).tolist()
        shares = [compute_wilson_interval(int(self.confusion[at, at]), int(totals[at])) for at in present]
        return weigh_shares(shares, [1 / len(present)] * len(present))

    @property
    def majority_label(self) -> Cell:
        """The most frequent true label of these rows: the best constant answer."""
        return self.classes[int(self.confusion.sum(axis=1).argmax())]

    @property
    def majority_share(self) -> float:
        """What always answering `majority_label` would get right."""
        return float(self.confusion.sum(axis=1).max() / self.n_rows)

    @property
    def constant_balanced_accuracy(self) -> float:
        """The balanced accuracy of every constant answer: one over the number of classes that occur."""
        return 1 / int((self.confusion.sum(axis=1) > 0).sum())

    @property
    def constant_log_loss(self) -> float:
        """The log-loss of the shares of the classes, given to every row."""
        return measure_entropy(self.confusion.sum(axis=1) / self.n_rows)

    @property
    def only_answer(self) -> object | None:
        """The answer that every row got; None where there were several."""
        given = np.flatnonzero(self.confusion.sum(axis=0))
        return self.classes[given[0]] if given.size == 1 else None

    @property
    def beats_constant(self) -> bool:
        """Whether more answers are right than of the best constant one."""
        return int(self.confusion.trace()) > int(self.confusion.sum(axis=1).max())

    @property
    def cost(self) -> CostSummary | None:
        """What the answers cost in all and on average, beside the cheapest constant answer; None without costs."""
        if self.costs is None:
            return None
        alarm, miss = self.costs
        constants = self._constant_costs.tolist()
        total = int(self.confusion[0, 1]) * alarm + int(self.confusion[1, 0]) * miss
        return {
            "false_positive": alarm,
            "false_negative": miss,
            "total": total,
            "mean": total / self.n_rows,
            "constant_label": str(self.cheapest_label),
            "constant_total": min(constants),
            "constant_mean": min(constants) / self.n_rows,
        }

    @property
    def cheapest_label(self) -> object | None:
        """The constant answer that costs least; None without costs."""
        return None if self.costs is None else self.classes[int(self._constant_costs.argmin())]

    @property
    def _constant_costs(self) -> FloatArray:
        """What always answering either class would cost."""
        assert self.costs is not None
        alarm, miss = self.costs
        negatives, positives = self.confusion.sum(axis=1).tolist()
        return np.array([positives * miss, negatives * alarm])

    def to_dict(self) -> AnswerSummary:
        """All figures as a plain dict, for JSON."""
        return {
            "rows": self.n_rows,
            "classes": [str(name) for name in self.classes.tolist()],
            "accuracy": self.accuracy.to_dict(),
            "balanced_accuracy": self.balanced_accuracy.to_dict(),
            "majority_label": str(self.majority_label),
            "majority_share": self.majority_share,
            "constant_balanced_accuracy": self.constant_balanced_accuracy,
            "confusion": self.confusion.tolist(),
            "auc": None if self.auc is None else self.auc.to_dict(),
            "log_loss": None if self.log_loss is None else self.log_loss.to_dict(),
            "constant_log_loss": self.constant_log_loss,
            "calibration": None if self.calibration is None else [one.to_dict() for one in self.calibration],
            "cost": self.cost,
            "left_out": list(self.left_out),
        }

    def __repr__(self) -> str:
        accuracy, majority = self.accuracy, f"always {self.majority_label}: {self.majority_share:.3f}"
        return (
            f"<AnswerMetrics: {self.n_rows} rows, accuracy {accuracy.value:.3f} ({accuracy.low:.3f} to "
            f"{accuracy.high:.3f}; {majority}), balanced {self.balanced_accuracy.value:.3f}>"
        )


class AnswerTally:
    """Answers of all batches so far; of each row no more is kept than its score and class, where there is a score."""

    def __init__(self, classes: Labels) -> None:
        self._classes = classes
        self._confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
        self._codes: list[NDArray[np.int32]] = []
        self._scores: list[FloatArray] = []
        self._chances: list[FloatArray] = []
        self._loss = LossSums()
        self._grades = RowGrades(None, None)

    def add(self, y: Labels, label: Labels, grades: RowGrades) -> None:
        """Count rows by their true labels and answers, all among the classes."""
        truth, answer = encode_labels(self._classes, y), encode_labels(self._classes, label)
        np.add.at(self._confusion, (truth, answer), 1)
        self._grades = grades
        if grades.probability is not None:
            self._loss.add(grades.probability[np.arange(truth.size), truth])
        if len(self._classes) == 2:
            self._codes.append(truth.astype(np.int32))
            if grades.probability is not None:
                self._chances.append(np.array(grades.probability[:, 1]))
            if grades.score is not None:
                self._scores.append(np.asarray(grades.score, dtype=np.float64))

    @property
    def n_rows(self) -> int:
        return int(self._confusion.sum())

    def measure(self) -> AnswerMetrics:
        """The figures of all rows so far."""
        totals = self._confusion.sum(axis=1)
        is_one = np.concatenate(self._codes) == 1 if self._codes else None
        scores = self._scores or self._chances
        left_out = []
        auc = calibration = None
        if is_one is None:
            left_out.append(_SEVERAL)
        elif not scores:
            left_out.append(_NO_SCORE)
        elif not totals.all():
            left_out.append(_ONE_CLASS)
        else:
            auc = rank_classes(np.concatenate(scores), is_one)
        if is_one is not None and self._chances:
            calibration = draw_calibration(np.concatenate(self._chances), is_one)
        has_loss = self._grades.probability is not None
        if not has_loss:
            left_out.append(self._grades.reason)
        loss = self._loss.measure() if has_loss else None
        costs = self._grades.costs
        return AnswerMetrics(self._classes, self._confusion, auc, loss, calibration, tuple(left_out), costs)


def measure_answers(
    y: ArrayLike,
    label: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    probability: ArrayLike | None = None,
    score: ArrayLike | None = None,
    cost: Mapping[str, float] | None = None,
) -> AnswerMetrics:
    """How good answers are, whatever is certified of them, beside what a constant answer gets.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels.
    label : array-like of shape (n_rows,)
        Answers, such as those of `predict` or `certificates.label`.
    classes : array-like of shape (n_classes,), or None
        All labels that there are, in the order of `probability`, such as `clf.classes_`; None is those that occur, in
        ascending order.
    probability : array-like of shape (n_rows, n_classes), or (n_rows,) for the second of two classes; or None
        For log-loss and calibration. Only what is meant as a probability: `predict_proba` of AdditiveClassifier by the
        rule "mean", and of imported models. By the rule "vote" it is a share of noisy copies, and the log-loss of that
        says nothing: give it as `score`.
    score : array-like of shape (n_rows,), or None
        For AUC: anything that is larger where the second of two classes is more likely, such as `decision_function`.
        None is the probability.
    cost : dict or None
        What mistakes cost, such as {"false_positive": 1, "false_negative": 5}, for the cost of the answers beside that
        of the cheapest constant one; a positive is the second of two classes.

    Returns
    -------
    AnswerMetrics

    Examples
    --------
    >>> from derand import measure_answers
    >>> truth, answers = ["no"] * 8 + ["yes"] * 2, ["no"] * 7 + ["yes"] * 2 + ["no"]
    >>> found = measure_answers(truth, answers, score=[1, 2, 3, 4, 5, 6, 7, 9, 10, 8])
    >>> found.accuracy.value, found.majority_share, found.beats_constant
    (0.8, 0.8, False)
    >>> found.balanced_accuracy.value, found.auc.value, found.confusion.tolist()
    (0.6875, 0.9375, [[7, 1], [1, 1]])
    """
    for name, given in {"y": y, "label": label}.items():
        if isinstance(given, Certificates):
            cure = "give their `label`, such as `c.label`" if name == "label" else "the true labels come first"
            raise TypeError(f"`{name}` must hold one label per row, got certificates: {cure}.")
    truth, answers = np.asarray(y), np.asarray(label)
    if truth.ndim != 1 or truth.shape != answers.shape or not truth.size:
        raise ValueError(
            f"`y` and `label` must hold one label per row, of one row at least, got shapes {truth.shape} and "
            f"{answers.shape}."
        )
    names = np.unique(np.concatenate([truth, answers])) if classes is None else np.asarray(classes)
    _require_among(names, truth, "y")
    _require_among(names, answers, "label")
    tally = AnswerTally(names)
    scores, chances = _read_score(score, truth.size, names), _read_chances(probability, truth, names)
    tally.add(truth, answers, RowGrades(scores, chances, costs=_read_costs(cost, names)))
    return tally.measure()


def encode_labels(classes: Labels, labels: Labels) -> IntArray:
    """The number of each label's class."""
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, labels, sorter=order)]


def _require_among(classes: Labels, labels: Labels, name: str) -> None:
    strange = labels[~np.isin(labels, classes)]
    if strange.size:
        raise ValueError(f"`{name}` must hold labels among {classes.tolist()}, got {strange[:1].tolist()[0]!r}.")


def _read_score(score: ArrayLike | None, n_rows: int, classes: Labels) -> FloatArray | None:
    if score is None:
        return None
    found = np.asarray(score, dtype=np.float64)
    if len(classes) > 2:
        raise ValueError(f"`score` is for two classes, got {len(classes)}: leave it out.")
    if found.shape != (n_rows,) or np.isnan(found).any():
        raise ValueError(f"`score` must hold one number per row, {n_rows} in all, none missing, got {found.shape}.")
    return found


def _read_costs(cost: Mapping[str, float] | None, classes: Labels) -> Costs | None:
    if cost is None:
        return None
    if len(classes) != 2:
        raise ValueError(f"`cost` is for two classes, got {len(classes)}: leave it out.")
    if set(cost) != set(Costs._fields) or not all(0 < one < np.inf for one in cost.values()):
        raise ValueError(
            "`cost` must say what both mistakes cost, each a number above 0, such as {'false_positive': 1, "
            f"'false_negative': 5}}, got {cost!r}."
        )
    return Costs(**cost)


def _read_chances(probability: ArrayLike | None, truth: Labels, classes: Labels) -> FloatArray | None:
    if probability is None:
        return None
    found = np.asarray(probability, dtype=np.float64)
    if found.ndim == 1 and len(classes) == 2:
        found = np.stack([1 - found, found], axis=1)
    if found.shape != (truth.size, len(classes)):
        raise ValueError(
            f"`probability` must hold a column for each of {len(classes)} classes and a row for each of {truth.size} "
            f"labels, got shape {found.shape}."
        )
    if not ((found >= 0) & (found <= 1)).all():
        raise ValueError("`probability` must lie between 0 and 1: give scores as `score`.")
    return found
