"""The registry of rules: `certify(..., rule=NAME)` and the property tests find a rule by its row here."""

from __future__ import annotations

from derand.certificates.rules.base import Rule
from derand.certificates.rules.mean import ByMean
from derand.certificates.rules.vote import ByVote

RULES: dict[str, Rule] = {"vote": ByVote(), "mean": ByMean()}


def find_rule(name: str) -> Rule:
    """The rule of that name."""
    if name not in RULES:
        raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {name!r}.")
    return RULES[name]
