"""Results of a file in short, added up batch by batch.

Owns counts and shares over all batches. Must not know where batches come from, nor how results are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates
from derand.frames import Labels
from derand.metrics import ShareAtRadius, average_certified_radius, certified_accuracy


class TallySummary(TypedDict):
    """Results of all batches in short; accuracies where there is a target, radii where there is a ball."""

    rows: int
    certified_rows: int
    proofs: dict[str, int]
    """How many rows are certified by which proof; "none" where nothing is."""
    rows_of_infinite_radius: NotRequired[int]
    verdicts: NotRequired[dict[str, int]]
    """Where limits alone say what may change: how many rows hold, flip, or are undecided."""
    accuracy: NotRequired[float]
    certified_accuracy: NotRequired[list[ShareAtRadius]]
    average_certified_radius: NotRequired[float]
    proven_accuracy: NotRequired[float]
    """Where limits alone say what may change: right, and proven to hold within them."""


class Tally:
    """Results of all batches so far."""

    def __init__(self, radii: Sequence[float]) -> None:
        self.radii = list(radii)
        self.n_rows = self.n_certified = self.n_infinite = self.n_labelled = self.n_correct = self.n_proven = 0
        self.held = np.zeros(len(self.radii))
        self.radius_of_correct = 0.0
        self.proofs: Counter[str] = Counter()
        self.verdicts: Counter[str] | None = None
        """None where there are radii."""
        self.unseen: Counter[str] = Counter()
        self.empty: set[str] | None = None
        """Columns that were empty in every batch; None before the first."""

    def add(
        self, certificates: Certificates, labels: Labels | None, unseen: Mapping[str, int], empty: set[str]
    ) -> None:
        self.unseen.update(unseen)
        self.empty = empty if self.empty is None else self.empty & empty
        self.n_rows += len(certificates)
        self.n_certified += int((certificates.radius > 0).sum())
        self.n_infinite += int(np.isinf(certificates.radius).sum())
        self.proofs.update(_count(certificates.proof))
        if certificates.verdict is not None:
            self.verdicts = (self.verdicts or Counter()) + _count(certificates.verdict)
        if labels is None:
            return
        correct = labels == certificates.label
        self.n_labelled += len(labels)
        self.n_correct += int(correct.sum())
        self.n_proven += int((correct & (certificates.radius > 0)).sum())
        if certificates.verdict is None:
            self.held += np.rint(certified_accuracy(labels, certificates, self.radii) * len(labels))
            self.radius_of_correct += average_certified_radius(labels, certificates) * len(labels)

    def summarize(self) -> TallySummary:
        result: TallySummary = {
            "rows": self.n_rows,
            "certified_rows": self.n_certified,
            "proofs": dict(sorted(self.proofs.items())),
        }
        if self.verdicts is None:
            result["rows_of_infinite_radius"] = self.n_infinite
        else:
            result["verdicts"] = {verdict: self.verdicts[verdict] for verdict in ("holds", "flips", "undecided")}
        if not self.n_labelled:
            return result
        result["accuracy"] = self.n_correct / self.n_labelled
        if self.verdicts is not None:
            result["proven_accuracy"] = self.n_proven / self.n_labelled
            return result
        result["certified_accuracy"] = [
            {"radius": radius, "share": held / self.n_labelled}
            for radius, held in zip(self.radii, self.held.tolist(), strict=True)
        ]
        result["average_certified_radius"] = self.radius_of_correct / self.n_labelled
        return result


def _count(values: NDArray[np.str_]) -> Counter[str]:
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))
