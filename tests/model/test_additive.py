"""Ensembles, votes and decisions: facts that others ask for; malformed ones are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, StepFunction, WeightedVote
from derand.model import DECISIONS, TERMS, Argmax, Threshold, Value, as_model, is_model
from tests.model.models import make_mixed

STUMP = StepFunction(0, [0.5], [0, 1])
SMALL = AdditiveEnsemble([STUMP], threshold=0, n_features=1)


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
        (lambda: StepFunction(0, [1.0], [[[0, 1]]]), ValueError, ["`scores`", "one number per cell"]),
        (lambda: StepFunction(0, [1.0], [[0, 1], [2, 3]], 5), ValueError, ["`missing`", "as many outputs", "2", "5"]),
        (lambda: CategoryTable(0, [0], [[0, 1]], [1, 2, 3]), ValueError, ["`other`", "as many outputs", "[1, 2, 3]"]),
        (
            lambda: AdditiveEnsemble([StepFunction(0, [1.0], [[0, 1], [2, 3]])], 1, 1),
            ValueError,
            ["outputs", "1", "got 2 for feature 0"],
        ),
        (lambda: AdditiveEnsemble([STUMP], Argmax([0, 0]), 1), ValueError, ["outputs", "2", "got 1"]),
        (lambda: Argmax([1]), ValueError, ["`offsets`", "two classes"]),
        (lambda: Argmax([1, 0.5]), ValueError, ["`offsets`", "whole number"]),
        (lambda: Argmax([0, 2**60]), ValueError, ["`offsets`", "2**52"]),
        (lambda: Value(0.5), ValueError, ["`offset`", "whole number"]),
        (lambda: Value(2**60), ValueError, ["`offset`", "2**53"]),
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
    with pytest.raises(TypeError, match="`model` must be an AdditiveEnsemble or a WeightedVote, got str"):
        as_model("model")


def test_several_outputs_subtract_to_one() -> None:
    """Scores of classes as columns; a contrast is the difference of two of them, and ties are the lower class's."""
    steps = StepFunction(0, [0.0, 1.0], [[0, 5, 1], [2, 5, 3], [4, 5, 1]], missing=(7, 8, 9))
    table = CategoryTable(1, [0, 1], [[1, 2, 3], [4, 5, 6]], (0, 0, 1), (1, 0, 0))
    model = AdditiveEnsemble([steps, table], Argmax([10, 0, 0]), 2)
    rows = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 9.0], [math.nan, math.nan]])
    scores = model.score(rows)
    assert scores.tolist() == [[1, 7, 4], [6, 10, 9], [4, 5, 2], [8, 8, 9]]
    assert (model.n_outputs, model.n_classes, model.threshold) == (3, 3, None)
    assert model.pairs == ((0, 1), (0, 2), (1, 2))
    for (low, high), contrast in zip(model.pairs, model.contrasts(), strict=True):
        total = sum(term.score_rows(rows) for term in contrast.terms)
        assert (total == scores[:, high] - scores[:, low]).all()
        offsets = model.decision.offsets  # type: ignore[union-attr]
        wins = scores[:, high] + offsets[high] > scores[:, low] + offsets[low]
        assert ((total > contrast.threshold) == wins).all()
        assert all(term.n_outputs == 1 for term in contrast.terms)
    assert model.duel(0, 2).terms[0].axes[0].edges.tolist() == [1.0]  # nothing changes at 0.0


def test_numbers_as_answers_have_no_contrast() -> None:
    """A model whose answer is a number names what to use instead."""
    model = AdditiveEnsemble([STUMP], Value(3), 1)
    assert (model.n_outputs, model.n_classes) == (1, 0)
    with pytest.raises(ValueError, match="certify_interval"):
        model.contrasts()
