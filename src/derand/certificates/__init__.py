"""Certificates: a pure function of (model, rows, noise, threat).

Owns `certify` (label, failure mass and radius of each row) and `distribution` (the exact law of the score). A row's
way: `_run` checks the input, `_problem` turns each member of the model into arrays, a rule of RULES bounds it
(`_by_vote`, `_by_mean`), `_duels` lets several classes meet two by two, `_votes` combines the members of a vote,
`_results` holds what comes out. Rules ask `_worst` how far a row can be moved before its expected score can fall to a
threshold; `_curves` draws the terms under noise for it, `_deduction` leads from the mean to the vote, `_gaps` places
missing numbers where nothing moves them. `_attack` searches from the other side, for changes that do flip a label, and
`_flips` holds what it finds. Numbers as answers have a door of their own, `_intervals`: `_number` says what is asked of
a rule, `_number_by_vote` and `_number_by_mean` answer, `_interval_results` holds what comes out; `_attack_interval`
searches from the other side, and `_answer_attacks` holds what it finds. Must not know training, true labels or files.
"""

from typing import TYPE_CHECKING

from derand._later import import_later
from derand.certificates._deduction import CONSTANT as DEDUCTION
from derand.certificates._gaps import fill_gaps
from derand.certificates._labels import expect_margins, find_labels, measure_margins, place_scores, weigh_votes
from derand.certificates._problem import PackedTerms, Problem, pack_terms
from derand.certificates._ranks import rank_rows
from derand.certificates._results import Certificates, Distribution
from derand.certificates._rule import PROOFS, Bounds, Engine, Rule
from derand.certificates._rules import RULES, find_rule
from derand.certificates._run import (
    certify,
    certify_checked,
    check_request,
    distribution,
)
from derand.certificates._votes import vote_share

if TYPE_CHECKING:
    from derand.certificates._answer_attacks import IntervalAttacks
    from derand.certificates._attack import attack
    from derand.certificates._attack_interval import attack_interval
    from derand.certificates._explain import Change, Explanation, explain
    from derand.certificates._flips import Attacks, UnsoundError
    from derand.certificates._interval_results import Intervals, ToleranceRadii
    from derand.certificates._intervals import (
        certify_interval,
        certify_interval_checked,
        certify_radius,
        certify_radius_checked,
        find_answers,
    )

# what a certificate does not need
_HOMES = {
    "Attacks": "_flips",
    "Change": "_explain",
    "Explanation": "_explain",
    "IntervalAttacks": "_answer_attacks",
    "Intervals": "_interval_results",
    "ToleranceRadii": "_interval_results",
    "UnsoundError": "_flips",
    "attack": "_attack",
    "attack_interval": "_attack_interval",
    "certify_interval": "_intervals",
    "certify_interval_checked": "_intervals",
    "certify_radius": "_intervals",
    "certify_radius_checked": "_intervals",
    "explain": "_explain",
    "find_answers": "_intervals",
}
__getattr__ = import_later(__name__, _HOMES)

__all__ = [
    "DEDUCTION",
    "PROOFS",
    "RULES",
    "Attacks",
    "Bounds",
    "Certificates",
    "Change",
    "Distribution",
    "Engine",
    "Explanation",
    "IntervalAttacks",
    "Intervals",
    "PackedTerms",
    "Problem",
    "Rule",
    "ToleranceRadii",
    "UnsoundError",
    "attack",
    "attack_interval",
    "certify",
    "certify_checked",
    "certify_interval",
    "certify_interval_checked",
    "certify_radius",
    "certify_radius_checked",
    "check_request",
    "distribution",
    "expect_margins",
    "explain",
    "fill_gaps",
    "find_answers",
    "find_labels",
    "find_rule",
    "measure_margins",
    "pack_terms",
    "place_scores",
    "rank_rows",
    "vote_share",
    "weigh_votes",
]
