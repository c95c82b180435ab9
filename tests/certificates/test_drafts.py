"""Drafts of duels, and what duels share: the same certificates as from all proofs of all duels, for less work."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, Laplace, Threat, Uniform, certify
from derand.certificates import find_rule
from derand.certificates.bounds import shared_edges as _common
from derand.certificates.bounds.packing import pose_problem
from derand.certificates.bounds.pairwise import bound_classes, build_pair
from derand.certificates.bounds.shared_edges import SharedEdges, round_up
from derand.certificates.rules.base import Query
from derand.perturbation import resolve
from tests.certificates.test_duels import ask, draw_model, draw_rows


def copy_model(model: AdditiveEnsemble) -> AdditiveEnsemble:
    """The same without anything that was made for it."""
    return AdditiveEnsemble(model.terms, model.decision, model.n_features)


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_rivals_left_out_change_nothing(rule: str, n_classes: int) -> None:
    """Radius, runner-up, proof and failing mass are those of all duels, each bounded by all proofs."""
    rng = np.random.default_rng(n_classes)
    for noise, norm in ((Gaussian(0.4), 2), (Gaussian(0.3), 1), (Uniform(0.9), 2), (Laplace(0.5), math.inf)):
        model, rows = draw_model(rng, n_classes, 12), draw_rows(rng, 8, 12)
        threat = Threat(norm=norm, l0=1)
        found = certify(model, rows, noise, rule=rule, threat=threat)
        assert found.runner_up is not None
        for row, label in enumerate(found.label.tolist()):
            rivals = [rival for rival in range(n_classes) if rival != label]
            duels = [build_pair(model, min(label, rival), max(label, rival)) for rival in rivals]
            each = [certify(duel, rows[row : row + 1], noise, rule=rule, threat=threat) for duel in duels]
            if any(one.label[0] != (label > rival) for one, rival in zip(each, rivals, strict=True)):
                assert found.radius[row] == 0  # nobody wins all duels
                continue
            radii, masses = [one.radius[0] for one in each], [one.log_failure[0] for one in each]
            nearest = [k for k, radius in enumerate(radii) if radius == min(radii)]
            decides = nearest[0] if rule == "mean" else max(nearest, key=lambda k: masses[k])
            assert found.radius[row] == min(radii)
            assert found.runner_up[row] == rivals[decides]
            assert found.proof[row] == each[decides].proof[0]
            assert np.array_equal(found.log_failure[row], max(masses), equal_nan=True)


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_far_rivals_are_left_out(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All proofs are asked of fewer duels than there are: else drafts would be work for nothing."""
    rng, asked = np.random.default_rng(1), {True: 0, False: 0}
    chosen = find_rule(rule)
    bound = type(chosen).bound

    def count(self: Any, problem: Any, rows: Any, query: Query) -> Any:
        asked[query.preliminary] += len(rows)
        return bound(self, problem, rows, query)

    monkeypatch.setattr(type(chosen), "bound", count)
    noise = Gaussian(0.4)
    for _ in range(2):
        model, rows = draw_model(rng, 6, 12), draw_rows(rng, 30, 12)
        bound_classes(model, rows, ask(noise, rule, resolve(Threat(), model, noise)))
    assert asked[True] >= 2 * 30 * 5
    assert 0 < asked[False] < 0.7 * asked[True]


def test_drafts_are_never_larger() -> None:
    """A draft's radius is at most what all proofs give, and its failing mass at least that."""
    rng, noise = np.random.default_rng(2), Gaussian(0.4)
    for rule in ("vote", "mean"):
        for norm in (1, 2):
            model, rows = draw_model(rng, 3, 12), draw_rows(rng, 40, 12)
            problem, query = (
                pose_problem(build_pair(model, 0, 2)),
                ask(noise, rule, resolve(Threat(norm=norm), model, noise)),
            )
            draft, full = (
                query.rule.bound(problem, rows, replace(query, preliminary=draft))[0] for draft in (True, False)
            )
            assert (draft.radius <= full.radius).all()
            assert (draft.radius < full.radius).any()
            assert draft.is_preliminary is not None
            assert (draft.radius == full.radius)[~draft.is_preliminary].all()
            assert np.array_equal(draft.label, full.label)
            assert not (draft.log_failure < full.log_failure).any()


def test_what_is_shared_does_not_depend_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any room for what duels share it is found again, the same to the last bit."""
    rng, noise = np.random.default_rng(3), Gaussian(0.4)
    model, rows = draw_model(rng, 4, 12), draw_rows(rng, 20, 12)
    expected = certify(model, rows, noise, rule="mean")
    monkeypatch.setattr(_common, "MOST_BYTES", 0)
    found = certify(copy_model(model), rows, noise, rule="mean")
    assert np.array_equal(expected.radius, found.radius)


def test_tables_grow_with_the_rows_that_ask() -> None:
    """Row by row, far ones between near ones, certificates are those of all rows at once, to the last bit."""
    rng = np.random.default_rng(4)
    for n_classes, norm in ((2, 2), (3, 2), (3, 1)):
        model, rows = draw_model(rng, n_classes, 12), draw_rows(rng, 16, 12)
        rows[::3, :12] *= 30
        rows[1::5, :12] *= 1000
        whole = certify(model, rows, Gaussian(0.4), rule="mean", threat=Threat(norm=norm))
        other = copy_model(model)
        for row in rng.permutation(16):
            one = certify(other, rows[row : row + 1], Gaussian(0.4), rule="mean", threat=Threat(norm=norm))
            assert one.radius[0] == whole.radius[row]
            assert one.label[0] == whole.label[row]


def test_spread_functions_are_the_same_functions() -> None:
    """With edges at which nothing steps a function has the same value everywhere, on edges and between them."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        model = draw_model(rng, 3)
        common = SharedEdges(model.terms)
        for term in model.terms[:3]:
            less = term.subtract(2, 0)
            edges, scores = common.spread(term.features[0], less.edges, less.scores.ravel())
            assert np.array_equal(edges, term.axes[0].edges)
            x = np.concatenate([edges, edges - 0.005, edges + 0.005])
            assert np.array_equal(scores[np.searchsorted(edges, x, side="right")], less.evaluate(x).ravel())


def test_counts_are_rounded_up() -> None:
    """To few different ones, none smaller, and none by more than an eighth of an octave."""
    rounded = [round_up(count) for count in range(1, 5000)]
    assert all(count <= up <= count * 2**0.125 + 1 for count, up in enumerate(rounded, start=1))
    assert len(set(rounded[500:600])) <= 4
