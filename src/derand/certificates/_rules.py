"""The registry of rules: `certify(..., rule=NAME)` and the property tests find a rule by its row here."""

from __future__ import annotations

from derand.certificates._by_mean import ByMean
from derand.certificates._by_vote import ByVote
from derand.certificates._rule import Rule

RULES: dict[str, Rule] = {"vote": ByVote(), "mean": ByMean()}


def find_rule(name: str) -> Rule:
    """The rule of that name."""
    if name not in RULES:
        raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}, got {name!r}.")
    return RULES[name]
