"""A domain of rows: which values each column may take, whatever the row.

Owns the domain, the values that stand for all cells of a term in it, and which models can be asked. Must not know
scores, nor what is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, Frozen, freeze
from derand.certificates.kinds import Majority, kind_of
from derand.certificates.search.worst_positions import list_outside
from derand.model import AdditiveEnsemble, Model, Term
from derand.noise import Noise


@dataclass(frozen=True, slots=True, eq=False)
class Domain(Frozen):
    """Which values every column may take.

    Attributes
    ----------
    low, high : arrays of shape (n_features,)
        The ends of each number, both included; infinite for any number.
    whole : array of booleans, shape (n_features,)
        Numbers that are whole.
    codes : mapping of column to array
        The codes that each category may have; -1 or another one that no table holds for a category that training did
        not see, NaN for a missing one.
    missing : frozenset of int
        Numbers that may be missing.
    """

    low: FloatArray
    high: FloatArray
    whole: BoolArray
    codes: Mapping[int, FloatArray]
    missing: frozenset[int]

    def list_values(self, term: Term) -> list[FloatArray]:
        """For each column of a term, values that stand for all cells of the domain: one of each cell."""
        if not term.axes:
            return [self.codes[feature] for feature in term.features]
        values = []
        for feature, edges in term.axes:
            own = self.list_numbers(feature, edges)
            takes_missing = feature in self.missing and feature in term.missing_features
            values.append(np.append(own, np.nan) if takes_missing else own)
        return values

    def list_numbers(self, feature: int, edges: FloatArray) -> FloatArray:
        """A number of each cell between edges that the domain reaches."""
        low, high = float(self.low[feature]), float(self.high[feature])
        starts, stops = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
        first = np.maximum(starts, low)
        first = np.ceil(first) if self.whole[feature] else first
        reached = (first < stops) & (first <= high)
        # of a cell without a lower end the whole number below its upper one, where that is a number
        below = np.minimum(np.where(np.isfinite(stops), np.ceil(stops) - 1, 0.0), high)
        below = np.where(below < stops, below, np.nextafter(stops, -np.inf))
        return np.asarray(np.where(np.isfinite(first), first, below)[reached])

    def holds(self, rows: FloatArray, term: Term) -> bool:
        """Whether all of these rows lie in the domain, by the columns of a term."""
        for feature in term.features:
            own = rows[:, feature]
            if feature in self.codes:
                codes = self.codes[feature]
                known = np.isin(own, codes[~np.isnan(codes)]) | (np.isnan(own) & np.isnan(codes).any())
            else:
                known = (own >= self.low[feature]) & (own <= self.high[feature])
                known &= ~self.whole[feature] | (own == np.rint(own))
                known |= np.isnan(own) & (feature in self.missing)
            if not known.all():
                return False
        return True

    def with_column(self, feature: int, low: float, high: float) -> Domain:
        """The same with other ends of a number."""
        lows, highs = self.low.copy(), self.high.copy()
        lows[feature], highs[feature] = low, high
        return replace(self, low=freeze(lows), high=freeze(highs))

    def choose_row(self) -> FloatArray:
        """Some row of the domain: whole numbers near 0 or an end, first codes."""
        with np.errstate(invalid="ignore"):
            row = np.clip(np.zeros(self.low.size), self.low, self.high)
        row = np.where(self.whole, np.ceil(row), row)
        for feature, codes in self.codes.items():
            row[feature] = codes[0]
        return row


def make_domain(
    model: Model,
    ranges: Mapping[int, tuple[float, float]] | None = None,
    codes: Mapping[int, FloatArray] | None = None,
    *,
    whole: Iterable[int] = (),
    unseen: bool = False,
    missing: bool = False,
) -> Domain:
    """A domain for a model: ranges of numbers, codes of categories; what is not named is any number or known category.

    `whole`: columns of whole numbers; `unseen`: whether categories that training did not see belong to it; `missing`:
    whether missing values do, wherever the model takes them.
    """
    n_features = model.n_features
    low, high, is_whole = np.full(n_features, -np.inf), np.full(n_features, np.inf), np.zeros(n_features, dtype=bool)
    is_whole[list(whole)] = True
    for feature, (least, most) in (ranges or {}).items():
        low[feature], high[feature] = least, most
    every = {}
    for feature in model.categorical_features:
        given = (codes or {}).get(feature)
        known = np.unique(np.concatenate([_list_codes(model, feature), *([] if given is None else [given])]))
        own = _list_codes(model, feature) if given is None else np.asarray(given, dtype=np.float64)
        more = [*(list_outside(known)[1:] if unseen or not own.size else []), *([np.nan] if missing else [])]
        every[feature] = freeze(np.concatenate([own, more]))
    empty = np.flatnonzero(is_whole & (np.ceil(low) > np.floor(high)))
    if empty.size:
        at = int(empty[0])
        raise ValueError(f"`domain` must hold a whole number for column {at}, got [{low[at]:g}, {high[at]:g}].")
    may_miss = frozenset(model.missing_features) if missing else frozenset[int]()
    return Domain(freeze(low), freeze(high), freeze(is_whole), every, may_miss)


def _list_codes(model: Model, feature: int) -> FloatArray:
    every = (term.category_codes for term in model.member_terms)
    own = [codes[feature] for codes in every if feature in codes]
    return np.unique(np.concatenate(own)) if own else np.empty(0)


def require_sum(model: Model, noise: Noise | None, rule: str) -> AdditiveEnsemble:
    """The sum that decides, of a model about which statements over a domain can be proven; others are refused."""
    if isinstance(kind_of(model), Majority):
        raise ValueError(
            "Reasons and promises are for one sum, got a WeightedVote: ask each of its members, or train an "
            "AdditiveClassifier."
        )
    if noise is not None and rule == "vote":
        raise ValueError(
            "Reasons and promises need the rule 'mean', got 'vote': the vote of noisy copies has no sum over columns. "
            "Use rule='mean', or noise='none' for the model as deployed."
        )
    return model.members[0]
