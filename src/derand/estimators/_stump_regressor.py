"""StumpRegressor: the face of sums of stumps for numbers, `derand.train.train_stump_regressor`."""

from __future__ import annotations

from derand._core.threads import count_threads
from derand.estimators._base import Columns
from derand.estimators._inputs import check_regularization, check_whole
from derand.estimators._regressor import CertifiedRegressor
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.train import RegressionTable, RegressionTraining, train_stump_regressor


class StumpRegressor(CertifiedRegressor):
    """A sum of few stumps per column that answers with a number, smoothed by noise and certified.

    In each round every numerical column gets the stump that explains most, under the noise, of what the sum of those
    before leaves; then the sizes of all stumps, and the values of categories, are fitted together by least squares.

    Parameters
    ----------
    noise : Noise, str or None
        Such as `Gaussian(0.5)` or "uniform:2"; None is `Gaussian(0.25)`.
    n_rounds : int
        Stumps of a column, at most.
    regularization : float or "cv"
        How strongly jumps are penalised; "cv" takes what loses least on rows left out.
    scaling : None, "standard", "range" or "robust"
        Let the noise, and so the radius, count in deviations, ranges or interquartile ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type.
    min_rows_per_category : int or None
        Categories of fewer training rows get the value of one that training did not see. None: every category has its
        own; those of a column of more than ten are drawn towards that value as strongly as they are alike.
    rule : {"vote", "mean"}
        How a number is found: "vote" is the median of noisy copies, "mean" the expected score.
    n_jobs : int or None
        Threads; None or -1 uses all cores.
    verbose : bool
        Say on standard error what is being done.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        The frozen model; its score and offset, divided by its `levels`, are the answer.
    noise_ : Noise
        With the units of `scaling`.
    encoding_ : TableEncoding
        Column names and categories.
    regularization_ : float
    path_ : dict
        What was tried to choose it, as lists: "regularization", "loss" and "error" (root of the mean square on rows
        left out, in deviations of the target, and its standard error).
    term_means_ : array of shape (n_terms,)
        What each term of `ensemble_` adds on average over training rows: explanations start there.
    feature_importances_ : array of shape (n_features,)
        Mean size of what each column adds to the answer, as a share of all.
    training_ : TrainingRecord
        As of `AdditiveClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from derand import StumpRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = StumpRegressor(noise="gaussian:0.5").fit(X[:300], y[:300])
    >>> found = reg.certify_interval(X[300:310], radius=0.1)
    >>> bool(((found.low <= found.value) & (found.value <= found.high)).all())
    True
    """

    ensemble_: AdditiveEnsemble

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        n_rounds: int = 3,
        regularization: float | str = "cv",
        scaling: str | None = "standard",
        categorical_features: Columns = "from_dtype",
        min_rows_per_category: int | None = None,
        rule: str = "vote",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.noise = noise
        self.n_rounds = n_rounds
        self.regularization = regularization
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.min_rows_per_category = min_rows_per_category
        self.rule = rule
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("n_rounds", self.n_rounds, 1)
        check_regularization(self.regularization)

    def _train(self, table: RegressionTable, noise: Noise) -> RegressionTraining:
        return train_stump_regressor(
            table,
            noise,
            n_rounds=int(self.n_rounds),
            regularization=None if isinstance(self.regularization, str) else float(self.regularization),
            rule=self.rule,
            least_rows=self.min_rows_per_category,
            n_threads=count_threads(self.n_jobs),
        )
