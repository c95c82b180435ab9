"""Models: terms hold where their edges say, stumps become one exact grid, and malformed models are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, StepFunction, WeightedVote
from derand.model import DECISIONS, TERMS, Threshold, as_model, is_model

STUMP = StepFunction(0, [0.5], [0, 1])
SMALL = AdditiveEnsemble([STUMP], threshold=0, n_features=1)

leaves = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0, 0.005, 0.015])
stumps = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.3, 2.0]), leaves, leaves), max_size=8)


def test_step_function_holds_from_its_lower_edge() -> None:
    """A score holds on [edge, next edge): the edge itself and -0.0 belong to the right cell."""
    step = StepFunction(0, [0.0, 1.0], [10, 20, 30])
    below_zero, below_one = math.nextafter(0.0, -1.0), math.nextafter(1.0, 0.0)
    assert step.evaluate([below_zero, -0.0, 0.0, below_one, 1.0]).tolist() == [10, 20, 20, 20, 30]


def test_step_function_without_edges_is_constant() -> None:
    """One cell covers everything."""
    assert StepFunction(3, [], [7]).evaluate([-1e308, 0.0, 1e308]).tolist() == [7, 7, 7]


def test_category_table_knows_its_codes_and_the_rest() -> None:
    """A code in the table has its score; any other, a missing one too, has the score of `other`."""
    table = CategoryTable(0, [1, 4], [-2, 9], other=5)
    assert table.evaluate([1, 4, 0, 3.5, math.nan, math.inf]).tolist() == [-2, 9, 5, 5, 5, 5]
    assert table.score_range(unseen=True) == (-2, 9)
    assert CategoryTable(0, [1, 4], [2, 9], other=-5).score_range(unseen=True) == (-5, 9)
    assert CategoryTable(0, [1, 4], [2, 9], other=-5).score_range(unseen=False) == (2, 9)
    assert CategoryTable(0, [], [], other=3).evaluate([0, math.nan]).tolist() == [3, 3]
    assert CategoryTable(0, [], [], other=3).score_range(unseen=False) == (3, 3)


def test_terms_are_frozen() -> None:
    """Arrays of a model cannot be written, and the caller's array is not the model's."""
    edges = np.array([1.0, 2.0])
    step = StepFunction(0, edges, [0, 1, 2])
    edges[0] = 7.0
    assert step.edges.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        step.edges[0] = 7.0
    with pytest.raises(AttributeError):
        step.feature = 2  # type: ignore[misc]
    scores = np.array([0, 1, 2], dtype=np.int64)
    step = StepFunction(0, [1.0, 2.0], scores)
    scores[0] = 9
    assert step.scores.ravel().tolist() == [0, 1, 2]


@given(stumps, st.sampled_from([1, 10, 100, 200]))
def test_from_stumps_is_the_mean_of_the_stumps(drawn: list[tuple[int, float, float, float]], levels: int) -> None:
    """Score and threshold decide as the mean of the rounded leaves does: the model is defined on its grid."""
    features, thresholds, left, right = (list(column) for column in zip(*drawn, strict=True)) if drawn else ([],) * 4
    model = AdditiveEnsemble.from_stumps(features, thresholds, left, right, n_features=3, levels=levels)
    assert len({term.feature for term in model.terms}) == len(model.terms)
    rows = np.array([[a, b, c] for a in (-2, -1, 0, 0.3, 5) for b in (-1.0, 2.0) for c in (0.1, 0.3)])
    scores = model.score(rows)
    for row, score in zip(rows, scores, strict=True):
        chosen = [r if row[f] >= t else le for f, t, le, r in zip(features, thresholds, left, right, strict=True)]
        rounded = [round(float(leaf * levels)) for leaf in chosen]  # Python, too, rounds halves to even
        assert score == sum(rounded)
        assert (score > model.threshold) == (2 * sum(rounded) > levels * len(chosen))
    assert model.score_error == 0


def test_from_stumps_merges_stumps_of_a_feature() -> None:
    """Equal thresholds add their jumps, jumps that cancel leave no edge, and every stump counts in the mean."""
    model = AdditiveEnsemble.from_stumps(
        [1, 1, 1, 1], [2.0, 1.0, 2.0, 3.0], [0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.9], n_features=2
    )
    (term,) = model.terms
    assert term.edges.tolist() == [3.0]
    assert term.scores.ravel().tolist() == [100, 150]
    assert model.threshold == 200


def test_from_stumps_takes_category_tables() -> None:
    """A category table counts as one stump; leaves of 3/8 are exact on a grid of 200 and not on one of 100."""
    tables = [(1, [0, 1], [0.375, 0.625], 0.5)]
    fine = AdditiveEnsemble.from_stumps([0], [1.0], [0.4], [0.7], n_features=2, levels=200, tables=tables)
    assert fine.terms[1].scores.ravel().tolist() == [75, 125]
    assert (fine.terms[1].other, fine.threshold) == (100, 200)
    coarse = AdditiveEnsemble.from_stumps([0], [1.0], [0.4], [0.7], n_features=2, levels=100, tables=tables)
    assert coarse.terms[1].scores.ravel().tolist() == [38, 62]  # halves go to even
    assert coarse.score_error == fine.score_error == 0


def test_no_stumps_at_all() -> None:
    """An ensemble without stumps has score 0 and threshold 0, hence class 0."""
    model = AdditiveEnsemble.from_stumps([], [], [], [], n_features=2)
    assert model.terms == ()
    assert (model.score(np.zeros((3, 2))) > model.threshold).tolist() == [False] * 3


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: StepFunction(0, [2.0, 1.0], [0, 1, 2]), ValueError, ["`edges`", "strictly increase", "2.0", "1.0"]),
        (lambda: StepFunction(0, [1.0, 1.0], [0, 1, 2]), ValueError, ["`edges`", "strictly increase", "merge equal"]),
        (lambda: StepFunction(0, [0.0, -0.0], [0, 1, 2]), ValueError, ["`edges`", "strictly increase"]),
        (lambda: StepFunction(0, [math.nan], [0, 1]), ValueError, ["`edges`", "finite", "nan"]),
        (lambda: StepFunction(0, [math.inf], [0, 1]), ValueError, ["`edges`", "finite", "inf"]),
        (lambda: StepFunction(0, [[1.0]], [0, 1]), ValueError, ["`edges`", "flat", "(1, 1)"]),
        (lambda: StepFunction(0, [1.0], [0, 1, 2]), ValueError, ["`scores`", "2 entries", "3"]),
        (lambda: StepFunction(0, [1.0], [0.5, 1]), ValueError, ["`scores`", "whole numbers", "0.5"]),
        (lambda: StepFunction(0, [1.0], [0, math.nan]), ValueError, ["`scores`", "whole numbers", "nan"]),
        (lambda: StepFunction(0, [1.0], [0, 2**53 + 1]), ValueError, ["`scores`", "2**53"]),
        (lambda: StepFunction(0, [1.0], [0, 2**70]), ValueError, ["`scores`", "2**53"]),
        (lambda: StepFunction(0, [1.0], [0.0, 1e300]), ValueError, ["`scores`", "2**53"]),
        (lambda: StepFunction(0, [1.0], [0.0, math.inf]), ValueError, ["`scores`", "inf"]),
        (lambda: StepFunction(0, [1.0], [[0, 1], [2, 3]]), ValueError, ["`scores`", "one number per cell"]),
        (lambda: StepFunction(-1, [1.0], [0, 1]), ValueError, ["`feature`", "column", "-1"]),
        (lambda: StepFunction(0.5, [1.0], [0, 1]), ValueError, ["`feature`", "column", "0.5"]),
        (lambda: CategoryTable(0, [1, 0], [0, 1], 0), ValueError, ["`categories`", "strictly increase"]),
        (lambda: CategoryTable(0, [0, 1], [0, 1], 0.5), ValueError, ["`other`", "whole numbers", "0.5"]),
        (lambda: AdditiveEnsemble([STUMP, STUMP], 0, 1), ValueError, ["Feature 0", "two terms", "from_stumps"]),
        (lambda: AdditiveEnsemble([STUMP], 0, 0), ValueError, ["feature 0", "`n_features`", "0"]),
        (lambda: AdditiveEnsemble(["x"], 0, 1), TypeError, ["`terms`", "StepFunction", "'x'"]),
        (lambda: AdditiveEnsemble([STUMP], 0.5, 1), ValueError, ["`threshold`", "whole number", "0.5"]),
        (lambda: AdditiveEnsemble([STUMP], 2**60, 1), ValueError, ["`threshold`", "2**53"]),
        (lambda: AdditiveEnsemble([STUMP], 0, 1, levels=0), ValueError, ["`levels`", "1 or larger", "0"]),
        (lambda: AdditiveEnsemble([STUMP], 0, -1), ValueError, ["`n_features`", "0 or larger", "-1"]),
        (lambda: AdditiveEnsemble([STUMP], 0, 1, 100, -1.0), ValueError, ["`score_error`", "0 or larger", "-1.0"]),
        (
            lambda: AdditiveEnsemble([StepFunction(f, [0.0], [0, 2**53]) for f in (0, 1)], 0, 2),
            ValueError,
            ["add up to", "2**53", "fewer levels"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0], [1.0], [-0.1], [1.0], n_features=1),
            ValueError,
            ["`left`", "[0, 1]", "-0.1"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0], [1.0], [0.1], [1.5], n_features=1),
            ValueError,
            ["`right`", "[0, 1]", "1.5"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0], [1.0], [math.nan], [0.5], n_features=1),
            ValueError,
            ["`left`", "[0, 1]", "nan"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0], [math.nan], [0.5], [0.5], n_features=1),
            ValueError,
            ["`thresholds`", "finite"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0, 1], [1.0], [0.5], [0.5], n_features=2),
            ValueError,
            ["`features`", "one entry per stump", "2, 1, 1 and 1"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0.7], [1.0], [0.5], [0.5], n_features=2),
            ValueError,
            ["`features`", "0.7"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([], [], [], [], n_features=1, tables=[(0, [0], [0.5], 1.5)]),
            ValueError,
            ["other", "[0, 1]", "1.5"],
        ),
        (
            lambda: AdditiveEnsemble.from_stumps([0], [1.0], [0.5], [0.6], n_features=1, tables=[(0, [0], [0.5], 0.5)]),
            ValueError,
            ["Feature 0", "two terms"],
        ),
        (lambda: WeightedVote([], []), ValueError, ["`members`", "at least one"]),
        (lambda: WeightedVote([SMALL], [1.0, 2.0]), ValueError, ["`weights`", "1 finite", "one per member"]),
        (lambda: WeightedVote([SMALL], [math.nan]), ValueError, ["`weights`", "finite"]),
        (lambda: WeightedVote([SMALL, SMALL], [1e308, 1e308]), ValueError, ["`weights`", "1e300", "1e+308"]),
        (lambda: WeightedVote(["x"], [1.0]), TypeError, ["`members`", "'x'"]),
        (
            lambda: WeightedVote([SMALL, AdditiveEnsemble([STUMP], 0, 2)], [1.0, 1.0]),
            ValueError,
            ["`members`", "`n_features`", "1 and 2"],
        ),
        (
            lambda: WeightedVote([AdditiveEnsemble([STUMP], None, 1)], [1.0]),
            TypeError,
            ["`members`", "threshold"],
        ),
        (
            lambda: WeightedVote([SMALL, AdditiveEnsemble([CategoryTable(0, [0], [1], 0)], 0, 1)], [1.0, 1.0]),
            ValueError,
            ["`members`", "feature 0", "categor"],
        ),
    ],
)
def test_bad_models(make: object, error: type[Exception], words: list[str]) -> None:
    """A malformed model is refused in words that name the parameter, the rule and what was given."""
    with pytest.raises(error) as caught:
        make()  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)


def make_mixed() -> AdditiveEnsemble:
    """Two numerical features, of which one term is constant, and a category."""
    terms = [StepFunction(3, [0.5], [0, 4]), StepFunction(1, [], [2]), CategoryTable(0, [0, 1], [-3, 3], 1)]
    return AdditiveEnsemble(terms, 3, 4)


def test_a_model_says_what_its_columns_are() -> None:
    """Categorical and compared columns, members and weights are facts of the model; a vote's are all members'."""
    model = make_mixed()
    assert model.categorical_features == (0,)
    assert model.numerical_features == (3,)  # nothing is compared in column 1
    assert (model.members, model.weights, model.n_cells) == ((model,), None, 3)
    other = AdditiveEnsemble([StepFunction(2, [1.0, 2.0], [0, 1, 0])], 0, 4)
    vote = WeightedVote([model, other], [1.0, 0.5])
    assert vote.categorical_features == (0,)
    assert vote.numerical_features == (2, 3)
    assert vote.n_cells == 6
    assert [member.n_features for member in vote.members] == [4, 4]
    assert vote.weights.tolist() == [1.0, 0.5]


def test_a_term_says_what_noise_and_changes_can_do() -> None:
    """Axes with edges for numbers, codes for categories, and the range of scores that can be reached."""
    step, _, table = make_mixed().terms
    (axis,) = step.axes
    assert (axis.feature, axis.edges.tolist(), step.codes.size) == (3, [0.5], 0)
    assert (table.axes, table.codes.tolist()) == ((), [0.0, 1.0])
    assert (step.score_range(), table.score_range(), table.score_range(unseen=False)) == ((0, 4), (-3, 3), (-3, 3))
    assert step.cell_scores.tolist() == [0, 4]
    assert step.score_rows(np.zeros((2, 4))).tolist() == [0, 0]


def test_every_term_and_decision_comes_back_from_its_description() -> None:
    """The constructor takes what `describe` returns; the registries know each kind by its name."""
    for part in (*make_mixed().terms, Threshold(-7)):
        kinds: dict[str, Any] = {**TERMS, **DECISIONS}
        again = kinds[part.kind](**part.describe())
        assert type(again) is type(part)
        assert again.describe() == part.describe()


def test_a_missing_number_is_an_error_and_not_the_last_cell() -> None:
    """NaN in a compared column is refused, naming the feature; in a category it is one more value."""
    model = make_mixed()
    with pytest.raises(ValueError, match="NaN for feature 3"):
        model.terms[0].evaluate([0.0, np.nan])
    with pytest.raises(ValueError, match="NaN for feature 3"):
        model.score([[0.0, 0.0, 0.0, np.nan]])
    assert model.score([[np.nan, 0.0, np.nan, 1.0]]).tolist() == [7]


@pytest.mark.parametrize("rows", [[[0.0] * 5], [[0.0] * 3], [0.0] * 4])
def test_score_refuses_rows_of_another_width(rows: Any) -> None:
    """As many columns as the model reads, no more and no fewer."""
    with pytest.raises(ValueError, match=r"`X` must have shape \(n_rows, 4\)"):
        make_mixed().score(rows)


def test_a_decision_may_be_given_instead_of_a_number() -> None:
    """A whole number stands for a threshold; a model without a decision has no contrast to certify."""
    terms = make_mixed().terms
    assert AdditiveEnsemble(terms, Threshold(5), 4).threshold == AdditiveEnsemble(terms, 5, 4).threshold == 5
    (contrast,) = AdditiveEnsemble(terms, 5, 4, score_error=0.25).contrasts()
    assert (contrast.threshold, contrast.score_error, contrast.terms) == (5, 0.25, terms)
    with pytest.raises(ValueError, match="no threshold and so makes no decision"):
        AdditiveEnsemble(terms, None, 4).contrasts()


def test_everything_in_a_model_is_read_only() -> None:
    """Fields cannot be set and arrays cannot be written."""
    model = make_mixed()
    vote = WeightedVote([model], [1.0])
    for array in (model.terms[0].edges, model.terms[0].scores, model.terms[2].codes, vote.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for owner, name in ((model, "terms"), (model, "n_features"), (vote, "members"), (model.terms[0], "feature")):
        with pytest.raises(AttributeError):
            setattr(owner, name, None)


def test_what_is_not_a_model_is_refused_by_name() -> None:
    """The error names the parameter and the two kinds of models."""
    assert is_model(make_mixed())
    assert not is_model("model")
    with pytest.raises(TypeError, match="`clf` must be an AdditiveEnsemble or a WeightedVote, got str"):
        as_model("model", "clf")
