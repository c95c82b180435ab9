"""Certificates: a pure function of (model, rows, noise, threat).

`classification` and `regression` are the doors: they check the input, resolve the threat and put results together.
`rules` say how an answer is found under noise and what is proven about it, `bounds` hold the mathematics (failure
masses, worst cases, linear models, pairs of classes), `search` looks for changes that do flip an answer, `statements`
prove what holds over a whole domain (reasons of rows, promises about every row), and `results` holds what comes out.
Must not know training, true labels or files.
"""

from typing import TYPE_CHECKING

from derand._core.later import import_later
from derand.certificates.bounds.deduction import CONSTANT as DEDUCTION
from derand.certificates.bounds.majority import vote_share
from derand.certificates.bounds.missing import fill_missing
from derand.certificates.bounds.packing import pack_terms
from derand.certificates.bounds.tree_labels import is_sure_label
from derand.certificates.classification import (
    certify,
    certify_checked,
    check_request,
    distribution,
)
from derand.certificates.labels import expect_margins, find_labels, measure_margins, place_scores, weigh_votes
from derand.certificates.ranking import rank_rows
from derand.certificates.results.certificates import Certificates, Distribution
from derand.certificates.results.flips import ColumnFlips, FlipSummary
from derand.certificates.rules.base import PROOFS, LibraryLabels, TreeSearch, read_budget, refuse_noise_on_trees
from derand.certificates.rules.registry import RULES, find_rule

if TYPE_CHECKING:
    from derand.certificates.regression import (
        certify_interval,
        certify_interval_checked,
        certify_radius,
        certify_radius_checked,
        find_answers,
    )
    from derand.certificates.results.attacks import Attacks, IntervalAttacks, UnsoundError
    from derand.certificates.results.certificates import Intervals, ToleranceRadii
    from derand.certificates.results.statements import (
        REASON_PROOFS,
        Promise,
        Promises,
        Reason,
        Reasons,
        TermSwing,
    )
    from derand.certificates.search.attacks import attack
    from derand.certificates.search.explanation import Change, Explanation, explain
    from derand.certificates.search.interval_attacks import attack_interval
    from derand.certificates.search.witness import Verifier, refine_changes, round_flip
    from derand.certificates.statements.domain import Domain, make_domain, require_sum
    from derand.certificates.statements.proving import prove
    from derand.certificates.statements.reasons import compute_reasons, list_reasons
    from derand.certificates.statements.sets import bound_distance, bound_nonconformity, measure_nonconformity

# what a certificate does not need
_HOMES = {
    "Attacks": "results.attacks",
    "Change": "search.explanation",
    "Explanation": "search.explanation",
    "IntervalAttacks": "results.attacks",
    "Intervals": "results.certificates",
    "ToleranceRadii": "results.certificates",
    "Verifier": "search.witness",
    "UnsoundError": "results.attacks",
    "attack": "search.attacks",
    "attack_interval": "search.interval_attacks",
    "certify_interval": "regression",
    "certify_interval_checked": "regression",
    "certify_radius": "regression",
    "certify_radius_checked": "regression",
    "explain": "search.explanation",
    "find_answers": "regression",
    "refine_changes": "search.witness",
    "round_flip": "search.witness",
    "Domain": "statements.domain",
    "make_domain": "statements.domain",
    "Promise": "results.statements",
    "Promises": "results.statements",
    "Reason": "results.statements",
    "Reasons": "results.statements",
    "REASON_PROOFS": "results.statements",
    "TermSwing": "results.statements",
    "compute_reasons": "statements.reasons",
    "list_reasons": "statements.reasons",
    "prove": "statements.proving",
    "bound_distance": "statements.sets",
    "bound_nonconformity": "statements.sets",
    "measure_nonconformity": "statements.sets",
    "require_sum": "statements.domain",
}
__getattr__ = import_later(__name__, _HOMES)

__all__ = [
    "DEDUCTION",
    "PROOFS",
    "REASON_PROOFS",
    "RULES",
    "Attacks",
    "Certificates",
    "Change",
    "ColumnFlips",
    "Distribution",
    "Domain",
    "Explanation",
    "FlipSummary",
    "IntervalAttacks",
    "Intervals",
    "LibraryLabels",
    "Promise",
    "Promises",
    "Reason",
    "Reasons",
    "TermSwing",
    "ToleranceRadii",
    "TreeSearch",
    "UnsoundError",
    "Verifier",
    "attack",
    "attack_interval",
    "bound_distance",
    "bound_nonconformity",
    "certify",
    "certify_checked",
    "certify_interval",
    "certify_interval_checked",
    "certify_radius",
    "certify_radius_checked",
    "check_request",
    "compute_reasons",
    "distribution",
    "expect_margins",
    "explain",
    "fill_missing",
    "find_answers",
    "find_labels",
    "find_rule",
    "is_sure_label",
    "list_reasons",
    "make_domain",
    "measure_margins",
    "measure_nonconformity",
    "pack_terms",
    "place_scores",
    "prove",
    "rank_rows",
    "read_budget",
    "refine_change",
    "refine_changes",
    "refuse_noise_on_trees",
    "require_sum",
    "round_flip",
    "vote_share",
    "weigh_votes",
]
