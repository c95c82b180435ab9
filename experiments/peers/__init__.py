"""Peers: models and certificates of other libraries, beside derand's, on the same rows.

Owns the way from a peer's model to derand's, how a peer is asked, and the comparison. Must not know how results are
printed. The peers come with the extra `peers` (`pip install '.[peers]'`) and are imported when they are used.
"""

from __future__ import annotations

from experiments.peers._plain_linf import PlainRadii, find_linf_radii
from experiments.peers._xgboost import convert_stumps, find_edge

__all__ = ["PlainRadii", "convert_stumps", "find_edge", "find_linf_radii"]
