"""Monitor: no more alarms than stated where nothing changed, planted changes are found, counts are those of a frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from derand import AdditiveRegressor, Monitor, StumpClassifier, Threat

LIMITS = Threat(norm=None, limits={"*": 0.2}, l0=1)


def draw(
    rng: np.random.Generator, n_rows: int, *, scale: float = 1.0, shift: float = 0.0, regions: str = "nse"
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "debt": rng.normal(shift, scale, n_rows),
            "income": rng.normal(0, 1, n_rows),
            "region": rng.choice(list(regions), n_rows),
        }
    )


def label(rows: pd.DataFrame) -> Any:
    return np.where(rows.debt - 0.5 * rows.income + (rows.region == "n") - 0.3 > 0, "no", "yes")


@pytest.fixture(scope="module")
def model() -> StumpClassifier:
    rows = draw(np.random.default_rng(1), 1000)
    return StumpClassifier(noise="gaussian:0.1", rule="mean", class_weight="balanced").fit(rows, label(rows))


@pytest.mark.parametrize("n_pairs", [30, pytest.param(200, marks=pytest.mark.long)])
def test_batches_without_change_alarm_no_more_often_than_stated(n_pairs: int, model: StumpClassifier) -> None:
    """At a rate of 10 %: more alarms than 999 in 1,000 such tests would have are a fault."""
    rng, rate = np.random.default_rng(2), 0.1
    asked: dict[str, Any] = {"threat": LIMITS, "noise": "none", "subgroups": ["region"], "rate": rate}
    alarms = sum(bool(Monitor(model, [draw(rng, 150), draw(rng, 150)], **asked).alarms) for _ in range(n_pairs))
    assert alarms <= binom.ppf(0.999, n_pairs, rate)


@pytest.mark.parametrize(
    ("change", "kind", "title"),
    [
        ({"scale": 0.3}, "holds", "all rows"),
        ({"regions": "nsx"}, "outside", "outside of what training saw"),
        ({"shift": 0.5}, "answer", "answer 'yes'"),
    ],
)
def test_planted_changes_are_found(model: StumpClassifier, change: Any, kind: str, title: str) -> None:
    rng = np.random.default_rng(3)
    batches = {"january": draw(rng, 1500), "february": draw(rng, 1500), "march": draw(rng, 1500, **change)}
    found = Monitor(model, batches, threat=LIMITS, noise="none", rate=0.01)
    assert found.alarms == ["march"]
    frame = found.to_pandas()
    marked = frame[(frame.batch == "march") & (frame["mark"] != "")]
    assert (kind, title) in set(zip(marked.kind, marked.title, strict=True))


def test_figures_are_those_of_the_certificates(model: StumpClassifier) -> None:
    """Counted once more from what `certify` gives, of all rows, by answer, by subgroup and by column."""
    rng = np.random.default_rng(4)
    batches = [draw(rng, 400), draw(rng, 300, scale=0.5)]
    truth = [label(one) for one in batches]
    found = Monitor(model, batches, y=truth, threat=LIMITS, noise="none", subgroups="region").to_pandas()
    for number, (rows, y) in enumerate(zip(batches, truth, strict=True), start=1):
        c = model.certify(rows, threat=LIMITS, noise="none", rule="mean")
        here = found[found.batch == f"batch {number}"].set_index(["kind", "title"])
        holds = c.verdict == "holds"
        assert here.loc[("holds", "all rows"), "count"] == holds.sum()
        assert here.loc[("right", "right answers"), "count"] == (c.label == y).sum()
        assert here.loc[("class", "answer 'no'"), "count"] == (holds & (c.label == "no")).sum()
        assert here.loc[("group", "region: n"), "total"] == (rows.region == "n").sum()
        assert here.loc[("group", "region: n"), "count"] == (holds & (rows.region == "n")).sum()
        by_debt = sum(one.n_alone + one.n_together for one in c.summary().columns if one.column == "debt")
        assert here.loc[("column", "debt"), "count"] == by_debt
        assert here["share"].between(here["low"], here["high"]).all()


def test_a_ball_counts_radii(model: StumpClassifier) -> None:
    rng = np.random.default_rng(5)
    batches = [draw(rng, 200), draw(rng, 200)]
    found = Monitor(model, batches, radius=0.5).to_dict()
    radius = model.certify(batches[1]).radius
    assert found["batches"][1]["measures"][0]["count"] == (radius >= 0.5).sum()
    assert found["batches"][1]["flips"] is None
    assert all(one["kind"] != "column" for one in found["batches"][0]["measures"])


def test_numbers_beyond_the_range_of_training_are_counted(model: StumpClassifier) -> None:
    rng = np.random.default_rng(6)
    train, one, other = draw(rng, 500), draw(rng, 50), draw(rng, 50)
    other.loc[3, "debt"], other.loc[4, "region"] = 40.0, "x"
    found = Monitor(model, [one, other], X_train=pd.concat([train, one, other.drop(index=3)]))
    assert found.to_dict()["batches"][1]["outside"] == {"debt": 1, "region": 1}


def test_pages_say_the_same_and_escape_names(model: StumpClassifier, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    batches = {"<b>january</b>": draw(rng, 200), "february": draw(rng, 200, scale=0.2)}
    found = Monitor(model, batches, threat=LIMITS, noise="none", subgroups=["region"])
    page = found.to_html()
    assert "<b>january" not in page
    assert "&lt;b&gt;january" in page
    assert "Which columns became weaker" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    for ending in ("html", "md", "json"):
        found.write(tmp_path / f"page.{ending}")
    assert json.loads((tmp_path / "page.json").read_text()) == json.loads(found.to_json())
    assert "| february | 200 |" in (tmp_path / "page.md").read_text()
    with pytest.raises(ValueError, match="must end with one of"):
        found.write(tmp_path / "page.pdf")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batches": [1]}, "two tables or more"),
        ({"rate": 1.5}, "between 0 and 1"),
        ({"y": [["no"]]}, "each of the 2 batches"),
        ({"subgroups": ["nothing"]}, "does not have"),
        ({"subgroups": {"region": [["n"], ["s"]]}}, "one group per row"),
        ({"threat": LIMITS, "radius": 0.5, "noise": "none"}, "`radius` must be left out"),
    ],
)
def test_requests_that_make_no_sense_are_refused(model: StumpClassifier, given: Any, said: str) -> None:
    rows = draw(np.random.default_rng(8), 20)
    with pytest.raises(ValueError, match=said):
        Monitor(model, **{"batches": [rows, rows], **given})


def test_a_regressor_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a classifier"):
        Monitor(AdditiveRegressor(), [[], []])
