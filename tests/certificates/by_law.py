"""`certify` by the paper's proof alone: for tests of the law of the score and of what follows from it."""

from __future__ import annotations

from functools import partial

from derand.certificates import certify as certify_by_best_proof

certify = partial(certify_by_best_proof, proof="paper")
