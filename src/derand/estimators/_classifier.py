"""What all classifiers share: labels, predicting and certifying.

Owns the names of the classes. Predicting and certifying run the same code (`derand.certificates.certify`). Must not
know how tables are read (`_base`) or how anything is trained.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from derand._core.arrays import TINY, FloatArray, Labels
from derand._core.origin import Frame
from derand._core.progress import counting
from derand.certificates import (
    Attacks,
    Certificates,
    Reasons,
    attack,
    certify_checked,
    expect_margins,
    explain,
    find_labels,
    place_scores,
    weigh_votes,
)
from derand.estimators._base import Training
from derand.estimators._inputs import (
    ClassWeight,
    keep_present,
    read_labels,
    resolve_class_weight,
    warn_of_lone_labels,
)
from derand.estimators._one_label import warn_of_no_gain, warn_of_one_label, warn_of_unseen_classes
from derand.estimators._proving import Columns as ProtectedColumns
from derand.estimators._proving import DomainOption, compute_table_reasons, list_row_reasons, prove_encoded
from derand.estimators._showing import as_table, name_all, name_unit
from derand.estimators._threshold import MovableClassifier
from derand.explain import Explanations, ModelPromises, RowExplanation, explain_label
from derand.fitted import certify_encoded
from derand.metrics import judge_labels
from derand.noise import Noise
from derand.tables import TableEncoding
from derand.threat import Threat
from derand.train import TrainingTable

INFINITE_RADIUS = 1e9
"""What `decision_function` gives, in magnitudes of the noise, where no change at all can flip the label: more than
any finite radius (a term adds at most 750), yet finite, as scikit-learn's metrics demand."""


