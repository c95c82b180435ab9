"""AdditiveClassifier measured: beside other models, trained for a radius, and on the paper's own tables.

Owns one table per file. Settings are chosen on training rows alone, and test
rows are asked once. Must not know how anything is trained, certified or printed.
"""

from __future__ import annotations

from experiments.beyond._joint import TABLES, Joint, Summary, compare_cells, summarize_cells
from experiments.beyond._natural import (
    MODELS,
    NATURAL_DATASETS,
    NO_PEER,
    Natural,
    Price,
    check_floors,
    compare_naturally,
    has_peer,
    measure_price,
)
from experiments.beyond._robust import (
    PAIRS,
    PATCHES,
    PEER,
    SINGLE,
    Progress,
    Robust,
    check_robust,
    compare_robustly,
    follow_fits,
)
from experiments.beyond._robust import ROWS as ROBUST_ROWS
from experiments.beyond._rows import ATTACKED, Beyond, ByRule, check_rows, compare_rows, list_rows
from experiments.beyond._shares import Shares, fit_quietly, measure_shares, prepare_rows
from experiments.beyond._trained import GOALS, Goal, Trained, check_goals, compare_training

ROBUST_MODELS = (SINGLE, PAIRS, PATCHES, PEER)

__all__ = [
    "ATTACKED",
    "GOALS",
    "MODELS",
    "NATURAL_DATASETS",
    "NO_PEER",
    "ROBUST_MODELS",
    "ROBUST_ROWS",
    "TABLES",
    "Beyond",
    "ByRule",
    "Goal",
    "Joint",
    "Natural",
    "Price",
    "Progress",
    "Robust",
    "Shares",
    "Summary",
    "Trained",
    "check_floors",
    "check_goals",
    "check_robust",
    "check_rows",
    "compare_cells",
    "compare_naturally",
    "compare_robustly",
    "compare_rows",
    "compare_training",
    "fit_quietly",
    "follow_fits",
    "has_peer",
    "list_rows",
    "measure_price",
    "measure_shares",
    "prepare_rows",
    "summarize_cells",
]
