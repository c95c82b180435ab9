"""What models are described by: the contrast, the one-output sum that rules and kernels see, and facts that are kept.

Must not know models, noise or kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from derand.model._terms import Term


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """One sum whose sign decides: its class is 1 iff the scores of its terms add up to more than the threshold.

    Attributes
    ----------
    terms : tuple of Term
        Of one output each; no feature is in two of them.
    threshold : int
    score_error : float
        By how much, at most, the score of the model that is meant may differ; a certificate covers it.
    n_features : int
        Columns of the rows.
    """

    terms: tuple[Term, ...]
    threshold: int
    score_error: float
    n_features: int


Fact = TypeVar("Fact")


class Once(Generic[Fact]):
    """A property that is found once and kept beside the model, which never changes: asking all terms takes a while."""

    def __init__(self, find: Callable[[Any], Fact]) -> None:
        self._find, self._known = find, WeakKeyDictionary[Any, Fact]()
        self.__doc__ = find.__doc__

    def __get__(self, model: object, owner: type) -> Fact:
        if model is None:
            return self  # type: ignore[return-value] # asked of the class, as documentation does
        if model not in self._known:
            self._known[model] = self._find(model)
        return self._known[model]
