"""Results: read-only, sliced whole, and saying what they are about."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    Certificates,
    Distribution,
    Gaussian,
    StepFunction,
    Threat,
    WeightedVote,
    certify,
    certify_interval,
    certify_radius,
    distribution,
)
from derand._core.text import format_short_down
from derand.model import Shape

MODEL = AdditiveEnsemble.from_stumps(
    [0], [0.5], [0.1], [0.9], n_features=2, levels=200, tables=[(1, [0, 1], [0.4, 0.6], 0.5)]
)
ROWS = [[0.0, 1.0], [2.0, 0.0], [0.4, np.nan]]


@pytest.mark.parametrize("name", ["label", "failure", "log_failure", "radius", "classes"])
def test_arrays_of_certificates_are_read_only(name: str) -> None:
    """Also those of slices, and of several budgets, which share a label."""
    first, second = certify(MODEL, ROWS, Gaussian(0.5), l0=[0, 1])
    for certificates in (first, second, first[:2]):
        with pytest.raises(ValueError, match="read-only"):
            getattr(certificates, name)[0] = 0


def test_an_array_that_was_handed_over_stays_the_callers() -> None:
    """Certificates show a read-only view; whoever made the array may still write to it."""
    radius = np.ones(2)
    certificates = Certificates(np.zeros(2), radius, radius, radius, Threat(norm=2))
    assert not certificates.radius.flags.writeable
    assert radius.flags.writeable


def test_arrays_of_a_distribution_are_read_only() -> None:
    """Support and probabilities."""
    found = distribution(MODEL, ROWS, Gaussian(0.5))
    for array in (found.support, found.pmf):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("again", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy])
def test_copies_and_pickles_are_read_only_and_the_same(again: Any) -> None:
    """A model that came from another process cannot be changed behind what was prepared for it."""
    vote = WeightedVote([MODEL], [1.0])
    found = certify(vote, ROWS, Gaussian(0.5))
    model, certificates, law = again(vote), again(found), again(distribution(MODEL, ROWS, Gaussian(0.5)))
    arrays = [model.weights, certificates.radius, certificates.label, law.pmf]
    for term in model.members[0].terms:
        arrays += [term.scores, *(axis.edges for axis in term.axes), term.codes]
    assert not [array for array in arrays if array.size and array.flags.writeable]
    assert certify(model, ROWS, Gaussian(0.5)).radius.tolist() == certificates.radius.tolist() == found.radius.tolist()
    assert (certificates.threat, certificates.noise, certificates.rule) == (found.threat, found.noise, found.rule)
    assert again(certify(MODEL, ROWS, Gaussian(0.5))).path.tolist() == ["tilted"] * 3


def test_certificates_say_what_they_are_about() -> None:
    """Rule, noise and threat travel with them, through slices too."""
    noise = Gaussian(0.5)
    found = certify(MODEL, ROWS, noise, threat=Threat(l0=1, unseen=False))
    for certificates in (found, found[0], found[[2, 1]]):
        assert (certificates.rule, certificates.noise) == ("vote", noise)
        assert set(certificates.proof) <= {"paper", "dual", "exact", "none"}
        assert len(certificates.proof) == len(certificates)
        assert certificates.threat == Threat(norm=2, l0=1, unseen=False)
        assert (certificates.norm, certificates.l0) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threat": Threat(), "l0": 0}, "Give `l0` or `threat`, got both"),
        ({"threat": Threat(), "unseen": False}, "Give `unseen` or `threat`, got both"),
        ({"threat": Threat(norm=3)}, "`norm` of Threat must be one of None, 0, 1, 2, inf for the rule 'vote', got 3"),
        ({"threat": Threat(norm=3), "rule": "mean"}, "`norm` of Threat must be one of .* for the rule 'mean', got 3"),
        ({"threat": Threat(units=[1.0])}, "`units` of Threat must have one entry per feature, 2 in all, .*got 1"),
        ({"proof": "luck"}, "`proof` must be 'best' or 'paper', got 'luck'"),
        ({"rule": "mean", "proof": "paper"}, "`proof` must be 'best' under the rule 'mean'"),
        ({"rule": "dice"}, "`rule` must be one of .*'vote'.*, got 'dice'"),
    ],
)
def test_contradictions_are_refused(arguments: dict[str, Any], message: str) -> None:
    """One way to say what may change at a time, and a rule that exists."""
    with pytest.raises(ValueError, match=message):
        certify(MODEL, ROWS, Gaussian(0.5), **arguments)


def test_a_threat_is_the_same_as_its_parts() -> None:
    """`threat=Threat(l0=1, unseen=False)` and `l0=1, unseen=False` are one."""
    ours, other = (
        certify(MODEL, ROWS, "gaussian:0.5", threat=Threat(l0=1, unseen=False)),
        certify(MODEL, ROWS, "gaussian:0.5", l0=1, unseen=False),
    )
    assert ours.radius.tolist() == other.radius.tolist()


def test_no_budget_gives_no_certificates() -> None:
    """An empty list of budgets is answered by an empty list."""
    assert certify(MODEL, ROWS, "gaussian:0.5", l0=[]) == []


def test_the_path_says_how_a_row_was_computed() -> None:
    """One budget takes tilted laws, or inversion where that pays; several take the law itself, but for faint masses."""
    rng = np.random.default_rng(0)
    terms = [StepFunction(at, rng.normal(size=1), rng.integers(0, 99, 2)) for at in range(300)]
    wide = AdditiveEnsemble(terms, int(sum(term.scores.mean() for term in terms)), 300)
    rows = rng.normal(size=(40, 300))
    path = certify(wide, rows, Gaussian(1.0)).path
    assert path is not None
    assert set(path.tolist()) <= {"tilted", "inverted"}
    assert (path == "inverted").mean() > 0.5
    assert set(certify(wide, rows, Gaussian(1.0), backend="numpy", n_jobs=1)[:2].path) == {"tilted"}
    several = certify(MODEL, ROWS, Gaussian(0.5), l0=[0, 1])
    assert [one.path.tolist() for one in several] == [["law"] * 3] * 2
    faint = certify(MODEL, [[-30.0, 1.0]], Gaussian(0.5), l0=[0, 1])[0]
    assert faint.path.tolist() == ["tilted"]
    assert wide.weights is None


def test_the_percentile_lies_on_the_side_of_the_label() -> None:
    """All but the allowed share reach it, counted from the failing side."""
    law = Distribution(np.array([0, 1, 2]), np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]))
    assert law.percentile([0.05, 0.15, 0.5], row=0, label=1).tolist() == [0, 1, 2]
    assert law.percentile(0.05, row=0, label=0) == 2
    assert law.percentile([0.75, 0.95], row=0, label=0).tolist() == [1, 0]
    assert law.percentile(0.5, row=1, label=0) == 0


def test_a_distribution_of_no_rows_has_no_medians() -> None:
    """An empty answer, of the right shape, and no error."""
    found = distribution(MODEL, np.empty((0, 2)), Gaussian(0.5))
    assert found.median.shape == (0,)
    assert found.quantile([0.1, 0.9]).shape == (0, 2)


def test_notebooks_see_certificates_in_short() -> None:
    """Counts, radii that are never rounded up, the first rows; verdicts where limits alone count; no rows at all."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    rows = [[0.0], [2.0], [3.0], [0.5], [9.0], [9.0], [9.0]]
    certificates = certify(model, rows, "gaussian:0.25").with_classes(np.array(["<b>", "yes"]))
    page = certificates._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 1 + 5 + 6  # a head and five rows, six facts
    assert format_short_down(float(np.sort(certificates.radius)[3])) in page
    limits = Threat(norm=None, limits={0: 0.3})
    assert "undecided" in certify(model, rows, None, rule="mean", threat=limits)._repr_html_()
    assert "Certificates" in certificates[:0]._repr_html_()
    number = AdditiveEnsemble.from_number_shapes(
        [Shape(0, [1.0], [1.0, 4.0])], intercept=10.0, n_features=1, levels=100
    )
    for found in (
        certify_interval(number, rows, "gaussian:0.25", 0.1),
        certify_radius(number, rows, "gaussian:0.25", tolerance=0.5),
    ):
        assert found._repr_html_().count("<tr>") > 6
        assert "rows" in found[:0]._repr_html_()


def test_the_ways_to_masses_are_explained() -> None:
    """Every way that rows went has its rows and its reason; the rule mean has none."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    assert certify(model, [[0.0], [2.0]], "gaussian:0.25").explain_paths()["tilted"][0] == 2
    assert certify(model, [[0.0], [2.0]], "gaussian:0.25", rule="mean").explain_paths() == {}
