"""Rows explained: sentences say what the model does, pushes add up, and hostile text stays text."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from derand import (
    AdditiveClassifier,
    RobAdaBoostClassifier,
    RowExplanation,
    StumpClassifier,
    Threat,
    dates_to_numbers,
    from_model,
)
from derand.certificates import Change, round_flip
from derand.explain import Names, move_alone
from derand.explain._words import (
    describe_column,
    describe_flip,
    describe_joint,
    describe_move,
    describe_radius,
    describe_size,
    list_held,
    list_safe,
)
from derand.fitted import encode_rows
from derand.tables import SECONDS

NAMES = Names(("income", "job"), {1: ("cook", "clerk")})


def make_loans(n_rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(10, 60, n_rows) * 100.0,
            "job": rng.choice(["cook", "clerk", "nurse"], n_rows),
            "kind": rng.choice([3, 7], n_rows),
        }
    )
    score = frame.income / 1000 + 2 * (frame.job == "nurse") + rng.normal(0, 0.3, n_rows)
    return frame, np.where(score > 3.5, "paid", "default")


LOANS, OUTCOME = make_loans()
VALUES = re.compile(r"if 'income' (?:fell|rose) from ([\d,]+(?:\.\d+)?) to ([\d,]+(?:\.\d+)?)[.;]")


def read_move(match: re.Match[str]) -> tuple[float, float]:
    before, after = (float(text.replace(",", "")) for text in match.groups())
    return before, after


@pytest.fixture(scope="module")
def clf() -> StumpClassifier:
    how = {"scaling": "standard", "rule": "mean", "class_weight": "balanced"}
    return StumpClassifier(noise="gaussian:0.1", categorical_features=["job", "kind"], **how).fit(LOANS, OUTCOME)


def test_values_that_are_said_to_flip_do(clf: StumpClassifier) -> None:
    """The number in a sentence, put into the row as it is printed, flips its answer."""
    told = 0
    for at in range(12):
        found = clf.explain(LOANS.iloc[at])
        match = VALUES.search(str(found))
        if match is None:
            continue
        told += 1
        before, after = read_move(match)
        assert before == LOANS.income[at]
        assert len(match.group(2).replace(",", "")) <= 6
        changed = LOANS.iloc[[at]].assign(income=after)
        assert clf.predict(changed)[0] != found.label
    assert told > 4


def test_one_row_is_taken_as_it_comes(clf: StumpClassifier) -> None:
    """A Series, a mapping in any order, plain values, a table of one row: the same explanation."""
    expected = str(clf.explain(LOANS.iloc[[3]]))
    row = LOANS.iloc[3]
    backwards = dict(reversed(list(row.to_dict().items())))
    for one in (row, row.to_dict(), backwards, row.to_numpy(), row.tolist()):
        found = clf.explain(one)
        assert isinstance(found, RowExplanation)
        assert str(found) == expected
    several = clf.explain(LOANS.iloc[3:5])
    assert len(several) == 2
    assert str(several).startswith(f"Row 0\n{expected}\n\nRow 1\n")
    assert several._repr_html_().count("The answer is") == 2
    with pytest.raises(ValueError, match="got a row without 'kind'"):
        clf.explain({"income": 1.0, "job": "cook"})


def test_plain_arrays_have_rows_too() -> None:
    """X[0] of an array, and as a list; numbers that a Series turned into floats are whole categories again."""
    X = LOANS[["income", "kind"]].to_numpy(float)
    plain = StumpClassifier(noise="gaussian:0.25", scaling="standard").fit(X, OUTCOME)
    assert str(plain.explain(X[0])) == str(plain.explain(X[:1])) == str(plain.explain(X[0].tolist()))
    assert "feature 0 = " in str(plain.explain(X[0]))
    frame = LOANS[["income", "kind"]]
    named = StumpClassifier(noise="gaussian:0.25", scaling="standard", categorical_features=["kind"]).fit(
        frame, OUTCOME
    )
    assert str(named.explain(frame.iloc[0])) == str(named.explain(frame.iloc[[0]]))


def test_pushes_add_up_to_the_distance_from_the_threshold(clf: StumpClassifier) -> None:
    """Their sum has the sign of the answer, and is the expected score less the threshold."""
    for at in range(5):
        found = clf.explain(LOANS.iloc[at])
        row = encode_rows(clf, LOANS.iloc[[at]])[0]
        sides = [
            clf.noise_.cell_probabilities(row[[0]], term.axes[0].edges, 0) for term in clf.ensemble_.terms if term.axes
        ]
        score = sum(float(term.expect(row[None], sides[:1] if term.axes else [])[0, 0]) for term in clf.ensemble_.terms)
        assert found.total == pytest.approx(score - clf.ensemble_.threshold)
        assert found.sides[int(found.total > 0)] == found.label
        assert found.sides == ("default", "paid")


def test_several_classes_stand_against_the_nearest() -> None:
    """Pushes are for the answer and against the class that decides its radius."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    several = AdditiveClassifier(radius=0.1, regularization=0.1).fit(X, y)
    found = several.explain([-1.5, 0.0])
    certificates = several.certify([[-1.5, 0.0]])
    assert found.label == "a" == found.sides[1]
    assert found.sides[0] == certificates.runner_up[0] == "b"
    assert found.total > 0
    assert "It would flip to 'b' if 'feature 0' rose from -1.5 to " in str(found)


