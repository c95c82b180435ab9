"""Models with trees over columns that they share: verdicts, radii and intervals against every point, and bad input."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    StepFunction,
    Threat,
    WeightedVote,
    attack,
    attack_interval,
    certify,
    certify_interval,
    certify_radius,
    distribution,
)
from derand.certificates import TreeSearch, certify_checked, explain, find_labels
from derand.certificates.kinds import Kind
from derand.certificates.search.attacks import NEAREST_FLIPS
from derand.model import Argmax, Value
from tests.certificates.test_limits import draw_threat
from tests.certificates.trees import CATEGORY, draw_model, draw_rows, list_boxes, list_changes

RULE: dict[str, Any] = {"rule": "mean"}
DECISIONS = (None, Argmax((0, 1)), Argmax((0, 2, -1)))


def predict(model: AdditiveEnsemble, rows: np.ndarray) -> np.ndarray:
    """Labels by the definition of a decision."""
    scores = model.score(rows)
    if model.offsets:
        return np.asarray((scores + np.array(model.offsets)).argmax(axis=1))
    return np.asarray(scores > model.threshold).astype(int)


@pytest.mark.parametrize("decision", DECISIONS)
def test_verdicts_within_limits_are_those_of_every_point(decision: Any) -> None:
    """Holds where no point flips, flips where one does; a witness keeps to the limits, and needs all of its changes."""
    rng, counts = np.random.default_rng(3), {"holds": 0, "flips": 0}
    for _ in range(60):
        model = draw_model(rng, decision)
        rows = draw_rows(rng, 4)
        threat = draw_threat(rng, CATEGORY, np.nan_to_num(rows[0]), norm=None)
        if CATEGORY not in model.categorical_features:
            threat = Threat(**{**{n: getattr(threat, n) for n in ("norm", "frozen", "limits", "steps")}, "l0": 0})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c = certify(model, rows[:1], None, threat=threat, **RULE)
        assert c.label.tolist() == predict(model, rows[:1]).tolist()
        points = list_changes(model, rows[0], threat)
        truth = "flips" if (predict(model, points) != c.label[0]).any() else "holds"
        assert c.verdict is not None
        assert c.verdict.tolist() == [truth]
        assert not c.is_tie.any()
        counts[truth] += 1
        if truth == "flips":
            check_witness(model, rows[0], c.witness[0], points)
    assert min(counts.values()) > 8


def check_witness(model: AdditiveEnsemble, row: np.ndarray, witness: np.ndarray, points: np.ndarray) -> None:
    """It flips, lies in a cell that is allowed, and no column of it can be put back."""
    home = predict(model, row[None])
    assert predict(model, witness[None]) != home
    assert any(np.array_equal(model.score(one[None]), model.score(witness[None])) for one in points)
    for column in np.flatnonzero(~((row == witness) | (np.isnan(row) & np.isnan(witness)))):
        back = witness.copy()
        back[column] = row[column]
        assert predict(model, back[None]) == home


@pytest.mark.parametrize("norm", [0, 1, 2, math.inf])
@pytest.mark.parametrize("decision", DECISIONS[::2])
def test_radii_are_those_of_the_nearest_cell(norm: float, decision: Any) -> None:
    """Certified, attacked and true distance agree up to rounding; the witness lies where it is said to."""
    rng, units = np.random.default_rng(5), (1.0, 2.0, 0.5, 1.0)
    finite = 0
    for _ in range(25):
        model, rows = draw_model(rng, decision), draw_rows(rng, 2)
        c = certify(model, rows, None, threat=Threat(norm=norm, units=units), **RULE)
        assert c.attacked is not None
        assert c.is_exact is not None
        for at, row in enumerate(rows):
            home, nearest = c.label[at], math.inf
            for point, sizes in list_boxes(model, row):
                if predict(model, point[None]) != home:
                    nearest = min(nearest, float(np.linalg.norm(sizes / units[:CATEGORY], norm)))
            expected = nearest - 1 if norm == 0 else nearest
            assert c.is_exact[at] or c.attacked[at] <= c.radius[at] * (1 + 1e-9)
            assert c.radius[at] == pytest.approx(expected, rel=1e-9)
            assert c.radius[at] <= expected
            assert c.attacked[at] == pytest.approx(nearest, rel=1e-9)
            if math.isfinite(nearest):
                finite += 1
                assert predict(model, c.witness[at][None]) != home
                moved = np.nan_to_num(c.witness[at] - row)[:CATEGORY] / units[:CATEGORY]
                assert np.linalg.norm(moved, norm) <= c.attacked[at]
    assert finite > 20


def test_a_small_budget_is_sound() -> None:
    """Whatever is certified with few nodes is so with many, and nothing else flips."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        model, rows = draw_model(rng), draw_rows(rng, 8)
        for norm in (None, 1.0, math.inf):
            threat = Threat(norm=norm, limits={"*": 1.0})
            few, many = (certify(model, rows, None, threat=threat, budget=n, **RULE) for n in (1, 100_000))
            if norm is None:
                assert (many.verdict[few.verdict == "holds"] == "holds").all()
                assert (many.verdict[few.verdict == "flips"] == "flips").all()
            else:
                assert (few.radius <= many.radius).all()
                assert (few.attacked >= many.radius).all()
                assert (few.radius[few.is_exact] == many.radius[few.is_exact]).all()


