"""The table of three ways to certify: lines are measured and printed, and a flip inside is counted."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, StepFunction, certify
from experiments.commands._sharper import format_lines
from experiments.sharper import Line, attack_rows, compare_ways


def test_a_flip_inside_is_counted() -> None:
    """A radius that is too large by a tenth is found out."""
    rng = np.random.default_rng(0)
    model = AdditiveEnsemble([StepFunction(at, [0.0], [0, 5]) for at in range(12)], 30, 12)
    rows, noise = rng.normal(size=(12, 12)), Gaussian(0.5)
    found = certify(model, rows, noise, rule="mean")
    inside, ratio = attack_rows(model, rows, noise, found)
    assert inside == 0
    assert 0.9 < ratio <= 1
    larger = type(found)(
        found.label, found.failure, found.log_failure, found.radius * 1.2, found.threat, rule="mean", noise=noise
    )
    assert attack_rows(model, rows, noise, larger)[0] > 6


def test_lines_become_a_table() -> None:
    """One line each, under a head."""
    line = Line("toy", "gaussian:0.25", "mean", 90.0, 1.5, (0.5, 1.0), (80.0, 70.0), 2, 0, 0.99, 0.1, 0.01)
    text = format_lines([line])
    assert text.splitlines()[2].startswith("| toy | gaussian:0.25 | mean | 90.0 | 1.500 | 0.5: 80.0, 1: 70.0 |")


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_second_proof_certifies_more_of_the_paper_s_classifiers() -> None:
    """The floors of the three ways on one of the tasks, both noises."""
    lines = list(compare_ways(("fmnist_shoes",), attacked=1))
    average = [line.average_radius for line in lines]
    assert average[0] == pytest.approx(1.763, abs=1e-3)
    assert average[1] > 2.42
    assert average[4] > 17
    assert lines[2].certified[0] > 82.6
    assert lines[4].certified[3] > 67.5
    assert all(line.inside == 0 for line in lines)
