"""The part "What if" in a real browser: its answers are those of `predict`, and what it calls proven is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, AdditiveEnsemble, StepFunction, StumpClassifier, Threat, WeightedVote
from derand.certificates import expect_margins, find_labels
from derand.report import Report

Visit = Callable[..., Any]
N_MOVES = 200

# moves rows as a reader does, one control after the other, and reads what the page says
PLAY = """
(moves) => {
  const send = (element, kind) => element.dispatchEvent(new Event(kind, { bubbles: true }));
  const section = document.querySelector("#whatif");
  const lines = [...section.querySelectorAll(".whatif-line")];
  return moves.map(({ at, values }) => {
    const picker = section.querySelector("#whatif-row");
    picker.value = at;
    send(picker, "change");
    Object.entries(values).forEach(([k, value]) => {
      const line = lines[k];
      const kinds = ["select", ".whatif-number", "input[type=checkbox]"];
      const [menu, box, gap] = kinds.map((kind) => line.querySelector(kind));
      if (menu) { menu.value = value; send(menu, "change"); return; }
      if (gap && gap.checked !== (value === null)) { gap.checked = value === null; send(gap, "change"); }
      if (value !== null) { box.value = value; send(box, "input"); }
    });
    const { label, found, score } = section.dataset;
    const { inside } = section.querySelector("#whatif-certified").dataset;
    return { label, found, score: JSON.parse(score), inside: inside === "true" };
  });
}
"""


def make_table(n_rows: int = 260) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows).astype(float),
            "income": rng.lognormal(8, 0.5, n_rows).round(2),
            "job": rng.choice(["clerk", "smith", "cook"], n_rows),
            "debt": rng.normal(size=n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.15, "debt"] = np.nan
    strength = frame["age"] / 12 + 2 * (frame["job"] == "smith") + frame["debt"].fillna(1.0) + rng.normal(size=n_rows)
    return frame, np.where(strength > 5, "yes", "no")


def make_report(clf: Any, several: bool = False, **options: Any) -> Report:
    frame, y = make_table()
    if several:
        y = np.where(frame["age"] > 60, "old", y)
    clf.fit(frame[:160], y[:160])
    return Report(clf, frame[160:], y[160:], n_explained=0, **options)


@pytest.fixture(scope="module")
def plain_report() -> Report:
    """By votes of noisy copies."""
    return make_report(StumpClassifier(noise="gaussian:0.5", scaling="standard"))


def draw_moves(report: Report, seed: int = 0, n_moves: int = N_MOVES) -> list[dict[str, Any]]:
    """Rows with one to three columns changed, half of them by little: numbers, categories, gaps."""
    rng, what_if = np.random.default_rng(seed), report.to_dict()["what_if"]
    assert what_if is not None
    moves = []
    for _ in range(n_moves):
        at, values, size = int(rng.integers(what_if["n_rows"])), {}, int(rng.integers(1, 4))
        n_columns = len(what_if["columns"])
        for k in rng.choice(n_columns, size=min(size, n_columns), replace=False).tolist():
            column, own = what_if["columns"][k], what_if["cells"][k][at]
            if column["kind"] == "category":
                values[k] = int(rng.integers(len(column["options"])))
            elif column["takes_missing"] and rng.random() < 0.2:
                values[k] = None
            else:
                reach = (column["high"] - column["low"]) * (0.02 if rng.random() < 0.5 else 1.0)
                start = column["middle"] if own is None else float(own)
                value = start + rng.uniform(-reach, reach)
                values[k] = round(value) if column["whole"] and not column["step"] else round(value, 3)
        moves.append({"at": at, "values": values})
    return moves


def encode_moves(report: Report, moves: list[dict[str, Any]]) -> np.ndarray:
    """The moved rows as the model reads them."""
    summary = report.to_dict()
    table, columns = summary["rows"]["table"], summary["what_if"]["columns"]
    rows = np.array([report._inputs.matrix[table[move["at"]]["row"] - 1] for move in moves])
    for row, move in zip(rows, moves, strict=True):
        for k, value in move["values"].items():
            code = columns[k]["options"][value]["code"] if columns[k]["kind"] == "category" else value
            row[columns[k]["feature"]] = np.nan if code is None else code
    return rows


def compare(page: Any, report: Report) -> list[dict[str, Any]]:
    """Play the moves; answers are those of the function that `predict` calls, and what is called proven holds."""
    moves = draw_moves(report)
    said = page.evaluate(PLAY, moves)
    inputs, rows = report._inputs, encode_moves(report, moves)
    labels = find_labels(inputs.subject.model, rows, inputs.subject.noise, rule=inputs.plain.rule)
    table, classes = report.to_dict()["rows"]["table"], report.to_dict()["model"]["classes"]
    told = [one["found"] != "" for one in said]
    assert np.mean(told) > 0.95
    assert [int(one["found"]) for one in said if one["found"]] == labels[told].tolist()
    for move, one, label in zip(moves, said, labels, strict=True):
        if one["inside"]:
            assert classes[label] == table[move["at"]]["label"]
    return said


@pytest.mark.parametrize(
    ("clf", "options"),
    [
        (StumpClassifier(noise="gaussian:0.5", scaling="standard"), {}),
        (StumpClassifier(noise="laplace:0.3", scaling="standard", rule="mean"), {}),
        (StumpClassifier(noise="uniform:0.5", scaling="standard"), {"rule": "mean", "threat": Threat(norm=1, l0=1)}),
        (StumpClassifier(noise="gaussian:0.5", scaling="standard"), {"rule": "mean", "noise": "none"}),
        (AdditiveClassifier(radius=0.3, regularization=1.0), {}),
    ],
    ids=["vote", "laplace", "uniform", "as deployed", "additive"],
)
def test_answers_are_those_of_predict(visit: Visit, clf: Any, options: dict[str, Any]) -> None:
    """Two hundred moved rows, with categories, new and missing values: no answer differs, none called proven flips."""
    report = make_report(clf, **options)
    said = compare(visit(report), report)
    assert any(one["inside"] for one in said)
    assert not all(one["inside"] for one in said)


@pytest.mark.long
@pytest.mark.parametrize(
    "threat",
    [
        Threat(norm=0, frozen=["age", "job"]),
        Threat(norm=np.inf, missing=1, frozen=["income"]),
        Threat(norm=2, limits={"age": (0, 3), "income": "2%"}, steps={"age": 1}, l0=1, may_become={"job": ["cook"]}),
        Threat(norm=None, limits={"*": "1%"}, domain={"age": (0, 200)}, steps={"age": 0.5}, missing=1),
    ],
    ids=["norm 0", "missing", "limits and steps", "no ball"],
)
@pytest.mark.parametrize("noise", [None, "none"])
def test_what_is_called_proven_holds_under_other_threats(visit: Visit, threat: Threat, noise: str | None) -> None:
    """Norms, limits, steps, named categories and numbers that go missing."""
    clf = StumpClassifier(noise="gaussian:0.3", scaling="standard", rule="mean")
    report = make_report(clf, threat=threat, noise=noise)
    said = compare(visit(report), report)
    assert any(one["inside"] for one in said)
    assert not all(one["inside"] for one in said)


def test_predict_of_the_table_itself_agrees(visit: Visit) -> None:
    """The moved rows as the user would write them, given to the classifier's own `predict`."""
    clf = AdditiveClassifier(radius=0.3)
    report, (frame, _) = make_report(clf), make_table()
    moves, summary = draw_moves(report, seed=5), report.to_dict()
    said = visit(report).evaluate(PLAY, moves)
    moved = frame[160:].iloc[[summary["rows"]["table"][move["at"]]["row"] - 1 for move in moves]].reset_index(drop=True)
    for at, move in enumerate(moves):
        for k, value in move["values"].items():
            column, written = summary["what_if"]["columns"][k], value
            if column["kind"] == "category":
                code = column["options"][value]["code"]
                written = None if code is None else "never seen" if code < 0 else column["options"][value]["text"]
            moved.loc[at, column["name"]] = np.nan if written is None else written
    expected = clf.predict(moved)
    assert [summary["model"]["classes"][int(one["found"])] for one in said if one["found"]] == [
        label for label, one in zip(expected, said, strict=True) if one["found"]
    ]


