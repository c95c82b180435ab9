"""The tables about AdditiveClassifier: small parts are measured, floors are judged, lines become text."""

from __future__ import annotations

import numpy as np
import pytest

from derand.estimators import AdditiveClassifier
from experiments.beyond import (
    Beyond,
    ByRule,
    Goal,
    Joint,
    Natural,
    Shares,
    Trained,
    check_floors,
    check_goals,
    check_rows,
    compare_cells,
    compare_naturally,
    compare_rows,
    compare_training,
    list_rows,
    summarize_cells,
)
from experiments.beyond._choice import LinearRule, choose_settings, divide_sample
from experiments.beyond._rows import list_candidates
from experiments.commands import _beyond, _joint, _natural, _trained
from experiments.commands._tables import choose, print_floors
from experiments.datasets import Split


def test_without_a_radius_beside_a_linear_model() -> None:
    """Five folds of a bundled dataset, without what is slow."""
    lines = list(compare_naturally(["sklearn_wine"], ["AdditiveClassifier", "LogisticRegression"]))
    assert [line.splits for line in lines] == [5, 5]
    assert all(line.accuracy > 90 and line.auc > 0.95 and line.seconds > 0 for line in lines)
    assert _natural.format_lines(lines).splitlines()[2].startswith("| sklearn_wine | AdditiveClassifier | 5 | ")


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("model", ["EBM", "HistGradientBoosting", "LogisticRegression"])
def test_every_model_reads_categories(model: str) -> None:
    """Texts in a table of objects, of which the first rows have seen a part."""
    if model == "EBM":
        pytest.importorskip("interpret", reason="needs the dependency group peers")
    from experiments.beyond import MODELS
    from experiments.datasets import load

    data = load("credit")
    some = slice(0, 120)
    fitted = MODELS[model](data).fit(data.X[some], data.y[some])
    shares = fitted.predict_proba(data.X[120:])
    assert shares.shape == (880, 2)
    assert np.isfinite(shares).all()


def test_floors_are_set_beside_the_peer() -> None:
    """Too little of AUC, too much loss and too slow are told apart."""
    ours = Natural("adult", "AdditiveClassifier", 1, 87.0, 0.90, 0.30, 5.0)
    peer = Natural("adult", "EBM", 1, 87.0, 0.92, 0.29, 100.0)
    assert [met for _, met in check_floors([ours, peer])] == [False, True, True]
    assert list(check_floors([ours])) == []


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_for_a_radius_beside_models_that_were_not() -> None:
    """Four ways on a bundled dataset; the trained one certifies most."""
    goal = Goal("sklearn_breast_cancer", np.inf, 0.25, 60.0, 50.0, options={"regularization": 0.1})
    lines = list(compare_training([goal]))
    assert lines[0].way == "trained for it"
    assert len(lines) == 4
    assert lines[0].shares.certified == max(line.shares.certified for line in lines)
    assert all(met for _, met in check_goals(lines))
    assert "| linf 0.25 | trained for it |" in _trained.format_lines(lines)


def test_a_goal_of_categories_is_said_in_words() -> None:
    """Without a ball there is no norm to name."""
    assert Goal("adult", 2, 0.0, 76.5, l0=1).words == "1 category"
    line = Trained("adult", "1 category", "trained for it", Shares(84.0, 77.0, 70.0), 76.5, 85.0)
    assert [met for _, met in check_goals([line])] == [True, False]


def test_rows_are_those_of_the_paper_with_its_best() -> None:
    """Ten, with the rows of the reproduction behind them."""
    rows = list_rows()
    assert len(rows) == 10
    row = rows["l1:breast_cancer"]
    assert (row.radius, row.natural, row.certified) == (1.0, 100.0, 83.9)
    assert row.recipe["source"] == "breast_cancer_with_id"
    assert all("class_weight" in one for one in list_candidates(row, "vote"))
    assert all(one["n_cuts"] == 9 for one in list_candidates(rows["l2:mnist_2v6"], "mean"))


