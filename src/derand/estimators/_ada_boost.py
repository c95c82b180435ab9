"""RobAdaBoostClassifier: the face of the paper's adaptive boosting for certificates, `derand.train.boost_vote`."""

from __future__ import annotations

from functools import partial

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.progress import count_rounds
from derand._core.threads import count_threads
from derand.certificates import find_labels, vote_share
from derand.estimators._base import Columns
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inputs import ClassWeight, check_number, check_stump_parameters, check_whole
from derand.model import WeightedVote
from derand.noise import Noise
from derand.train import TrainingTable, VoteBoosting, boost_vote

DEFAULT_FAILURE = 0.25


class RobAdaBoostClassifier(CertifiedClassifier):
    """Independent ensembles boosted for the certificate: a vote, weighted by the certifiable error.

    Each round trains an independent ensemble (`StumpClassifier`) with the current weights of the rows, finds the rows
    that it does not certify, with the right label, at the target radius, and raises their weights. The member's
    weight in the vote is log((1 - error) / error), where its certifiable error is the weighted share of those rows.

    Parameters
    ----------
    noise : Noise, str or None
        Such as `Gaussian(0.25)` or "uniform:2"; None is `Gaussian(0.25)`.
    radius : float or None
        Target radius. None is the radius that a failure mass of 1/4 certifies: half of the half-width of uniform
        noise, 0.674 deviations of Gaussian noise.
    n_estimators : int
        Rounds.
    class_weight : None, "balanced" or dict
        Weights in the first round; "balanced" gives both classes the same total weight.
    levels, split_step, max_entropy, categorical_leaf, min_rows_per_category
        Of each member, as for StumpClassifier.
    scaling : None, "standard", "range" or "robust"
        Let the noise, and so the radius, count in deviations, ranges or interquartile ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type.
    verbose : bool
        Say on standard error what is being done.
    rule : {"vote", "mean"}
        How a label is found: "vote" is the one that most noisy copies get, "mean" that of the expected score.
    n_jobs : int or None
        Threads; None or -1 uses all cores. The model does not depend on it.

    Attributes
    ----------
    ensemble_ : WeightedVote
        The frozen model.
    noise_ : Noise
        The noise, with units where `scaling` asks for them.
    classes_ : array of shape (2,)
    encoding_ : TableEncoding
        Column names and categories.
    radius_ : float
        The target radius that was used.
    member_errors_ : array of shape (n_rounds,)
        Certifiable error of the member of each round.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A round whose member has an error of 1/2 or more adds nothing to the vote: the paper's weight would be zero or
    negative, a vote for the reverse of its labels, but a row that is not certified is not therefore wrong. The weights
    of the rows change as in the paper, so that the next member differs; where they cannot (an error of 1/2, up to
    rounding, or of 1), training ends. Where no member has an error below 1/2, the first one decides alone, and a
    warning says so.

    Missing numbers are learnt by each member as by StumpClassifier.

    A member without any error has an infinite weight: it decides alone, and training ends.

    A vote has no failure mass: `certify` gives NaN there. `predict_proba` is the share of the weight that votes
    for each label: no calibrated probability, and its threshold cannot be moved (use `class_weight`).

    Examples
    --------
    >>> from derand import RobAdaBoostClassifier
    >>> X = [[0.0, 3.0], [1.0, 0.0], [4.0, 1.0], [5.0, 5.0], [2.0, 6.0]]
    >>> clf = RobAdaBoostClassifier(noise="gaussian:0.5", radius=0.5).fit(X, ["no", "no", "yes", "yes", "yes"])
    >>> c = clf.certify([[0.5, 0.5], [6.0, 6.0]])
    >>> c.label.tolist(), c.radius.round(2).tolist()
    (['no', 'yes'], [1.07, 4.9])
    """

    ensemble_: WeightedVote

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        radius: float | None = None,
        n_estimators: int = 20,
        class_weight: ClassWeight = None,
        levels: int = 100,
        split_step: float | None = 0.01,
        max_entropy: float = 0.693,
        scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        categorical_leaf: float | None = 0.125,
        min_rows_per_category: int | None = None,
        verbose: bool = False,
        rule: str = "vote",
        n_jobs: int | None = None,
    ) -> None:
        self.noise = noise
        self.radius = radius
        self.n_estimators = n_estimators
        self.class_weight = class_weight
        self.levels = levels
        self.split_step = split_step
        self.max_entropy = max_entropy
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.categorical_leaf = categorical_leaf
        self.min_rows_per_category = min_rows_per_category
        self.verbose = verbose
        self.rule = rule
        self.n_jobs = n_jobs

    def predict_proba(self, X: object) -> FloatArray:
        """Share of the members' weight that votes for each label.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
        """
        rows = self._encode_rows(X)
        votes = np.stack(
            [
                find_labels(member, rows, self.noise_, rule=self.rule, n_jobs=self.n_jobs)
                for member in self.ensemble_.members
            ]
        )
        share = vote_share(votes, self.ensemble_.weights)  # weights of this trainer are positive
        return np.stack([1 - share, share], axis=1)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_stump_parameters(self)
        check_whole("n_estimators", self.n_estimators, 1)
        if self.radius is not None:
            check_number("radius", self.radius, 0.0, np.inf)

    def _train(self, table: TrainingTable, noise: Noise) -> VoteBoosting:
        radius = float(noise.radius(DEFAULT_FAILURE) if self.radius is None else self.radius)
        boosting = boost_vote(
            table,
            noise,
            radius=radius,
            n_estimators=self.n_estimators,
            levels=self.levels,
            split_step=self.split_step,
            max_entropy=self.max_entropy,
            categorical_leaf=self.categorical_leaf,
            least_rows=self.min_rows_per_category,
            progress=partial(count_rounds, what="boosting"),
            n_threads=count_threads(self.n_jobs),
        )
        self.radius_, self.member_errors_ = radius, boosting.member_errors
        return boosting