def test_missing_values_may_appear_and_go() -> None:
    """A budget of missing numbers: every choice of one of them, at any value, or gone."""
    rng, seen = np.random.default_rng(11), set()
    for _ in range(30):
        model, row = draw_model(rng), draw_rows(rng, 1)[0]
        c = certify(model, row[None], None, threat=Threat(norm=None, missing=1), **RULE)
        points = [row]
        for column in set(model.missing_features):
            values = [-9.0, *np.arange(-8, 9) / 4] if np.isnan(row[column]) else [np.nan]
            for value in values:
                points.append(row.copy())
                points[-1][column] = value
        truth = "flips" if (predict(model, np.array(points)) != c.label[0]).any() else "holds"
        assert c.verdict.tolist() == [truth]
        seen.add(truth)
    assert seen == {"flips", "holds"}


def test_several_budgets_of_categories_at_once() -> None:
    """Each is what it is alone."""
    model, rows = draw_model(np.random.default_rng(1)), draw_rows(np.random.default_rng(2), 20)
    none, one = certify(model, rows, None, l0=[0, 1], **RULE)
    assert (one.radius <= none.radius).all()
    assert one.radius.tolist() == certify(model, rows, None, l0=1, **RULE).radius.tolist()


def find_tied(seed: int) -> tuple[AdditiveEnsemble, np.ndarray, Threat]:
    """Models whose scores may be off by one, and rows."""
    rng = np.random.default_rng(seed)
    return draw_model(rng, score_error=1.0), draw_rows(rng, 30), Threat(norm=None, limits={"*": 0.5})


def test_what_lies_within_the_rounding_is_a_tie() -> None:
    """Neither holds nor flips: every model within the error decides these rows, or their changes, in its own way."""
    ties = 0
    for seed in range(6):
        model, rows, threat = find_tied(seed)
        c = certify(model, rows, None, threat=threat, **RULE)
        lead = model.score(rows) - model.threshold
        unsure = np.where(lead > 0, lead <= 1, -lead < 1)
        assert c.is_tie[unsure].all()
        assert (c.verdict[c.is_tie] == "undecided").all()
        ties += int(c.is_tie.sum())
        for shift in (-1, 0, 1):  # another model that may be meant
            other = AdditiveEnsemble(model.terms, model.threshold + shift, model.n_features)
            sure = ~unsure
            assert (predict(other, rows)[sure] == c.label[sure]).all()
            found = certify(other, rows, None, threat=threat, **RULE)
            assert (found.verdict[c.verdict == "holds"] == "holds").all()
            flipped = c.flips & sure
            assert (predict(other, c.witness[flipped]) != c.label[flipped]).all()
    assert ties > 20


def test_the_library_settles_ties() -> None:
    """Its own answers decide between a flip and a tie, and shrink the witness; without them it stays a tie."""
    settled = 0
    for seed in range(6):
        model, rows, threat = find_tied(seed)
        meant = AdditiveEnsemble(model.terms, model.threshold - 1, model.n_features)

        def ask(points: np.ndarray, meant: AdditiveEnsemble = meant) -> np.ndarray:
            return predict(meant, points)

        plain = certify(model, rows, None, threat=threat, **RULE)
        (c,) = certify_checked(model, rows, None, [threat], search=TreeSearch(library=ask), **RULE)
        assert (c.flips >= plain.flips).all()
        more = c.flips & ~plain.flips
        settled += int(more.sum())
        assert plain.is_tie[more].all()
        assert not c.is_tie[more].any()
        assert (ask(c.witness[more]) != c.label[more]).all()
        assert (ask(rows[more]) == c.label[more]).all()
    assert settled > 0


def test_a_library_that_answers_nothing_leaves_ties() -> None:
    """-1 is no answer."""
    model, rows, threat = find_tied(0)
    plain = certify(model, rows, None, threat=threat, **RULE)
    silent = TreeSearch(library=lambda points: np.full(len(points), -1))
    (c,) = certify_checked(model, rows, None, [threat], search=silent, **RULE)
    assert c.verdict.tolist() == plain.verdict.tolist()