class CertifiedClassifier(ClassifierMixin, MovableClassifier):
    """A classifier that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `class_weight`, `scaling`, `categorical_features`, `rule` and `n_jobs`,
    refuse what makes no sense in `_check_parameters`, and train in `_train`.
    """

    class_weight: ClassWeight

    score_is_log_odds = False
    """Whether the score of `ensemble_`, divided by its `levels`, is a logarithm of odds."""
    _takes_several_classes = False
    """Whether it can be trained on more than two classes."""

    @abstractmethod
    def _train(self, table: TrainingTable, noise: Any) -> Training:
        """Train, and keep what was found besides the model and its warnings; class 1 is `classes_[1]`."""

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        """Train, and say what there is to warn of."""
        X, classes, target, weights = self._read_labels(X, y, sample_weight)
        encoding, matrix = self._learn_encoding(X)
        totals = np.bincount(target, weights=weights, minlength=classes.size).astype(np.float64)
        class_weight = resolve_class_weight(self.class_weight, classes, totals)
        n_categories = {column: len(values) for column, values in encoding.categories.items()}
        table = TrainingTable(matrix, target, class_weight, weights, n_categories, encoding.names)
        return fit_table(self, table, encoding, classes, totals)

    def _read_labels(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[object, Labels, NDArray[np.uint8], FloatArray | None]:
        """The rows of positive weight, the classes, and for each row which of them it has and its weight."""
        X = self._begin_fit(X, y, "labels")
        classes, target = read_labels(X, y, several=self._takes_several_classes)
        X, target, weights = self._keep_weighted(X, target, sample_weight)
        classes, target = keep_present(classes, target)
        self._refuse_threshold_of(classes.size)
        return X, classes, target, weights

    def _warn_of_one_label(self, table: TrainingTable, totals: FloatArray, training: Training) -> tuple[str, ...]:
        """What to say where rows get one label, or none some class, or no more right ones than by a constant answer.

        `totals` holds the weight of each class.
        """
        told = warn_of_one_label(self, table, totals) or warn_of_unseen_classes(self, table)
        return told or warn_of_no_gain(self, table, totals)

    def predict(self, X: object) -> Labels:
        """Label of the smoothed classifier, by its `rule`: the one that most noisy copies of a row get, or "mean".

        Of several classes, by the vote, the one that beats each rival on most noisy copies.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of `classes_`
        """
        rows = self._encode_rows(X)
        return self.classes_[find_labels(self.ensemble_, rows, self.noise_, rule=self.rule, n_jobs=self.n_jobs)]

    def score(self, X: Frame, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of right labels.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        labels = np.asarray(y)
        if labels.size and not np.isin(labels, self.classes_).any():
            raise ValueError(
                f"`y` must hold labels among {self.classes_.tolist()}, got {labels.ravel().tolist()[0]!r}."
            )
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: object) -> FloatArray:
        """Exact shares of noisy copies of a row that get each label; by the rule "mean" the place of its score.

        A share is a fact about the noise, no probability that a row is of a class: it is not calibrated, and certified
        at one half only. Calibrated probabilities are those of AdditiveClassifier.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
            P(score <= threshold), P(score > threshold); rows sum to 1. The smaller one keeps its relative accuracy.
            By the rule "mean", where the expected score stands between the least and the largest possible one, the
            threshold being 1/2: not calibrated. Of several classes the share of noisy copies on which each wins its
            worst duel, or by the rule "mean" its expected score, as a share of all.
        """
        rows = self._encode_rows(X)
        if self.classes_.size > 2:
            weights = self._weigh_classes(rows)
            shares = np.maximum(weights if self.rule == "mean" else expit(weights), TINY)
            return np.asarray(shares / shares.sum(axis=1, keepdims=True))
        if self.rule == "mean":
            share = 0.5 + 0.5 * place_scores(self.ensemble_, rows, self.noise_)
            return np.stack([1 - share, share], axis=1)
        (certificates,) = self._certify_by_law(rows)
        failure = np.minimum(certificates.failure, 0.5)
        is_one = certificates.label == self.classes_[1]
        return np.stack([np.where(is_one, failure, 1 - failure), np.where(is_one, 1 - failure, failure)], axis=1)

    def _certify_by_law(self, rows: FloatArray) -> list[Certificates]:
        """Certificates that follow from probabilities alone: these rank rows as probabilities do."""
        assert self.noise_ is not None  # a vote has one
        return certify_encoded(self, rows, [Threat(norm=self.noise_.norm)], proof="paper")

    def decision_function(self, X: object) -> FloatArray:
        """Radius by the paper's proof, positive for `classes_[1]` and negative for `classes_[0]`.

        It ranks rows as `predict_proba` does, even those whose probabilities are all 1; `certify` may prove more. A row
        that no change can flip counts with 1e9 magnitudes of the noise, so that all numbers are finite; one of
        `classes_[1]` for which nothing is certified counts with the smallest positive number, so that the sign is that
        of `predict`. By the rule "mean" it is the place of the expected score between its extremes, from -1 to 1.
        Of several classes it has one column for each: the logarithm of the odds with which a noisy copy wins its worst
        duel, or by the rule "mean" its expected score.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of several classes (n_rows, n_classes)
        """
        rows = self._encode_rows(X)
        if self.classes_.size > 2:
            return self._weigh_classes(rows)
        if self.rule == "mean":
            return place_scores(self.ensemble_, rows, self.noise_)
        (certificates,) = self._certify_by_law(rows)
        assert self.noise_ is not None  # a vote has one
        radius = np.minimum(certificates.radius, INFINITE_RADIUS * self.noise_.magnitude)
        positive = np.maximum(radius, TINY)
        return np.where(certificates.label == self.classes_[1], positive, -radius)

    def _weigh_classes(self, rows: FloatArray) -> FloatArray:
        """`decision_function` of several classes."""
        (ensemble,) = self.ensemble_.members
        if self.rule == "mean":
            return expect_margins(ensemble, rows, self.noise_)
        assert self.noise_ is not None  # a vote has one
        return weigh_votes(ensemble, rows, self.noise_, self.n_jobs)

    @overload
    def certify(
        self,
        X: object,
        l0: int | None = None,
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
        budget: int | None = None,
    ) -> Certificates: ...

    @overload
    def certify(
        self,
        X: object,
        l0: Sequence[int],
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
        budget: int | None = None,
    ) -> list[Certificates]: ...

    def certify(
        self,
        X: object,
        l0: int | Sequence[int] | None = None,
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
        budget: int | None = None,
    ) -> Certificates | list[Certificates]:
        """Label of each row, and the radius within which no change can flip it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            A category that training did not see, or a missing one, is allowed; a missing number only in columns in
            which some were missing in training, or that the model does not read.
        l0 : int or sequence of int
            How many categorical features may change at the same time; more than there are counts as all of them. None
            is that of `default_threat`: what an AdditiveClassifier was trained against, 0 for all others.
        unseen : bool
            Whether a categorical feature may change to a value that training did not see. None is True, in the same
            way.
        threat : Threat or None
            What may change, instead of `l0` and `unseen`; columns by name, where the table has names. None is
            `default_threat`.
        rule : {"vote", "mean"} or None
            None is the estimator's own, so that labels are those of `predict`.
        proof : {"best", "paper"}
            What may prove the radius of a vote.
        noise : Noise, str, float or None
            None is the estimator's own. "none" is no smoothing, the model as deployed: it needs the rule "mean", and
            its labels may differ from those of `predict`. Radii count in the estimator's units; so does another noise
            that has no units itself. A number is a magnitude of the estimator's own kind of noise, in another norm of
            the kind that this asks for (as for `derand.certify`).
        backend, n_jobs, budget
            As for `derand.certify`; `n_jobs` is the estimator's where it is not given.

        Returns
        -------
        Certificates with labels of `classes_`, or a list of them where `l0` is a sequence
            Their `to_frame()` is a table of the library of `X`, with its index.

        Warns
        -----
        UserWarning
            Where 50 rows or more all get one label: their certificates say nothing about the model, unless all of them
            are of that class indeed.
        """
        request = self._ask(X, self._ask_threats(l0, unseen, threat), rule, noise, proof, n_jobs, budget)
        with self._listen(), counting("certifying", len(request.rows)):
            certified = certify_checked(
                self.ensemble_, request.rows, request.noise, request.threats, backend=backend, **request.how
            )
        found = [one.with_classes(self.classes_, self.encoding_.names).with_origin(X) for one in certified]
        remark = judge_labels(found[0].label) if found else None
        if remark is not None:
            warnings.warn(remark.text, stacklevel=2)
        return found[0] if l0 is None or np.ndim(l0) == 0 else found

    @property
    def _points(self) -> float:
        """How many whole scores are 1 of what is shown: of log-odds, where the score is one."""
        return float(self.ensemble_.members[0].levels) if self.score_is_log_odds else 1.0

    @property
    def _height(self) -> str:
        return "log-odds" if self.score_is_log_odds else "points of the score"

    def explain(
        self,
        X: object,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        whole: bool = True,
    ) -> object:
        """What pushes the answer of a row, how far it is from flipping, and the nearest change that flips it.

        `print` tells it in words, its `plot` draws it, and notebooks show it.

        Parameters
        ----------
        X : one row, or array or frame of shape (n_rows, n_features)
            One row is `X[0]`, `frame.iloc[0]`, a mapping of columns to values, or a table of one row. Each row takes as
            long as certifying it once for every column.
        threat : Threat or None
            Its norm and units measure changes, and within its limits they stay; frozen columns are left out.
        rule, noise
            As for `certify`.
        whole : bool
            Whether columns that held whole numbers alone in training change to whole numbers here, and those of 0 and 1
            between these, where the row's own number is one of them; False for any number.

        Returns
        -------
        RowExplanation, of several rows a tuple of them
            `columns` from the smallest change to the largest, each with what is certified and what was found; features
            by number (`feature_names_in_` has their names), changed rows as the model reads them (`decode_rows` turns
            them back). `pushes`, `nearest` and `sentences` say the same in words.
        """
        check_is_fitted(self)
        request = self._ask(as_table(X, self.encoding_), self._ask_threats(None, None, threat), rule, noise)
        (asked,) = request.threats
        found = []
        for row in request.rows:
            here = asked.with_whole(self.encoding_.find_whole(row[None])) if whole else asked
            found.append(self._explain_row(row, here, asked, request.rule, request.noise))
        return found[0] if len(found) == 1 else Explanations(found)

    def _explain_row(
        self, row: FloatArray, threat: Threat, plain: Threat, rule: str, noise: Noise | None
    ) -> RowExplanation:
        """One row under a threat; `plain` is the same before whole numbers stayed whole."""

        def certify_row(one: Threat) -> Certificates:
            return certify_checked(self.ensemble_, row[None], noise, [one], rule=rule)[0]

        found = explain(self.ensemble_, row, noise, rule=rule, threat=threat)
        rival = 1 - int(found.label)
        if self.classes_.size > 2:  # the one that a change reaches first
            certified = certify_row(threat)
            own = 1 - int(certified.label[0])
            rival = own if certified.runner_up is None else int(certified.runner_up[0])
        in_steps = threat.steps != plain.steps
        if in_steps and threat.norm is not None:  # does it matter that numbers stay whole?
            numbers = certify_row(replace(plain, l0=0, missing="fixed"))
            in_steps = found.joint.certified > float(numbers.radius[0])
        return explain_label(
            found,
            self.ensemble_,
            row,
            noise,
            rule=rule,
            threat=threat.resolve(noise),
            classes=self.classes_,
            rival=rival,
            names=name_all(self),
            points=self._points,
            unit=name_unit(self, threat),
            in_steps=in_steps,
            reasons=list_row_reasons(self, row, noise, rule),
        )

    def reasons(
        self,
        X: Frame,
        *,
        domain: DomainOption = None,
        costs: Mapping[str | int, int] | None = None,
        unseen: bool = False,
        missing: bool = False,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        budget: int | None = None,
    ) -> Reasons:
        """For each row the fewest columns that were enough for its answer, whatever the others hold within a domain.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        domain : dict of column to (lowest, highest) or to a list of values, or None
            What free columns may hold. None, and columns that it does not name: whole numbers within their training
            range, any other number, categories of training. A row's own value always belongs to it.
        costs : dict of column to whole number, or None
            What naming each column costs; the cheapest set is taken then. None is 1 for all.
        unseen, missing : bool
            Whether free columns may hold categories that training did not see, or go missing where the model takes
            missing values.
        rule, noise
            As for `certify`; the rule "mean", or noise="none" for the model as deployed.
        budget : int or None
            Of models with trees, how many nodes each search may look at. A search that is not done keeps its column.

        Returns
        -------
        Reasons
            `fixed` says which columns are enough, `proof` whether no smaller set is.
        """
        request = self._ask(as_table(X, self.encoding_), self._ask_threats(None, None, None), rule, noise)
        found = compute_table_reasons(self, request, domain, costs=costs, unseen=unseen, missing=missing, budget=budget)
        return found.with_classes(self.classes_)

    def prove(
        self,
        X: Frame = None,
        *,
        protected: ProtectedColumns | None = None,
        monotone: Mapping[str | int, object] | None = None,
        domain: DomainOption = None,
        unseen: bool = False,
        missing: bool = False,
        radius: float | None = None,
        norm: float = np.inf,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        budget: int | None = None,
    ) -> ModelPromises:
        """What holds for every row, seen or not: proven, refuted by rows that `predict` confirms, or undecided.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features), or None
            A table of which the share of rows is told that protected columns flip. Numbers of linear models stay within
            its ranges.
        protected : column, list of columns, or list of such lists
            Columns that must not change an answer; those of a list change together.
        monotone : dict of column to {"increasing", "decreasing"}, or None
            Directions of the score, which is that of `classes_[1]`; of several classes of each class against each one
            before it. None is what the classifier was trained with.
        domain, unseen, missing
            Which rows there are, as for `reasons`.
        radius : float or None
            How far numbers may change, in the classifier's units: by how much the score can change is bounded.
        norm : {1, 2, inf}
            Of that radius; exact in inf without noise.
        rule, noise
            As for `certify`; the rule "mean", or noise="none" for the model as deployed.
        budget : int or None
            Of models with trees, how many nodes each search may look at: what it leaves open is undecided.

        Returns
        -------
        ModelPromises
            `print` tells it; `promises` holds verdicts and counterexamples, which `decode_rows` turns into a table.
        """
        check_is_fitted(self)
        return prove_encoded(
            self,
            None if X is None else self._encode_rows(X),
            self._choose_noise(noise),
            self.rule if rule is None else rule,
            protected=protected,
            monotone=monotone,
            domain=domain,
            unseen=unseen,
            missing=missing,
            radius=radius,
            norm=norm,
            budget=budget,
        )

    def attack(
        self,
        X: object,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        random_state: int = 0,
        budget: int | None = None,
    ) -> Attacks:
        """The smallest change of each row that was found to flip its answer: an upper bound beside `certify`'s radius.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        threat, rule, noise
            As for `certify`.
        random_state, budget
            As for `derand.attack`.

        Returns
        -------
        Attacks
            With labels of `classes_`, and `rows` that `predict` takes: an array, or a frame of the library and with the
            index of `X` where the table that the classifier was trained on has names. A category that training did not
            see stands for all such.
        """
        request = self._ask(X, self._ask_threats(None, None, threat), rule, noise, budget=budget)
        with self._listen(), counting("attacking", len(request.rows)):
            found = attack(
                self.ensemble_,
                request.rows,
                request.noise,
                rule=request.rule,
                threat=request.threats[0],
                random_state=random_state,
                n_jobs=request.n_jobs,
                budget=request.search.budget,
            )
        found = found.with_classes(self.classes_).with_origin(X)
        return replace(found, rows=self._name_changed(found.rows, found.origin))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_several_classes
        return tags


def fit_table(
    classifier: CertifiedClassifier,
    table: TrainingTable,
    encoding: TableEncoding,
    classes: Labels,
    totals: FloatArray,
    find_rows: Callable[[Noise | None], Any] | None = None,
) -> tuple[str, ...]:
    """Train on rows that were read and checked; what there is to warn of.

    `totals` is the weight of the rows of each class. `find_rows`, told the noise in its units, gives what is trained on
    instead of `table`, which is a sample of it then.
    """
    classifier.classes_ = classes
    noise = classifier._keep_table(table, encoding)
    training = classifier._train(table if find_rows is None else find_rows(noise), noise)
    classifier.ensemble_ = training.model
    classifier._move_as_asked()
    told = classifier._warn_of_one_label(table, totals, training)
    return (*warn_of_lone_labels(classes, table.target), *told, *training.warnings)
