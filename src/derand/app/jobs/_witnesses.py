"""Rows that flip, as they are written: near their own values, in few digits, each with a sentence, the smallest first.

Owns what stands in the file of witnesses and in which order. Must not know how rows are certified or files written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.origin import Fitted, take_rows
from derand._core.text import join_words, quote_short
from derand.app.jobs._copying import Copies
from derand.certificates import Certificates, Verifier, refine_changes
from derand.explain import Names, describe_change
from derand.fitted import encode_rows
from derand.metrics import encode_labels
from derand.perturbation import Perturbation, resolve
from derand.tables import MatchedFile, count_decimals

if TYPE_CHECKING:
    import pyarrow as pa

_SIZE = "size of the change"
_MOST_SAID = 5


class Witnesses:
    """The rows of all batches that flip, changed so that they do; they are kept until all are there and sorted."""

    def __init__(self, estimator: Fitted, source: MatchedFile, copies: Copies) -> None:
        self._estimator, self._source, self._copies = estimator, source, copies
        self._parts: list[pa.Table] = []

    def add(self, rows: Any, batch: pa.Table, found: Certificates, first_row: int) -> None:
        """Take the rows of a batch that flip; `rows` are those of `batch` as the model takes them."""
        import pyarrow as pa

        assert found.flips is not None  # without a norm there are flips, and witnesses of them
        assert found.witness is not None
        assert found.flipped is not None
        at = np.flatnonzero(found.flips)
        if not at.size and self._parts:  # a file without witnesses has a header line
            return
        model, encoding = self._estimator.ensemble_, self._estimator.encoding_
        perturbation = resolve(found.threat, model, found.noise)
        before, changed = np.empty((0, encoding.n_features)), found.witness[at]
        if at.size:
            before = encode_rows(self._estimator, take_rows(rows, at))
            codes = encode_labels(found.classes, found.label[at])
            verifier = Verifier(model, found.noise, found.rule, perturbation, before, codes, with_error=True)
            whole, decimals = encoding.find_whole(before), count_decimals(before)
            changed = refine_changes(verifier, changed, whole, encoding.dates, decimals)
            after = verifier.label(changed)
            answers = np.where(after == codes, found.flipped[at], self._estimator.classes_[after])
        else:
            answers = found.label[at]
        names = Names(tuple(self._source.names), encoding.categories, encoding.dates)
        kind = pa.array(found.classes.tolist()).type
        own = {
            "row": at + first_row,
            "label": pa.array(found.label[at].tolist(), type=kind),
            "new_label": pa.array(answers.tolist(), type=kind),
            "change": pa.array(_describe_changes(names, before, changed, answers), type=pa.string()),
        }
        flipped = batch.take(at)
        columns = self._copies.join_changed(flipped, own, self._source.decode(flipped, changed))
        size = measure_sizes(before, changed, perturbation, model.categorical_features)
        self._parts.append(pa.table({**columns, _SIZE: size}))

    def list_columns(self) -> Mapping[str, pa.Array]:
        """What is written, the smallest changes first."""
        import pyarrow as pa

        table = pa.concat_tables(self._parts)
        order = np.argsort(table.column(_SIZE).to_numpy(), kind="stable")
        table = table.drop_columns([_SIZE]).take(order).combine_chunks()
        return {name: table.column(name).combine_chunks() for name in table.column_names}


def measure_sizes(
    before: FloatArray, after: FloatArray, perturbation: Perturbation, categorical: tuple[int, ...]
) -> FloatArray:
    """How large each change is: for each number the share of its limit, 1 for each category and missing number."""
    low, high = perturbation.box(before)
    with np.errstate(invalid="ignore", divide="ignore"):
        room = np.where(after < before, before - low, high - before)
        size = np.abs(after - before) / np.where(np.isfinite(room), room, perturbation.units)
    is_same = (after == before) | (np.isnan(after) & np.isnan(before))
    size = np.where(np.isfinite(size), size, 1.0)
    size[:, list(categorical)] = 1.0
    return np.asarray(np.where(is_same, 0.0, size).sum(axis=1))


def _describe_changes(names: Names, before: FloatArray, after: FloatArray, answers: Any) -> list[str]:
    """Each change as a sentence."""
    said = []
    for own, new, answer in zip(before, after, answers.tolist(), strict=True):
        moved = np.flatnonzero(~((own == new) | (np.isnan(own) & np.isnan(new)))).tolist()
        told = [describe_change(names, at, float(own[at]), float(new[at])) for at in moved[:_MOST_SAID]]
        more = len(moved) - len(told)
        told += [f"{more} more {'column' if more == 1 else 'columns'} changed"] if more else []
        said.append(f"It would be {quote_short(answer)} if {join_words(told)}.")
    return said