def test_a_library_that_has_changed_is_noticed() -> None:
    """A certain flip that it denies is an error in one line."""
    model, rows, threat = find_tied(0)
    plain = certify(model, rows, None, threat=threat, **RULE)
    assert plain.flips.any()
    other = TreeSearch(library=lambda points: np.full(len(points), plain.label[plain.flips][0]))
    with pytest.raises(ValueError, match=r"Call `from_model` again\.$"):
        certify_checked(model, rows, None, [threat], search=other, **RULE)


def test_numbers_as_answers() -> None:
    """Intervals hold every point and are reached; radii of a tolerance keep it."""
    rng = np.random.default_rng(21)
    for _ in range(15):
        model, rows = draw_model(rng, Value(5), levels=2), draw_rows(rng, 3)
        threat = Threat(norm=None, limits={0: 1.0, 1: (0.5, 0.25)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c = certify_interval(model, rows, None, None, threat=threat, **RULE)
        found = attack_interval(model, rows, None, None, threat=threat, rule="mean")
        found.require_inside(c)
        for at, row in enumerate(rows):
            values = (model.score(list_changes(model, row, threat)) + 5) / 2
            assert [c.low[at], c.high[at]] == pytest.approx([values.min(), values.max()], abs=1e-9)
            assert c.low[at] <= values.min() <= found.low[at]
            assert found.high[at] <= values.max() <= c.high[at]
            assert c.value[at] == values[0]


@pytest.mark.parametrize("norm", [0, 1, 2, math.inf])
def test_radii_of_a_tolerance(norm: float) -> None:
    """The nearest cell whose answer differs by more."""
    rng = np.random.default_rng(23)
    for _ in range(8):
        model, rows = draw_model(rng, Value(0), levels=1), draw_rows(rng, 2)
        r = certify_radius(model, rows, None, 4.0, threat=Threat(norm=norm), **RULE)
        size = 1 if norm == 0 else 1.5
        c = certify_interval(model, rows, None, size, threat=Threat(norm=norm), **RULE)
        for at, row in enumerate(rows):
            cells = [(float(np.linalg.norm(sizes, norm)), point) for point, sizes in list_boxes(model, row)]
            away = np.array([one for one, _ in cells])
            values = model.score(np.array([point for _, point in cells]))
            nearest = away[np.abs(values - r.value[at]) > 4].min(initial=math.inf)
            expected = nearest - 1 if norm == 0 else nearest
            assert r.radius[at] == pytest.approx(expected, rel=1e-9)
            assert r.radius[at] <= expected
            near = values[away <= size] if norm == 0 else values[away < size]
            assert [c.low[at], c.high[at]] == pytest.approx([near.min(), near.max()], abs=1e-9)


def test_attacks_are_what_the_search_found() -> None:
    """Outside of every certificate, as near as the search came, and within limits where there is no ball."""
    rng = np.random.default_rng(31)
    for decision in DECISIONS:
        model, rows = draw_model(rng, decision), draw_rows(rng, 10)
        for threat in (Threat(norm=2.0), Threat(norm=0), Threat(norm=None, limits={"*": 1.0}, l0=1)):
            if threat.l0 and not model.categorical_features:
                continue
            c, found = (
                certify(model, rows, None, threat=threat, **RULE),
                attack(model, rows, None, threat=threat, **RULE),
            )
            found.require_outside(c)
            assert (predict(model, found.rows)[found.found] != c.label[found.found]).all()
            assert found.found.tolist() == (c.flips if threat.norm is None else np.isfinite(c.attacked)).tolist()
            if threat.norm is not None:
                assert found.distance.tolist() == c.attacked.tolist()


def test_each_column_alone() -> None:
    """`explain` tells the least change of each column: what is certified is what was found."""
    rng = np.random.default_rng(37)
    model, rows = draw_model(rng), draw_rows(rng, 5)
    for row in rows:
        found = explain(model, row, None, rule="mean", threat=Threat(norm=math.inf))
        for change in found.columns:
            if change.feature in model.categorical_features:
                assert change.row is None or predict(model, change.row[None]) != found.label
            else:
                assert change.certified == pytest.approx(change.attacked, rel=1e-9)
                assert change.certified <= change.attacked


def test_results_hold_what_there_is() -> None:
    """Columns of a table, rows taken, pickles, and what notebooks show."""
    model, rows, threat = find_tied(1)
    c = certify(model, rows, None, threat=threat, **RULE)
    assert list(c.to_pandas().columns) == ["label", "radius", "proof", "verdict"]
    assert set(c.proof) <= {"exact", "none"}
    assert c.attacked is None
    assert c[3:5].is_tie.tolist() == c.is_tie[3:5].tolist()
    assert "ties, which are undecided" in c._repr_html_()
    ball = certify(model, rows, None, threat=Threat(norm=2.0), **RULE)
    assert list(ball.to_pandas().columns)[-2:] == ["attacked", "is_exact"]
    assert ball.verdict is None
    again = pickle.loads(pickle.dumps(ball))
    assert again.attacked.tolist() == ball.attacked.tolist()
    plain = certify(AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], 1, 1), [[0.0]], None, budget=5, **RULE)
    assert plain.attacked is None
    assert plain.is_tie is None


