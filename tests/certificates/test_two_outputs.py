"""Two classes with an output each: everything is said of them that is said of the difference of their scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    StepFunction,
    Threat,
    attack,
    audit,
    certify,
    distribution,
    load,
    save,
)
from derand.certificates import explain, find_labels, rank_rows
from derand.model import Argmax, GridTerm, LinearTerm, Model, Term
from experiments.baselines.monte_carlo import certify_by_sampling

ROWS = np.array([[0.3, 1.0, 0.0], [-2.0, 3.0, 1.0], [0.0, 0.5, 7.0]])
TABLE = CategoryTable(2, [0.0, 1.0], [[1, 0], [0, 2]], (0, 0))
TERMS: dict[str, list[Term]] = {
    "steps": [
        StepFunction(0, [0.0, 1.0], [[1, 5], [4, 2], [3, 9]], (2, 2)),
        StepFunction(1, [0.5], [[0, 3], [6, 2]]),
        TABLE,
    ],
    "grid": [GridTerm([0, 1], [[0.0, 1.0], [0.5]], [[1, 5], [4, 2], [3, 9], [0, 1], [2, 2], [6, 1]]), TABLE],
    "lines": [LinearTerm(0, [1.0, -0.5]), LinearTerm(1, [0.25, 1.0]), TABLE],
}
ANSWERS = [("gaussian:0.5", "vote"), ("laplace:0.3", "vote"), ("uniform:1", "mean"), (None, "mean")]
THREATS = [
    Threat(l0=1),
    Threat(norm=None, limits={0: 1.0, 1: 2.0}, l0=1),
    Threat(norm=1, limits={0: 0.5}),
    Threat(norm=math.inf, l0=1),
]
CASES = [(*answer, THREATS[(at + more) % 4]) for at, answer in enumerate(ANSWERS) for more in (0, 1)]
"""Each answer with two threats, and each threat with two answers."""


def make_both(kind: str) -> tuple[Model, Model]:
    """A model with two outputs, and the same as a threshold on their difference."""
    terms = TERMS[kind]
    both = AdditiveEnsemble(terms, Argmax((1, 0)), 3, score_error=0.25)
    return both, AdditiveEnsemble([term.subtract(1, 0) for term in terms], 1, 3, score_error=0.5)


def require_same(found: Any, expected: Any, *names: str) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize(("noise", "rule", "threat"), CASES, ids=lambda part: str(getattr(part, "norm", part)))
def test_certificates_attacks_and_audits_are_those_of_the_difference(
    kind: str, noise: str | None, rule: str, threat: Threat
) -> None:
    both, one = make_both(kind)
    found, expected = (certify(model, ROWS, noise, rule=rule, threat=threat) for model in (both, one))
    require_same(found, expected, "label", "radius", "failure", "proof", "flips", "witness", "worst")
    again, known = (audit(model, ROWS, claims) for model, claims in ((both, found), (one, expected)))
    require_same(again, known, "verdict", "proven")
    assert (again.verdict == "proven").all()
    moved, expected_moves = (attack(model, ROWS, noise, rule=rule, threat=threat) for model in (both, one))
    require_same(moved, expected_moves, "found", "distance", "rows", "flipped")
    moved.require_outside(found)
    np.testing.assert_array_equal(find_labels(both, ROWS, found.noise, rule=rule), found.label)
    np.testing.assert_array_equal(rank_rows(both, ROWS, found), rank_rows(one, ROWS, expected))


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize(("noise", "rule"), ANSWERS)
def test_rows_are_explained_by_the_difference(kind: str, noise: str | None, rule: str) -> None:
    both, one = make_both(kind)
    threat = Threat(limits={0: 2.0})
    for row in ROWS:
        found, expected = (explain(model, row, noise, rule=rule, threat=threat) for model in (both, one))
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("kind", ["steps", "grid"])
def test_laws_are_those_of_the_difference(kind: str) -> None:
    both, one = make_both(kind)
    found, expected = (distribution(model, ROWS, "gaussian:0.5") for model in (both, one))
    require_same(found, expected, "support", "pmf", "median")


def test_samples_are_those_of_the_difference() -> None:
    both, one = make_both("steps")
    found, expected = (certify_by_sampling(model, ROWS, "gaussian:0.5", 100) for model in (both, one))
    require_same(found, expected, "label", "radius")


@pytest.mark.parametrize("kind", TERMS)
def test_files_keep_both_outputs(kind: str, tmp_path: Path) -> None:
    """A file holds the model as it was written, and what is read from it is certified alike."""
    both, one = make_both(kind)
    save(both, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.n_outputs == 2
    require_same(certify(again, ROWS, "gaussian:0.5"), certify(one, ROWS, "gaussian:0.5"), "label", "radius")


def test_missing_numbers_count_as_in_the_difference() -> None:
    both, one = make_both("steps")
    rows = np.where(np.arange(3) == 0, np.nan, ROWS)
    threat = Threat(norm=None, limits={1: 2.0}, missing=1)
    found, expected = (certify(model, rows, "gaussian:0.5", threat=threat) for model in (both, one))
    require_same(found, expected, "label", "radius", "flips", "witness")


def test_more_classes_have_no_law_of_one_sum() -> None:
    terms = [StepFunction(0, [0.0], [[1, 2, 3], [3, 2, 1]])]
    model = AdditiveEnsemble(terms, Argmax((0, 0, 0)), 1)
    with pytest.raises(ValueError, match=r"one sum, got 3 classes"):
        distribution(model, [[0.0]], "gaussian:1")


def test_the_difference_is_made_once() -> None:
    """What is prepared for it is kept with it."""
    both, _ = make_both("steps")
    assert both.members[0] is both.members[0]