def test_whole_numbers_stay_whole(visit: Visit) -> None:
    """A count moves by 1, a 0/1 column between 0 and 1, also where other numbers are typed; a probability is shown."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.integers(0, 2, 120), "count": rng.integers(0, 9, 120), "size": rng.normal(size=120)})
    y = X["flag"] + X["count"] / 4 + X["size"] > 1.5
    clf = AdditiveClassifier(radius=0.05, regularization=1.0).fit(X, y)
    page = visit(Report(clf, X[:30].set_index("I-" + X[:30].index.astype(str)), n_explained=0))
    assert "Row I-" in page.locator("#whatif-row option").first.inner_text()
    assert "Probability of “True”" in page.locator("[data-test=whatif-scores]").inner_text()
    for name, typed, kept in (("flag", "7", "1"), ("count", "2.6", "3")):
        line = page.locator(".whatif-line").filter(has_text=name)
        slider, box = line.locator("input[type=range]"), line.locator(".whatif-number")
        assert slider.get_attribute("step") == "1"
        assert name == "count" or (slider.get_attribute("min"), slider.get_attribute("max")) == ("0", "1")
        box.fill(typed)
        box.blur()
        assert box.input_value() == kept


def test_several_classes_show_a_score_each(visit: Visit) -> None:
    """By the mean the largest expected score answers; a vote among several classes is left to `predict`."""
    by_mean = make_report(StumpClassifier(noise="gaussian:0.5", scaling="standard", rule="mean"), several=True)
    page = visit(by_mean)
    said = compare(page, by_mean)
    rows = encode_moves(by_mean, draw_moves(by_mean))
    subject = by_mean._inputs.subject
    scores = expect_margins(subject.model.members[0], rows, subject.noise) * subject.model.members[0].levels
    assert np.allclose([one["score"] for one in said], scores, rtol=1e-9, atol=1e-6)
    assert page.locator("[data-test=whatif-scores] dt").count() == 3
    by_vote = make_report(StumpClassifier(noise="gaussian:0.5", scaling="standard"), several=True)
    page = visit(by_vote)
    (said,) = page.evaluate(PLAY, [{"at": 0, "values": {0: 1e9}}])
    assert not said["inside"]
    assert "ask predict" in page.locator("[data-test=whatif-answer]").inner_text()
    assert "without noise" in page.locator("#whatif .fine").last.inner_text()


def test_votes_of_members_limits_and_lines(visit: Visit) -> None:
    """A weighted vote, limits without a ball, a fine grid that is cut coarser, and a linear model."""
    from sklearn.linear_model import LogisticRegression

    from derand import from_model

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    first = AdditiveEnsemble.from_stumps([0, 1, 0], [0.1, 0.0, 0.7], [0.1, 0.2, 0.4], [0.9, 0.7, 0.5], n_features=3)
    second = AdditiveEnsemble.from_stumps([2], [0.0], [0.3], [0.8], n_features=3)
    vote = WeightedVote([first, second, first], [1.0, 0.7, -0.2])
    steps = [StepFunction(k, [-0.5, 0.1, 0.8], [0, 2**40 + 7 * k, 2**41 + 1, 2**42]) for k in range(3)]
    fine = AdditiveEnsemble(steps, 2**42 - 2**33, 3)
    limits = Threat(norm=None, limits={0: "20%", 1: 0.4}, domain={1: (-9.0, 9.0)}, frozen=[2])
    reports = [
        Report(vote, X, y, noise="gaussian:0.5", n_explained=0),
        Report(fine, X, y, noise="gaussian:0.5", n_explained=0),
        Report(first, X, y, noise="none", rule="mean", threat=limits, n_explained=0),
        Report(from_model(LogisticRegression().fit(X, y)), X, y, n_explained=0),
    ]
    for report in reports:
        compare(visit(report), report)


def test_shares_of_copies_are_the_library_s(visit: Visit, plain_report: Report) -> None:
    """The law of the score that the page computes gives the probabilities of `predict_proba`."""
    report = plain_report
    moves = draw_moves(report, seed=2, n_moves=40)
    said = visit(report).evaluate(PLAY, moves)
    subject = report._inputs.subject
    from derand import distribution

    law = distribution(subject.model.members[0], encode_moves(report, moves), subject.noise)
    above = law.pmf[:, law.support > subject.model.members[0].threshold].sum(axis=1)
    assert np.allclose([one["score"][0] for one in said], above, atol=1e-9)
    assert np.allclose([one["score"][1] for one in said], above, atol=1e-9)


def test_the_certified_set_ends_at_the_radius(visit: Visit) -> None:
    """Just within the radius a moved row is called proven, at the radius it is not; frozen columns never are."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = AdditiveEnsemble.from_stumps([0, 1], [0.0, 0.3], [0.1, 0.2], [0.9, 0.8], n_features=2)
    threat = Threat(norm=2, units=(2.0, 0.5))
    report = Report(model, X, noise="none", rule="mean", threat=threat)
    summary = report.to_dict()
    at = next(at for at, row in enumerate(summary["rows"]["table"]) if 0.1 < float(row["radius"][0]) < 1e9)
    radius, k = float(summary["rows"]["table"][at]["radius"][0]), 0
    column, own = summary["what_if"]["columns"][k], summary["what_if"]["cells"][k][at]
    shares = [sign * share for sign in (-1, 1) for share in (0, 0.5, 1 - 1e-9, 1 + 1e-12, 2)]
    moves = [{"at": at, "values": {k: own + share * radius * column["unit"]}} for share in shares]
    inside = [one["inside"] for one in visit(report).evaluate(PLAY, moves)]
    assert inside == [True, True, True, False, False] * 2
    frozen = Report(model, X, noise="none", rule="mean", threat=Threat(norm=2, frozen=[0, 1]))
    page = visit(frozen)
    assert not page.evaluate(PLAY, [{"at": 0, "values": {0: 0.123}}])[0]["inside"]
    assert "may not change" in page.locator("[data-test=whatif-certified]").inner_text()


