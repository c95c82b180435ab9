"""Where a classifier of two classes cuts: `decision_threshold` and `cost`, which move the threshold of its score.

Owns moving the threshold of a fitted model, before anything is certified. Must not know how models are trained or
certified, what a score says about probabilities (`derand.fitted`), nor how a level is put on a grid
(`derand.model.move_threshold`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from derand._core.arrays import BoolArray, FloatArray
from derand.convert import Wrapped
from derand.estimators._base import CertifiedEstimator
from derand.fitted import Cut, read_threshold, settle_lead
from derand.model import move_threshold


class MovableClassifier(CertifiedEstimator):
    """A classifier that answers `classes_[1]` from some probability on."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _ = self._asked_threshold  # refused where it makes no sense

    def _refuse_threshold_of(self, n_classes: int) -> None:
        if n_classes > 2 and self._asked_threshold is not None:
            raise ValueError(
                f"`decision_threshold` and `cost` are for two classes, got {n_classes}: the cheapest of several "
                "answers depends on sums of probabilities, which no comparison of two scores certifies. Weigh the "
                "classes by `class_weight` in training: the same, where a mistake costs what its true class says."
            )

    def _read_cut(self) -> Cut:
        """What the score says about probabilities; an error where it says nothing."""
        raise ValueError(
            f"The threshold of a {type(self).__name__} cannot be moved to a probability: its score is none, and its "
            "`predict_proba` is a share of noisy copies (by the rule 'mean' the position of the score), which is "
            "certified at one half only. Weigh the classes by `class_weight` in training, or train an "
            "AdditiveClassifier, whose probabilities are calibrated."
        )

    def _move_as_asked(self) -> None:
        """Move the threshold of the fitted model to where `decision_threshold` or `cost` asks for."""
        asked = self._asked_threshold
        if asked is None:
            return
        self._refuse_threshold_of(self.classes_.size)
        cut = self._read_cut()
        lead = cut.compute_lead(asked)
        self._move(cut, self._settle(lead, lambda margins: cut.read(margins)[:, 1] <= asked))

    def _settle(self, lead: float, is_below: Callable[[FloatArray], BoolArray]) -> float:
        """A lead by which whole scores get the side that their own numbers have, to the last digit.

        Expected scores are no whole numbers, and those of another library's model are known up to its own rounding.
        """
        (model,) = self.ensemble_.members
        if self.noise_ is not None or self.rule != "mean" or model.is_linear or model.score_error:
            return lead
        return settle_lead(lead, model.levels, is_below)

    def _move(self, cut: Cut, lead: float) -> None:
        (before,) = self.ensemble_.members
        # sums of noisy copies are whole and need no finer grid, expected ones are not
        after = move_threshold(before, lead, refine=self.noise_ is not None and self.rule == "mean")
        self.ensemble_ = after
        moved = cut.move((after.threshold or 0) / after.levels - (before.threshold or 0) / before.levels)
        self.calibration_ = np.array([moved.slope, moved.shift])

    @property
    def decision_threshold_(self) -> float:
        """The probability of `classes_[1]` from which on the score decides for it.

        As asked for by `decision_threshold` or `cost`; else 1/2, or where class weights put it. Only where scores are
        probabilities: of two classes, by an AdditiveClassifier or a model of another library that has them.
        """
        check_is_fitted(self)
        try:
            cut = self._read_cut()
        except ValueError as error:
            raise AttributeError(str(error)) from None
        asked = self._asked_threshold
        return cut.probability if asked is None else asked

    def with_threshold(self, decision_threshold: float) -> Self:
        """A fitted copy that answers `classes_[1]` from another probability on, without training again.

        The threshold of the score is moved, so that `predict`, `certify`, `attack`, `audit`, reports and exports all go
        by it. By the rule "mean" `predict_proba` stays what it is, and `predict` is whether it is above the threshold;
        by the rule "vote" each noisy copy votes by the moved threshold.

        Parameters
        ----------
        decision_threshold : float
            A probability of `classes_[1]`, between 0 and 1.

        Returns
        -------
        fitted copy of the classifier

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from derand import AdditiveClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = AdditiveClassifier(regularization=0.1).fit(X, y)
        >>> careful = clf.with_threshold(0.9)
        >>> bool((careful.predict(X) == (clf.predict_proba(X)[:, 1] > 0.9)).all())
        True
        """
        return self._with_cut(decision_threshold, None)

    def with_cost(self, *, false_positive: float, false_negative: float) -> Self:
        """A fitted copy that answers `classes_[1]` where that is expected to cost less, without training again.

        Parameters
        ----------
        false_positive, false_negative : float
            What a row of `classes_[0]` costs that gets `classes_[1]`, and the other way round; both above 0. For two
            classes alone: the cheapest of several answers is no comparison of two scores, so that it cannot be
            certified; where a mistake costs what its true class says, `class_weight` in training does the same.

        Returns
        -------
        fitted copy of the classifier
            Its threshold is `false_positive / (false_positive + false_negative)`; see `with_threshold`.
        """
        return self._with_cut(None, {"false_positive": false_positive, "false_negative": false_negative})

    def _with_cut(self, decision_threshold: float | None, cost: Mapping[str, float] | None) -> Self:
        check_is_fitted(self)
        if read_threshold(decision_threshold, cost) is None:
            raise ValueError("`decision_threshold` must be a probability between 0 and 1, got None.")
        found = copy.copy(self)
        found.decision_threshold, found.cost = decision_threshold, cost
        found._refuse_threshold_of(self.classes_.size)
        found._move_as_asked()
        return found

    def _cut_as_wrapped(self, wrapped: Wrapped, name: str) -> Self:
        """A fitted copy that answers as the wrapper of scikit-learn around it does."""
        check_is_fitted(self)
        if self.rule != "mean":
            raise ValueError(
                f"{name} moves the threshold of `{wrapped.method}`, which by the rule {self.rule!r} is "
                f"{'a share' if wrapped.method == 'predict_proba' else 'the radius'} of noisy copies and certified at "
                "one half only: train an AdditiveClassifier with rule='mean', or move the threshold of the score by "
                "`decision_threshold` or `cost`."
            )
        cut, number = self._read_cut(), wrapped.threshold
        if wrapped.method == "decision_function":
            lead = -number if wrapped.is_first else number
            asked = cut.move(lead).probability
            scores: Callable[[FloatArray], FloatArray] = lambda margins: np.stack([-margins, margins], axis=1)  # noqa: E731
        else:
            lead = cut.compute_lead(number, of_first=wrapped.is_first)
            asked = 1 - number if wrapped.is_first else number
            scores = cut.read
        found = copy.copy(self)
        found.decision_threshold, found.cost = asked, None
        # at the threshold itself the answer is the positive class
        if wrapped.is_first:
            lead = self._settle(lead, lambda margins: scores(margins)[:, 0] >= number)
        else:
            lead = self._settle(float(np.nextafter(lead, -np.inf)), lambda margins: scores(margins)[:, 1] < number)
        found._move(cut, lead)
        return found
