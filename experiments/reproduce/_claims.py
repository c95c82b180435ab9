"""Claims: numbers of the paper's running text, each worked out from cells, outcomes or data.

Owns the registry of ways to work one out; `claims.toml` names them. Must not know how results are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from derand.certificates import certify
from derand.noise import parse_noise
from experiments.baselines.monte_carlo import certify_any_by_sampling
from experiments.baselines.published_stumps import train_stumps_as_published
from experiments.datasets import load
from experiments.reproduce._cells import Cell
from experiments.reproduce._outcomes import Outcome
from experiments.reproduce._specification import Item, Line, TomlTable, find_item, fits

_SLOW_ROWS = 2


@dataclass(frozen=True, slots=True)
class Sources:
    """Where claims find numbers: the cells and the outcomes of a line of a table."""

    cells: Callable[[Item, Line], Sequence[Cell]]
    outcomes: Callable[[Line], Sequence[Outcome]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a claim comes to here, and the reason why the cell behind it differs from the paper, where it does."""

    value: float
    reason: str | None = None


def list_lines(item: Item) -> list[tuple[Item, Line]]:
    """The lines of tables that the claims refer to."""
    return [pair for claim in item.content["claims"] for reference in claim.get("of", []) for pair in _lines(reference)]


def make_claim_cells(item: Item, sources: Sources) -> list[Cell]:
    """One cell per claim.

    Parameters
    ----------
    item : Item
    sources : Sources

    Returns
    -------
    list of Cell
    """
    return [_make_cell(claim, ANSWERS[claim["kind"]](claim, sources)) for claim in item.content["claims"]]


def _make_cell(claim: TomlTable, answer: Answer) -> Cell:
    gap = answer.value - claim["paper"]
    side = {"at most": gap, "at least": -gap}.get(claim.get("side", ""), abs(gap))
    ok = bool(side <= claim["tolerance"] + 1e-9)
    return Cell(
        fields={"claim": claim["text"], "unit": claim["unit"]},
        metric="claim",
        radius=None,
        paper=claim["paper"],
        paper_deviation=None,
        printed=claim.get("printed"),
        ours=answer.value,
        deviation=None,
        tolerance=claim["tolerance"],
        ok=ok,
        as_published=None,
        reason=None if ok else answer.reason or claim.get("reason"),
    )


def _lines(reference: TomlTable) -> Iterator[tuple[Item, Line]]:
    table = find_item(reference["table"])
    return ((table, line) for line in table.lines if fits(reference.get("when", {}), line.fields))


def _cells(reference: TomlTable, sources: Sources) -> list[Cell]:
    wanted = {name: reference[name] for name in ("metric", "radius") if name in reference}
    return [
        cell
        for table, line in _lines(reference)
        for cell in sources.cells(table, line)
        if fits(wanted, {"metric": cell.metric, "radius": cell.radius})
    ]


def _take_cell(claim: TomlTable, sources: Sources) -> Answer:
    """The number of one cell."""
    (cell,) = _cells(claim["of"][0], sources)
    return Answer(cell.ours, cell.reason)


def _take_gain(claim: TomlTable, sources: Sources) -> Answer:
    """By how many per cent the first cell is larger than the second."""
    first, second = (_cells(reference, sources)[0] for reference in claim["of"])
    return Answer(100 * (first.ours / second.ours - 1))


def _take_largest_deviation(claim: TomlTable, sources: Sources) -> Answer:
    """The largest deviation over folds among some cells."""
    cells = [cell for reference in claim["of"] for cell in _cells(reference, sources)]
    return Answer(max(cell.deviation or 0.0 for cell in cells))


def _outcome(claim: TomlTable, sources: Sources) -> Outcome:
    _, line = next(_lines(claim["of"][0]))
    return sources.outcomes(line)[0]


def _take_time_per_row(claim: TomlTable, sources: Sources) -> Answer:
    """Milliseconds per row of certifying."""
    outcome = _outcome(claim, sources)
    return Answer(1000 * float(outcome.seconds[1]) / outcome.y.size)


def _take_splits_outside(claim: TomlTable, sources: Sources) -> Answer:
    """Per cent of the splits that lie outside the range of the data, [0, 1]."""
    edges = _outcome(claim, sources).edges
    return Answer(100 * float(np.mean((edges < 0) | (edges > 1))))


def _take_nearest_split(claim: TomlTable, sources: Sources) -> Answer:
    """The split outside [0, 1] that is nearest to it, on the side that the claim names."""
    edges = _outcome(claim, sources).edges
    return Answer(float(edges[edges < 0.5].max() if claim["of_side"] == "left" else edges[edges > 0.5].min()))


def _take_smaller_class(claim: TomlTable, sources: Sources) -> Answer:
    """Per cent of the smaller class in the training part of a dataset."""
    share = load(claim["dataset"]).divide().y_train.mean()
    return Answer(100 * float(min(share, 1 - share)))


def _take_input_sampling_ratio(claim: TomlTable, sources: Sources) -> Answer:
    """How many times longer it takes to draw and classify noisy rows than to certify exactly; measured on few rows."""
    parts, noise = load(claim["dataset"]).divide(), parse_noise(claim["noise"])
    model = train_stumps_as_published(parts.X_train, parts.y_train, noise)
    threshold, rows = model.threshold, parts.X_test[:_SLOW_ROWS]
    assert threshold is not None
    certify(model, rows, noise, proof="paper")  # compiles
    started = time.perf_counter()
    certify(model, parts.X_test, noise, proof="paper")
    certified = time.perf_counter()
    certify_any_by_sampling(lambda X: model.score(X) > threshold, rows, noise, claim["n_samples"])
    sampled = time.perf_counter()
    return Answer((sampled - certified) / _SLOW_ROWS / ((certified - started) / len(parts.X_test)))


ANSWERS: Mapping[str, Callable[[TomlTable, Sources], Answer]] = {
    "cell": _take_cell,
    "gain": _take_gain,
    "largest deviation": _take_largest_deviation,
    "time per row": _take_time_per_row,
    "splits outside": _take_splits_outside,
    "nearest split": _take_nearest_split,
    "smaller class": _take_smaller_class,
    "input sampling ratio": _take_input_sampling_ratio,
}
