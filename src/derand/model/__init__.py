"""Models: immutable sums of terms on an integer grid, decisions on them, and votes of such sums.

Owns terms, decisions, the additive ensemble, the weighted vote, and the one door where real numbers become integers.
Must not know noise, kernels or training. Other rooms ask a model or a term for facts (`members`, `weights`,
`contrasts`, `axes`, `codes`, `score_range`, ...) and never for its class.
"""

from derand.model._additive import AdditiveEnsemble, Model, as_model, is_model
from derand.model._base import Contrast
from derand.model._coarsen import coarsen, find_coarse_step
from derand.model._decision import DECISIONS, Argmax, Decision, Threshold, Value
from derand.model._grid import MAX_CELLS, GridTerm, join_terms
from derand.model._linear import LinearTerm
from derand.model._moving import move_threshold
from derand.model._quantize import CategoryShape, GridShape, Line, Shape, Shapes, TreeShape, read_shapes
from derand.model._terms import MAX_SCORE, TERMS, Axis, CategoryTable, Score, Slope, StepFunction, Term
from derand.model._trees import TreeTerm, as_trees
from derand.model._vote import WeightedVote

__all__ = [
    "DECISIONS",
    "MAX_CELLS",
    "MAX_SCORE",
    "TERMS",
    "AdditiveEnsemble",
    "Argmax",
    "Axis",
    "CategoryShape",
    "CategoryTable",
    "Contrast",
    "Decision",
    "GridShape",
    "GridTerm",
    "Line",
    "LinearTerm",
    "Model",
    "Score",
    "Shape",
    "Shapes",
    "Slope",
    "StepFunction",
    "Term",
    "Threshold",
    "TreeShape",
    "TreeTerm",
    "Value",
    "WeightedVote",
    "as_model",
    "as_trees",
    "coarsen",
    "find_coarse_step",
    "is_model",
    "join_terms",
    "move_threshold",
    "read_shapes",
]
