"""What certificates claim about one row, and which of it is not proven: labels, intervals and tolerance radii.

Owns which claims there are, in which order they are looked at, and the search for a radius that is proven instead. Must
not know how a claim is proven, nor tables or files.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand.auditing._linear import LinearNumberProof, read_linear_label
from derand.auditing._predictions import LabelProof, NumberProof, Sums
from derand.auditing._threat import AllowedChanges
from derand.auditing.trees import TreeNumberProof, read_tree_labels, read_tree_numbers
from derand.certificates import Certificates, Intervals, ToleranceRadii
from derand.model import Model
from derand.noise import Noise

_HALVINGS = 12
Claimed = Certificates | Intervals | ToleranceRadii
_Number = NumberProof | LinearNumberProof | TreeNumberProof


class RowClaims(ABC):
    """What is claimed about one row, to be proven; the radius is infinite where limits alone say what may change."""

    def __init__(self, radius: float, norm: float | None) -> None:
        self.radius, self._norm = radius, norm

    @property
    @abstractmethod
    def n_tried(self) -> int:
        """Regions in which a claim was not decided, where a proof gave up; else 0."""

    @abstractmethod
    def name_unproven(self) -> str:
        """The first claim that is not proven; empty where all are."""

    @abstractmethod
    def holds(self, radius: float) -> bool:
        """Whether what is claimed of changes is proven within a radius."""

    def search_radius(self) -> float:
        """The largest radius that is proven, to four digits or so; 0 where none is."""
        low, high = 0.0, self.radius
        if not math.isfinite(high) or high <= 0:
            return 0.0
        if self._norm == 0:  # whole numbers of columns
            return float(next((count for count in range(math.ceil(high) - 1, 0, -1) if self.holds(count)), 0))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.holds(middle) else (low, middle)
        return low


def read_claims(model: Model, rows: FloatArray, claimed: Claimed) -> Callable[[int], RowClaims]:
    """What is claimed about a row, given its index in the table."""
    threat = AllowedChanges.read(claimed.threat, model)
    threat.require_inside(rows)
    asked = model, claimed.noise, claimed.rule, threat
    if isinstance(claimed, Certificates):
        read = _choose_label_reader(*asked)
        return lambda at: LabelClaims(model, read, rows[at], claimed, threat, at)
    prove = _choose_number_reader(*asked)
    if isinstance(claimed, Intervals):
        return lambda at: IntervalClaims(prove(rows[at]), claimed, threat, at)
    return lambda at: ToleranceClaims(prove(rows[at]), claimed, threat, at)


def _choose_label_reader(
    model: Model, noise: Noise | None, rule: str, threat: AllowedChanges
) -> Callable[[FloatArray], LabelProof]:
    """What reads what can be proven about the label of a row."""
    if model.is_linear:
        return partial(read_linear_label, model, noise if rule == "vote" else None, threat)
    if model.has_trees:
        return read_tree_labels(model, noise, rule, threat)
    return Sums(model, noise, rule, threat).read_label


def _choose_number_reader(
    model: Model, noise: Noise | None, rule: str, threat: AllowedChanges
) -> Callable[[FloatArray], _Number]:
    """What reads what can be proven about the number that is predicted of a row."""
    if model.is_linear:
        return partial(LinearNumberProof, model, threat)
    if model.has_trees:
        return read_tree_numbers(model, noise, rule, threat)
    return Sums(model, noise, rule, threat).read_number


def list_checked(model: Model, claimed: Claimed) -> tuple[str, ...]:
    """The attributes of some certificates that an audit proves, or refuses."""
    if isinstance(claimed, Intervals):
        return ("value", "low", "high")
    if isinstance(claimed, ToleranceRadii):
        return ("value", "radius")
    optional = {"worst": claimed.worst, "witness": claimed.flips, "attacked": claimed.attacked}
    found = (name for name, values in optional.items() if values is not None)
    left_out = {*list_unchecked(model, claimed)} - {"worst"}  # of which the bound is proven
    always = ("label", "failure", "log_failure", "radius", "proof")
    return (*(name for name in always if name not in left_out), *found)


def list_unchecked(model: Model, claimed: Claimed) -> dict[str, str]:
    """The attributes, or what they say beside what is proven, that an audit does not look at, each with a reason."""
    if isinstance(claimed, Intervals):
        return {}
    if isinstance(claimed, ToleranceRadii):
        return {"proof": "any proof counts"} if claimed.proof.size else {}
    found = {}
    if claimed.runner_up is not None:
        found["runner_up"] = "only says against which class `proof` counts"
    if claimed.path is not None:
        found["path"] = "how the failure mass was computed"
    if not _has_failure(model, claimed):
        found |= dict.fromkeys(("failure", "log_failure"), "blank: there is no failure mass")
    if model.is_linear or model.weights is not None:
        found["proof"] = "which of the proofs it was"
    elif claimed.rule == "mean":
        found["proof"] = "whether a worst case is exact"
    if claimed.is_exact is not None:
        found["is_exact"] = "whether no larger radius is true"
    if claimed.is_tie is not None:
        found["is_tie"] = "why nothing is claimed"
    if claimed.flipped is not None:
        found |= {"flipped": "which other class a witness gets", "changes": "counts for `summary`"}
    if claimed.worst is not None:
        found["worst"] = "whether the bound is reached"
    return found


def _has_failure(model: Model, certificates: Certificates) -> bool:
    """Whether there is a failing mass: votes of ensembles and the rule "mean" have none."""
    return certificates.rule == "vote" and model.weights is None


def _is_value(prediction: _Number, value: float) -> bool:
    return math.isfinite(value) and prediction.is_value(value)


class IntervalClaims(RowClaims):
    """An answer, and the ends that it does not leave."""

    def __init__(self, prediction: _Number, intervals: Intervals, threat: AllowedChanges, at: int) -> None:
        is_open = intervals.radius is None or threat.norm is None  # limits alone: no radius makes them narrower
        super().__init__(math.inf if is_open else float(intervals.radius or 0), threat.norm)
        self._prediction, self._value = prediction, float(intervals.value[at])
        self._ends = float(intervals.high[at]), float(intervals.low[at])

    @property
    def n_tried(self) -> int:
        """As its proofs say."""
        return self._prediction.n_tried

    def name_unproven(self) -> str:
        """The first of "value", "low" and "high" that is not proven; a value outside its interval is none."""
        high, low = self._ends
        if not low <= self._value <= high or not _is_value(self._prediction, self._value):
            return "value"
        return next((name for name, label in (("low", 1), ("high", 0)) if not self._holds_end(label, self.radius)), "")

    def holds(self, radius: float) -> bool:
        """Whether both ends are proven to hold within a radius."""
        return self._holds_end(1, radius) and self._holds_end(0, radius)

    def _holds_end(self, label: int, radius: float) -> bool:
        end = self._ends[label]
        if not math.isfinite(end):
            return end == (-math.inf if label else math.inf)
        return self._prediction.stays_beyond(label, end, radius)


class ToleranceClaims(RowClaims):
    """An answer, and the radius within which it moves by the tolerance at most."""

    def __init__(self, prediction: _Number, radii: ToleranceRadii, threat: AllowedChanges, at: int) -> None:
        super().__init__(float(radii.radius[at]), threat.norm)
        self._prediction, self._value, self._tolerance = prediction, float(radii.value[at]), radii.tolerance

    @property
    def n_tried(self) -> int:
        """As its proofs say."""
        return self._prediction.n_tried

    def name_unproven(self) -> str:
        """The first of "value" and "radius" that is not proven."""
        if not _is_value(self._prediction, self._value):
            return "value"
        return "" if self.radius == 0 or (self.radius > 0 and self.holds(self.radius)) else "radius"

    def holds(self, radius: float) -> bool:
        """Whether the answer is proven to stay within the tolerance."""
        if not (math.isfinite(self._value) and 0 <= self._tolerance < math.inf):
            return False
        return self._prediction.stays_within(self._value, self._tolerance, radius)


class LabelClaims(RowClaims):
    """A label, its failing mass, its radius with the proof that is named, the worst score and a witness."""

    def __init__(
        self,
        model: Model,
        read: Callable[[FloatArray], LabelProof],
        row: FloatArray,
        certificates: Certificates,
        threat: AllowedChanges,
        at: int,
    ) -> None:
        super().__init__(float(certificates.radius[at]), threat.norm)
        self._model, self._read, self._certificates, self._at = model, read, certificates, at
        self._row, self._threat = row, threat
        self._proof = str(certificates.proof[at])
        self._label = self._read_code(certificates.label)
        self._runner_up = None if certificates.runner_up is None else self._read_code(certificates.runner_up)
        self._prediction = read(row)

    def _read_code(self, labels: NDArray[np.generic]) -> int:
        """The number of the class that the row has among some labels; -1 where the model has none of that name."""
        codes = np.flatnonzero(self._certificates.classes == labels[self._at])
        return int(codes[0]) if codes.size and codes[0] < self._model.n_classes else -1

    @property
    def n_tried(self) -> int:
        """As its proofs say."""
        return self._prediction.n_tried

    def name_unproven(self) -> str:
        """The first claim that is not proven; empty where all are."""
        if self._label < 0:
            return "label"
        holds = self.radius > 0 and self.holds(self.radius)  # which proves the label, too
        checks = {
            "label": lambda: holds or self._prediction.is_label(self._label),
            "failure": self._holds_failure,
            "radius": lambda: holds or self.radius == 0 or self._holds_by_another(),
            "proof": lambda: (holds or self.radius == 0) and self._names_proof(),
            "worst": self._holds_worst,
            "witness": self._holds_witness,
            "attacked": self._holds_attacked,
        }
        return next((name for name, is_proven in checks.items() if not is_proven()), "")

    def holds(self, radius: float) -> bool:
        """Whether the label is proven to hold within a radius, by the proof that the certificate names."""
        return self._prediction.holds(self._label, radius, self._proof, self._runner_up)

    def _holds_by_another(self) -> bool:
        """Whether the radius is proven, though not by the proof that the certificate names."""
        return self.radius > 0 and self._prediction.holds(self._label, self.radius, "", self._runner_up)

    def _names_proof(self) -> bool:
        """Whether the named proof is one that the rule has; "none" is named where nothing is certified, and only there.

        Whether it proves the radius is asked by `holds`.
        """
        if self.radius == 0 or self._proof == "none":
            return self.radius == 0 and self._proof == "none"
        if self._certificates.rule == "mean":
            return self._proof in ("dual", "exact")
        return self._proof in ("paper", "exact" if self._model.is_linear else "dual")

    def _holds_failure(self) -> bool:
        """Whether the failing mass is no larger than claimed, or blank where there is none."""
        failure, log_failure = (
            float(claimed[self._at]) for claimed in (self._certificates.failure, self._certificates.log_failure)
        )
        if not _has_failure(self._model, self._certificates):
            return math.isnan(failure) and math.isnan(log_failure)
        if failure >= 1 and log_failure >= 0:
            return True
        return self._prediction.proves_failure(self._label, failure, log_failure)

    def _holds_worst(self) -> bool:
        """Whether no change within limits takes the expected score beyond the worst one that is claimed, if any."""
        if self._certificates.worst is None:
            return True
        worst = float(self._certificates.worst[self._at])
        return self._threat.norm is None and self._prediction.stays_beyond(self._label, worst)

    def _holds_witness(self) -> bool:
        """Whether a change that is said to flip the label does so, within the limits."""
        one = self._certificates
        return one.flips is None or not one.flips[self._at] or self._flips(one.witness)

    def _holds_attacked(self) -> bool:
        """Whether the witness flips, too, where it is said how far away that is; and lies no farther."""
        one = self._certificates
        distance = math.inf if one.attacked is None else float(one.attacked[self._at])
        if distance == math.inf:
            return True
        if not distance >= 0 or not self._flips(one.witness):
            return False
        assert one.witness is not None  # nothing else flips
        return self._threat.is_near(self._model, self._row, one.witness[self._at], distance)

    def _flips(self, witnesses: FloatArray | None) -> bool:
        """Whether the row among some changed rows is allowed, and gets another label."""
        if witnesses is None:
            return False
        changed = np.asarray(witnesses[self._at], dtype=np.float64)
        return self._threat.allows(self._model, self._row, changed) and self._read(changed).is_other(self._label)
