"""`reasons` and `prove` of estimators: names, domains, words and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from derand import (
    AdditiveClassifier,
    AdditiveRegressor,
    ConformalPredictor,
    RobAdaBoostClassifier,
    StumpClassifier,
    Threat,
    from_model,
)


@pytest.fixture(scope="module")
def loans() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "income": rng.lognormal(8, 0.5, n),
            "late": rng.poisson(0.7, n),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["clerk", "cook", "pilot"], n),
        }
    )


@pytest.fixture(scope="module")
def outcome(loans: pd.DataFrame) -> pd.Series:
    risk = 1 - loans.income / 2000 + 1.2 * loans.late + 0.5 * (loans.sex == "m")
    return pd.Series(np.where(risk > np.random.default_rng(1).logistic(size=len(loans)) / 2, "refused", "granted"))


@pytest.fixture(scope="module")
def clf(loans: pd.DataFrame, outcome: pd.Series) -> AdditiveClassifier:
    return AdditiveClassifier(radius=0, regularization=0.1, monotone={"late": 1}).fit(loans, outcome)


def replace_others(loans: pd.DataFrame, row: int, held: list[str], n: int) -> pd.DataFrame:
    """Other rows of the table that agree with one of it in some columns."""
    others = loans.sample(n, random_state=0, ignore_index=True)
    for column in held:
        others[column] = loans[column].iloc[row]
    return others


@pytest.mark.filterwarnings("ignore:All 100 rows get the answer")
@pytest.mark.parametrize("noise", [None, "none"])
@pytest.mark.parametrize("radius", [0.0, 0.25])
def test_rows_that_keep_the_reasons_keep_the_answer(
    loans: pd.DataFrame, outcome: pd.Series, radius: float, noise: str | None
) -> None:
    clf = AdditiveClassifier(radius=radius, regularization=0.1).fit(loans, outcome)
    found = clf.reasons(loans, noise=noise)
    assert (found.label == clf.certify(loans, noise=noise).label).all()
    for row in range(0, 40):
        if found.size[row] < 0:
            continue
        held = loans.columns[found.fixed[row]].tolist()
        others = replace_others(loans, row, held, 100)
        assert (clf.certify(others, noise=noise).label == found.label[row]).all()


def test_explain_lists_the_reasons_in_words(clf: AdditiveClassifier, loans: pd.DataFrame) -> None:
    found = clf.explain(loans.iloc[0])
    first = found.reasons[0]
    assert first.columns == tuple(np.flatnonzero(clf.reasons(loans[:1]).fixed[0]).tolist())
    assert len(found.reasons) <= 3
    assert found.reason_sentences[0].endswith(
        "enough for this answer, whatever the other entries within their domain. No set of fewer columns is enough."
    )
    assert "Enough for it:" in str(found)
    assert found.reason_sentences[0] in str(found)


def test_a_narrower_domain_needs_fewer_columns(clf: AdditiveClassifier, loans: pd.DataFrame) -> None:
    rows = loans[loans.late <= 1]
    wide, narrow = clf.reasons(rows), clf.reasons(rows, domain={"late": (0, 1)})
    assert (narrow.size <= wide.size).all()
    assert narrow.size.sum() < wide.size.sum()
    assert (clf.reasons(rows, unseen=True, missing=True).size >= wide.size).all()


def test_protected_columns_by_name(clf: AdditiveClassifier, loans: pd.DataFrame) -> None:
    found = clf.prove(loans, protected=[["sex"], ["sex", "age"]], radius=0.1)
    sex, both, late = found.promises[:3]
    assert sex.verdict == both.verdict == "counterexample"
    pair = clf.decode_rows(sex.rows)
    assert pair.sex.tolist() in (["f", "m"], ["m", "f"])
    assert (pair.drop(columns="sex").nunique() == 1).all()
    assert clf.predict(pair).tolist() == list(found.labels[0])
    assert len(set(found.labels[0])) == 2
    flipped = loans.assign(sex=loans.sex.map({"f": "m", "m": "f"}))
    share = float((clf.predict(loans) != clf.predict(flipped)).mean())
    assert sex.share == (share, share)
    assert both.share is not None
    assert both.share[0] >= share
    assert late.verdict == "proven"  # trained to rise
    assert found.sentences[0].startswith("'sex' alone can change an answer: there is a row where changing 'sex' from '")
    assert "'age' and 'sex' together can change an answer" in found.sentences[1]
    assert found.sentences[2] == "The score never falls where 'late' rises: proven."
    assert "whole numbers within their training range" in str(found)


@pytest.mark.filterwarnings("ignore:Columns to look at before")
def test_a_column_that_the_model_does_not_read_never_flips(loans: pd.DataFrame, outcome: pd.Series) -> None:
    blind = AdditiveClassifier(radius=0, regularization=0.1).fit(loans.assign(sex="f"), outcome)
    (first, *_) = blind.prove(loans.assign(sex="f"), protected="sex").promises
    assert first.verdict == "proven"
    assert first.share == (0.0, 0.0)


def test_several_classes(loans: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    y = np.where(loans.late > 1, "c", np.where(loans.income + 900 * rng.normal(size=len(loans)) > 3000, "a", "b"))
    clf = AdditiveClassifier(radius=0, regularization=0.1).fit(loans, y)
    found = clf.reasons(loans)
    assert set(found.proof.tolist()) == {3}
    for row in range(20):
        others = replace_others(loans, row, loans.columns[found.fixed[row]].tolist(), 50)
        assert (clf.predict(others) == found.label[row]).all()
    promises = clf.prove(loans, protected="late")
    assert promises.promises[0].verdict == "counterexample"
    assert np.isnan(promises.lowest)


def test_a_linear_model_takes_ranges_from_the_table(loans: pd.DataFrame, outcome: pd.Series) -> None:
    numbers = loans[["age", "income", "late"]]
    model = from_model(LogisticRegression(max_iter=2000).fit(numbers, outcome), numbers)
    found = model.prove(numbers, protected="late", monotone={"income": "decreasing"})
    assert [one.verdict for one in found.promises[:2]] == ["counterexample", "proven"]
    assert found.score_error >= 0
    reasons = model.reasons(numbers)
    assert set(reasons.proof.tolist()) == {1}
    with pytest.raises(ValueError, match=r"`domain` must give the ends of column 1"):
        model.prove()


def test_trees_have_reasons_and_promises(loans: pd.DataFrame, outcome: pd.Series) -> None:
    numbers = loans[["age", "income", "late"]].round().assign(sex=loans.sex == "m", cook=loans.job == "cook")
    numbers = numbers.assign(size=np.arange(len(loans)) % 5).astype(float)
    fitted = GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0).fit(numbers.to_numpy(), outcome)
    model = from_model(fitted, numbers)
    rows = numbers[:25]
    assert model.ensemble_.has_trees
    found = model.reasons(rows)
    assert set(found.proof.tolist()) == {2}
    for row in range(len(rows)):
        others = replace_others(numbers, row, numbers.columns[found.fixed[row]].tolist(), 60)
        assert (fitted.predict(others.to_numpy()) == found.label[row]).all()
    (told_reason,) = model.explain(numbers.iloc[0]).reason_sentences
    assert "enough for this answer, whatever the other entries within their domain" in told_reason
    (late, falls, *_) = (told := model.prove(rows, protected="late", monotone={"income": "decreasing"})).promises
    assert late.verdict == "counterexample"
    pair = model.decode_rows(late.rows)
    assert fitted.predict(pair.to_numpy()).tolist() == list(told.labels[0])
    assert falls.verdict in ("proven", "counterexample")
    sets = ConformalPredictor(model, coverage=0.9, threat=Threat(norm=None, limits={"income": "10%"}))
    inside = sets.calibrate(numbers[:200], outcome[:200]).predict_set(numbers[200:])
    assert 0.85 < inside[np.arange(200), (outcome[200:] == "refused").to_numpy().astype(int)].mean() <= 1
    with pytest.raises(ValueError, match=r"`budget` must be a whole number of nodes, 1 or larger, got 0"):
        model.reasons(rows, budget=0)


def test_a_regressor_has_ends_and_directions(loans: pd.DataFrame) -> None:
    reg = AdditiveRegressor(radius=0, regularization=1.0).fit(loans, loans.late * 2.0)
    found = reg.prove(radius=0.1, monotone={"late": "increasing"})
    assert found.promises[0].verdict == "proven"
    values = reg.predict(loans)
    assert found.lowest <= values.min() * (1 + 1e-9)
    assert values.max() <= found.highest * (1 + 1e-9)
    assert "units of the target" in str(found)


def test_what_is_refused_in_one_line(clf: AdditiveClassifier, loans: pd.DataFrame, outcome: pd.Series) -> None:
    with pytest.raises(ValueError, match=r"`protected` names the column 'sec', which does not exist"):
        clf.prove(protected=["sec"])
    with pytest.raises(ValueError, match=r"`protected` must name a column, got an empty list"):
        clf.prove(protected=[])
    with pytest.raises(ValueError, match=r"`domain` must hold the rows' own values, got \d+ for 'age' in row \d+"):
        clf.reasons(loans, domain={"age": (30, 31)})
    with pytest.raises(ValueError, match=r"`domain` must hold the rows' own values, got '\w+' for 'job' in row"):
        clf.prove(loans, domain={"job": ["cook"]})
    with pytest.raises(ValueError, match=r"`domain` must give 'job' values that training saw, such as 'clerk'"):
        clf.prove(domain={"job": ["king"]})
    with pytest.raises(TypeError, match=r"`domain` must give 'age' a pair \(lowest, highest\), got 3"):
        clf.prove(domain={"age": 3})
    with pytest.raises(ValueError, match=r"pair \(lowest, highest\) in this order"):
        clf.prove(domain={"age": (3, 1)})
    with pytest.raises(ValueError, match=r"`norm` must be 1, 2 or inf, got 0"):
        clf.prove(radius=1.0, norm=0)
    with pytest.raises(ValueError, match=r"`radius` must be a number, 0 or larger"):
        clf.prove(radius=-1.0)
    stumps = StumpClassifier(noise="gaussian:0.25").fit(loans, outcome)
    with pytest.raises(ValueError, match=r"need the rule 'mean', got 'vote'"):
        stumps.prove()
    assert stumps.prove(noise="none", rule="mean").swings
    with pytest.raises(ValueError, match=r"got a WeightedVote"):
        RobAdaBoostClassifier(noise="gaussian:0.25").fit(loans[["age", "late"]], outcome).prove(rule="mean")
