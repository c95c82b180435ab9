"""Certificates: a pure function of (model, rows, noise, threat).

Owns `certify` (label, failure mass and radius of each row) and `distribution` (the exact law of the score). A row's
way: `_run` checks the input, `_problem` turns each member of the model into arrays, a rule of RULES bounds it
(`_by_vote`), `_votes` combines the members of a vote, `_results` holds what comes out. `_attack` searches from the
other side, for changes that do flip a label. Must not know training, true labels or files.
"""

from derand.certificates._attack import Flip, find_flip
from derand.certificates._problem import PackedTerms, Problem, pack_terms
from derand.certificates._results import Certificates, Distribution
from derand.certificates._rule import Bounds, Engine, Rule
from derand.certificates._rules import RULES
from derand.certificates._run import certify, certify_checked, distribution
from derand.certificates._votes import vote_share

__all__ = [
    "RULES",
    "Bounds",
    "Certificates",
    "Distribution",
    "Engine",
    "Flip",
    "PackedTerms",
    "Problem",
    "Rule",
    "certify",
    "certify_checked",
    "distribution",
    "find_flip",
    "pack_terms",
    "vote_share",
]
