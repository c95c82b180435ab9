"""Figures of answers: closed forms, brute force and published intervals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.metrics import AnswerTally, RowGrades, compute_wilson_interval, measure_answers
from derand.metrics._ranking import _BINS, rank_classes
from derand.metrics._shares import weigh_shares


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_are_the_published_ones(count: int, total: int, low: float, high: float) -> None:
    """To the four digits that are printed; none is empty, and mirrored counts have mirrored intervals."""
    found = compute_wilson_interval(count, total)
    assert (round(found.low, 4), round(found.high, 4), found.value) == (low, high, count / total)
    mirrored = compute_wilson_interval(total - count, total)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))
    with pytest.raises(ValueError, match="between 0 and `total`"):
        compute_wilson_interval(total + 1, total)


def test_joined_intervals_shrink_as_independent_ones_do() -> None:
    """Two classes of the same share: the interval of the mean is narrower by the root of two."""
    one = compute_wilson_interval(70, 100)
    both = weigh_shares([one, one], [0.5, 0.5])
    assert both.value == pytest.approx(0.7)
    assert (both.value - both.low) * math.sqrt(2) == pytest.approx(one.value - one.low)
    assert (both.high - both.value) * math.sqrt(2) == pytest.approx(one.high - one.value)


def compare_pairs(score: np.ndarray, is_one: np.ndarray) -> float:
    """AUC by its definition: all pairs."""
    ones, zeros = score[is_one][:, None], score[~is_one][None, :]
    return float(((ones > zeros) + 0.5 * (ones == zeros)).mean())


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=60))
def test_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    """Ties count half; the interval holds the value, and lies between 0 and 1; the other class has the rest."""
    score, is_one = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows])
    if is_one.all() or not is_one.any():
        return
    found = rank_classes(score, is_one)
    assert found.value == pytest.approx(compare_pairs(score, is_one), abs=1e-12)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low
    assert rank_classes(score, ~is_one).value == pytest.approx(1 - found.value, abs=1e-12)


def test_auc_of_many_rows_is_exact_and_its_interval_is_as_wide_as_it_must_be() -> None:
    """More places than bins: the value is that of all pairs, the width that of DeLong's formula."""
    rng = np.random.default_rng(0)
    is_one = np.arange(4000) % 8 == 0
    score = rng.normal(size=4000) + is_one
    assert np.unique(score).size > _BINS
    found = rank_classes(score, is_one)
    assert found.value == pytest.approx(compare_pairs(score, is_one), abs=1e-12)
    assert found == rank_classes(score, is_one)
    above = score[is_one][:, None] > score[~is_one][None, :]
    variance = above.mean(axis=1).var() / 500 + above.mean(axis=0).var() / 3500  # DeLong (1988)
    half = 1.96 * math.sqrt(variance)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)


def test_classes_that_do_not_overlap_are_not_certain() -> None:
    """Every replicate has AUC 1: the interval is Wilson's for the smaller class."""
    found = rank_classes(np.arange(30.0), np.arange(30) >= 20)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == compute_wilson_interval(10, 10).low < 0.73


def test_log_loss_and_calibration_by_hand() -> None:
    """Means of logarithms, a normal interval; bins hold rows of like probabilities."""
    y = np.array([0, 1] * 20)
    chance = np.tile([0.25, 0.75, 0.25, 0.25], 10)
    found = measure_answers(y, (chance > 0.5) * 1, probability=chance)
    assert found.log_loss is not None
    assert found.calibration is not None
    losses = [-math.log(0.75)] * 30 + [-math.log(0.25)] * 10
    assert found.log_loss.value == pytest.approx(np.mean(losses))
    half = 1.96 * np.std(losses) / math.sqrt(40)
    assert found.log_loss.high - found.log_loss.value == pytest.approx(half, rel=1e-4)
    assert found.constant_log_loss == pytest.approx(math.log(2))
    assert [(one.n_rows, one.mean_predicted, one.observed.value) for one in found.calibration] == [
        (30, 0.25, 1 / 3),
        (10, 0.75, 1.0),
    ]
    assert found.left_out == ()
    sure = measure_answers([0, 1], [0, 1], probability=[1.0, 1.0])
    assert sure.log_loss is not None
    assert sure.log_loss.value == pytest.approx(-math.log(2**-52) / 2)


