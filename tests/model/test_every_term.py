"""Every kind of term in the registry: what it says of itself is all that others need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from derand import AdditiveEnsemble, CategoryTable, StepFunction, certify, load, plot, save
from derand.model import TERMS, GridTerm, Term, TreeTerm
from experiments.baselines.monte_carlo import certify_by_sampling

EXAMPLES: dict[str, Term] = {
    "step_function": StepFunction(0, [-0.5, 0.25, 1.0], [0, 3, -2, 5]),
    "category_table": CategoryTable(0, [0, 1, 2], [-2, 0, 3], other=1),
    "grid_term": GridTerm((0,), ([-0.5, 0.25, 1.0],), [0, 3, -2, 5]),
}
TREES: dict[str, TreeTerm] = {
    "numbers": TreeTerm(
        [0], [0, 0, 0], [0.25, -0.5, 1.0], [1, -1, -3], [2, -2, -4], [0, 3, -2, 5], [False] * 3, refused=[0]
    ),
    "missing": TreeTerm(
        [0, 1], [0, 0], [0.25, 1.0], [-1, -3], [-2, -4], [0, 3, -2, 5], [True, False], rounding=2.0**-20
    ),
    "categories": TreeTerm(
        [0, 1],
        [0, 0],
        [0.0, 0.0],
        [-1, -3],
        [-2, -4],
        [0, 3, -2, 5],
        [True, False],
        [0, 1],
        [[-1, 0], [1, 2]],
        [(0, 3)],
    ),
    "magnitudes": TreeTerm([0], [0], [0.25], [-1], [-2], [0, 3], [True], rounding=0.5, magnitudes=[[1.5], [0.0]]),
}
"""One term of each kind, on column 0; a new kind needs a row."""
OTHER = StepFunction(1, [0.0], [-2, 2])
ROWS = np.array([[x, y] for x in (-1.0, 0.0, 1.0, 2.0) for y in (-0.3, 0.8)])


WITH_GAPS: dict[str, Term] = {
    "step_function": StepFunction(0, [-0.5, 0.25, 1.0], [0, 3, -2, 5], missing=8),
    "category_table": CategoryTable(0, [0, 1, 2], [-2, 0, 3], other=1, missing=-6),
}
"""The same with a cell for missing values; of several columns, tests/model/test_grid.py."""


@pytest.fixture(params=sorted(set(TERMS) - {"linear_term", "tree_term"}))  # which have no cells
def term(request: pytest.FixtureRequest) -> Term:
    """An example of each registered kind."""
    return EXAMPLES[request.param]


@pytest.fixture(params=sorted(WITH_GAPS))
def gapped(request: pytest.FixtureRequest) -> Term:
    """An example of each that has a cell for missing values."""
    return WITH_GAPS[request.param]


def test_its_cells_are_its_values(term: Term) -> None:
    """Between the edges of its axis it has the scores of its cells; at a code, the score of its category."""
    if term.axes:
        ((_, edges),) = term.axes
        inside = [edges[0] - 1.0, *(0.5 * (edges[:-1] + edges[1:])), edges[-1] + 1.0]
        assert term.evaluate(inside).tolist() == term.cell_scores.tolist()
        assert term.evaluate(edges).tolist() == term.cell_scores[1:].tolist()  # an edge belongs to the cell above it
        with pytest.raises(ValueError, match="NaN"):
            term.evaluate([np.nan])
    else:
        assert term.evaluate(term.codes).tolist() == term.cell_scores.tolist()
    low, high = term.score_range()
    assert low <= term.cell_scores.min() <= term.cell_scores.max() <= high


def test_it_certifies_like_the_step_function_of_its_cells(term: Term) -> None:
    """Certificates know axes and scores alone; a category is a shift."""
    model = AdditiveEnsemble([term, OTHER], 0, 2)
    found = certify(model, ROWS, "gaussian:0.5", l0=[0, 1])
    if term.axes:
        twin = AdditiveEnsemble([StepFunction(*term.axes[0], term.scores), OTHER], 0, 2)
        assert [one.radius.tolist() for one in found] == [
            one.radius.tolist() for one in certify(twin, ROWS, "gaussian:0.5", l0=[0, 1])
        ]
    sampled = certify_by_sampling(model, ROWS, "gaussian:0.5", 20_000)
    sure = found[0].radius > 0.1
    assert (sampled.label == found[0].label)[sure].all()


def test_it_comes_back_from_a_file_and_can_be_drawn(term: Term, tmp_path: Path) -> None:
    """Saved and loaded it is the same; a plot of its scores has its column's name."""
    model = AdditiveEnsemble([term, OTHER], 0, 2)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json").terms[0]
    assert (type(again), again.describe()) == (type(term), term.describe())
    assert plot.shape(term, "gaussian:0.5", axes=Figure().subplots(), name="age").get_xlabel() == "age"