@pytest.mark.parametrize("rule", ["mean", "vote"])
def test_what_is_too_close_is_not_called(visit: Visit, rule: str) -> None:
    """On the edge of a single stump the two sides weigh the same: the page leaves that to `predict`."""
    model = AdditiveEnsemble([StepFunction(0, [0.5], [-1, 1])], 0, 1)
    page = visit(Report(model, [[0.0], [1.0]], noise="gaussian:0.25", rule=rule))
    said = page.evaluate(PLAY, [{"at": 0, "values": {0: value}} for value in (0.5 - 1e-6, 0.5 + 1e-6, 0.5)])
    assert [one["found"] for one in said] == ["0", "1", ""]
    assert page.locator("[data-test=whatif-answer]").inner_text() == "too close to call here: ask predict"


def test_keys_alone_move_a_row_and_a_screen_reader_is_told(visit: Visit, plain_report: Report) -> None:
    """Every control has a name, arrow keys move sliders by whole numbers, the result is a live region."""
    page, what_if = visit(plain_report), plain_report.to_dict()["what_if"]
    k = next(k for k, column in enumerate(what_if["columns"]) if column["name"] == "age")
    slider = page.get_by_role("slider", name="age")
    before = page.locator("[data-test=whatif-result]").inner_text()
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    age = what_if["cells"][k][what_if["n_rows"] // 2] + 3
    assert slider.get_attribute("aria-valuetext") == f"{age:g}"
    assert page.get_by_role("spinbutton", name="age, as a number").input_value() == f"{age:g}"
    assert page.locator("[data-test=whatif-result]").inner_text() != before
    assert page.locator("[data-test=whatif-result]").get_attribute("aria-live") == "polite"
    page.get_by_role("combobox", name="job").press("ArrowDown")
    assert "2 columns moved" in page.locator("[data-test=whatif-change]").inner_text()
    page.get_by_role("checkbox", name="debt is missing").press("Space")
    page.get_by_role("button", name="Back to the row").press("Enter")
    assert page.locator("[data-test=whatif-change]").inner_text() == "the row as it is"
    unnamed = page.eval_on_selector_all(
        "#whatif input, #whatif select, #whatif button",
        "all => all.filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent)).length",
    )
    assert unnamed == 0


def test_the_row_of_the_table_is_taken_over(visit: Visit, plain_report: Report) -> None:
    """The link in a row's details picks that row."""
    page = visit(plain_report)
    page.locator("#row-table tbody tr[data-at='7'] button").press("Enter")
    page.locator("#detail-whatif").press("Enter")
    assert page.locator("#whatif-row").input_value() == "7"


def test_hostile_text_stays_text(visit: Visit) -> None:
    """Names of columns, categories and classes that look like markup are shown and not run."""
    nasty = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({nasty: rng.choice([nasty, "<b>", "&amp;"], 80), "b": rng.normal(size=80)})
    y = np.where(frame["b"] + (frame[nasty] == nasty) > 0.3, nasty, "no")
    page = visit(Report(StumpClassifier(noise="gaussian:0.5").fit(frame, y), frame, y))
    page.on("dialog", lambda dialog: pytest.fail("a script of the user's data ran"))
    menu = page.get_by_role("combobox", name=nasty)
    assert nasty in menu.locator("option").all_inner_texts()
    page.evaluate(PLAY, [{"at": 0, "values": {0: 1, 1: 0.4}}, {"at": 0, "values": {1: 2, 0: 0.4}}])
    assert page.locator("img").count() == 0
    assert page.locator("#whatif .whatif-name").all_inner_texts().count(nasty) == 1


@pytest.mark.parametrize("options", [{}, {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}])
def test_it_fits_the_screen(visit: Visit, plain_report: Report, options: dict[str, Any]) -> None:
    page = visit(plain_report, **options)
    page.evaluate(PLAY, [{"at": 0, "values": {0: 1, 1: 2}}])
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator("#whatif-answer").is_visible()


def test_without_script_the_part_says_so(visit: Visit, plain_report: Report) -> None:
    page = visit(plain_report, java_script_enabled=False)
    assert not page.locator("#whatif-row").is_visible()
    assert json.loads(page.locator("#whatif-data").inner_text() or page.locator("#whatif-data").text_content())
