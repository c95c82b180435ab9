"""What comes out of an attack: changed rows that flip, beside what is certified. Must not know models or searches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.origin import Origin, take_rows
from derand.certificates.results.base import RowResults
from derand.certificates.results.certificates import Certificates
from derand.noise import Noise
from derand.threat import Threat

_ARRAYS = ("found", "distance", "label", "flipped", "n_categories")


class UnsoundError(RuntimeError):
    """A flip was found inside a set that is certified: certificate, search and `predict` cannot all be right."""


@dataclass(frozen=True, slots=True, eq=False)
class Attacks(RowResults):
    """The nearest change of each row that was found to flip its answer.

    Attributes
    ----------
    found : array of booleans, shape (n_rows,)
        Whether a flip was found. Where none was, nothing is proven by that.
    distance : array of shape (n_rows,)
        Size of the change in the norm and units of the threat, rounded up: an upper bound of the true radius. Infinite
        where nothing was found; for norm 0 the number of numerical columns that change; 0 where limits alone say what
        may change. Categories, and numbers that go missing or appear, have no size.
    rows : array of shape (n_rows, n_features)
        The changed rows, the rows themselves where nothing was found. As the model reads them; from a classifier, in
        the words of its table, so that its `predict` takes them.
    label, flipped : arrays of shape (n_rows,)
        Answer before and after the change; the same where nothing was found.
    n_categories : array of integers, shape (n_rows,)
        How many categories change.
    threat : Threat
        Within which the changes stay.
    classes : array of shape (n_classes,)
    rule : str
        How labels are found: "vote" or "mean".
    noise : Noise or None
        Under which they are found; None for the model as deployed.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    found: BoolArray
    distance: FloatArray
    rows: Any
    label: NDArray[Any]
    flipped: NDArray[Any]
    n_categories: IntArray
    threat: Threat
    classes: NDArray[Any] = field(default_factory=lambda: np.array([0, 1]))
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = (*_ARRAYS, "rows")
    shared: ClassVar[tuple[str, ...]] = ("classes",)

    def __repr__(self) -> str:
        where, how = self._name_ball("in l{}"), self._name_request(with_missing=False)
        return f"<Attacks: {len(self)} rows, {int(self.found.sum())} flipped, {where}, {how}>"

    def with_classes(self, classes: NDArray[Any]) -> Attacks:
        """The same with labels of these classes in the place of 0, 1, ..."""
        return replace(self, label=classes[self.label], flipped=classes[self.flipped], classes=classes)

    def list_columns(self) -> dict[str, NDArray[Any]]:
        """What tables hold: label, found, distance, flipped and n_categories; the changed rows are `rows`."""
        return {name: getattr(self, name) for name in ("label", "found", "distance", "flipped", "n_categories")}

    def find_inside(self, certificates: Certificates) -> BoolArray:
        """Which flips lie inside what is certified of the same rows: never any, unless something is wrong.

        Parameters
        ----------
        certificates : Certificates
            Of the same rows, by the same rule, noise and threat.

        Returns
        -------
        array of booleans, shape (n_rows,)
        """
        self._require_same(certificates, "certificates", ("rule", "noise", "threat"))
        self._require_labels(certificates)
        radius = certificates.radius
        if self.norm is None:
            return np.asarray(self.found & (radius > 0))
        if self.norm == 0:  # so many columns may become anything: the ball is closed
            return np.asarray(self.found & (radius > 0) & (self.distance <= radius))
        return np.asarray(self.found & (self.distance < radius))

    def require_outside(self, certificates: Certificates) -> None:
        """Raise UnsoundError where a flip lies inside what is certified of the same rows.

        Parameters
        ----------
        certificates : Certificates
            Of the same rows, by the same rule, noise and threat.
        """
        inside = np.flatnonzero(self.find_inside(certificates))
        if not inside.size:
            return
        row = int(inside[0])
        changed = np.asarray(take_rows(self.rows, np.array([row])))[0]
        raise UnsoundError(
            f"{inside.size} of {len(self)} rows flip inside what is certified. Row {row}: {self.label[row]!r} becomes "
            f"{self.flipped[row]!r} at distance {float(self.distance[row])!r}, certified "
            f"{float(certificates.radius[row])!r} ({certificates.proof[row]}); rule {self.rule!r}, "
            f"noise {self.noise}, {self.threat}; changed row: {changed.tolist()!r}. Please report this."
        )

    def _require_labels(self, certificates: Certificates) -> None:
        differ = np.flatnonzero(np.asarray(self.label != certificates.label))
        if differ.size:
            row = int(differ[0])
            raise ValueError(
                f"`certificates` must be about the same rows, got the label {certificates.label[row]!r} for row {row}, "
                f"which is {self.label[row]!r} here."
            )