def test_a_model_of_trees_and_functions() -> None:
    """Terms of one column beside trees are searched with them."""
    rng = np.random.default_rng(41)
    trees = draw_model(rng)
    step = StepFunction(4, [-1.0, 0.5], [-5, 0, 6])
    model = AdditiveEnsemble([*trees.terms, step], trees.threshold, 5)
    rows = np.column_stack([draw_rows(rng, 20), rng.normal(size=20)])
    threat = Threat(norm=None, limits={0: 0.75, 4: 1.0})
    c = certify(model, rows, None, threat=threat, **RULE)
    for at, row in enumerate(rows):
        points = list_changes(trees, row[:4], Threat(norm=None, limits={0: 0.75}))
        moved = [np.column_stack([points, np.full(len(points), row[4] + d)]) for d in np.linspace(-1, 1, 401)]
        flips = (predict(model, np.concatenate(moved)) != c.label[at]).any()
        assert c.verdict[at] == ("flips" if flips else "holds")


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "many"])
def test_a_budget_is_a_number_of_nodes(budget: Any) -> None:
    """One line says what it must be, for every model."""
    for model in (draw_model(np.random.default_rng(0)), AdditiveEnsemble([StepFunction(0, [0.5], [0, 3])], 1, 4)):
        with pytest.raises(ValueError, match=r"^`budget` must be a whole number of nodes, 1 or larger, got .*\.$"):
            certify(model, draw_rows(np.random.default_rng(0), 2), None, budget=budget, **RULE)


def test_noise_is_refused() -> None:
    """In one line that says what works, wherever it can be asked for."""
    rng = np.random.default_rng(0)
    model, number, rows = draw_model(rng), draw_model(rng, Value(0), levels=1), draw_rows(rng, 2)
    rows[np.isnan(rows)] = 0.0
    asks = (
        lambda: certify(model, rows, "gaussian:0.25"),
        lambda: certify(model, rows, "laplace:0.25", rule="mean"),
        lambda: attack(model, rows, "gaussian:0.25"),
        lambda: certify_interval(number, rows, "gaussian:0.25", 0.1),
        lambda: certify_radius(number, rows, "gaussian:0.25", 0.1),
        lambda: find_labels(
            model, rows, certify(model, rows, None, **RULE).noise or __import__("derand").Gaussian(0.1)
        ),
    )
    for ask in asks:
        with pytest.raises(ValueError, match=r"^Noise is not for a model whose trees join many columns: .*depth 1\.$"):
            ask()
    with pytest.raises(ValueError, match="trees that join columns"):
        distribution(model, rows, "gaussian:0.25")


def test_a_vote_of_trees_is_refused() -> None:
    """In one line."""
    rng = np.random.default_rng(0)
    vote = WeightedVote([draw_model(rng), draw_model(rng)], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^A WeightedVote takes no members whose trees join many columns: .*\.$"):
        certify(vote, draw_rows(rng, 2), None, rule="mean")


def test_limits_of_columns_that_the_model_does_not_use() -> None:
    """Allowed, without effect, said once."""
    rng = np.random.default_rng(0)
    model, rows = draw_model(rng), draw_rows(rng, 5)
    wider = AdditiveEnsemble(model.terms, model.threshold, 6)
    more = np.column_stack([rows, rng.normal(size=(5, 2))])
    limits: dict[int | str, Any] = {0: 0.5, 5: 1.0}
    with pytest.warns(
        UserWarning, match=r"^The model does not use column 5: what limits allow there changes nothing"
    ) as told:
        c = certify(wider, more, None, threat=Threat(norm=None, limits=limits), **RULE)
    assert len(told) == 1
    plain = certify(model, rows, None, threat=Threat(norm=None, limits={0: 0.5}), **RULE)
    assert c.verdict.tolist() == plain.verdict.tolist()


def test_every_kind_of_model_is_attacked() -> None:
    """The registry of searches has a row for each kind."""
    assert set(NEAREST_FLIPS) == set(Kind.__subclasses__())
