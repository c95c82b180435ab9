"""Terms of several columns: what they score, what they refuse, files, and joining terms that share columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, StepFunction, load, save
from derand.model import MAX_CELLS, Argmax, GridTerm, Term, coarsen, join_terms


def draw_rows(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns)).round(1)


def test_each_box_has_its_score() -> None:
    """An edge belongs to the cell above it, in every axis; a missing number to the last cell."""
    scores = np.arange(24).reshape(3, 4, 2)
    grid = GridTerm((4, 0, 2), ([0.0], [-1.0, 0.0, 1.0], [0.5]), scores, missing=(True, False, False))
    values = [(-1.0, 0.0), (-2.0, -1.0, 0.0, 1.0), (0.0, 0.5)]
    for first, a in enumerate((*values[0], np.nan)):
        for second, b in enumerate(values[1]):
            for third, c in enumerate(values[2]):
                assert grid.evaluate([[a, b, c]]).tolist() == [scores[first, second, third]]
                row = np.zeros((1, 5))
                row[0, [4, 0, 2]] = a, b, c
                assert grid.score_rows(row).tolist() == [scores[first, second, third]]
    assert grid.missing_features == (4,)
    assert grid.takes_missing
    assert [axis.feature for axis in grid.axes] == [4, 0, 2]
    assert grid.score_range() == (0, 23)
    with pytest.raises(ValueError, match="NaN for feature 0"):
        grid.evaluate([[0.0, np.nan, 0.0]])
    model = AdditiveEnsemble([grid], 3, 5)
    assert model.missing_features == (4,)
    assert model.refuses_missing == (0, 2)


def test_scores_may_be_flat_and_have_several_outputs() -> None:
    edges = ([0.0], [0.0, 1.0])
    nested = np.arange(12).reshape(2, 3, 2)
    grids = [GridTerm((0, 1), edges, scores) for scores in (nested, nested.reshape(6, 2))]
    rows = draw_rows(20, 2)
    assert grids[0].n_outputs == 2
    assert grids[0].evaluate(rows).tolist() == grids[1].evaluate(rows).tolist()
    difference = grids[0].subtract(1, 0)
    assert difference.scores.tolist() == [[1]]  # the same everywhere: no edge is left
    assert [part.size for part in difference.edges] == [0, 0]
    crossed = GridTerm((0, 1), edges, nested % 5).subtract(0, 1)
    expected = np.subtract(*np.moveaxis(GridTerm((0, 1), edges, nested % 5).evaluate(rows), 1, 0))
    assert crossed.evaluate(rows).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((0, 0), ([0.0], [0.0]), np.zeros((2, 2), int)), r"each column once, got 0 twice"),
        (((), (), []), r"at least one column"),
        (((0, 1), ([0.0],), np.zeros((2, 2), int)), r"one list per feature, 2 in all, got 1"),
        (((0, -1), ([0.0], [0.0]), np.zeros((2, 2), int)), r"column number"),
        (((0, 1), ([0.0], [1.0, 0.0]), np.zeros((2, 3), int)), r"strictly increase"),
        (((0, 1), ([0.0], [0.0]), [1, 2, 3]), r"4 entries"),
        (((0, 1), ([0.0], [0.0]), np.zeros((2, 2), int), (True,)), r"`missing` .* each of its 2 features"),
        (((0, 1), ([0.0], [0.0]), [[0.5, 1], [1, 1]]), r"whole numbers"),
        (((0, 7), (np.arange(1000.0), np.arange(1000.0)), []), r"features 0, 7 .* 1001 x 1001 = 1002001 joint cells"),
    ],
)
def test_bad_grids_are_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GridTerm(*arguments)  # type: ignore[arg-type]


def test_it_comes_back_from_a_file(tmp_path: Path) -> None:
    """Edges of different numbers, gaps and outputs included."""
    grids: list[Term] = [
        GridTerm((0, 3), ([0.0], [-0.1, 1.0]), np.arange(8).reshape(2, 4), missing=(False, True)),
        GridTerm((1, 2, 4), ([0.0], [], [0.5]), np.arange(4)),
    ]
    model = AdditiveEnsemble(grids, 3, 5)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert [term.describe() for term in again.terms] == [term.describe() for term in grids]
    rows = draw_rows(50, 5)
    rows[::7, 3] = np.nan
    assert again.score(rows).tolist() == model.score(rows).tolist()
    several = AdditiveEnsemble([GridTerm((0, 1), ([0.0], [0.0]), np.arange(12).reshape(2, 2, 3))], Argmax((0, 0, 0)), 2)
    save(several, tmp_path / "several.json")
    assert load(tmp_path / "several.json").terms[0].scores.tolist() == several.terms[0].scores.tolist()


def test_a_coarser_twin_keeps_its_axes() -> None:
    grid = GridTerm((0, 1), ([0.0], [0.0]), [[1000, -1000], [500, 700], [-900, 0]], missing=(True, False))
    coarse = coarsen(AdditiveEnsemble([grid], 0, 2), 20)
    assert coarse.members[0].terms[0].missing_features == (0,)
    assert coarse.members[0].terms[0].cell_scores.tolist() == [10, -10, 5, 7, -9, 0]


@pytest.mark.parametrize("seed", range(8))
def test_joined_terms_have_the_same_sum(seed: int) -> None:
    """Pairs and step functions that overlap, connected through others or not at all."""
    rng = np.random.default_rng(seed)
    terms: list[Term] = [CategoryTable(9, [0, 1], [1, 2], 0)]
    for _ in range(6):
        features = tuple(rng.choice(9, rng.integers(1, 3), replace=False).tolist())
        edges = [np.unique(rng.normal(size=rng.integers(0, 3)).round(1)) for _ in features]
        scores = rng.integers(-9, 9, [part.size + 2 for part in edges])
        terms.append(GridTerm(features, tuple(edges), scores, (True,) * len(features)))
    for feature in rng.choice(9, 4, replace=False).tolist():
        terms.append(StepFunction(feature, [-0.3, 0.5], rng.integers(-9, 9, 3), missing=int(rng.integers(-9, 9))))
    joined = join_terms(terms)
    features = [feature for term in joined for feature in term.features]
    assert len(features) == len(set(features))
    rows = draw_rows(200, 10, seed)
    rows[:, 9] = rng.integers(0, 3, 200)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    total = sum(term.score_rows(rows) for term in terms)
    assert sum(term.score_rows(rows) for term in joined).tolist() == total.tolist()


def test_a_column_of_a_joined_term_is_missing_where_all_know_it() -> None:
    pair = GridTerm((0, 1), ([0.0], [0.0]), [[1, 2], [3, 4]])
    (joined,) = join_terms([StepFunction(0, [0.5], [0, 5], missing=7), pair])
    assert joined.missing_features == ()
    (step,) = join_terms([StepFunction(3, [0.5], [0, 5], missing=7), StepFunction(3, [0.0], [1, 2], missing=-1)])
    assert step.describe() == StepFunction(3, [0.0, 0.5], [1, 2, 7], missing=6).describe()


def test_terms_that_cannot_be_joined_are_refused() -> None:
    edges = np.arange(120.0)
    wide = np.zeros((121, 121), dtype=int)
    pairs = [GridTerm((k, k + 1), (edges, edges), wide + k) for k in range(3)]
    assert MAX_CELLS < 121**3
    with pytest.raises(ValueError, match=r"features 0, 1, 2, 3 .* = 214358881 joint cells"):
        join_terms(pairs)
    with pytest.raises(ValueError, match=r"a category among those of features 0"):
        join_terms([CategoryTable(0, [0], [1], 0), StepFunction(0, [0.0], [0, 1])])
