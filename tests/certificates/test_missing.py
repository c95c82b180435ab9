"""Numbers that go missing or appear: no change within a threat flips a label, and what is called exact is exact."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    StepFunction,
    Threat,
    WeightedVote,
    certify,
    certify_interval,
)
from derand.certificates import find_labels
from derand.certificates.bounds import missing as _missing
from derand.model import Value
from derand.noise import NOISES, Noise
from tests import oracle

CDF = {
    "gaussian": special.ndtr,
    "uniform": lambda z: np.clip(0.5 * z + 0.5, 0, 1),
    "laplace": lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))),
}
CLEAR = 1e-9  # what lies nearer to a tie is not judged by plain sums
N_ROWS, N_CHANGES = 3, 80


def draw_model(rng: np.random.Generator, *, every: bool = False) -> AdditiveEnsemble:
    """Up to four numbers, most with a cell for missing ones, one of them perhaps constant, and perhaps a category."""
    n = int(rng.integers(1, 5))
    terms: list[Any] = []
    for at in range(n):
        edges = np.unique(rng.integers(-8, 9, rng.integers(0 if at else 1, 4)) / 4)
        missing = int(rng.integers(-8, 9)) if every or rng.random() < 0.85 else None
        terms.append(StepFunction(at, edges, rng.integers(-6, 7, edges.size + 1), missing=missing))
    if rng.random() < 0.4:
        missing = int(rng.integers(-4, 5)) if rng.random() < 0.5 else None
        terms.append(CategoryTable(n, [0, 1, 2], rng.integers(-4, 5, 3), int(rng.integers(-4, 5)), missing=missing))
    if not any(term.missing is not None for term in terms[:n]):
        terms[0] = StepFunction(0, terms[0].edges, terms[0].scores, missing=1)
    return AdditiveEnsemble(terms, int(rng.integers(-4, 5)), n + 1)


def draw_rows(rng: np.random.Generator, model: AdditiveEnsemble) -> np.ndarray:
    """Numbers on eighths, some of them missing where they may be, and codes, some of them unknown."""
    rows = rng.integers(-20, 21, (N_ROWS, model.n_features)) / 8
    rows[:, -1] = rng.choice([0, 1, 2, 7, np.nan], N_ROWS)
    for at in model.missing_features:
        rows[rng.random(N_ROWS) < 0.3, at] = np.nan
    return rows


def draw_threat(rng: np.random.Generator, model: AdditiveEnsemble) -> Threat:
    """A ball or limits, sometimes both, and a budget of missing numbers."""
    n = model.n_features - 1
    norm = [0, 1, 2, math.inf, None][rng.integers(0, 5)]
    limits = {at: float(rng.integers(0, 9)) / 4 for at in range(n) if rng.random() < (0.8 if norm is None else 0.2)}
    steps = {at: 0.5 for at in limits if rng.random() < 0.2}
    frozen = tuple(at for at in range(n) if at not in limits and rng.random() < 0.15)
    return Threat(
        norm=norm,
        limits=limits,
        steps=steps,
        frozen=frozen,
        l0=int(rng.integers(0, 2)),
        unseen=bool(rng.random() < 0.7),
        missing=int(rng.integers(0, 4)),
    )


def find_expected(term: Any, values: np.ndarray, noise: Noise | None) -> np.ndarray:
    """Probabilities of the cells of a term at some numbers, (n_values, n_cells)."""
    edges = np.concatenate([[-np.inf], term.edges, [np.inf]])
    if noise is None:
        return ((values[:, None] >= edges[:-1]) & (values[:, None] < edges[1:])).astype(float)
    shares = CDF[noise.name]((edges - values[:, None]) / noise.magnitude)
    return np.diff(shares, axis=1)


def find_margins(model: AdditiveEnsemble, rows: np.ndarray, noise: Noise | None, rule: str) -> np.ndarray:
    """How clearly each row is of class 1, by plain sums: positive where it is."""
    laws = np.zeros((rows.shape[0], 401))
    laws[:, 200] = 1.0
    for term in model.terms:
        grown = np.zeros_like(laws)
        values = rows[:, term.features[0]]
        gaps = np.isnan(values) & bool(term.axes)
        if term.axes:
            cells = find_expected(term, np.where(gaps, 0.0, values), noise)
            scores = term.cell_scores.tolist()
        else:
            cells, scores = np.ones((rows.shape[0], 1)), [0]
        for score, share in zip(scores, cells.T, strict=True):
            grown += np.where(gaps, 0.0, share)[:, None] * np.roll(laws, score, axis=1)
        if gaps.any():
            grown[gaps] = np.roll(laws[gaps], term.missing, axis=1)
        if not term.axes:
            for at, code in enumerate(values):
                grown[at] = np.roll(laws[at], oracle_category(term, code))
        laws = grown
    support = np.arange(401) - 200
    if rule == "mean":
        return np.asarray(laws @ support - model.threshold)
    return np.asarray((laws[:, support > model.threshold]).sum(axis=1) - 0.5)


def oracle_category(table: Any, code: float) -> int:
    if np.isnan(code) and table.missing is not None:
        return int(table.missing)
    return oracle.category_score(table, code)


def measure_box(threat: Threat, at: int, x: float) -> tuple[float, float]:
    if at in threat.frozen or (threat.norm is None and at not in threat.limits):
        return x, x
    size = threat.limits.get(at, math.inf)
    return x - size, x + size  # type: ignore[operator]


def draw_changes(
    rng: np.random.Generator, model: AdditiveEnsemble, threat: Threat, row: np.ndarray, radius: float
) -> np.ndarray:
    """Rows that the threat allows within the radius, towards places that matter."""
    changed = np.tile(row, (N_CHANGES, 1))
    numbers = [term for term in model.terms if term.axes]
    places = {
        term.features[0]: np.concatenate([term.axes[0].edges, np.nextafter(term.axes[0].edges, -np.inf), [-30.0, 30.0]])
        for term in numbers
    }
    movable = [at for at in model.missing_features if at not in threat.frozen]
    for one in changed:
        budget = int(rng.integers(0, threat.missing_budget + 1))
        chosen = rng.permutation(movable)[:budget].tolist()
        _move_numbers(rng, threat, row, one, {at: places[at] for at in places if at not in chosen}, radius)
        for at in chosen:
            one[at] = rng.choice(places[at]) + rng.choice([0.0, 0.1, -0.3]) if np.isnan(row[at]) else np.nan
        if threat.l0 and rng.random() < 0.6 and model.category_tables:
            (table,) = model.category_tables
            one[table.feature] = rng.choice([0, 1, 2, *([9, np.nan] if threat.unseen else [])])
    return changed


def _move_numbers(
    rng: np.random.Generator, threat: Threat, row: np.ndarray, one: np.ndarray, places: dict[int, Any], radius: float
) -> None:
    """Move numbers towards places, and back into the ball and the limits."""
    there = [at for at in places if not np.isnan(row[at])]
    moves = {at: rng.choice([*places[at], row[at] + rng.normal(0, 1)]) - row[at] for at in there if rng.random() < 0.8}
    if threat.norm == 0:
        moves = dict(list(moves.items())[: int(min(radius, len(moves)))])
    elif threat.norm is not None and moves and math.isfinite(radius):
        size = float(np.linalg.norm(list(moves.values()), ord=threat.norm))
        share = min(1.0, radius * (1 - 1e-9) / size) if size else 1.0
        if math.isinf(threat.norm):  # every number as far as it may
            moves = {at: float(np.clip(move, -radius, radius)) * (1 - 1e-9) for at, move in moves.items()}
        else:
            moves = {at: move * share for at, move in moves.items()}
    for at, move in moves.items():
        low, high = measure_box(threat, at, row[at])
        step = threat.steps.get(at)
        moved = row[at] + np.trunc(move / step) * step if step else row[at] + move
        one[at] = moved if low <= moved <= high else np.clip(moved, low, high) if not step else row[at]


def check_model(rng: np.random.Generator) -> None:
    """One drawn model, noise, rule and threat: certified, then changed in many ways."""
    model, kind = draw_model(rng), ["none", *CDF][rng.integers(0, 4)]
    noise = None if kind == "none" else NOISES[kind](float(rng.choice([0.2, 0.5, 1.0])))
    rule = "mean" if noise is None or rng.random() < 0.5 else "vote"
    rows, threat = draw_rows(rng, model), draw_threat(rng, model)
    certificates = certify(model, rows, noise, rule=rule, threat=threat)
    home = find_margins(model, rows, noise, rule)
    for at, row in enumerate(rows):
        if abs(home[at]) < CLEAR:
            continue
        assert certificates.label[at] == (home[at] > 0)
        if certificates.radius[at] == 0:
            continue
        changed = draw_changes(rng, model, threat, row, float(certificates.radius[at]))
        margins = find_margins(model, changed, noise, rule)
        signs = np.where(certificates.label[at] == 1, 1.0, -1.0)
        assert (signs * margins >= -CLEAR).all()
        assert (find_labels(model, changed, noise, rule=rule) == certificates.label[at]).all()


@pytest.mark.parametrize("part", range(3))
def test_no_change_within_the_threat_flips_a_label(part: int) -> None:
    """Small models, every noise, rule and norm, numbers that move, go missing and appear, categories that change."""
    rng = np.random.default_rng([11, part])
    for _ in range(50):
        check_model(rng)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_no_change_within_the_threat_flips_a_label_of_many_models(part: int) -> None:
    """The same for 2,000 models."""
    rng = np.random.default_rng([12, part])
    for _ in range(100):
        check_model(rng)


def list_ends(model: AdditiveEnsemble, threat: Threat, row: np.ndarray) -> dict[int, tuple[float, float]]:
    """The lowest and highest score that each number can reach by moving, and by going missing or appearing."""
    ends = {}
    for term in model.step_functions:
        at, edges = term.feature, term.edges
        if np.isnan(row[at]):
            ends[at] = (term.missing, term.missing)
            continue
        low, high = measure_box(threat, at, row[at])
        places = np.concatenate([[row[at], low, high], edges, np.nextafter(edges, -np.inf)])
        if at in threat.steps:
            places = row[at] + np.arange(-40, 41) * threat.steps[at]
        scores = term.evaluate(places[(places >= low) & (places <= high)])
        ends[at] = (int(scores.min()), int(scores.max()))
    return ends


def find_worst_sum(model: AdditiveEnsemble, threat: Threat, row: np.ndarray, label: int) -> int:
    """The worst score within limits, by trying every set of columns."""
    best = None
    ends, side = list_ends(model, threat, row), 0 if label else 1
    terms = {term.feature: term for term in model.step_functions}
    movable = [at for at in model.missing_features if at not in threat.frozen]
    (own,) = oracle_sums(model, row, 0, threat.unseen)
    sums = oracle_sums(model, row, threat.l0, threat.unseen) | {own}
    for size in range(min(threat.missing_budget, len(movable)) + 1):
        for chosen in itertools.combinations(movable, size):
            total = min(sums) if label else max(sums)
            for at, end in ends.items():
                if at not in chosen:
                    total += end[side]
                elif np.isnan(row[at]):
                    total += int(terms[at].scores.min() if label else terms[at].scores.max())
                else:
                    total += terms[at].missing
            if best is None or (total < best if label else total > best):
                best = total
    assert best is not None
    return best


def oracle_sums(model: AdditiveEnsemble, row: np.ndarray, l0: int, unseen: bool) -> set[int]:
    """Every score of the categories that the threat allows."""
    sums = {0}
    for table in model.category_tables:
        own = oracle_category(table, row[table.feature])
        reached = {own}
        if l0:
            reached |= {int(score) for score in table.cell_scores}
            if unseen:
                reached |= {table.other, *([table.missing] if table.missing is not None else [])}
        sums = {total + score for total in sums for score in reached}
    return sums


def test_limits_without_noise_are_decided_exactly() -> None:
    """The worst score is the least of all sets of columns; a row holds or has a witness that the threat allows."""
    rng = np.random.default_rng(21)
    verdicts: set[str] = set()
    for _ in range(150):
        model = draw_model(rng)
        rows, threat = draw_rows(rng, model), draw_threat(rng, model)
        threat = Threat(**{name: getattr(threat, name) for name in threat.__slots__} | {"norm": None})
        c = certify(model, rows, None, rule="mean", threat=threat)
        assert c.verdict is not None
        assert c.worst is not None
        assert c.witness is not None
        verdicts |= set(c.verdict.tolist())
        for at, row in enumerate(rows):
            assert c.worst[at] == find_worst_sum(model, threat, row, int(c.label[at]))
            assert (c.verdict[at] == "holds") == ((c.worst[at] > model.threshold) == bool(c.label[at]))
            if c.verdict[at] == "flips":
                check_witness(model, threat, row, c.witness[at])
                assert (model.score(c.witness[[at]])[0] > model.threshold) != bool(c.label[at])
    assert verdicts == {"holds", "flips"}


def check_witness(model: AdditiveEnsemble, threat: Threat, row: np.ndarray, witness: np.ndarray) -> None:
    """A witness changes no more than the threat allows."""
    swapped = np.flatnonzero(np.isnan(row[:-1]) != np.isnan(witness[:-1]))
    assert swapped.size <= threat.missing_budget
    assert not set(swapped.tolist()) & set(threat.frozen)
    for at in range(model.n_features - 1):
        if at not in swapped and not np.isnan(row[at]):
            low, high = measure_box(threat, at, row[at])
            assert low <= witness[at] <= high
    same = row[-1] == witness[-1] or (np.isnan(row[-1]) and np.isnan(witness[-1]))
    assert same or threat.l0


@pytest.mark.parametrize("kind", sorted(CDF))
def test_masses_of_a_vote_are_those_of_the_worst_set(kind: str) -> None:
    """The paper's proof tries every set of numbers that may go missing: the failing mass is the largest of all."""
    rng = np.random.default_rng(31)
    for _ in range(12):
        model = draw_model(rng, every=True)
        rows = rng.integers(-20, 21, (2, model.n_features)) / 8
        rows[:, -1] = 1.0
        noise, budget = NOISES[kind](0.5), int(rng.integers(1, 4))
        c = certify(model, rows, noise, proof="paper", threat=Threat(missing=budget))
        plain = certify(model, rows, noise, proof="paper")
        assert (c.label == plain.label).all()
        assert (c.radius <= plain.radius * (1 + 1e-9)).all()
        for at, row in enumerate(rows):
            masses = []
            for size in range(budget + 1):
                for chosen in itertools.combinations(model.missing_features, size):
                    gone = row.copy()
                    gone[list(chosen)] = np.nan
                    share = float(find_margins(model, gone[None], noise, "vote")[0]) + 0.5
                    masses.append(1 - share if c.label[at] else share)
            assert c.failure[at] == pytest.approx(max(masses), rel=1e-6, abs=1e-12)


