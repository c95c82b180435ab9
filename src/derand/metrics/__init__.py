"""Metrics: numbers about answers, certificates and the true labels. Must not know models or noise.

`_certified`: shares of rows that are right and certified. `_radii`: how large radii are, those without a limit apart.
`_answers`: whether the answers are any good, whatever is certified (`_shares`: intervals of shares, `_ranking`: AUC,
`_calibration`: probabilities beside what happened, `_chance`: whether shares differ by more than chance). `_baseline`:
the comparison with a constant answer, and what to say of a model that does not beat it.
"""

from derand.metrics._answers import (
    AnswerMetrics,
    AnswerSummary,
    AnswerTally,
    Costs,
    CostSummary,
    RowGrades,
    encode_labels,
    measure_answers,
)
from derand.metrics._baseline import (
    FEW_ROWS,
    FEW_UNLABELLED,
    Remark,
    describe_costs,
    judge_answers,
    judge_labels,
    remark_one_answer,
)
from derand.metrics._calibration import CalibrationBin
from derand.metrics._certified import ShareAtRadius, average_certified_radius, certified_accuracy, certified_share
from derand.metrics._chance import adjust_chances, compare_paired, compare_shares
from derand.metrics._radii import RadiusFigures, RadiusSummary, summarize_finite_radii, summarize_radii
from derand.metrics._shares import Estimate, EstimateSummary, compute_wilson_interval, subtract_shares, weigh_shares

__all__ = [
    "FEW_ROWS",
    "FEW_UNLABELLED",
    "AnswerMetrics",
    "AnswerSummary",
    "AnswerTally",
    "CalibrationBin",
    "CostSummary",
    "Costs",
    "Estimate",
    "EstimateSummary",
    "RadiusFigures",
    "RadiusSummary",
    "Remark",
    "RowGrades",
    "ShareAtRadius",
    "adjust_chances",
    "average_certified_radius",
    "certified_accuracy",
    "certified_share",
    "compare_paired",
    "compare_shares",
    "compute_wilson_interval",
    "describe_costs",
    "encode_labels",
    "judge_answers",
    "judge_labels",
    "measure_answers",
    "remark_one_answer",
    "subtract_shares",
    "summarize_finite_radii",
    "summarize_radii",
    "weigh_shares",
]
