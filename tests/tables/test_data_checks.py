"""What is doubtful about columns: each doubt where it holds, in plain words, and none where it does not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand import AdditiveClassifier, AdditiveRegressor, StumpClassifier
from derand.estimators import fit_checked
from derand.tables import ColumnUse, ColumnWarning, check_columns, describe_data_checks
from derand.tables._data_checks import MOST_ROWS, Leaks, check_sentinel, check_target, reads_as_written_number

N_ROWS = 1000
RNG = np.random.default_rng(0)
LABELS = (RNG.random(N_ROWS) < 0.12).astype(int)


def check_one(values: Any, name: str = "a", **options: Any) -> tuple[ColumnUse, str]:
    """The use of a column, and all that is said of it."""
    (check,) = check_columns(pd.DataFrame({name: values}), **options)
    return check.use, " ".join([check.reason or "", *check.doubts])


def make_table() -> dict[str, Any]:
    """One column of each kind of trouble, and four that are fine."""
    rng = np.random.default_rng(1)
    return {
        "customer_id": rng.permutation(N_ROWS) + 70_000,
        "opened": [f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(N_ROWS)],
        "land": ["DE"] * N_ROWS,
        "amount": [f"{value:,}" for value in rng.integers(1000, 9000, N_ROWS)],
        "rate": [f"{value} %" for value in rng.integers(0, 9, N_ROWS)],
        "settled": LABELS * 3 + rng.random(N_ROWS) * 2,
        "status": ["lost" if label else "fine" for label in LABELS],
        "name": [f"person {row}" for row in range(N_ROWS)],
        "income": rng.lognormal(10, 0.5, N_ROWS).round(),
        "age": rng.integers(20, 70, N_ROWS),
        "score": rng.normal(size=N_ROWS),
        "shop": [f"shop {value}" for value in rng.integers(0, 300, N_ROWS)],
    }


EXPECTED = {
    "customer_id": "'customer_id' has another whole number in every row",
    "opened": "'opened' is text that reads as dates, such as '2024-01-01': turn it into days",
    "land": "'land' is constant: nothing can be learnt from it",
    "amount": "'amount' is text that reads as numbers, such as ",
    "rate": "'rate' is text that reads as numbers, such as ",
    "settled": "'settled' predicts the target almost alone",
    "status": "'status' predicts the target almost alone",
    "name": "'name' is text of which nearly every cell is another",
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_one_fit_says_it_all(make: Any) -> None:
    """One warning of `fit` names every column of trouble, what it is and what to do, and no other column."""
    with pytest.warns(ColumnWarning) as caught:
        StumpClassifier(scaling="standard").fit(make(make_table()), LABELS)
    (text,) = [str(one.message) for one in caught if issubclass(one.category, ColumnWarning)]
    for words in EXPECTED.values():
        assert words in text
    assert not any(f"'{name}'" in text for name in ("income", "age", "score", "shop"))


@pytest.mark.parametrize("make", [AdditiveClassifier, AdditiveRegressor])
def test_every_estimator_warns(make: Any) -> None:
    """Of classes and of numbers."""
    table = {name: make_table()[name] for name in ("customer_id", "age", "score")}
    with pytest.warns(ColumnWarning, match="'customer_id' has another whole number"):
        make(radius=0, regularization=1.0).fit(pd.DataFrame(table), LABELS)


def test_arrays_pass_without_a_message() -> None:
    """They have no names, and scikit-learn's tools pass them on many times."""
    rows = np.column_stack([np.arange(N_ROWS), LABELS, RNG.normal(size=N_ROWS)]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        StumpClassifier(scaling="standard").fit(rows, LABELS)


def test_columns_that_were_chosen_pass_without_a_message_again() -> None:
    """Categories that are named as such are meant."""
    frame = pd.DataFrame({"rate": make_table()["rate"], "score": RNG.normal(size=N_ROWS)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        StumpClassifier(categorical_features=["rate"]).fit(frame, LABELS)
    assert check_one(frame["rate"], categorical=["a"])[1] == ""
    assert check_one(range(N_ROWS), numerical=["a"]) == (ColumnUse.NUMERICAL, "")


@pytest.mark.parametrize(
    ("name", "values", "is_left_out"),
    [
        ("id", RNG.permutation(10**6)[:200], True),
        ("customerId", RNG.permutation(10**6)[:200], True),
        ("loan_number", RNG.permutation(10**6)[:200].astype(float), True),
        ("row", np.arange(200), True),
        ("row", RNG.permutation(200) + 5, True),
        ("income", RNG.permutation(10**6)[:200], False),
        ("width", RNG.normal(size=200), False),
        ("id", RNG.normal(size=200), False),
        ("id", np.arange(10), False),
        ("age", np.arange(30), False),
        ("valid", RNG.permutation(10**6)[:200], False),
    ],
)
def test_identifiers_are_told_by_name_and_order(name: str, values: Any, is_left_out: bool) -> None:
    """Whole numbers that never repeat: named so, or counting without gaps; amounts and measures are none."""
    use, text = check_one(values, name)
    assert use is (ColumnUse.IGNORED if is_left_out else ColumnUse.NUMERICAL)
    assert bool(text) == is_left_out
    assert ("to keep it: --numerical" in text) == is_left_out


def test_weak_signs_of_an_identifier_give_messages() -> None:
    """Numbers that only rise, or that are named so and hardly repeat, are used, and told."""
    rising = np.cumsum(RNG.integers(1, 1000, 200))
    assert check_one(rising)[0] is ColumnUse.NUMERICAL
    assert "rises or falls from row to row" in check_one(rising)[1]
    again = np.concatenate([rising, rising[:50]])
    assert check_one(again, "customer_id")[0] is ColumnUse.NUMERICAL
    assert "is named like an identifier" in check_one(again, "customer_id")[1]
    assert check_one(again) == (ColumnUse.NUMERICAL, "")


def test_a_target_that_looks_like_an_identifier_is_told() -> None:
    """Also where only its numbers say so; amounts are none."""
    told = "The target 'id' has another whole number in every row, as row numbers and identifiers do: look whether"
    assert str(check_target("id", RNG.permutation(10**6)[:200].astype(float))).startswith(told)
    assert "rises or falls from row to row" in str(check_target("y", np.cumsum(RNG.integers(1, 1000, 200)) * 1.0))
    assert check_target("income", RNG.permutation(10**6)[:200].astype(float)) is None
    assert check_target("id", RNG.normal(size=200)) is None


@pytest.mark.parametrize("text", ["1,234", "12 %", "3,5", " 7 ", "-1.234,50", "$ 5", "1'000.5", "12 €", "1e5", "+3"])
def test_written_numbers_are_read_as_such(text: str) -> None:
    assert reads_as_written_number(text)


@pytest.mark.parametrize("text", ["", "-", "cook", "12a", "A-12", "1.2.3", "%", "nan", "12 kg", "2024-01-31"])
def test_other_text_is_no_number(text: str) -> None:
    assert not reads_as_written_number(text)


@pytest.mark.parametrize("texts", [["31/12/2024", "1/2/2024"], ["2024-01-31 10:00", "2024-02-01 11:30:05"]])
def test_dates_as_text_are_told(texts: list[str]) -> None:
    """In whichever order day, month and year stand."""
    assert "is text that reads as dates" in check_one(texts * 10)[1]
    assert check_one(["cook", *texts] * 10)[1] == ""


def test_leaks_of_two_classes() -> None:
    """A threshold, a gap and a category tell; a good column does not."""
    noise = RNG.normal(size=N_ROWS)
    for values in (
        LABELS + 0.1 * noise.clip(-4, 4),
        np.where(LABELS == 1, np.nan, noise),
        np.where(LABELS == 1, "a", "b"),
    ):
        assert "predicts the target almost alone" in check_one(values, target=LABELS)[1]
        assert check_one(values)[1] == ""
    assert check_one(LABELS + 0.6 * noise, target=LABELS)[1] == ""
    assert check_one([f"c{value}" for value in RNG.integers(0, 400, N_ROWS)], target=LABELS)[1] == ""


def test_leaks_of_several_classes_and_numbers() -> None:
    """Cells of a number tell classes; ranks tell numbers."""
    classes = RNG.integers(0, 4, N_ROWS)
    assert "predicts the target" in check_one([f"c{one}" for one in classes], target=classes)[1]
    assert "predicts the target" in check_one(classes + 0.0, target=classes)[1]
    numbers = RNG.normal(size=N_ROWS)
    assert "predicts the target" in check_one(np.exp(numbers), target=numbers)[1]
    assert check_one(numbers + RNG.normal(size=N_ROWS), target=numbers)[1] == ""


def test_few_rows_say_nothing_of_leaks() -> None:
    """Of twelve rows chance may put all in order, and so of a class of a few rows."""
    assert check_one(LABELS[:60] + 0.0, target=LABELS[:60])[1] == ""
    rare = np.arange(N_ROWS) < 10
    assert check_one(rare + 0.0, target=rare)[1] == ""


def test_large_tables_are_sampled() -> None:
    """The same is found, and what holds of the sample alone is not said of the table."""
    n_rows = 3 * MOST_ROWS
    labels = RNG.integers(0, 2, n_rows)
    almost = np.ones(n_rows)
    almost[7] = 2.0
    frame = pd.DataFrame(
        {"id": RNG.permutation(n_rows), "leak": labels * 2.0, "same": 1.0, "almost": almost, "x": RNG.random(n_rows)}
    )
    text = describe_data_checks(frame, labels)
    assert text is not None
    assert all(f"'{name}'" in text for name in ("id", "leak", "same"))
    assert "'x'" not in text
    assert "'almost'" not in text
    checks = {check.name: check for check in check_columns(frame, target=labels)}
    assert checks["id"].use is ColumnUse.IGNORED
    assert checks["leak"].doubts
    assert checks["x"].doubts == ()


def test_long_lists_are_cut() -> None:
    """A warning names twelve columns and counts the others."""
    frame = pd.DataFrame({f"c{at}": [1.0] * 20 for at in range(15)})
    assert str(describe_data_checks(frame, [0, 1] * 10)).endswith("And 3 more columns.")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_columns_are_checked_as_each_by_itself(n_classes: int) -> None:
    """Leaks by order, by cells, nearly leaks, ties and gaps: the same is said of them together and one by one."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, n_classes, 700)
    columns = [labels + rng.normal(size=700) * scale for scale in np.geomspace(0.05, 2, 40)]
    columns += [np.where(rng.random(700) < share, rng.random(700) * 3, labels) for share in np.linspace(0, 0.1, 30)]
    columns += [np.abs(labels - 1) + 0.01 * rng.random(700), np.round(labels * 2.6), rng.integers(0, 9, 700) * 1.0]
    columns += [np.where(rng.random(700) < 0.2, np.nan, column) for column in columns[:10]]
    leaks = Leaks(labels)
    alone = [leaks.check_numbers(column) for column in columns]
    assert leaks.check_many(columns) == alone
    assert 5 < sum(found is not None for found in alone) < len(columns) - 5


def test_columns_that_were_checked_pass_without_a_message_again() -> None:
    """`fit_checked` trains as `fit` does, and says nothing of columns."""
    frame = pd.DataFrame({"settled": LABELS * 3 + RNG.random(N_ROWS) * 2, "score": RNG.normal(size=N_ROWS)})
    with pytest.warns(ColumnWarning, match="settled"):
        usual = StumpClassifier().fit(frame, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        checked = fit_checked(StumpClassifier(), frame, LABELS)
    np.testing.assert_array_equal(checked.entropy_, usual.entropy_)


def test_sentinels_and_spellings_are_told() -> None:
    """A number far outside that stands for a missing one, and one category that is written in several ways."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 200).astype(float)
    sex = rng.choice(["M", "m", "f", "f "], 200)
    table = pa.table({"age": np.where(np.arange(200) % 20 == 0, -999.0, age), "sex": sex, "plain": age + 0.5})
    doubts = {str(check.name): check.doubts for check in check_columns(table)}
    assert doubts["age"] == (
        f"holds -999 in 10 cells, far outside its other numbers ({age[np.arange(200) % 20 > 0].min():g} to "
        f"{age[np.arange(200) % 20 > 0].max():g}): if that means missing, empty the cells",
    )
    told = "spells one category in several ways, such as 'M' and 'm': write 2 of its values alike first"
    assert doubts["sex"] == (told,)
    assert doubts["plain"] == ()
    alone = "holds -99 in 2 cells, and no other number below 0 (3 to 900): if that means missing, empty the cells"
    assert check_sentinel(np.array([3.0, -99.0, 900.0, -99.0])) == alone
    for fine in ([-1.0, -1.0, 0.0, 5.0], [9.0, 9.0, 1.0, 8.0], [-999.0, -998.0, -997.0, -999.0], [99.0, 99.0, 99.0]):
        assert check_sentinel(np.array(fine)) is None
