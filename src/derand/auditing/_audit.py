"""The audit: every claim of some certificates proven again from the model alone, row by row.

Owns `audit`: which rows are looked at, what a certificate claims, and the verdicts. Must not know how a claim is
proven, nor files.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._arrays import FloatArray, Frozen, IntArray, freeze
from derand.auditing._allowed import is_allowed
from derand.auditing._answers import Sums
from derand.auditing._balls import require_flint
from derand.auditing._machine import MachineCheck, check_machine, find_failed
from derand.certificates import Certificates
from derand.model import Model, as_model

PROVEN, NOT_PROVEN = "proven", "not proven"
_HALVINGS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Audit(Frozen):
    """What an audit found, for each row that it looked at.

    Attributes
    ----------
    row : array of integers, shape (n,)
        Which rows of the table, from 0.
    claimed : array of shape (n,)
        The radius that the certificate claims; without a norm infinite where the label is claimed to hold.
    proven : array of shape (n,)
        A radius that the audit proved: the claimed one, or the largest that it could prove instead.
    verdict : array of str, shape (n,)
        "proven", or "not proven" where any claim about the row is not.
    claim : array of str, shape (n,)
        Which claim is not proven: "label", "failure", "radius" or "witness"; empty where all are.
    seconds : array of shape (n,)
        What the proofs of each row took.
    machine : tuple of MachineCheck
        Tests of the arithmetic of this machine.
    n_rows : int
        Of the table.
    """

    row: IntArray
    claimed: FloatArray
    proven: FloatArray
    verdict: NDArray[np.str_]
    claim: NDArray[np.str_]
    seconds: FloatArray
    machine: tuple[MachineCheck, ...]
    n_rows: int

    def __post_init__(self) -> None:
        for name in ("row", "claimed", "proven", "verdict", "claim", "seconds"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name)).view()))

    @property
    def passed(self) -> bool:
        """Whether every claim was proven, on a machine that passed its tests."""
        return bool((self.verdict == PROVEN).all()) and not find_failed(self.machine)

    def __len__(self) -> int:
        return int(self.row.size)

    def __repr__(self) -> str:
        held = int((self.verdict == PROVEN).sum())
        machine = "" if not find_failed(self.machine) else ", on a machine that failed its tests"
        return f"<Audit: {held} of {len(self)} rows proven, out of a table of {self.n_rows}{machine}>"

    def to_pandas(self) -> Any:
        """A pandas frame with the columns row, claimed, proven, verdict, claim and seconds."""
        import pandas as pd

        names = ("row", "claimed", "proven", "verdict", "claim", "seconds")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def audit(
    model: Model,
    X: ArrayLike,
    certificates: Certificates,
    *,
    rows: int | None = 200,
    random_state: int = 0,
) -> Audit:
    """Prove what certificates claim once more, from the model alone, in ball arithmetic and whole numbers.

    It shares no code with the kernels: masses are summed in whole numbers, worst cases are found by subdivision, and
    every comparison holds for all numbers that a ball stands for. It takes milliseconds a row for small models, and up
    to seconds for large ones. Needs python-flint (`derand[audit]`).

    Of several classes a label is proven against every rival, each by whatever proves it. `runner_up` is no claim: it
    says whose duel the certificate's `proof` is about, and against this rival that proof must do.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        The rows that were certified, as the model reads them.
    certificates : Certificates
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
    """
    table = _as_table(as_model(model), X, certificates)
    chosen = choose_rows(len(certificates), rows, random_state)
    found = audit_rows(model, table[chosen], certificates[chosen])
    return replace(found, row=chosen, n_rows=len(certificates))


def audit_rows(
    model: Model, rows: FloatArray, certificates: Certificates, advance: Callable[[int], None] = lambda rows: None
) -> Audit:
    """`audit` of all rows of a table that was checked already; `advance` is called after each one."""
    require_flint()
    machine = tuple(check_machine())
    found: list[tuple[str, float, float]] = []
    sums = Sums(model, certificates.noise, certificates.rule, certificates.threat)
    for at in range(len(certificates)):
        found.append(_audit_row(model, sums, rows[at], certificates, at))
        advance(1)
    claims = [claim for claim, _, _ in found]
    return Audit(
        row=np.arange(len(certificates)),
        claimed=certificates.radius,
        proven=np.array([proven for _, proven, _ in found], dtype=np.float64),
        verdict=np.array([NOT_PROVEN if claim else PROVEN for claim in claims], dtype=np.str_),
        claim=np.array(claims, dtype=np.str_),
        seconds=np.array([seconds for _, _, seconds in found], dtype=np.float64),
        machine=machine,
        n_rows=len(certificates),
    )


def _as_table(model: Model, X: ArrayLike, certificates: Certificates) -> FloatArray:
    if not isinstance(certificates, Certificates):
        raise TypeError(f"`certificates` must be Certificates, as `certify` returns them, got {certificates!r}.")
    table = np.asarray(X, dtype=np.float64)
    if table.shape != (len(certificates), model.n_features):
        raise ValueError(
            f"`X` must hold the {len(certificates)} rows that `certificates` are about, {model.n_features} columns "
            f"each, got shape {table.shape}."
        )
    if np.isinf(table).any():
        raise ValueError("`X` must hold finite numbers, or NaN for missing ones, got infinity.")
    certificates.threat.check_rows(table)
    return table


def choose_rows(n_rows: int, wanted: int | None, random_state: int) -> IntArray:
    """Which rows of a table are looked at: all, or so many at random, in order."""
    if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int | np.integer) or wanted < 1):
        raise ValueError(f"`rows` must be a number of rows, 1 or larger, or None for all, got {wanted!r}.")
    if wanted is None or wanted >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, size=int(wanted), replace=False))


def _audit_row(
    model: Model, sums: Sums, row: FloatArray, certificates: Certificates, at: int
) -> tuple[str, float, float]:
    """Which claim about a row is not proven, if any; a radius that is; and what it took."""
    start = time.perf_counter()
    claims = _RowClaims(model, sums, row, certificates, at)
    failed = claims.find_failed()
    radius = claims.radius if failed != "radius" else claims.find_radius()
    return failed, radius, time.perf_counter() - start


class _RowClaims:
    """What a certificate claims about one row, to be proven."""

    def __init__(self, model: Model, sums: Sums, row: FloatArray, certificates: Certificates, at: int) -> None:
        self._model, self._sums, self._certificates, self._at = model, sums, certificates, at
        self._row = row
        self.radius = float(certificates.radius[at])
        self._label = self._find_code(certificates.label)
        self._runner_up = None if certificates.runner_up is None else self._find_code(certificates.runner_up)
        self._answer = sums.read(row)

    def _find_code(self, labels: NDArray[Any]) -> int:
        """The number of the class that the row has among some labels; -1 where the model has none of that name."""
        codes = np.flatnonzero(self._certificates.classes == labels[self._at])
        return int(codes[0]) if codes.size and codes[0] < self._model.n_classes else -1

    def find_failed(self) -> str:
        """The first claim that is not proven; empty where all are."""
        if self._label < 0:
            return "label"
        holds = self.radius > 0 and self.holds(self.radius)  # which proves the label, too
        if not holds and not self._answer.is_label(self._label):
            return "label"
        if not self._holds_failure():
            return "failure"
        if not holds and self.radius != 0:
            return "radius"
        return "" if self._holds_witness() else "witness"

    def holds(self, radius: float) -> bool:
        """Whether the label is proven to hold within a radius, by the proof that the certificate names."""
        proof = str(self._certificates.proof[self._at])
        return self._answer.holds(self._label, radius, proof, self._runner_up)

    def find_radius(self) -> float:
        """The largest radius that is proven, to four digits or so; 0 where none is."""
        low, high = 0.0, self.radius
        if not math.isfinite(high) or high <= 0:
            return 0.0
        if self._certificates.norm == 0:  # whole numbers of columns
            return float(next((count for count in range(int(high) - 1, 0, -1) if self.holds(count)), 0))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.holds(middle) else (low, middle)
        return low

    def _holds_failure(self) -> bool:
        """Whether the failing mass is no larger than claimed; votes of ensembles and the rule "mean" claim none."""
        failure = float(self._certificates.failure[self._at])
        if math.isnan(failure) or failure >= 1:
            return True
        if self._certificates.rule == "mean":
            return False  # there is none to be proven
        return self._answer.proves_failure(self._label, failure)

    def _holds_witness(self) -> bool:
        """Whether a change that is said to flip the label does so, within the limits."""
        one = self._certificates
        if one.flips is None or not one.flips[self._at]:
            return True
        if one.witness is None:
            return False
        changed = np.asarray(one.witness[self._at], dtype=np.float64)
        if not is_allowed(one.threat, self._model, self._row, changed):
            return False
        return self._sums.read(changed).is_other(self._label)