def test_votes_and_lines_are_explained(clf: StumpClassifier) -> None:
    """A vote of several models has no pushes; lines are measured from 0, and say so."""
    from sklearn.linear_model import LogisticRegression

    X = LOANS[["income", "kind"]].to_numpy(float)
    vote = RobAdaBoostClassifier(noise="gaussian:0.25", scaling="standard", n_estimators=3).fit(X, OUTCOME)
    found = vote.explain(X[0])
    assert bool(found.pushes) == (len(vote.ensemble_.members) == 1)
    assert "One column alone:" in str(found)
    lines = from_model(LogisticRegression(max_iter=500).fit(X / 1000, OUTCOME), X / 1000)
    assert "measured from 0 of every column" in str(lines.explain(X[0] / 1000))


def test_pictures_and_pages_show_text_as_it_is() -> None:
    """Formulas, tags and line breaks in names, categories and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"$x$": rng.normal(size=120), "<b>\n": rng.choice(["<i>", "$k$"], 120), "y" * 300: 1.0})
    y = np.where(frame["$x$"] + (frame["<b>\n"] == "<i>") > 0.5, "<u>", "$no$")
    odd = StumpClassifier(noise="gaussian:0.25").fit(frame, y)
    found = odd.explain(frame.iloc[0])
    axes = found.plot()
    axes[0].figure.canvas.draw()
    assert any("$x$" in label.get_text() for label in axes[0].get_yticklabels())
    pages = found._repr_html_() + odd.certify(frame)._repr_html_()
    assert not re.search(r"<(i|u|b)>", pages)
    assert "&lt;u&gt;" in pages
    assert "http" not in pages
    assert repr(found).startswith(f"<Explanation: {str(found.label)!r}. ")
    odd.plot()[0].figure.canvas.draw()
    pyplot.close("all")


def test_limits_are_kept_by_rounded_values(clf: StumpClassifier) -> None:
    """A value that is told lies within the limit that was asked for, and has more digits where that is tight."""
    threat = Threat(limits={"income": 1500.0})
    matches = [VALUES.search(str(clf.explain(LOANS.iloc[at], threat=threat))) for at in range(8)]
    moves = [read_move(match) for match in matches if match is not None]
    assert moves
    assert all(abs(after - before) <= 1500 for before, after in moves)


def test_steps_are_kept_by_rounded_values(clf: StumpClassifier) -> None:
    """A value that is told is a whole number of steps away."""
    found = [clf.explain(LOANS.iloc[at], threat=Threat(steps={"income": 37.0})) for at in range(6)]
    moves = [read_move(match) for one in found if (match := VALUES.search(str(one))) is not None]
    assert moves
    assert all((after - before) % 37 == 0 for before, after in moves)


def test_sentences() -> None:
    """What is proven, what was found, and what neither is."""
    start = np.array([2400.0, 0.0])
    assert describe_flip(NAMES, 1, 0.0, 1.0) == "'job' were 'clerk' instead of 'cook'"
    assert describe_flip(NAMES, 1, 0.0, -1.0) == "'job' were a value that training did not see instead of 'cook'"
    open_change = Change(0, 0.5, 1.0, np.array([1870.0, 0.0]))
    assert (
        describe_column(NAMES, start, open_change, 1870.0, 530.0, "1")
        == "It would flip to 1 if 'income' fell from 2,400 to 1,870; a change by less than 264 is proven not to."
    )
    exact = Change(0, 1.0, 1.0, np.array([1870.0, 0.0]))
    assert describe_column(NAMES, start, exact, 1870.0, 530.0, "1").endswith("to 1,870.")
    unknown = Change(0, 0.0, np.inf, None)
    assert describe_column(NAMES, start, unknown, np.nan, 1.0, "").endswith("nothing is proven of smaller changes.")
    assert list_safe(NAMES, [unknown, Change(1, np.inf, np.inf, None)]) == [
        "No change of 'income' or 'job' alone flips it: this is proven."
    ]
    joint = describe_joint(NAMES, start, np.array([2600.25, 0.0]), np.ones(2), "1")
    assert joint == "It would flip to 1 if 'income' rose from 2,400 to about 2,600."
    near = describe_joint(NAMES, np.array([1258.12, 0.0]), np.array([1258.41, 0.0]), np.ones(2), "1")
    assert near == "It would flip to 1 if 'income' rose from 1,258.1 to about 1,258.4."
    held = list_held(NAMES, np.array([np.nan, 0.0]), [0, 1], [], [1])
    assert held == [
        "'job' is frozen: no change was looked for.",
        "'income' is missing: no change of a number was looked for.",
    ]
    assert describe_move(100000.5, 100000.5001) == "rose from 100,000.5 to 100,000.5001"
    assert move_alone(0.5, 2.0) < 1.0


def test_radii_in_words() -> None:
    """Never above what is proven, never below what was found."""
    assert describe_radius(0.6999, 2, 0.7011, "l2") == (
        "Its radius is 0.699: no smaller change of its numbers flips it, and one of size 0.702 does (l2)."
    )
    assert describe_radius(0.0, 2, np.inf, "l2") == "Its radius is 0: nothing is proven for it (l2)."
    assert describe_radius(np.inf, 2, np.inf, "").startswith("No change of numbers flips it")
    assert "within the limits" in describe_radius(np.inf, None, np.inf, "")
    assert describe_radius(2.0, 0, 3.0, "") == (
        "Its radius is 2: any 2 numerical columns may become anything without flipping it."
    )
    assert describe_size(np.inf, "") == "linf norm, columns in their own units"


def make_dated() -> tuple[StumpClassifier, pd.DataFrame]:
    """A model of dates, as `derand train --dates` gives it."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, 200), unit="D")
    frame = pd.DataFrame({"opened": days, "sum": rng.normal(size=200).round(2)})
    y = np.where(frame.opened > pd.Timestamp("2024-06-01"), "new", "old")
    dated = StumpClassifier(noise="gaussian:0.1", scaling="standard", rule="mean").fit(dates_to_numbers(frame), y)
    dated.encoding_ = dated.encoding_.with_dates(["opened"])
    return dated, frame