def test_too_many_sets_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the sets that are tried the threshold is moved instead: never more is certified, and it holds."""
    rng = np.random.default_rng(41)
    some = 0
    for _ in range(40):
        model = draw_model(rng)
        rows, noise = draw_rows(rng, model), NOISES["laplace"](0.5)
        threat = Threat(missing=int(rng.integers(1, 3)), l0=1)
        tried = certify(model, rows, noise, proof="paper", threat=threat)
        with monkeypatch.context() as patch:
            patch.setattr("derand.certificates.rules.vote.MOST_SETS", 0)
            bounded = certify(model, rows, noise, proof="paper", threat=threat)
        assert (bounded.label == tried.label).all()
        assert (bounded.radius <= tried.radius * (1 + 1e-9)).all()
        some += int(((bounded.radius > 0) & (bounded.radius < np.inf)).sum())
    assert some > 5
    assert _missing.count_sets(784, 1) == 784
    assert _missing.count_sets(3, 5) == 7


def test_a_budget_of_none_is_fixed() -> None:
    """To the last bit; and larger budgets certify no more."""
    rng = np.random.default_rng(51)
    for rule, noise in (("vote", "gaussian:0.5"), ("mean", "uniform:0.5"), ("mean", None)):
        model = draw_model(rng)
        rows = draw_rows(rng, model)
        for norm in (0, 1, 2, math.inf):
            radii = [
                certify(model, rows, noise, rule=rule, threat=Threat(norm=norm, missing=missing)).radius
                for missing in ("fixed", 0, 1, 2, 9)
            ]
            assert radii[0].tobytes() == radii[1].tobytes()
            for less, more in itertools.pairwise(radii):
                assert (more <= less).all()


def test_votes_of_ensembles_hold_against_missing_numbers() -> None:
    """Every member holds against every set of columns, so that the vote does."""
    rng = np.random.default_rng(61)
    for _ in range(20):
        edges = np.sort(rng.integers(-6, 7, (3, 2)), axis=1) / 4
        members = [
            AdditiveEnsemble(
                [
                    StepFunction(at, [edge], rng.integers(-4, 5, 2), missing=int(rng.integers(-4, 5)))
                    for at, edge in enumerate(pair)
                ],
                int(rng.integers(-2, 3)),
                2,
            )
            for pair in edges
        ]
        vote = WeightedVote(members, rng.normal(0, 1, 3))
        rows = rng.integers(-12, 13, (4, 2)) / 8
        noise = NOISES["gaussian"](0.4)
        c = certify(vote, rows, noise, threat=Threat(missing=1))
        for at, row in enumerate(rows):
            for gone in (0, 1):
                changed = np.tile(row, (20, 1))
                radius = min(float(c.radius[at]), 5.0) * (1 - 1e-9)
                changed[:, 1 - gone] += np.linspace(-radius, radius, 20)
                changed[:, gone] = np.nan
                if c.radius[at] > 0:
                    assert (find_labels(vote, changed, noise) == c.label[at]).all()


def test_a_model_that_takes_no_missing_numbers_refuses_a_budget() -> None:
    """There would be nothing to certify."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    with pytest.raises(ValueError, match="`missing` of Threat must be 'fixed' for a model that takes no missing"):
        certify(model, [[1.0]], "gaussian:1", threat=Threat(missing=1))
    assert certify(model, [[1.0]], "gaussian:1", threat=Threat(missing=0)).radius[0] > 0


