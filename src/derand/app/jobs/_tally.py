"""Results of a file in short, added up batch by batch.

Owns counts and shares over all batches. Must not know where batches come from, nor how results are written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand.app import Summary
from derand.certificates import Certificates, FlipSummary, Intervals, ToleranceRadii
from derand.metrics import (
    FEW_UNLABELLED,
    AnswerTally,
    Remark,
    RowGrades,
    certified_accuracy,
    judge_answers,
    remark_one_answer,
    summarize_finite_radii,
)
from derand.tables import Labels, MatchedFile

if TYPE_CHECKING:
    import pyarrow as pa


class _BatchTally:
    """What is counted of the batches of any model."""

    def __init__(self) -> None:
        self.n_rows = self.n_certified = self.n_infinite = 0
        self.n_ties: int | None = None
        """Of models whose trees join columns; else None."""
        self.unseen: Counter[str] = Counter()
        self.empty: set[str] | None = None
        """Columns that were empty in every batch; None before the first."""

    def _count_rows(self, n_rows: int, source: MatchedFile, batch: pa.Table) -> None:
        self.n_rows += n_rows
        self.unseen.update(source.count_unseen(batch))
        empty = source.find_empty(batch)
        self.empty = empty if self.empty is None else self.empty & empty


class Tally(_BatchTally):
    """Labels of all batches so far, and what is certified of them."""

    def __init__(self, radii: Sequence[float]) -> None:
        super().__init__()
        self.radii = list(radii)
        self.n_correct = self.n_proven = 0
        self.held = np.zeros(len(self.radii))
        self.finite: list[FloatArray] = []
        """Radii of labelled rows, but for infinite ones; 0 where the label is wrong."""
        self.answers: AnswerTally | None = None
        """None where there is no target."""
        self.labels: Counter[object] = Counter()
        self.proofs: Counter[str] = Counter()
        self.verdicts: Counter[str] | None = None
        """None where there are radii."""
        self.flips: FlipSummary | None = None

    @property
    def n_labelled(self) -> int:
        return 0 if self.answers is None else self.answers.n_rows

    def add(
        self,
        certificates: Certificates,
        labels: Labels | None,
        grades: RowGrades | None,
        source: MatchedFile,
        batch: pa.Table,
    ) -> None:
        """Count a batch; grades go with labels."""
        self._count_rows(len(certificates), source, batch)
        self.n_certified += int((certificates.radius > 0).sum())
        self.n_infinite += int(np.isinf(certificates.radius).sum())
        self.proofs.update(_count(certificates.proof))
        if certificates.is_tie is not None:
            self.n_ties = (self.n_ties or 0) + int(certificates.is_tie.sum())
        if certificates.verdict is not None:
            self.verdicts = (self.verdicts or Counter()) + _count(certificates.verdict)
            flips = certificates.summary(labels)
            self.flips = flips if self.flips is None else self.flips + flips
        found, counts = np.unique(certificates.label, return_counts=True)
        self.labels.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        if labels is None or grades is None:
            return
        self.answers = self.answers or AnswerTally(certificates.classes)
        self.answers.add(labels, certificates.label, grades)
        correct = labels == certificates.label
        self.n_correct += int(correct.sum())
        self.n_proven += int((correct & (certificates.radius > 0)).sum())
        if certificates.verdict is None:
            self.held += np.rint(certified_accuracy(labels, certificates, self.radii) * len(labels))
            radius = np.where(correct, certificates.radius, 0.0)
            self.finite.append(radius[np.isfinite(radius)])

    def summarize(self) -> Summary:
        warnings: list[str] = []
        result: Summary = {
            "rows": self.n_rows,
            "certified_rows": self.n_certified,
            "proofs": dict(sorted(self.proofs.items())),
            "warnings": warnings,
            "notes": [],
        }
        if self.verdicts is None:
            result["rows_of_infinite_radius"] = self.n_infinite
        else:
            result["verdicts"] = {verdict: self.verdicts[verdict] for verdict in ("holds", "flips", "undecided")}
        if self.flips is not None:
            result["flips"] = self.flips.merge_truth().to_dict()
            result["flips_by_true_class"] = self.flips.to_dict() if self.answers is not None else None
        if self.n_ties is not None:
            result["ties"] = self.n_ties
        remark = self._judge_labels()
        if self.answers is not None:
            found = self.answers.measure()
            result["answers"] = found.to_dict()
            result["accuracy"] = self.n_correct / self.n_labelled
            remark = judge_answers(found)
        if remark is not None:
            (warnings if remark.level == "warning" else result["notes"]).append(remark.text)
        if self.answers is None:
            return result
        if self.verdicts is not None:
            result["proven_accuracy"] = self.n_proven / self.n_labelled
            return result
        result["certified_accuracy"] = [
            {"radius": radius, "share": held / self.n_labelled}
            for radius, held in zip(self.radii, self.held.tolist(), strict=True)
        ]
        result["certified_radii"] = summarize_finite_radii(np.concatenate(self.finite), self.n_labelled).to_dict()
        return result

    def _judge_labels(self) -> Remark | None:
        """What to say where all rows got one label, and true ones are not known."""
        if self.n_rows < FEW_UNLABELLED or len(self.labels) > 1:
            return None
        return remark_one_answer(next(iter(self.labels)), self.n_rows)


class IntervalTally(_BatchTally):
    """Intervals, or radii of a tolerance, of all batches so far."""

    def __init__(self) -> None:
        super().__init__()
        self.n_known = self.n_inside = 0
        self.sum_width = self.largest_width = self.sum_squares = 0.0
        self.is_intervals = True

    def add(
        self, found: Intervals | ToleranceRadii, numbers: FloatArray | None, source: MatchedFile, batch: pa.Table
    ) -> None:
        """Count a batch."""
        self._count_rows(len(found), source, batch)
        if isinstance(found, Intervals):
            low, high = found.low, found.high
            self.sum_width += float(found.width.sum())
            self.largest_width = max(self.largest_width, float(found.width.max()))
        else:
            low, high = found.value - found.tolerance, found.value + found.tolerance
            self.is_intervals = False
            self.n_certified += int((found.radius > 0).sum())
            self.n_infinite += int(np.isinf(found.radius).sum())
        if numbers is not None:
            self.n_known += len(numbers)
            self.sum_squares += float(((found.value - numbers) ** 2).sum())
            self.n_inside += int(((low <= numbers) & (numbers <= high)).sum())

    def summarize(self) -> Summary:
        result: Summary = {"rows": self.n_rows, "notes": []}
        if self.is_intervals:
            result["mean_width"] = self.sum_width / self.n_rows
            result["largest_width"] = self.largest_width
        else:
            result["certified_rows"] = self.n_certified
            result["rows_of_infinite_radius"] = self.n_infinite
        if self.n_known:
            result["rmse"] = math.sqrt(self.sum_squares / self.n_known)
            result["targets_inside"] = self.n_inside
        return result


def _count(values: NDArray[np.str_]) -> Counter[str]:
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))