def test_a_cell_for_missing_values_is_scored_saved_and_certified(gapped: Term, tmp_path: Path) -> None:
    """NaN has its score, in the range, after a file, too; certificates of such rows are those of a shift."""
    assert gapped.missing is not None
    assert gapped.takes_missing
    assert gapped.evaluate([np.nan]).tolist() == [gapped.missing]
    low, high = gapped.score_range()
    assert low <= gapped.missing <= high
    model = AdditiveEnsemble([gapped, OTHER], 0, 2)
    save(model, tmp_path / "model.json")
    assert load(tmp_path / "model.json").terms[0].describe() == gapped.describe()
    rows = np.array([[np.nan, -0.3], [np.nan, 0.8]])
    shifted = AdditiveEnsemble([OTHER], -gapped.missing, 2)
    for rule, noise in (("vote", "gaussian:0.5"), ("mean", "laplace:0.5"), ("mean", None)):
        found, twin = (certify(one, rows, noise, rule=rule, proof="best") for one in (model, shifted))
        assert found.label.tolist() == twin.label.tolist()
        np.testing.assert_allclose(found.radius, twin.radius, rtol=1e-2)


@pytest.mark.parametrize("name", sorted(TREES))
def test_trees_come_back_from_a_file_with_their_scores(name: str, tmp_path: Path) -> None:
    """Saved and loaded they are the same, and no score is beyond their range."""
    term = TREES[name]
    model = AdditiveEnsemble([term, OTHER], 0, 2)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.terms[0].describe() == term.describe()
    column = [-1.0, -0.5, 0.0, 0.25, 1.0, 2.0, -1.0] + ([] if term.refused else [np.nan])
    rows = np.array([[x, y] for x in column for y in (-0.3, 0.8)])
    np.testing.assert_array_equal(again.score(rows), model.score(rows))
    np.testing.assert_array_equal(again.bound_errors(rows), model.bound_errors(rows))
    low, high = term.score_range()
    scores = term.score_rows(rows)
    assert low <= scores.min() <= scores.max() <= high
    assert (term.evaluate(rows[:, :1]) == scores).all()
    with pytest.raises(ValueError, match="certify them without noise"):
        term.expect(rows, [])
    assert term.is_tree
    assert model.has_trees


@pytest.mark.parametrize("name", sorted(TREES))
def test_trees_certify_without_noise(name: str) -> None:
    """Labels are those of scores."""
    model = AdditiveEnsemble([TREES[name], OTHER], 0, 2)
    found = certify(model, ROWS, None, rule="mean")
    assert found.label.tolist() == (model.score(ROWS) > 0).astype(int).tolist()


ODD = [
    None,
    "x",
    [],
    [[1]],
    [1.5],
    [-1],
    [10**20],
    [float("nan")],
    {},
    True,
    -1,
    1e400,
    [[0], [1, 2]],
    ["a"],
    [-(2**63)],
]


@pytest.mark.parametrize("name", sorted(TREES))
def test_odd_arguments_of_trees_are_refused_in_one_line(name: str) -> None:
    """Whatever stands in one of them: a term that scores rows, or an error that names the term."""
    described = TREES[name].describe()
    messages = []
    for argument in described:
        for odd in ODD:
            try:
                model = AdditiveEnsemble([TreeTerm(**{**described, argument: odd})], 0, 2)
                model.bound_errors(ROWS)
                assert model.score(ROWS).shape == (len(ROWS),)
            except ValueError as error:
                messages.append(str(error))
    assert len(messages) > 10 * len(described)
    assert all("TreeTerm" in one or "trees take no missing" in one for one in messages)
    assert not any("\n" in one for one in messages)
