"""Answers of the fitted object that a model was read from, as long as it is at hand: they settle ties.

Owns asking it, and when it is not asked: where it does not take our tables, or answers otherwise. Must not know any
library.
"""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates import is_sure_label
from derand.convert import decode_rows
from derand.model import AdditiveEnsemble
from derand.tables import Labels, TableEncoding

_UNKNOWN = -1


class Predictor(Protocol):
    """A fitted classifier of another library."""

    def predict(self, X: object, /) -> Labels:
        """Its labels."""


class LibraryAnswers:
    """Labels of rows as the model reads them, 0, 1, ..., as the library gives them; -1 where it gives none."""

    def __init__(self, model: Predictor, encoding: TableEncoding, classes: Labels) -> None:
        self._model, self._encoding, self._classes = model, encoding, classes

    def __call__(self, rows: FloatArray) -> IntArray:
        """Ask `predict` of the library."""
        codes = np.full(len(rows), _UNKNOWN, dtype=np.int64)
        if not len(rows):
            return codes
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = np.asarray(self._model.predict(decode_rows(self._encoding, rows))).ravel()
        except Exception:  # whatever a library says of rows that it does not take
            return codes
        if answers.shape != codes.shape:
            return codes
        for code, name in enumerate(self._classes.tolist()):
            codes[answers == name] = code
        return codes


def ask_library(
    model: Predictor, encoding: TableEncoding, classes: Labels, ensemble: AdditiveEnsemble, probes: FloatArray
) -> LibraryAnswers | None:
    """The answers of a library, where they are those of the model on all probes on which these are certain; else None.

    A raw booster, say, answers with probabilities.
    """
    found = LibraryAnswers(model, encoding, classes)
    theirs, (ours, is_sure) = found(probes), is_sure_label(ensemble, probes)
    return found if len(probes) and (theirs == ours)[is_sure].all() and (theirs >= 0).all() else None