def test_calibrated_probabilities_lie_within_their_intervals() -> None:
    """Ten bins of as many rows; nine in ten intervals at least hold what was predicted."""
    rng = np.random.default_rng(1)
    chance = rng.beta(1, 6, size=20_000)
    y = rng.random(20_000) < chance
    found = measure_answers(y, chance > 0.5, probability=chance)
    assert found.calibration is not None
    assert [one.n_rows for one in found.calibration] == [2000] * 10
    held = [one.observed.low <= one.mean_predicted <= one.observed.high for one in found.calibration]
    assert sum(held) >= 9


def test_counts_of_three_classes() -> None:
    """A class that never occurs does not count; log-loss is that of the true class; AUC is for two."""
    chances = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
    found = measure_answers(["a", "b", "c"], ["a", "a", "c"], classes=["a", "b", "c", "d"])
    assert found.confusion.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert found.balanced_accuracy.value == pytest.approx(2 / 3)
    assert found.constant_balanced_accuracy == pytest.approx(1 / 3)
    assert (found.auc, found.log_loss, found.only_answer) == (None, None, None)
    assert "two classes" in found.left_out[0]
    loss = measure_answers(["a", "b", "c"], ["a", "a", "c"], probability=chances).log_loss
    assert loss is not None
    assert loss.value == pytest.approx(-(math.log(0.5) + math.log(0.25) + math.log(0.6)) / 3)


def test_batches_give_what_one_call_gives() -> None:
    """The tally of a file in parts is that of all rows; classes need not be in ascending order."""
    rng = np.random.default_rng(2)
    chance = rng.random(500).round(2)
    y = np.where(rng.random(500) < chance, "yes", "no")
    label = np.where(chance > 0.5, "yes", "no")
    whole = measure_answers(y, label, classes=["yes", "no"], probability=np.stack([chance, 1 - chance], axis=1))
    tally = AnswerTally(np.array(["yes", "no"]))
    for start in range(0, 500, 70):
        part = slice(start, start + 70)
        tally.add(y[part], label[part], RowGrades(None, np.stack([chance, 1 - chance], axis=1)[part]))
    parts = tally.measure().to_dict()
    expected = whole.to_dict()
    assert parts["log_loss"] == pytest.approx(expected.pop("log_loss"))  # type: ignore[misc]
    assert {name: value for name, value in parts.items() if name != "log_loss"} == expected
    assert whole.auc is not None
    assert whole.auc.value > 0.7


def test_a_constant_answer_beats_no_constant() -> None:
    """What the constant gets is no gain; the result is frozen, in copies too."""
    found = measure_answers([0] * 88 + [1] * 12, [0] * 100)
    assert (found.accuracy.value, found.majority_share, found.majority_label) == (0.88, 0.88, 0)
    assert (found.only_answer, found.beats_constant) == (0, False)
    assert found.balanced_accuracy.value == found.constant_balanced_accuracy == 0.5
    assert repr(found).startswith("<AnswerMetrics: 100 rows, accuracy 0.880 (0.802 to 0.930; always 0: 0.880)")
    again = pickle.loads(pickle.dumps(found))
    assert not again.confusion.flags.writeable
    assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [0, 1]}, r"one label per row, .* got shapes \(2,\) and \(3,\)"),
        ({"y": [], "label": []}, "of one row at least"),
        ({"classes": [0]}, r"`y` must hold labels among \[0\], got 1"),
        ({"label": [0, 0, 2], "classes": [0, 1]}, r"`label` must hold labels among \[0, 1\], got 2"),
        ({"score": [0.0, 1.0]}, "`score` must hold one number per row, 3"),
        ({"score": [0.0, 1.0, math.nan]}, "none missing"),
        ({"score": [0.0, 1.0, 1.0], "classes": [0, 1, 2]}, "`score` is for two classes, got 3"),
        ({"probability": [[0.5, 0.5]]}, "a column for each of 2 classes and a row for each of 3"),
        ({"probability": [0.0, 1.0, 2.0]}, "between 0 and 1: give scores as `score`"),
    ],
)
def test_bad_answers_are_refused(options: dict[str, object], message: str) -> None:
    """In words that name the parameter."""
    given: dict[str, object] = {"y": [0, 1, 1], "label": [0, 1, 0], **options}
    y, label = given.pop("y"), given.pop("label")
    with pytest.raises(ValueError, match=message):
        measure_answers(y, label, **given)  # type: ignore[arg-type]
