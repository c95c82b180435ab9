"""Whole numbers: verdicts by steps of 1 against every whole number, and explained flips that are whole."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import AdditiveEnsemble, LinearTerm, StepFunction, Threat, audit, certify
from derand.certificates import explain, find_labels
from derand.noise import resolve_noise

WHOLE = {0: (0, 20), 1: (0, 1)}
"""A count and a column of yes and no."""


@st.composite
def models(draw: st.DrawFn) -> AdditiveEnsemble:
    """Of a count, a column of 0 and 1, and any number: step functions, or lines."""
    decision = draw(st.integers(-6, 6))
    if draw(st.booleans()):
        slopes = [draw(st.floats(-3, 3).map(lambda slope: round(slope, 2))) for _ in range(3)]
        return AdditiveEnsemble([LinearTerm(at, [slope]) for at, slope in enumerate(slopes)], decision, 3)
    edges = (
        sorted(draw(st.sets(st.floats(0, 12).map(lambda edge: round(edge, 1)), min_size=1, max_size=4))),
        [draw(st.sampled_from([0.1, 0.5, 1.0]))],
        sorted(draw(st.sets(st.floats(-2, 2).map(lambda edge: round(edge, 1)), max_size=2))),
    )
    scores = [draw(st.lists(st.integers(-5, 5), min_size=len(one) + 1, max_size=len(one) + 1)) for one in edges]
    return AdditiveEnsemble([StepFunction(at, edges[at], scores[at]) for at in range(3)], decision, 3)


ROWS = st.tuples(st.integers(0, 12), st.integers(0, 1), st.sampled_from([-1.3, 0.0, 0.7]))


@settings(max_examples=40)
@given(models(), ROWS, st.sampled_from([0.4, 1, 2.5, "20%", (0, 3)]), st.sampled_from([0.4, 1, 3]))
def test_verdicts_are_those_of_every_whole_number_within_the_limits(
    model: AdditiveEnsemble, row: Any, count: Any, other: float
) -> None:
    """By enumeration; a witness is whole. A line is undecided at its threshold alone."""
    threat = Threat(norm=None, limits={0: count, 1: other}).with_whole(WHOLE)
    found = certify(model, [row], None, rule="mean", threat=threat)
    size = 0.2 * row[0] if count == "20%" else count
    down, up = size if isinstance(size, tuple) else (size, size)
    counts = [value for value in range(-10, 30) if row[0] - down <= value <= row[0] + up]
    answers = [0, 1] if other >= 1 else [row[1]]
    every = np.array([(*pair, row[2]) for pair in itertools.product(counts, answers)])
    flips = (find_labels(model, every, None, rule="mean") != found.label[0]).any()
    assert found.verdict is not None
    assert found.witness is not None
    if model.is_linear and found.verdict[0] == "undecided":
        assert not flips
        assert np.abs(model.score(every) - float(model.threshold or 0)).min() < 1e-9
        return
    assert found.verdict[0] == ("flips" if flips else "holds")
    if flips:
        assert found.witness[0].tolist() in every.tolist()


def test_audits_prove_what_holds_for_whole_numbers_alone() -> None:
    """Of step functions and lines, where 10 per cent of a count are less than 1."""
    steps = [StepFunction(0, [8.5, 9.5], [-2, 0, 5]), StepFunction(1, [0.05], [0, 3])]
    lines = [LinearTerm(0, [10.0]), LinearTerm(1, [5.0])]
    for terms, level in ((steps, 1), (lines, 93)):
        model = AdditiveEnsemble(terms, level, 2)
        rows, limits = [[9.0, 0.0], [9.0, 1.0]], {0: "10%", 1: 0.5}
        plain = certify(model, rows, None, rule="mean", threat=Threat(norm=None, limits=limits))
        threat = Threat(norm=None, limits=limits).with_whole({0: (0, 9), 1: (0, 1)})
        whole = certify(model, rows, None, rule="mean", threat=threat)
        assert plain.verdict is not None
        assert whole.verdict is not None
        assert "flips" in plain.verdict
        assert whole.verdict.tolist() == ["holds", "holds"]
        assert set(audit(model, rows, whole).verdict) == {"proven"}


@pytest.mark.parametrize("noise", [None, "gaussian:1.5"])
@settings(max_examples=10)
@given(models(), ROWS)
def test_an_explained_flip_is_whole_and_flips_and_none_is_nearer(
    noise: str | None, model: AdditiveEnsemble, row: Any
) -> None:
    """Without noise it is the nearest of all whole numbers, and certified to be."""
    found = explain(model, row, noise, rule="mean", threat=Threat().with_whole(WHOLE))
    start = np.array(row, dtype=np.float64)
    for change in (*found.columns, found.joint):
        if change.row is None:
            continue
        assert change.row[0].is_integer()
        assert change.row[1] in (0.0, 1.0)
        assert find_labels(model, change.row[None], resolve_noise(noise), rule="mean")[0] != found.label
        assert change.certified <= change.attacked
        if change.feature in WHOLE:
            assert change.certified >= change.attacked * (1 - 1e-9) or noise is not None
    if noise is None:
        places = np.tile(start, (61, 1))
        places[:, 0] = np.arange(start[0] - 30, start[0] + 31)
        flips = places[find_labels(model, places, None, rule="mean") != found.label, 0]
        nearest = np.abs(flips - start[0]).min(initial=np.inf)
        count = next(one for one in found.columns if one.feature == 0)
        assert count.attacked == pytest.approx(nearest) or (nearest == np.inf and count.attacked > 30)


def test_under_noise_what_lies_before_a_whole_flip_is_certified_as_limits() -> None:
    """A ball leaves steps out of account: real changes of 0.6 flip, of whole ones none below 1."""
    model = AdditiveEnsemble([StepFunction(0, [3.6], [0, 9]), StepFunction(1, [0.5], [0, 1])], 4, 2)
    plain = explain(model, [3.0, 0.0], "gaussian:0.25", rule="mean")
    steps = explain(model, [3.0, 0.0], "gaussian:0.25", rule="mean", threat=Threat().with_whole({0: (0, 9), 1: (0, 1)}))
    assert plain.columns[0].certified == pytest.approx(0.56, abs=0.02)
    assert steps.columns[0].certified == pytest.approx(1.0)
    assert steps.columns[0].attacked == pytest.approx(1.0)
    assert [(one.feature, one.certified) for one in steps.columns][1] == (1, np.inf)


def test_steps_of_columns_that_stay_are_no_error() -> None:
    """Without a ball, a number with a step and no limit does not change."""
    model = AdditiveEnsemble([StepFunction(0, [1.0], [0, 4]), StepFunction(1, [1.0], [0, 4])], 5, 2)
    threat = Threat(norm=None, limits={1: 2.0}, steps={0: 1.0})
    assert [one.feature for one in explain(model, [2.5, 2.5], None, rule="mean", threat=threat).columns] == [1]


def test_the_nearest_step_is_found_on_the_far_side_of_an_edge() -> None:
    """Rounding the edge to the nearest whole number would stop short of it."""
    model = AdditiveEnsemble([StepFunction(0, [12.4], [0, 4])], 1, 1)
    (change,) = explain(model, [10.0], None, rule="mean", threat=Threat(steps={0: 1})).columns
    assert change.row is not None
    assert (change.row[0], change.attacked) == (13.0, pytest.approx(3.0))
