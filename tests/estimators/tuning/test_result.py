"""Tuning: which value is recommended, what is said of it, and how it looks."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from derand import plot
from derand._core.text import as_plain_json
from tests.estimators.tuning.examples import RadiusClassifier, make_tuning

RADII = [0.0, 0.1, 0.5]


@pytest.mark.parametrize(
    ("natural", "own", "options", "recommended"),
    [
        ([0.9, 0.895, 0.88], [0.9, 0.85, 0.7], {}, 0.1),
        ([0.9, 0.895, 0.89], [0.9, 0.85, 0.7], {}, 0.5),
        ([0.9, 0.895, 0.88], [0.9, 0.85, 0.7], {"error": 0.01}, 0.5),
        ([0.9, 0.895, 0.88], [0.9, 0.85, 0.7], {"accuracy_loss": 0.0}, 0.0),
        ([0.9, 0.88, 0.895], [0.9, 0.85, 0.7], {}, 0.5),
        ([0.9, 0.899, 0.899], [0.9, 0.85, 0.6], {}, 0.1),
        ([0.9, 0.899, 0.899], [0.6, 0.5, 0.4], {}, None),
        ([0.7, 0.7, 0.7], [0.7, 0.65, 0.55], {"by_balanced": True, "constant": 0.5}, 0.5),
    ],
)
def test_the_largest_radius_that_costs_little_and_certifies_something(
    natural: list[float], own: list[float], options: dict[str, float], recommended: float | None
) -> None:
    """Within the loss allowed and one standard error of the best, and above a constant model at its own radius."""
    assert make_tuning(RADII, natural, own, **options).recommended == recommended  # type: ignore[arg-type]


def test_a_tie_of_radii_goes_to_the_larger_certified_accuracy() -> None:
    """Where all values are for the same radius, the one that certifies most, the first of equals."""
    assert make_tuning([0.5, 0.5, 0.5], [0.9, 0.9, 0.9], [0.7, 0.8, 0.8]).chosen == 1


def test_the_text_says_what_it_costs_and_what_it_gives() -> None:
    """One sentence about the choice, one about why it is not the next value; costs are rounded up, shares cut."""
    tuning = make_tuning(RADII, [0.859, 0.8531, 0.8], [0.748, 0.8437, 0.7])
    assert tuning.text == (
        "radius 0.1 costs 0.6 points of natural accuracy (85.3 % against 85.9 %) and certifies 84.3 % of rows at 0.1, "
        "against 74.8 % without. The next one, radius 0.5, would cost 5.9 points, more than 1.0 points and one "
        "standard error (0.0 points)."
    )
    best = make_tuning(RADII, [0.85, 0.86, 0.86], [0.8, 0.84, 0.7]).text
    assert best == (
        "radius 0.5 has the best natural accuracy, 86.0 %, and certifies 70.0 % of rows at 0.5, against 80.0 % without."
    )
    weak = make_tuning(RADII, [0.86, 0.86, 0.86], [0.8, 0.84, 0.6]).text
    assert "The next one, radius 0.5, certifies 60.0 % at 0.5, no more than a model that always says the same" in weak
    none = make_tuning(RADII, [0.9, 0.8, 0.8], [0.9, 0.8, 0.8]).text
    assert none.startswith("radius 0 has the best natural accuracy, 90.0 %, and certifies 90.0 % of rows at 0.1. The")


@pytest.mark.parametrize("by_balanced", [False, True])
def test_it_is_said_where_nothing_is_recommended(by_balanced: bool) -> None:
    """The text says why and what to do; there is no best estimator then."""
    tuning = make_tuning(RADII, [0.95, 0.95, 0.95], [0.94, 0.92, 0.9], constant=0.95, by_balanced=by_balanced)
    assert tuning.text.startswith("Nothing is recommended: no value certifies more")
    assert "radius 0 comes closest, with 94.0 % at 0" in tuning.text
    assert ("balanced=True" in tuning.text) is not by_balanced
    with pytest.raises(ValueError, match=r"There is no best estimator\. Nothing is recommended"):
        tuning.best_estimator()


def test_the_best_estimator_is_a_fresh_clone() -> None:
    """With the recommended value, and the estimator of the tuning as it was."""
    tuning = make_tuning(RADII, [0.9, 0.9, 0.8], [0.9, 0.9, 0.8])
    best = tuning.best_estimator()
    assert isinstance(best, RadiusClassifier)
    assert (best.radius, tuning.estimator.radius) == (0.1, 0.1)  # type: ignore[attr-defined]
    assert best is not tuning.estimator
    assert not hasattr(best, "ensemble_")


def test_a_tuning_is_frozen_and_plain() -> None:
    """Arrays are read-only, also in copies; as a dict it is JSON."""
    tuning = make_tuning(RADII, [0.9, 0.9, 0.8], [0.9, 0.9, 0.8])
    with pytest.raises(AttributeError):
        tuning.norm = 1.0  # type: ignore[misc]
    for one in (tuning, pickle.loads(pickle.dumps(tuning))):
        assert not one.certified.flags.writeable
    summary = json.loads(json.dumps(as_plain_json(tuning.to_dict()), allow_nan=False))
    assert summary["recommended"] == 0.1
    assert summary["values"] == RADII
    assert summary["text"] == tuning.text
    assert np.shape(summary["own_certified"]) == (3, 3)
    assert "estimator" not in summary


@pytest.mark.parametrize("chosen", [True, False])
def test_the_picture_has_a_line_per_value(chosen: bool) -> None:
    """From the natural accuracy on; the recommended one in colour and named so, the constant model beside them."""
    tuning = make_tuning(RADII, [0.9, 0.895, 0.88], [0.9, 0.85, 0.7], constant=0.6 if chosen else 0.97)
    axes = tuning.plot(Figure().subplots())
    lines = {line.get_color(): line for line in axes.get_lines()}
    assert len(axes.get_lines()) == 4
    assert (plot.ACCENT in lines) is chosen
    if chosen:
        assert lines[plot.ACCENT].get_xdata().tolist() == [0.0, 0.1, 0.5]
        assert lines[plot.ACCENT].get_ydata().tolist() == [0.895, 0.85, 0.85]
    assert lines[plot.WRONG].get_ydata()[0] == tuning.constant
    words = [text.get_text() for text in axes.texts]
    assert "always the same label" in words
    assert ("radius 0.1, recommended" in words) is chosen
    assert axes.get_xlabel().startswith("radius (l2)")
    assert all(to_hex(text.get_color()) for text in axes.texts)
