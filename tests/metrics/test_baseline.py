"""When a model is said to be worth no more than a constant answer, and when not."""

from __future__ import annotations

import numpy as np
import pytest

from derand.metrics import FEW_ROWS, FEW_UNLABELLED, judge_answers, judge_labels, measure_answers

TRUTH = np.array(["no"] * 88 + ["yes"] * 12)


def test_one_answer_is_a_warning_with_both_shares() -> None:
    """The majority's, or another one that is worse still."""
    remark = judge_answers(measure_answers(TRUTH, ["no"] * 100))
    assert remark is not None
    assert remark.level == "warning"
    assert "every row the answer 'no'; 88.0 % is what the constant answer 'no' gets, too" in remark.text
    remark = judge_answers(measure_answers(TRUTH, ["yes"] * 100))
    assert remark is not None
    assert "12.0 % of them are right, and the constant answer 'no' would be right on 88.0 %" in remark.text


def test_a_model_that_clearly_beats_the_constant_is_left_alone() -> None:
    """By its accuracy, or by its balanced accuracy where rows of one class are few."""
    label = np.where(np.arange(100) >= 94, "yes", "no")
    found = measure_answers(TRUTH, label)
    assert found.accuracy.low <= found.majority_share
    assert judge_answers(found) is None
    even, label = np.array(["no", "yes"] * 50), np.array(["no", "yes"] * 40 + ["no"] * 20)
    assert judge_answers(measure_answers(even, label)) is None


def test_a_model_that_hardly_beats_the_constant_is_a_note() -> None:
    """One right answer more may be chance: the note says how few rows of a class are found."""
    remark = judge_answers(measure_answers(TRUTH, np.where(np.arange(100) >= 99, "yes", "no")))
    assert remark is not None
    assert remark.level == "note"
    assert "is not clearly above the 88.0 % that the constant answer 'no' gets: it finds 1 of 12 rows" in remark.text


def test_a_trade_for_the_rare_class_is_a_note() -> None:
    """Accuracy below the constant's, but both classes are told apart: no warning of a worthless model."""
    label = np.where(np.arange(100) % 5 == 0, "yes", "no")
    label[88:] = "yes"
    remark = judge_answers(measure_answers(TRUTH, label))
    assert remark is not None
    assert remark.level == "note"
    assert "82.0 %, is not above the 88.0 % that the constant answer 'no' gets" in remark.text
    assert "does tell the classes apart" in remark.text
    guess = judge_answers(measure_answers(TRUTH, np.where(np.arange(100) % 8 == 0, "yes", "no")))
    assert guess is not None
    assert guess.level == "warning"
    assert "clearly above the 50.0 % of any constant answer" in guess.text


def test_costs_decide_where_there_are_costs() -> None:
    """Accuracy below the constant's is nothing to tell where the answers are cheaper; dearer ones are told."""
    label = np.where(np.arange(100) % 5 == 0, "yes", "no")
    label[88:] = "yes"
    cost = {"false_positive": 1, "false_negative": 5}
    found = measure_answers(TRUTH, label, cost=cost)
    assert found.cost is not None
    assert (found.cost["total"], found.cost["constant_total"], found.cost["constant_label"]) == (18, 60, "no")
    assert found.to_dict()["cost"] == found.cost
    assert judge_answers(found) is None
    right_more_often = np.where(np.arange(100) >= 98, "yes", "no")
    right_more_often[:1] = "yes"
    dear = judge_answers(measure_answers(TRUTH, right_more_often, cost={"false_positive": 30, "false_negative": 1}))
    assert dear is not None
    assert dear.level == "warning"
    assert "cost 40 on these rows, not less than the 12 of the constant answer 'no'" in dear.text
    with pytest.raises(ValueError, match="must say what both mistakes cost"):
        measure_answers(TRUTH, label, cost={"false_negative": 5})


def test_few_rows_and_rows_of_one_class_say_nothing() -> None:
    """A handful may well be alike, and rows of one class cannot show anything."""
    few = slice(100 - FEW_ROWS + 1, None)
    assert judge_answers(measure_answers(TRUTH[few], ["no"] * (FEW_ROWS - 1))) is None
    assert judge_answers(measure_answers(TRUTH[:88], ["no"] * 88)) is None


@pytest.mark.parametrize(("n_rows", "told"), [(0, False), (FEW_UNLABELLED - 1, False), (FEW_UNLABELLED, True)])
def test_many_rows_without_labels_that_get_one_answer(n_rows: int, told: bool) -> None:
    """The text leaves it open whether that is wrong."""
    remark = judge_labels(np.zeros(n_rows, dtype=int))
    assert (remark is not None) == told
    if remark is not None:
        assert remark.text.startswith("All 50 rows get the answer 0. Unless all of them are of that class")
    assert judge_labels(np.arange(n_rows) % 2) is None
