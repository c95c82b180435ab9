"""The audit: what certificates claim, proven again from the model alone, row by row.

Owns `audit`: which rows are looked at, what a certificate claims, and the verdicts. Must not know how a claim is
proven, nor files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, Frozen, IntArray, freeze, is_whole
from derand._core.later import import_extra
from derand._core.origin import Frame, refuse_other_rows
from derand._core.progress import count, counting
from derand.auditing._balls import require_flint
from derand.auditing._machine import MachineCheck, check_machine, find_failed
from derand.auditing._row_claims import Claimed, RowClaims, list_checked, list_unchecked, read_claims
from derand.certificates import Certificates, Intervals, ToleranceRadii
from derand.model import Model, as_model

PROVEN, NOT_PROVEN = "proven", "not proven"
_OF_CHANGES = ("radius", "low", "high")
"""Claims of which a smaller radius may be proven."""


class _Found(NamedTuple):
    """Which claim about a row is not proven, if any; the regions that did not tell, where a proof gave up; the claimed
    radius, and one that is proven; what it took."""

    @property
    def verdict(self) -> str:
        """As `Audit.verdict` says."""
        if not self.failed:
            return PROVEN
        return f"{NOT_PROVEN} within {self.n_tried} regions" if self.n_tried else NOT_PROVEN

    failed: str
    n_tried: int
    claimed: float
    proven: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Audit(Frozen):
    """What an audit found, for each row that it looked at.

    Attributes
    ----------
    row : array of integers, shape (n,)
        Which rows of the table, from 0.
    claimed : array of shape (n,)
        The radius that the certificate claims; without a norm infinite where the label is claimed to hold. Of an
        interval, the radius that it is about.
    proven : array of shape (n,)
        A radius that the audit proved: the claimed one, or the largest that it could prove instead.
    verdict : array of str, shape (n,)
        "proven", or "not proven" where any claim about the row is not. Of a model with trees also "not proven within
        10000 regions": the proof gave up.
    claim : array of str, shape (n,)
        Which claim is not proven: "label", "failure", "radius", "proof", "worst", "witness" or "attacked"; of
        numbers "value", "low", "high" or "radius"; empty where all are.
    seconds : array of shape (n,)
        What the proofs of each row took.
    machine : tuple of MachineCheck
        Tests of the arithmetic of this machine.
    n_rows : int
        Of the table.
    checked : tuple of str
        The attributes of the certificates that were proven, or refused.
    not_checked : dict of str to str
        Attributes that were not proven, each with a reason; of `worst`, which is in `checked`, the part that was not.
    """

    row: IntArray
    claimed: FloatArray
    proven: FloatArray
    verdict: NDArray[np.str_]
    claim: NDArray[np.str_]
    seconds: FloatArray
    machine: tuple[MachineCheck, ...]
    n_rows: int
    checked: tuple[str, ...] = ()
    not_checked: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("row", "claimed", "proven", "verdict", "claim", "seconds"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name)).view()))

    @property
    def passed(self) -> bool:
        """Whether all that was checked was proven, on a machine that passed its tests."""
        return bool((self.verdict == PROVEN).all()) and not find_failed(self.machine)

    def __len__(self) -> int:
        return int(self.row.size)

    def __repr__(self) -> str:
        held = int((self.verdict == PROVEN).sum())
        machine = "" if not find_failed(self.machine) else ", on a machine that failed its tests"
        return f"<Audit: {held} of {len(self)} rows proven, out of a table of {self.n_rows}{machine}>"

    def to_pandas(self) -> Frame:
        """A pandas frame with the columns row, claimed, proven, verdict, claim and seconds."""
        pd = import_extra("pandas", None, "A pandas frame of results")
        names = ("row", "claimed", "proven", "verdict", "claim", "seconds")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def audit(
    model: Model,
    X: ArrayLike,
    certificates: Claimed,
    *,
    rows: int | None = 200,
    random_state: int = 0,
) -> Audit:
    """Prove what certificates claim once more, from the model alone, in ball arithmetic and whole numbers.

    It shares no code with the kernels: masses are summed in whole numbers, worst cases are found by subdivision, and
    every comparison holds for all numbers that a ball stands for. It takes milliseconds a row for small models, and up
    to seconds for large ones. Needs python-flint (`derand[audit]`).

    The threat is read again from its fields, by code that certifying does not use. `Audit.checked` says which
    attributes are proven, `Audit.not_checked` which are not looked at.

    Of several classes a label is proven against every rival, each by whatever proves it. `runner_up` is no claim: it
    says whose duel the certificate's `proof` is about, and against this rival that proof must do.

    A model with trees is proven by a tree of splits: halves of all that a row may become, until the leaves that each
    half reaches prove the claim.

    Of numbers the answer is proven, and each end of an interval, or of a tolerance, as two classes that part there.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        The rows that were certified, as the model reads them.
    certificates : Certificates, Intervals or ToleranceRadii
        What is claimed about them.
    rows : int or None
        How many rows to look at: all where there are no more, else as many at random. None is all.
    random_state : int
        Which ones.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from dataclasses import replace
    >>> from derand import AdditiveEnsemble, audit, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> X = [[0.0], [2.0]]
    >>> certificates = certify(model, X, "gaussian:0.25")
    >>> audit(model, X, certificates).verdict.tolist()
    ['proven', 'proven']

    A radius that is 0.1 % too large is found:

    >>> forged = replace(certificates, radius=certificates.radius * 1.001)
    >>> audit(model, X, forged).verdict.tolist()
    ['not proven', 'not proven']

    So is an interval that is too narrow:

    >>> from derand import StepFunction, certify_interval
    >>> from derand.model import Value
    >>> number = AdditiveEnsemble([StepFunction(0, [0.5], [0, 100])], Value(0), n_features=1)
    >>> X = [[0.0], [1.0]]
    >>> found = certify_interval(number, X, "gaussian:0.25", radius=0.3, rule="mean")
    >>> audit(number, X, found).verdict.tolist()
    ['proven', 'proven']
    >>> audit(number, X, replace(found, low=found.low + 0.001 * found.width)).claim.tolist()
    ['low', 'low']
    """
    table = _as_table(as_model(model), X, certificates)
    chosen = choose_rows(len(certificates), rows, random_state)
    found = audit_rows(model, table[chosen], certificates[chosen])
    return replace(found, row=chosen, n_rows=len(certificates))


def audit_rows(
    model: Model, rows: FloatArray, certificates: Claimed, advance: Callable[[int], None] = lambda rows: None
) -> Audit:
    """`audit` of all rows of a table that was checked already; `advance` is called after each one."""
    require_flint()
    machine = tuple(check_machine())
    found: list[_Found] = []
    read = read_claims(model, rows, certificates)
    with counting("auditing", len(certificates)):
        for at in range(len(certificates)):
            found.append(_audit_row(read, at))
            advance(1)
            count(at + 1, len(certificates))
    return Audit(
        row=np.arange(len(certificates)),
        claimed=np.array([one.claimed for one in found], dtype=np.float64),
        proven=np.array([one.proven for one in found], dtype=np.float64),
        verdict=np.array([one.verdict for one in found], dtype=np.str_),
        claim=np.array([one.failed for one in found], dtype=np.str_),
        seconds=np.array([one.seconds for one in found], dtype=np.float64),
        machine=machine,
        n_rows=len(certificates),
        checked=list_checked(model, certificates),
        not_checked=list_unchecked(model, certificates),
    )


def _as_table(model: Model, X: ArrayLike, certificates: Claimed) -> FloatArray:
    if not isinstance(certificates, Certificates | Intervals | ToleranceRadii):
        raise TypeError(
            "`certificates` must be Certificates, Intervals or ToleranceRadii, as `certify`, `certify_interval` and "
            f"`certify_radius` return them, got {certificates!r}."
        )
    if isinstance(certificates, Certificates) != (model.n_classes > 0):
        answers, others = ("a label", "numbers") if model.n_classes else ("a number", "labels")
        raise ValueError(f"`certificates` must be about this model, whose answer is {answers}, got those of {others}.")
    refuse_other_rows(X, certificates, "X")
    table = np.asarray(X, dtype=np.float64)
    if table.shape != (len(certificates), model.n_features):
        raise ValueError(
            f"`X` must hold the {len(certificates)} rows that `certificates` are about, {model.n_features} columns "
            f"each, got shape {table.shape}."
        )
    if np.isinf(table).any():
        raise ValueError("`X` must hold finite numbers, or NaN for missing ones, got infinity.")
    return table


def choose_rows(n_rows: int, wanted: int | None, random_state: int) -> IntArray:
    """Which rows of a table are looked at: all, or so many at random, in order."""
    if wanted is not None and (not is_whole(wanted) or wanted < 1):
        raise ValueError(f"`rows` must be a number of rows, 1 or larger, or None for all, got {wanted!r}.")
    if wanted is None or wanted >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, size=int(wanted), replace=False))


def _audit_row(read: Callable[[int], RowClaims], at: int) -> _Found:
    start = time.perf_counter()
    claims = read(at)
    failed, n_tried = claims.name_unproven(), claims.n_tried
    radius = claims.search_radius() if failed in _OF_CHANGES else claims.radius
    return _Found(failed, n_tried, claims.radius, radius, time.perf_counter() - start)