def test_dates_are_taken_and_told_as_dates() -> None:
    """In one row of any kind; the date in a sentence flips the answer."""
    dated, frame = make_dated()
    expected = str(dated.explain(frame.iloc[[4]]))
    row, text = frame.iloc[4], str(frame.opened[4].date())
    same = [
        row,
        row.to_dict(),
        row.to_dict() | {"opened": text},
        {"opened": frame.opened.to_numpy()[4], "sum": row["sum"]},
    ]
    for one in same:
        assert str(dated.explain(one)) == expected
    match = re.search(rf"'opened' (?:fell|rose) from {text} to (\d{{4}}-\d\d-\d\d)\.", expected)
    assert match is not None
    assert f"opened = {text}" in expected
    assert dated.predict(frame.iloc[[4]].assign(opened=pd.Timestamp(match.group(1))))[0] != dated.predict(frame)[4]
    with pytest.raises(ValueError, match=r"NaN or infinity in column 'opened'"):
        dated.explain({"opened": pd.NaT, "sum": 0.5})
    with pytest.raises(ValueError, match="'sum' of `X` holds text, such as 'much'"):
        dated.explain({"opened": text, "sum": "much"})


def test_times_are_told_to_the_second() -> None:
    dates = Names(("opened",), {}, (0,))
    start = np.array([19723.0])
    assert round_flip(start, 0, 19722.3, lambda rows: rows[:, 0] < 19722.4, fractions=(1, SECONDS)) == 19722.0
    by_time = round_flip(start, 0, 19722.3, lambda rows: rows[:, 0] > 19722.1, fractions=(1, SECONDS))
    assert describe_flip(dates, 0, 19723.0, by_time) == "'opened' fell from 2024-01-01 to 2023-12-31 07:12:00"
    change = Change(0, 2.5, 40.0, np.array([19763.0]))
    assert describe_column(dates, start, change, 19763.0, 1.0, "1").endswith(
        "a change by less than 2.49 days is proven not to."
    )
    joint = describe_joint(dates, start, np.array([19724.0]), np.ones(1), "1")
    assert joint == "It would flip to 1 if 'opened' rose from 2024-01-01 to 2024-01-02."