@pytest.mark.parametrize(
    ("term", "row", "threshold", "changed"),
    [
        (StepFunction(0, [-0.25, 1.75], [6, 6, -2], missing=4), np.nan, 4, -0.25),
        (StepFunction(0, [-0.5, 1.0], [-4, -4, 4], missing=5), 1.875, 4, np.nan),
        (StepFunction(0, [1.0], [-4, 4], missing=-5), -3.0, -5, np.nan),
    ],
)
def test_a_missing_number_may_score_what_no_sum_of_cells_does(
    term: StepFunction, row: float, threshold: int, changed: float
) -> None:
    """Its score lies off the grid that the others have in common: no proof may rest on that grid."""
    model = AdditiveEnsemble([term], threshold, 1)
    noise = NOISES["gaussian"](0.2)
    for rule in ("vote", "mean"):
        home, flipped = find_labels(model, np.array([[row], [changed]]), noise, rule=rule)
        assert home != flipped
        for norm in (0, 1, 2, math.inf):
            threat = Threat(norm=norm, missing=1)
            assert certify(model, [[row]], noise, rule=rule, threat=threat).radius.tolist() == [0.0]


def test_an_interval_within_limits_holds_the_answer_of_a_missing_number() -> None:
    """A number that is at its worst already: what it loses by going missing is counted from the same floor."""
    model = AdditiveEnsemble([StepFunction(0, [0.1], [467, 794], 809)], Value(0), 1)
    threat = Threat(norm=None, limits={0: "0%"}, missing=1)
    found = certify_interval(model, [[3929.57]], Gaussian(3.93), None, rule="mean", threat=threat)
    assert found.high[0] >= 8.09