@pytest.mark.usefixtures("data")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_row_of_the_main_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diabetes with two candidates: above a floor, no flip inside, and a table."""
    monkeypatch.setattr("experiments.beyond._rows.SCALES", {"mean": (0.5,), "vote": (0.5,)})
    monkeypatch.setattr("experiments.beyond._rows.divide_in_five", lambda y: divide_sample(y, 300))
    (line,) = compare_rows(["l2:diabetes"], attacked=3)
    assert line.mean.inside == line.vote.inside == 0
    assert line.mean.shares.certified > 65
    assert line.linear_certified > 60
    assert "| l2 | diabetes | 0.05 | 79.9 / 71.4 | " in _beyond.format_lines([line])


def test_floors_of_a_row() -> None:
    """Small tables have none for the vote."""
    found = ByRule("noise auto", Shares(99.0, 95.0, 95.0), 1.0, 5, 0, 0.9)
    lines = [Beyond("l2", name, 0.8, 96.0, 89.0, found, found, 95.0, 90.0, 9.0) for name in ("mnist_2v6", "diabetes")]
    assert [met for _, met in check_rows(lines)] == [True, True, True]


def test_the_radius_of_a_linear_rule_is_its_distance() -> None:
    """By hand: 3 x + 4 y in l2, and by the larger weight in l1."""
    X, y = np.array([[1.0, 0.5], [-1.0, 0.0]]), np.array([1, 0])
    assert LinearRule(np.array([3.0, 4.0]), 0.0, 2).measure(X, y, 0.7) == (1.0, 0.5)
    assert LinearRule(np.array([3.0, 4.0]), 0.0, 1).measure(X, y, 0.7) == (1.0, 1.0)
    assert LinearRule(np.array([3.0, 4.0]), 0.0, 1).measure(X, y, 1.0) == (1.0, 0.5)


def test_settings_are_chosen_by_the_mean_of_what_is_left_out() -> None:
    """The first of equals; the sample keeps both parts apart."""
    splits = divide_sample(np.tile([0, 1], 50), 40)
    ((train, test),) = splits
    assert (len(train), len(test)) == (32, 8)
    assert not set(train) & set(test)

    def measure(settings: object, split: Split) -> float:
        return {"a": 0.5, "b": 0.7, "c": 0.7}[settings["name"]]  # type: ignore[index]

    assert choose_settings([{"name": name} for name in "abc"], measure, splits) == {"name": "b"}


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_cells_of_joint_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credit, with a penalty that is given: all cells of the paper, in a table."""

    def make(**options: object) -> AdditiveClassifier:
        return AdditiveClassifier(regularization=1.0, n_cuts=4, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("experiments.beyond._joint.AdditiveClassifier", make)
    lines = list(compare_cells(["credit"]))
    assert len(lines) == 28
    assert [line.paper for line in lines[:2]] == [74.1, 70.3]
    found = summarize_cells(lines)
    assert found.cells == 28
    assert found.above >= 20
    text = _joint.format_lines(lines)
    assert text.splitlines()[2].startswith("| credit | 0 | 74.1; ")
    assert "of 28" in _joint.describe(found)


def test_a_constant_answer_is_told_apart() -> None:
    """Half of the classes is no merit."""
    lines = [Joint("toy", 3, 1.5, 5.0, 50.0, 50.0, 20.0), Joint("toy", 0, 0.0, 70.0, 69.0, 72.0, 69.0)]
    found = summarize_cells(lines)
    assert (found.above, found.below_constant, found.above_both) == (1, 1, 0)
    assert found.worst == pytest.approx(-1.0)


def test_options_that_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is refused; missed floors are printed as such."""
    assert choose("--data", None, ["a", "b"]) == ["a", "b"]
    with pytest.raises(ValueError, match="--data must be one of a, b"):
        choose("--data", ["c"], ["a", "b"])
    print_floors([("one", True), ("two", False)])
    assert "1 of 2 floors are met.\nmet: one\nMISSED: two" in capsys.readouterr().out
