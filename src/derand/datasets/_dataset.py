"""The one shape that every dataset has, and the ways to divide it. Must not know files or where data comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from derand._core.arrays import Cells, IntArray

N_FOLDS = 5


class Split(NamedTuple):
    """Row numbers of the training and the test part, each ascending."""

    train: IntArray
    test: IntArray


class Division(NamedTuple):
    """The rows of a dataset in two parts."""

    X_train: Cells
    y_train: IntArray
    X_test: Cells
    y_test: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A table with two classes.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        float64; of dtype object where columns are categorical: floats, and text in the categorical columns.
    y : array of shape (n_rows,)
        Class codes: `target_names[y]` are the labels.
    target_names : tuple of str
    feature_names : tuple of str
    categorical : tuple of int
        Categorical columns.
    split : Split
        The training and test rows that results are usually given for.
    fold : array of shape (n_rows,)
        0 to 4: the fold in which the row is a test row.
    provenance : str
        Where the data comes from and what was done to it.
    """

    X: Cells
    y: IntArray
    target_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    categorical: tuple[int, ...]
    split: Split
    fold: IntArray
    provenance: str

    @property
    def numerical(self) -> tuple[int, ...]:
        """Columns that are not categorical."""
        return tuple(column for column in range(len(self.feature_names)) if column not in self.categorical)

    @property
    def fold_splits(self) -> tuple[Split, ...]:
        """Five splits, each with one fold as its test part."""
        return tuple(
            Split(np.flatnonzero(self.fold != fold), np.flatnonzero(self.fold == fold)) for fold in range(N_FOLDS)
        )

    def divide(self, split: Split | None = None, scaling: Literal["standard", "range"] | None = None) -> Division:
        """Rows and classes of the two parts of a split.

        `split`: None is the dataset's own. `scaling`: scale the numerical columns by hand, with constants of the
        training part: mean and population deviation, or minimum and range. Constant columns are only shifted. An
        estimator's own `scaling` does without this.

        Examples
        --------
        >>> from derand.datasets import load
        >>> parts = load("sklearn_breast_cancer").divide(scaling="range")
        >>> parts.X_train.shape, parts.X_test.shape, float(parts.X_train.max())
        ((398, 30), (171, 30), 1.0)
        """
        if scaling not in (None, "standard", "range"):
            raise ValueError(f'`scaling` must be "standard", "range" or None, got {scaling!r}.')
        train, test = self.split if split is None else split
        X = self.X if scaling is None else self.X.copy()
        if scaling is not None and self.numerical:
            columns = list(self.numerical)
            values = X[:, columns].astype(np.float64)
            learnt = values[train]
            if scaling == "standard":
                shift, unit = learnt.mean(axis=0), learnt.std(axis=0)
            else:
                shift, unit = learnt.min(axis=0), np.ptp(learnt, axis=0)
            X[:, columns] = (values - shift) / np.where(unit > 0, unit, 1.0)
        return Division(X[train], self.y[train], X[test], self.y[test])


def split_at_random(y: IntArray) -> Split:
    """Three tenths of each class as test rows, always the same ones."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
    return Split(np.sort(train), np.sort(test))


def draw_folds(n_rows: int) -> IntArray:
    """Fold of each row, equal to scikit-learn's KFold(5, shuffle=True, random_state=0)."""
    order = np.arange(n_rows)
    np.random.RandomState(0).shuffle(order)  # the published folds were drawn this way
    fold = np.empty(n_rows, dtype=np.int64)
    blocks: Sequence[IntArray] = np.array_split(order, N_FOLDS)
    for number, block in enumerate(blocks):
        fold[block] = number
    return fold
