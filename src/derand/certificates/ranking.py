"""Rows ranked by what speaks for class 1, as answers were found. Nothing is proven by it; must not know true labels."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates.classification import certify_checked
from derand.certificates.kinds import Majority, kind_of
from derand.certificates.labels import measure_margins, place_scores
from derand.certificates.results.certificates import Certificates
from derand.certificates.rules.base import make_query
from derand.certificates.rules.registry import find_rule
from derand.model import Model
from derand.threat import Threat


def rank_rows(
    model: Model, rows: FloatArray, certificates: Certificates, *, n_jobs: int | None = None
) -> FloatArray | None:
    """What speaks for class 1 in each row, by the rule and the noise of its certificate; None for several classes.

    By the rule "mean" the distance of the expected score from the threshold; of a vote the logarithm of its failure
    mass, with the sign of the answer; of a vote of ensembles the weight of the members ahead.
    """
    rule, noise, threat = certificates.rule, certificates.noise, certificates.threat
    if model.n_classes > 2:
        return None
    kind = kind_of(model)
    if rule == "mean":
        return (
            place_scores(model, rows, noise)
            if isinstance(kind, Majority)
            else measure_margins(kind.ensemble, rows, noise)
        )
    if isinstance(kind, Majority):
        return kind.share_votes(rows, make_query(model, rows.shape[0], noise, find_rule(rule), n_jobs=n_jobs))
    assert noise is not None  # a vote has one
    is_one, log_failure = certificates.label == certificates.classes[1], certificates.log_failure
    if threat.l0 or threat.missing_budget:  # that is the mass after a change: find that of the row as it is
        plain = Threat(norm=noise.norm, units=noise.units)
        (found,) = certify_checked(model, rows, noise, [plain], rule=rule, proof="paper", n_jobs=n_jobs)
        log_failure = found.log_failure
    return np.where(is_one, -log_failure, log_failure)
