"""What a report is asked for: `ReportSettings`, declared and checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import ArrayLike

from derand.noise import Noise
from derand.storage import FileMark
from derand.threat import Threat

Groups = str | int | Sequence[str | int] | Mapping[str, str | int | ArrayLike]
"""Columns, or titles with one group per row or a column."""

_COUNTS = {"max_rows": 1, "n_detailed": 1, "n_explained": 0, "n_shapes": 0}
_OF_CLASSIFIERS = (
    "X_train",
    "y_train",
    "protected",
    "n_explained",
    "compare",
    "compare_name",
    "class_names",
)
_OF_REGRESSORS = ("tolerance",)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReportSettings:
    """What a `Report` is asked for; each field is a keyword of `Report`, too.

    Parameters
    ----------
    title : str, optional
    radius : float, optional
        Of a classifier the radius that the text speaks of; by default 0.25, and 1 in norm 0, whatever the model and the
        rows, so that reports can be compared. Of a regressor that of the intervals; by default what it was trained for,
        and nothing where limits alone say what may change.
    l0 : int, optional
        How many categorical features may change; of a classifier up to how many, by default 3, or as many as there are.
        Not beside `threat`.
    threat : Threat, optional
        What may change: norm, units, number of categories, frozen columns, limits and domains. With
        `Threat(norm=None, limits=...)` the report says which answers can be flipped within the limits, and how.
    rule : {"vote", "mean"}, optional
        How the answer is found; the model's own, "vote" for a bare model.
    noise : Noise or str
        Of a bare model; a classifier has its own. "none", for both, is the model as deployed, by the rule "mean". Of a
        regressor as for its `certify_interval`.
    proof : {"best", "paper"}
        What may prove the radius of a vote.
    feature_names : sequence of str, optional
        Names to show, where the model was trained without.
    row_names : sequence, optional
        What the rows are called, such as by an id; by default the index of a pandas frame that has one of its own, else
        the number of the row.
    max_rows : int
        Rows of the interactive table; of more rows the weakest and a random sample are shown (of a regressor a random
        sample).
    n_detailed : int
        How many of them have details in the page: the law of their score and what pushes them, of the weakest and a
        random sample; of a regressor a place in the picture and a radius for the tolerance.
    n_explained : int
        How many of the weakest rows are explained in full. Of a classifier.
    n_shapes : int
        Of how many features the shapes are shown, the most important first.
    seed : int
        Of the samples.
    X_train, y_train : training rows and labels, optional
        Then the classifier is trained on them once more without noise, as a baseline. Otherwise the baseline is the
        most frequent label. Of a classifier.
    subgroups : column name or number, list of those, or dict, optional
        For which subgroups robustness is compared. The values of a dict are one group per row, or a column.
    protected : column, list of columns, or list of such lists, optional
        Columns that must not change an answer, as for `prove` of a classifier: the report then has a part “Promises
        about every row”. Of a classifier.
    compare : fitted classifier of derand, optional
        A second model that stands beside the first: on the same rows, against the same changes. Of a classifier.
    compare_name : str, optional
        What it is called.
    class_names : mapping, optional
        What classes are called in the report, such as {0: "repaid", 1: "default"}. Of a classifier.
    tolerance : float, optional
        By how much answers may move, in units of the target: the report tells within which radius they do not move
        farther, for rows of its table. By default a round number near the mean error, or near half of the moves where
        there are no true numbers. Of a regressor.
    what_if : bool
        Whether the page has the part “What if”, which holds the model's tables; False keeps them out of the report.
    configuration : str, optional
        The file that says how the report was made, as it is to be named there: `derand run` gives its own.
    marks : mapping, optional
        Files that the report was made from, as `derand.storage.mark_file` returns them, by what they hold: "model",
        "data", "training data", "other model". Their checksums are told; without, that of the model as it would be
        saved.
    notes, left_out : sequence of str
        What else a reader must know of the model, at the top, and what else is left out: `derand run` tells of columns.
    """

    title: str | None = None
    radius: float | None = None
    l0: int | None = None
    threat: Threat | None = None
    rule: str | None = None
    noise: Noise | str | float | None = None
    proof: str = "best"
    feature_names: Sequence[str] | None = None
    row_names: Sequence[object] | None = None
    max_rows: int = 100_000
    n_detailed: int = 300
    n_explained: int = 5
    n_shapes: int = 24
    seed: int = 0
    X_train: object = None
    y_train: ArrayLike | None = None
    subgroups: Groups | None = None
    protected: str | int | Sequence[str | int] | Sequence[Sequence[str | int]] | None = None
    compare: Any = None
    compare_name: str | None = None
    class_names: Mapping[object, str] | None = None
    tolerance: float | None = None
    what_if: bool = True
    configuration: str | None = None
    marks: Mapping[str, FileMark] | None = None
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()

    def __post_init__(self) -> None:
        if (self.X_train is None) != (self.y_train is None):
            missing = "y_train" if self.y_train is None else "X_train"
            raise ValueError(f"`X_train` and `y_train` go together, but `{missing}` is missing.")
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"`{name}` must be a whole number, {least} or larger, got {value!r}.")

    def require_for(self, *, regressor: bool) -> None:
        """Refuse what is asked of the other kind of model, and radii and tolerances that are none."""
        others, kind = (_OF_CLASSIFIERS, "classifier") if regressor else (_OF_REGRESSORS, "regressor")
        for one in fields(self):
            if one.name in others and getattr(self, one.name) is not one.default:
                raise ValueError(f"`{one.name}` is for reports on a {kind}: leave it out here.")
        name = "tolerance" if regressor else "radius"  # the radius of intervals is checked where they are certified
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
            raise ValueError(f"`{name}` must be a positive, finite number, got {value!r}.")
