"""Peers: models and certificates of other libraries, beside derand's, on the same rows.

Owns the way from a peer's model to derand's, how a peer is asked, and the comparison. Must not know how results are
printed. The peers come with the dependency group `peers` (`pip install --group peers`), imported when they are used.
"""

from __future__ import annotations

from experiments.peers._compare import DATASETS, compare_with_veritas
from experiments.peers._plain_linf import PlainRadii, find_linf_radii
from experiments.peers._trees import compare_limits
from experiments.peers._veritas import PeerRadii, make_addtree, merge_by_feature, search_radii
from experiments.peers._xgboost import convert_stumps, find_edge

__all__ = [
    "DATASETS",
    "PeerRadii",
    "PlainRadii",
    "compare_limits",
    "compare_with_veritas",
    "convert_stumps",
    "find_edge",
    "find_linf_radii",
    "make_addtree",
    "merge_by_feature",
    "search_radii",
]
