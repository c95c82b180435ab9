"""Training as functions with frozen results: tables and a noise in, models out. Must not know scikit-learn.

`train_additive`, `train_stumps`, `boost_stumps` and `boost_vote` train classifiers, `train_additive_regressor` and
`train_stump_regressor` models of numbers; bins, histograms and splits are what they consist of. What a user should be
warned of stands in their results.
"""

from __future__ import annotations

from derand.learn._groups import MOST_COLUMNS
from derand.learn._margin_loops import hash_rows
from derand.learn._moments import Moments
from derand.learn._penalties import SelectionPath
from derand.learn._shared import CodedRows, PartsInMemory, SharedTable
from derand.learn.additive import AdditiveOptions, AdditiveTraining, train_additive
from derand.learn.bins import BinnedTable, NumberBins, bin_table, code_rows
from derand.learn.boosting import TreeBoosting, VoteBoosting, boost_stumps, boost_vote
from derand.learn.counts import CountedTable, CountingPlan, PartCounts, add_counts, count_part
from derand.learn.histogram import Histogram, cut_into_blocks, merge_histograms, tabulate
from derand.learn.regression import (
    RegressionTable,
    RegressionTraining,
    train_additive_regressor,
    train_stump_regressor,
)
from derand.learn.splits import (
    SplitGrid,
    Splits,
    find_resolution,
    find_splits,
    measure_entropy,
    measure_left,
    search_grid,
    search_minimum,
)
from derand.learn.stumps import CategoryLeaves, Stumps, StumpTraining, find_first_step, join_tables, train_stumps
from derand.learn.table import SCALINGS, Spread, TrainingTable, measure_units

__all__ = [
    "MOST_COLUMNS",
    "SCALINGS",
    "AdditiveOptions",
    "AdditiveTraining",
    "BinnedTable",
    "CategoryLeaves",
    "CodedRows",
    "CountedTable",
    "CountingPlan",
    "Histogram",
    "Moments",
    "NumberBins",
    "PartCounts",
    "PartsInMemory",
    "RegressionTable",
    "RegressionTraining",
    "SelectionPath",
    "SharedTable",
    "SplitGrid",
    "Splits",
    "Spread",
    "StumpTraining",
    "Stumps",
    "TrainingTable",
    "TreeBoosting",
    "VoteBoosting",
    "add_counts",
    "bin_table",
    "boost_stumps",
    "boost_vote",
    "code_rows",
    "count_part",
    "cut_into_blocks",
    "find_first_step",
    "find_resolution",
    "find_splits",
    "hash_rows",
    "join_tables",
    "measure_entropy",
    "measure_left",
    "measure_units",
    "merge_histograms",
    "search_grid",
    "search_minimum",
    "tabulate",
    "train_additive",
    "train_additive_regressor",
    "train_stump_regressor",
    "train_stumps",
]
