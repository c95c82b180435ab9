"""Promises of a saved model about every row of a domain.

Owns the way from files to `prove`. Must not know the command line, nor how anything is proven.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from derand._core.files import PathLike
from derand._core.text import Facts
from derand.app import Summary
from derand.app.jobs._classifiers import load_estimator
from derand.app.settings import ProveSettings, fill_settings
from derand.explain import ModelPromises
from derand.fitted import answers_numbers
from derand.tables import TableEncoding, match_file

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier, CertifiedRegressor


def prove_file(
    model: PathLike, data: PathLike | None = None, settings: ProveSettings | None = None, **options: object
) -> Summary:
    """What holds for every row that a saved model can get.

    Parameters
    ----------
    model : path-like
        A saved classifier or regressor.
    data : path-like or None
        A table of which shares are told; columns are matched as for `certify_file`.
    settings : ProveSettings or None
        What is asked for.
    **options
        Fields of ProveSettings, which replace those of `settings`.

    Returns
    -------
    dict
        `text`: what `print` tells.
        `passed`: whether all that was asked of protected columns and directions is proven.
        `promises`: verdict, size, share and counterexample of each, columns by name.
        `swings`, `lowest`, `highest`, `change`, `unit`, `score_error`, `domain`: as of `ModelPromises`.
    """
    start, asked = time.perf_counter(), fill_settings(ProveSettings, settings, options)
    estimator = load_estimator(model)
    rows = None if data is None else _read_rows(estimator, data, asked.target)
    given: Facts = {
        "monotone": asked.monotone,
        "domain": _read_values(asked.domain, estimator.encoding_),
        "unseen": asked.unseen,
        "missing": asked.missing,
        "radius": asked.radius,
        "norm": float(asked.norm),
        "rule": asked.rule,
        "noise": asked.noise,
        "budget": asked.budget,
    }
    if not answers_numbers(estimator):
        given["protected"] = list(asked.protected) or None
    elif asked.protected:
        raise ValueError(f"Protected columns are for models of classes, and {model} predicts a number: leave them out.")
    found = estimator.prove(rows, **given)
    verdicts = [one.verdict for one in found.promises if one.kind != "class"]
    return {
        "text": str(found),
        "passed": all(verdict == "proven" for verdict in verdicts),
        "promises": [_describe(found, at) for at in range(len(found.promises))],
        "swings": [{**asdict(one), "columns": _name(found, one.columns)} for one in found.swings],
        "lowest": found.lowest,
        "highest": found.highest,
        "change": None if found.change is None else asdict(found.change),
        "unit": found.unit,
        "score_error": found.score_error,
        "domain": found.domain_text,
        "seconds": time.perf_counter() - start,
    }


def _read_rows(estimator: CertifiedClassifier | CertifiedRegressor, data: PathLike, target: str | None) -> object:
    classes = estimator.classes_ if not answers_numbers(estimator) else None
    source = match_file(data, estimator.encoding_, target=target, classes=classes)
    return source.split(source.read_all(), first_row=1)[0]


def _read_values(
    domain: Mapping[str, Sequence[float | str]] | None, encoding: TableEncoding
) -> dict[str, Sequence[object]] | None:
    """A domain whose categories are those of the table: text from the command line stands for any kind of them."""
    if domain is None:
        return None
    names = list(encoding.names or ())
    found: dict[str, Sequence[object]] = {}
    for column, given in domain.items():
        values = encoding.categories.get(names.index(column)) if column in names else None
        if values is None and column in names and not isinstance(given, tuple):
            raise ValueError(
                f"`domain` of {column!r}, a column of numbers, must be written LOW:HIGH, got {given[0]!r}."
            )
        known = {str(value): value for value in values or ()}
        found[column] = given if isinstance(given, tuple) else [known.get(str(one), one) for one in given]
    return found


def _name(found: ModelPromises, columns: Sequence[int]) -> list[str]:
    return [found.names.columns[at] for at in columns]


def _describe(found: ModelPromises, at: int) -> Summary:
    """One promise by names and values."""
    promise, names = found.promises[at], found.names
    rows = () if promise.rows is None else promise.rows.tolist()
    return {
        "kind": promise.kind,
        "columns": _name(found, promise.columns),
        "asked": str(found.classes[int(promise.asked)]) if promise.kind == "class" else promise.asked,
        "verdict": promise.verdict,
        "size": None if promise.kind == "class" else promise.size,
        "share": None if promise.share is None else list(promise.share),
        "rows": [{name: names.write(k, row[k]) for k, name in enumerate(names.columns)} for row in rows],
        "answers": [str(label) for label in found.labels[at]],
    }
