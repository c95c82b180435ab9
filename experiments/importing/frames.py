"""Datasets as frames with names, as libraries of trees take them, and how their rows are split."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import IntArray
from experiments.datasets import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame


def make_frame(data: Dataset) -> DataFrame:
    """A frame with names; columns of categories have pandas' type for them, with all values of the table."""
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=name_columns(data))
    kinds = {name: "category" if at in data.categorical else float for at, name in enumerate(frame.columns)}
    return frame.astype(kinds)


def name_columns(data: Dataset) -> list[str]:
    """Names without the characters that XGBoost or LightGBM refuse, which are written as numbers: "char_freq_[" is."""
    return [re.sub(r'[]\[{}",:<]', lambda found: f"#{ord(found[0])}", name) for name in data.feature_names]


def split_rows(labels: NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Rows to train and to test on, a fifth, with the same share of each class: the paper's are by position, and
    spambase is sorted by class."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(labels.size), test_size=0.2, stratify=labels, random_state=0)
    return np.sort(train), np.sort(test)
