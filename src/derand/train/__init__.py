"""Training as functions with frozen results: tables and a noise in, models out. Must not know scikit-learn.

`train_additive`, `train_stumps`, `boost_stumps` and `boost_vote` train classifiers, `train_additive_regressor` and
`train_stump_regressor` models of numbers; bins, histograms and splits are what they consist of. What a user should be
warned of stands in their results.
"""

from __future__ import annotations

from derand.train._moments import Moments
from derand.train.additive import AdditiveTraining, choose_noise, train_additive
from derand.train.bins import BinnedTable, NumberBins, bin_table, code_rows
from derand.train.counts import CountedTable, CountingPlan, PartCounts, add_counts, count_part
from derand.train.design.groups import MOST_COLUMNS
from derand.train.design.joint import MOST_JOINED
from derand.train.formulations import AdditiveOptions
from derand.train.histogram import Histogram, cut_into_blocks, merge_histograms, tabulate
from derand.train.losses.margin_loops import hash_rows
from derand.train.paper.boosting import TreeBoosting, VoteBoosting, boost_stumps, boost_vote
from derand.train.paper.stumps import (
    CategoryLeaves,
    Stumps,
    StumpTraining,
    choose_first_step,
    join_tables,
    train_stumps,
)
from derand.train.parts import CodedRows, PartsInMemory, WholeTable
from derand.train.regression import (
    RegressionTable,
    RegressionTraining,
    train_additive_regressor,
    train_stump_regressor,
)
from derand.train.selection.penalties import SelectionPath
from derand.train.splits import (
    SplitGrid,
    Splits,
    compute_resolution,
    measure_entropy,
    measure_left,
    search_grid,
    search_minimum,
    search_splits,
)
from derand.train.strategies import TrainingRecord
from derand.train.table import SCALINGS, Spread, TrainingTable, measure_units

__all__ = [
    "MOST_COLUMNS",
    "MOST_JOINED",
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
    "SplitGrid",
    "Splits",
    "Spread",
    "StumpTraining",
    "Stumps",
    "TrainingRecord",
    "TrainingTable",
    "TreeBoosting",
    "VoteBoosting",
    "WholeTable",
    "add_counts",
    "bin_table",
    "boost_stumps",
    "boost_vote",
    "choose_first_step",
    "choose_noise",
    "code_rows",
    "compute_resolution",
    "count_part",
    "cut_into_blocks",
    "hash_rows",
    "join_tables",
    "measure_entropy",
    "measure_left",
    "measure_units",
    "merge_histograms",
    "search_grid",
    "search_minimum",
    "search_splits",
    "tabulate",
    "train_additive",
    "train_additive_regressor",
    "train_stump_regressor",
    "train_stumps",
]
