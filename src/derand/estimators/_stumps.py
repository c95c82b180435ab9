"""StumpClassifier: the face of the paper's independent training, `derand.train.train_stumps`."""

from __future__ import annotations

from derand._core.threads import count_threads
from derand.estimators._base import Columns
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inputs import ClassWeight, check_stump_parameters
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.train import StumpTraining, TrainingTable, train_stumps


class StumpClassifier(CertifiedClassifier):
    """Ensemble of independently trained stumps, smoothed by noise and certified.

    Every numerical feature gets the stump whose split has the least entropy under the noise, with the leaves that
    are then most likely; stumps whose entropy is not below a limit are left out. Every categorical feature gets a
    table. All count alike; class 1 iff the mean leaf is above 1/2. Of more than two classes each gets a stump of its
    own per feature, against all others; the class of the largest mean leaf is the answer.

    Parameters
    ----------
    noise : Noise, str or None
        Such as `Gaussian(0.25)` or "uniform:2"; None is `Gaussian(0.25)`.
    class_weight : None, "balanced" or dict
        "balanced" gives both classes the same total weight.
    levels : int
        Leaves of stumps are rounded to multiples of `1 / levels`. With categorical features the model's grid is
        twice as fine, so that the leaves of tables fit as well.
    split_step : float or None
        Distance of the candidate splits, in units of the noise (the paper's line search); None finds the minimum of
        the entropy itself.
    max_entropy : float
        A stump is kept where its entropy, in nats, is below.
    scaling : None, "standard", "range" or "robust"
        Let the noise, and so the radius, count in deviations, ranges or interquartile ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type.
    categorical_leaf : float or None
        A category's leaf is 1/2 plus this where class 1 has at least half of the weight of its rows, else 1/2
        minus this. None: the share of class 1. Unseen and missing categories have 1/2.
    min_rows_per_category : int or None
        Categories of fewer training rows get 1/2, as one that training did not see. None, the paper's way, gives every
        category a leaf of its own.
    rule : {"vote", "mean"}
        How a label is found: "vote" is the one that most noisy copies get, "mean" that of the expected score.
    n_jobs : int or None
        Threads; None or -1 uses all cores. The model does not depend on it.
    verbose : bool
        Say on standard error what is being done.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        The frozen model.
    noise_ : Noise
        The noise, with units where `scaling` asks for them.
    classes_ : array of shape (n_classes,)
    encoding_ : TableEncoding
        Column names and categories.
    entropy_ : array of shape (n_features,)
        Entropy of each numerical feature's best split, of more than two classes that of the class which it tells best;
        NaN for categorical features.
    ignored_features_ : dict
        Why a feature has no term in the model, by its name (its number, where the table had no names).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A missing number is a cell of its own, on which noise does not act: rows that miss it are left out of the search for
    the split, and its leaf is found like a category's, by `categorical_leaf`. The model's grid is then twice as fine,
    too. A column without gaps in training refuses them later.
    Where no stump is kept and there is no categorical feature, the model is constant, the class of the larger
    weight (`classes_[0]` on a tie). A warning says so, and also where all training rows get the same label otherwise.
    Of more than two classes a class and the rest weigh in its stumps as one over the square root of their shares:
    halfway between rows that count alike, which leave a rare class next to nothing, and classes that do.
    A numerical feature has at most 20,000 candidates; beyond that the step grows, and a warning says so.
    The search is exact for features of at most 32,768 distinct values; those of any other are put into bins first,
    eight of them per step and per scale of the noise (fewer where 65,536 bins do not suffice).

    `predict_proba` is the share of noisy copies that get each label (by the rule "mean" the place of the score): a fact
    about the noise, no calibrated probability. Its threshold cannot be moved: use `class_weight`, or AdditiveClassifier
    with `decision_threshold` or `cost`.

    Examples
    --------
    >>> from derand import StumpClassifier
    >>> clf = StumpClassifier(noise="gaussian:0.5").fit([[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"])
    >>> c = clf.certify([[0.5], [6.0]])
    >>> c.label.tolist(), c.radius.round(2).tolist()
    (['no', 'yes'], [2.0, 3.5])
    """

    ensemble_: AdditiveEnsemble
    _takes_several_classes = True

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        class_weight: ClassWeight = None,
        levels: int = 100,
        split_step: float | None = 0.01,
        max_entropy: float = 0.693147,
        scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        categorical_leaf: float | None = 0.125,
        min_rows_per_category: int | None = None,
        rule: str = "vote",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.noise = noise
        self.class_weight = class_weight
        self.levels = levels
        self.split_step = split_step
        self.max_entropy = max_entropy
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.categorical_leaf = categorical_leaf
        self.min_rows_per_category = min_rows_per_category
        self.rule = rule
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_stump_parameters(self)

    def _train(self, table: TrainingTable, noise: Noise) -> StumpTraining:
        training = train_stumps(
            table,
            noise,
            levels=self.levels,
            split_step=self.split_step,
            max_entropy=self.max_entropy,
            categorical_leaf=self.categorical_leaf,
            least_rows=self.min_rows_per_category,
            n_threads=count_threads(self.n_jobs),
        )
        self.entropy_ = training.entropy
        self.ignored_features_ = dict(training.ignored_features)
        return training