def test_one_row_for_certify_is_told_how(clf: StumpClassifier) -> None:
    with pytest.raises(ValueError, match=r"got a Series: give `frame\.iloc\[\[0\]\]`"):
        clf.certify(LOANS.iloc[0])


def test_radii_in_whole_steps_are_told_where_they_are_larger() -> None:
    """A count that one step flips: the flip is of size 1, and the radius is that of whole steps."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"count": rng.integers(0, 6, 300), "sum": rng.normal(size=300)})
    row = X.iloc[[int(np.flatnonzero(X["count"] == 2)[0])]].assign(sum=1.0)
    how = {"noise": "none", "scaling": None, "radius": 0.1, "norm": math.inf}
    counts = AdditiveClassifier(**how).fit(X, np.where(X["count"] > 2, "many", "few"))
    found = counts.explain(row, threat=Threat(frozen=["sum"]))
    assert found.joint.certified > float(counts.certify(row).radius[0])
    assert found.radius_text.startswith("In whole steps its radius is")
    assert "one of size 1 does" in found.radius_text
    assert "'sum' is frozen: no change was looked for." in found.sentences
    assert counts.explain(row, whole=False).radius_text.startswith("Its radius is")
    sums = AdditiveClassifier(**how).fit(X, np.where(X["sum"] > 0, "many", "few"))
    assert sums.explain(row.assign(sum=0.3)).radius_text.startswith("Its radius is")


def test_whole_numbers_are_told_exactly() -> None:
    """Nothing is "about" a number that is shown as it is."""
    told = describe_joint(NAMES, np.array([0.0, 0.0]), np.array([1.0, 0.0]), np.ones(2), "1")
    assert told == "It would flip to 1 if 'income' rose from 0 to 1."
    told = describe_joint(NAMES, np.array([0.0, 0.0]), np.array([1.5, 0.0]), np.ones(2), "1")
    assert "from 0 to about 1.5" in told
