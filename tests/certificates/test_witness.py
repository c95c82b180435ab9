"""Witnesses need every column that they change, and of a sum of single columns no flip changes fewer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    LinearTerm,
    StepFunction,
    Threat,
    WeightedVote,
    attack,
    certify,
)
from derand.certificates import round_flip
from derand.model import Argmax, Model

LIMITS = dict.fromkeys(range(4), 1.0)


def draw_terms(rng: np.random.Generator, n_outputs: int = 1) -> list[Any]:
    shape = (lambda n: n) if n_outputs == 1 else (lambda n: (n, n_outputs))
    steps = [StepFunction(at, np.sort(rng.normal(0, 1, 3)), rng.integers(-9, 10, shape(4))) for at in range(4)]
    default = int(rng.integers(-9, 10)) if n_outputs == 1 else rng.integers(-9, 10, n_outputs).tolist()
    return [*steps, CategoryTable(4, [0, 1, 2], rng.integers(-9, 10, shape(3)), default)]


def draw_model(rng: np.random.Generator, kind: str) -> Model:
    if kind == "sum":
        return AdditiveEnsemble(draw_terms(rng), 0, 5)
    if kind == "vote":
        members = [AdditiveEnsemble(draw_terms(rng), 0, 5) for _ in range(3)]
        return WeightedVote(members, rng.uniform(0.5, 1.0, 3))
    if kind == "classes":
        return AdditiveEnsemble(draw_terms(rng, 3), Argmax((0, 0, 0)), 5)
    lines = [LinearTerm(at, [float(rng.normal())]) for at in range(4)]
    return AdditiveEnsemble([*lines, CategoryTable(4, [0, 1, 2], rng.integers(-1, 2, 3), 0)], 0, 5)


def draw_rows(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.column_stack([rng.normal(0, 1, (count, 4)), rng.integers(0, 3, count)])


@pytest.mark.parametrize("rule", ["mean", "vote", "deployed"])
@pytest.mark.parametrize("kind", ["sum", "vote", "classes", "linear"])
def test_no_column_of_a_witness_can_be_put_back(kind: str, rule: str) -> None:
    """Whatever the model and the rule; attacks within limits give the same kind of rows."""
    rng, found = np.random.default_rng(0), 0
    noise = None if rule == "deployed" else Gaussian(0.2)
    asked: dict[str, Any] = {"rule": "vote" if rule == "vote" else "mean"}
    for _ in range(3):
        model, rows = draw_model(rng, kind), draw_rows(rng, 6)
        threat = Threat(norm=None, limits=LIMITS, l0=1)
        certificates = certify(model, rows, noise, threat=threat, **asked)
        attacks = attack(model, rows, noise, threat=threat, **asked)
        assert certificates.flips is not None
        assert certificates.witness is not None
        for at in np.flatnonzero(certificates.flips):
            for changed in (certificates.witness[at], attacks.rows[at]):
                differ = np.flatnonzero(changed != rows[at])
                tried = np.tile(changed, (differ.size + 1, 1))
                tried[np.arange(differ.size), differ] = rows[at, differ]
                labels = certify(model, tried, noise, **asked).label
                assert (labels[:-1] == certificates.label[at]).all()
                assert labels[-1] != certificates.label[at]
            found += 1
    assert found > 2


def test_of_a_sum_no_flip_changes_fewer_columns() -> None:
    """By enumeration: with any smaller set of columns free, the label is proven to hold."""
    rng, sizes = np.random.default_rng(1), []
    for _ in range(8):
        model, rows = draw_model(rng, "sum"), draw_rows(rng, 8)
        found = certify(model, rows, None, rule="mean", threat=Threat(norm=None, limits=LIMITS))
        assert found.flips is not None
        assert found.witness is not None
        for at in np.flatnonzero(found.flips):
            size = int((found.witness[at] != rows[at]).sum())
            sizes.append(size)
            for free in itertools.combinations(range(4), size - 1):
                threat = Threat(norm=None, limits=dict.fromkeys(free, 1.0), frozen=[4])
                if free:
                    assert certify(model, rows[[at]], None, rule="mean", threat=threat).verdict == ["holds"]
    assert max(sizes) > 1


def test_a_model_that_stands_for_another_flips_by_more_than_its_error() -> None:
    """A column stays changed where without it only this model would be known to flip."""
    terms = [StepFunction(at, [0.0], [0, size]) for at, size in enumerate((10, 4))]
    row, threat = np.array([[0.5, 0.5]]), Threat(norm=None, limits={0: 1.0, 1: 1.0})
    for error, count in ((0.0, 1), (2.0, 1), (4.0, 2)):
        model = AdditiveEnsemble(terms, 7, 2, score_error=error)
        found = certify(model, row, None, rule="mean", threat=threat)
        assert found.witness is not None
        assert int((found.witness != row).sum()) == count


def test_many_columns_are_put_back_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 changed columns few labels are asked for: bisection, not one by one."""
    from derand.certificates.search import feasible_set

    calls, find = [], feasible_set.find_labels

    def count(*args: Any, **options: Any) -> Any:
        calls.append(len(args[1]))
        return find(*args, **options)

    monkeypatch.setattr(feasible_set, "find_labels", count)
    scores = np.arange(1, 301)
    model = AdditiveEnsemble(
        [StepFunction(at, [0.0], [0, int(size)]) for at, size in enumerate(scores)], int(scores.sum()) - 800, 300
    )
    rows = np.full((1, 300), 0.5)
    found = certify(model, rows, None, rule="mean", threat=Threat(norm=None, limits={"*": 1.0}))
    assert found.witness is not None
    assert np.flatnonzero(found.witness[0] != 0.5).tolist() == [297, 298, 299]
    assert len(calls) < 20


def test_values_are_rounded_beyond_the_flip() -> None:
    """With few digits, or whole days and seconds; the value itself where no short one flips."""
    near = round_flip(np.array([2400.0]), 0, 1870.91, lambda rows: (rows[:, 0] < 1871) & (rows[:, 0] >= 1870.5))
    assert near == 1870.9
    assert round_flip(np.array([0.0]), 0, 1 / 3, lambda rows: np.zeros(len(rows), bool)) == 1 / 3
    days = round_flip(np.array([19878.0]), 0, 19722.3, lambda rows: rows[:, 0] < 19722.4, fractions=(1, 86_400))
    assert days == 19722.0


def test_witnesses_of_several_classes_with_an_error_are_shrunk() -> None:
    """Columns go back where the other class stays ahead by more than both scores may be off by."""
    rng, counts = np.random.default_rng(2), dict[float, int]()
    terms, rows = draw_terms(rng, 3), draw_rows(rng, 40)
    for error in (0.0, 0.4, 4.0):
        model = AdditiveEnsemble(terms, Argmax((0, 0, 0)), 5, score_error=error)
        found = certify(model, rows, None, rule="mean", threat=Threat(norm=None, limits=LIMITS))
        assert found.flips is not None
        assert found.witness is not None
        plain = certify(model, found.witness, None, rule="mean").label
        assert (plain != found.label)[found.flips].all()
        counts[error] = int((found.witness != rows)[found.flips].sum())
    assert counts[0.0] <= counts[0.4] <= counts[4.0]
    assert counts[0.4] < 1.5 * counts[0.0]
