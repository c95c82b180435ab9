"""What every test of an importer asks: raw scores on edges and beside them, labels, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from derand import from_model
from derand.convert import compare_scores, is_explained, probe_rows, read_model
from derand.convert._columns import decode_rows
from derand.storage import load, save

N_ROWS = 5_000


def require_parity(
    model: Any, folder: Path, *, n_rows: int = N_ROWS, largest_error: float = 1e-9, ask: Any = None
) -> Any:
    """The imported model, whose raw scores and labels are the library's on probes, and which a file keeps.

    `ask` gets the library's answers for a table, where its `predict` does not.
    """
    ask = ask or model.predict
    reading = read_model(model)
    ensemble = reading.build()
    rows = probe_rows(reading, ensemble, n_rows)
    assert is_explained(reading, ensemble, rows)
    errors = ensemble.bound_errors(rows) / ensemble.levels
    assert compare_scores(reading, ensemble, rows) <= errors.max() < largest_error
    imported = from_model(model)
    rows = rows[:1000]
    for column, is_gap in reading.refused:
        rows = rows[~(np.isnan(rows[:, column]) if is_gap else rows[:, column] < 0)]
    errors = ensemble.bound_errors(rows) / ensemble.levels
    table = decode_rows(reading.encoding, rows)
    answers = imported.predict(table)
    save(imported, folder / "model.json")
    again = load(folder / "model.json")
    np.testing.assert_array_equal(again.predict(table), answers)
    theirs = np.asarray(reading.raw_scores(rows)) if reading.raw_scores is not None else None
    assert theirs is not None
    if reading.classes is None:
        assert (np.abs(answers - ask(table)) <= errors).all()
        return imported
    if theirs.ndim == 1:
        clear = np.abs(theirs) > errors
    else:
        best = np.sort(theirs, axis=1)
        clear = best[:, -1] - best[:, -2] > 2 * errors.max(axis=1)
    assert clear.mean() > 0.5  # else it says nothing
    by_scores = reading.classes[(theirs > 0).astype(int) if theirs.ndim == 1 else theirs.argmax(axis=1)]
    np.testing.assert_array_equal(answers[clear], by_scores[clear])
    taken = clear.copy()
    if hasattr(model, "steps"):  # some refuse what is missing or unseen: the pipeline as a whole is asked of the rest
        taken &= np.isfinite(rows).all(axis=1)
        for column in reading.encoding.categories:
            taken &= rows[:, column] >= 0
    if taken.any():
        np.testing.assert_array_equal(answers[taken], np.asarray(ask(decode_rows(reading.encoding, rows[taken]))))
    return imported
