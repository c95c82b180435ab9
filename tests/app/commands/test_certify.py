"""`derand certify`: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from derand import load, measure_answers
from tests.app.commands.running import read_help, run


def test_certifying_prints_accuracy_and_writes_rows(data: Path, model: Path, tmp_path: Path) -> None:
    """With a target the certified accuracy is printed at each radius, cut and not rounded."""
    out = tmp_path / "out.csv"
    result = run("certify", model, data, "-o", out, "--target", "label", "--radii", "0,0.125", "--l0", 1)
    assert result.exit_code == 0, result.output
    assert "columns not used: constant" in result.output
    assert "0.125" in result.output
    assert "569" in result.output
    assert len(pd.read_csv(out)) == 569
    summary = json.loads(run("certify", model, data, "-o", out, "--target", "label", "--json").stdout)
    share = summary["certified_accuracy"][1]["share"]
    cut = int(1000 * share) / 10
    shown = run("certify", model, data, "-o", out, "--target", "label").output
    assert f"{cut:.1f} %" in shown


def test_rows_without_a_limit_have_no_average(tmp_path: Path) -> None:
    """A model that nothing flips: they are counted, and there is no bare infinity."""
    (tmp_path / "data.csv").write_text("a,y\n" + "red,1\nblue,0\n" * 20)
    assert (
        run(
            "train", tmp_path / "data.csv", "--target", "y", "-o", tmp_path / "model.json", "--model", "stumps"
        ).exit_code
        == 0
    )
    arguments = [tmp_path / "model.json", tmp_path / "data.csv", "-o", tmp_path / "out.csv", "--target", "y"]
    summary = json.loads(run("certify", *arguments, "--json").stdout)
    assert summary["certified_radii"] == {
        "rows": 40,
        "unbounded_rows": 40,
        "unbounded_share": 1.0,
        "average_of_others": None,
        "median_of_others": None,
    }
    shown = run("certify", *arguments).output
    assert "rows that no change of numbers can flip: 40" in shown
    assert "average certified radius" not in shown
    assert " inf" not in shown


def test_a_worthless_model_is_told_before_anything_else(rare: Path, tmp_path: Path) -> None:
    """12 % positives, and every row gets the other label: on the screen, in JSON, with and without labels."""
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    trained = run("train", rare, "--target", "outcome", "-o", model, "--model", "stumps", "--noise", "gaussian:1")
    assert "Every training row gets the label 'repaid'" in " ".join(trained.output.split())
    result = run("certify", model, rare, "-o", out, "--target", "outcome")
    assert result.exit_code == 0, result.output
    first = "Warning: This model gives every row the answer 'repaid'; 88.0 % is what the constant answer 'repaid' gets"
    assert result.output.startswith(first)
    assert "always repaid" in result.output
    assert "accuracy: 88.0 % (82.7 to 91.9 %); always 'repaid' gets 88.0 %" in result.output
    assert "balanced accuracy: 50.0 % (48.9 to 56.9 %); a constant answer gets 50.0 %" in result.output
    assert "not measured: Log-loss and calibration need probabilities: `predict_proba` of a vote is" in result.output
    told = json.loads(run("certify", model, rare, "-o", out, "--target", "outcome", "--json").stdout)
    assert len(told["warnings"]) == 1
    assert told["answers"]["confusion"] == [[0, 24], [0, 176]]
    assert told["answers"]["log_loss"] is None
    unlabelled = run("certify", model, rare, "-o", out)
    assert unlabelled.output.startswith("Warning: All 200 rows get the answer 'repaid'. Unless all of them are")
    pd.read_csv(rare)[:40].to_csv(tmp_path / "few.csv", index=False)
    assert "Warning" not in run("certify", model, tmp_path / "few.csv", "-o", out).output


def test_a_model_that_weighs_classes_is_a_note_with_all_figures(rare: Path, tmp_path: Path) -> None:
    """Accuracy below that of the constant answer, but classes are told apart; probabilities have a log-loss."""
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    options = ["--radius", "0.02", "--class-weight", "balanced", "--regularization", "1"]
    assert run("train", rare, "--target", "outcome", "-o", model, *options).exit_code == 0
    result = run("certify", model, rare, "-o", out, "--target", "outcome")
    assert result.output.startswith("Note: The accuracy of this model, ")
    for name in ("AUC: 0.", "log-loss: 0.", "the shares of the classes get 0.366", "average certified radius: 0."):
        assert name in result.output
    told = json.loads(run("certify", model, rare, "-o", out, "--target", "outcome", "--json").stdout)
    assert (told["warnings"], len(told["notes"])) == ([], 1)
    assert len(told["answers"]["calibration"]) > 1
    saved = load(model)
    frame = pd.read_csv(rare)
    X = frame[["age", "debt"]]
    found = measure_answers(
        frame["outcome"], saved.predict(X), classes=saved.classes_, probability=saved.predict_proba(X)
    )
    assert told["answers"] == json.loads(json.dumps(found.to_dict()))


def test_radii_are_printed_as_they_were_asked_for(data: Path, model: Path, tmp_path: Path) -> None:
    """A radius is never rounded up: the share beside it was measured at that radius."""
    arguments = [model, data, "-o", tmp_path / "out.csv", "--target", "label", "--radii", "0,0.1234567,0.50,1"]
    result = run("certify", *arguments)
    table = result.output.split("Certified accuracy")[1].split("rule:")[0]
    rows = [line.split()[0] for line in table.splitlines() if "%" in line]
    assert rows == ["unchanged", "above", "0.1234567", "0.5", "1"]


def test_a_column_that_is_empty_throughout_is_told(data: Path, model: Path, tmp_path: Path) -> None:
    """Like values that training did not see; `--safe-csv` goes well with the rest."""
    frame = pd.read_csv(data).assign(size=None)
    frame.to_csv(tmp_path / "empty.csv", index=False)
    result = run("certify", model, tmp_path / "empty.csv", "-o", tmp_path / "out.csv", "--safe-csv")
    assert result.exit_code == 0, result.output
    assert "values of 'size': none in any row, which counts as one that training did not see" in result.output


def test_the_help_tells_of_rules_and_threats() -> None:
    """Every option with what it means."""
    words = read_help("certify")
    for option in ("--rule", "--proof", "--noise", "--norm", "--limits", "--domain", "--steps", "--frozen", "--threat"):
        assert option in words
    assert "COLUMN=VALUE By how much a number may change: 5%, 500, or down:up" in words
    assert "FILE.toml What may change, in a file instead of --norm" in words


def test_options_say_what_may_change(data: Path, model: Path, tmp_path: Path) -> None:
    """The rule, the proofs and the threat in words; labels are those of the rule without them."""
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    run("certify", model, data, "-o", plain, "--rule", "mean")
    arguments = ["--rule", "mean", "--norm", "inf", "--limits", "mean area=5%", "--limits", "*=1:2", "--frozen", "size"]
    result = run("certify", model, data, "-o", out, "--target", "label", *arguments, "--domain", "mean radius=0:30")
    assert result.exit_code == 0, result.output
    assert "rule: mean, by the expected score" in result.output
    assert "threat: linf balls\n" in result.output
    assert "limits: mean area by up to 5%; all other columns by up to 1 down and 2 up" in result.output
    assert "domains: mean radius from 0 to 30" in result.output
    assert "frozen columns: size" in result.output
    assert "by the exact worst case" in result.output
    assert "average certified radius" in result.output
    assert pd.read_csv(out)["label"].tolist() == pd.read_csv(plain)["label"].tolist()


def test_norm_0_is_no_ball_in_words(data: Path, model: Path, tmp_path: Path) -> None:
    """It counts columns, and must not be taken for the number of categorical changes."""
    result = run("certify", model, data, "-o", tmp_path / "out.csv", "--rule", "mean", "--norm", "0", "--l0", "2")
    told = "threat: any so many numerical columns, to anything (norm 0), and at most 2 categorical changes"
    assert told in result.output


def test_limits_alone_give_verdicts_and_witnesses(data: Path, model: Path, tmp_path: Path) -> None:
    """How many decisions can be flipped, by which proof the others hold, and which columns stay as they are."""
    out, flips = tmp_path / "out.csv", tmp_path / "flips.csv"
    limits = ["--norm", "none", "--limits", "mean area=10%", "--limits", "mean radius=0.5", "--l0", "1"]
    asked = ["--rule", "mean", "--noise", "none"]
    arguments = ["certify", model, data, "-o", out, "--target", "label", *asked, *limits, "--witness", flips]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    summary = json.loads(run(*arguments, "--json").stdout)
    verdicts = summary["verdicts"]
    told = f"{verdicts['flips']} of 569 decisions can be flipped within these limits, {verdicts['undecided']} undecided"
    assert told in result.output
    assert f"correct and proven to hold within the limits: {int(1000 * summary['proven_accuracy']) / 10:.1f} %" in (
        result.output
    )
    assert "noise: none, the model as deployed" in result.output
    assert "threat: limits alone, no ball, and at most 1 categorical change" in result.output
    assert "stay fixed, without a limit: mean texture, mean perimeter, mean smoothness, mean compact" in result.output
    assert f"witnesses written: {flips}" in result.output
    assert summary["threat"]["limits"] == {"mean area": "10%", "mean radius": 0.5}
    assert summary["norm"] is None
    assert sum(summary["proofs"].values()) == sum(verdicts.values()) == 569
    witnesses = pd.read_csv(flips)
    assert len(witnesses) == verdicts["flips"] > 0
    run("certify", model, flips, "-o", tmp_path / "again.csv", *asked)
    assert pd.read_csv(tmp_path / "again.csv")["label"].tolist() == witnesses["new_label"].tolist()


def test_a_threat_in_a_file_is_that_of_the_options(data: Path, model: Path, tmp_path: Path) -> None:
    """The same rows to the last bit, and the same words."""
    (tmp_path / "threat.toml").write_text('norm = 1\nl0 = 1\nfrozen = ["mean area"]\n[limits]\n"mean radius" = "5%"\n')
    options = ["--norm", "1", "--l0", "1", "--frozen", "mean area", "--limits", "mean radius=5%"]
    by_options = run("certify", model, data, "-o", tmp_path / "a.csv", *options)
    by_file = run("certify", model, data, "-o", tmp_path / "b.csv", "--threat", tmp_path / "threat.toml")
    assert by_options.exit_code == by_file.exit_code == 0, by_file.output
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    said = [[line for line in one.output.splitlines() if "csv" not in line][:-1] for one in (by_options, by_file)]
    assert said[0] == said[1]


def test_steps_are_passed_on(data: Path, model: Path, tmp_path: Path) -> None:
    """In words and in JSON."""
    arguments = [model, data, "-o", tmp_path / "out.csv", "--norm", "none", "--rule", "mean", "--noise", "none"]
    arguments += ["--limits", "mean area=10", "--steps", "mean area=0.1"]
    assert "steps: mean area in steps of 0.1" in run("certify", *arguments).output
    assert json.loads(run("certify", *arguments, "--json").stdout)["threat"]["steps"] == {"mean area": 0.1}


BAD_REQUESTS = {
    "an unknown rule": (["--rule", "dice"], "--rule must be one of vote, mean, got 'dice'"),
    "an unknown proof": (["--proof", "none"], "--proof must be one of best, paper, got 'none'"),
    "an unknown norm": (["--norm", "3"], "--norm must be one of auto, 0, 1, 2, inf, none, got '3'"),
    "a vote without noise": (
        ["--noise", "none", "--rule", "vote"],
        "`noise` must not be None or 'none' under the rule 'vote'",
    ),
    "no such noise": (["--noise", "pink:1"], "Unknown noise 'pink'"),
    "no such column": (["--limits", "mean aera=5%"], "'mean aera', which does not exist; did you mean 'mean area'?"),
    "no such column to freeze": (["--frozen", "sizes"], "did you mean 'size'?"),
    "no such column of a domain": (["--domain", "mean are=0:1"], "did you mean 'mean area'?"),
    "a negative limit": (["--limits", "mean area=-5"], "must be 0 or larger"),
    "a limit of NaN": (["--limits", "mean area=nan"], "The limit of 'mean area' must be such as"),
    "a limit without a value": (["--limits", "mean area"], "A limit must be written COLUMN=VALUE, got 'mean area'"),
    "a limit of a category": (["--limits", "size=1"], "got 'size', which is categorical"),
    "a domain of one end": (["--domain", "mean area=3"], "The domain of 'mean area' must be such as 0:1"),
    "a domain without a row's own value": (
        ["--domain", "mean area=0:700"],
        "data.csv has 1001 in row 1 of the column 'mean area', outside of its domain from 0 to 700",
    ),
    "a step of no sense": (["--steps", "mean area=0"], "The step of 'mean area' must be a positive number"),
    "witnesses in a ball": (["--witness", "flips.csv"], "(norm none), got norm 2"),
    "witnesses over the output": (["--norm", "none", "--witness", "o.csv"], "name another file"),
    "witnesses of no known kind": (["--norm", "none", "--witness", "o.txt"], "must end with .csv or .parquet"),
    "a file and an option": (
        ["--threat", "good.toml", "--l0", "0", "--limits", "mean area=5%"],
        "--threat says all of what may change: leave --limits, --l0 out",
    ),
    "a file with an unknown key": (["--threat", "bad.toml"], "bad.toml has the unknown key 'limit'; did you mean"),
    "a file that is no TOML": (["--threat", "data.csv"], "data.csv is not a TOML file"),
    "no such file": (["--threat", "absent.toml"], "absent.toml does not exist"),
    "a file of a wrong type": (["--threat", "type.toml"], "type.toml: `frozen` of Threat must be a list of columns"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("options", "message"), BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_bad_requests_are_one_line_and_exit_code_2(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing on stdout, no new file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text("l0 = 1\n")
    (tmp_path / "bad.toml").write_text("limit = 1\n")
    (tmp_path / "type.toml").write_text('frozen = "size"\n')
    before = sorted(tmp_path.iterdir())
    result = run("certify", "model.json", "data.csv", "-o", "o.csv", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert sorted(tmp_path.iterdir()) == before


def test_numbers_that_may_go_missing_are_asked_for_and_told(tmp_path: Path) -> None:
    """A table with gaps is trained on and certified; a model without cells for them refuses the budget."""
    frame = pd.DataFrame({"a": range(40), "b": [3 * row % 7 for row in range(40)]})
    frame["y"] = (frame["a"] > 19).astype(int)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.assign(a=frame["a"].where(frame["a"] % 5 > 0)).to_csv(tmp_path / "gaps.csv", index=False)
    for name in ("whole", "gaps"):
        result = run("train", tmp_path / f"{name}.csv", "--target", "y", "-o", tmp_path / f"{name}.json")
        assert result.exit_code == 0, result.output
    arguments = [tmp_path / "gaps.json", tmp_path / "gaps.csv", "-o", tmp_path / "out.csv", "--missing", 1]
    result = run("certify", *arguments)
    assert result.exit_code == 0, result.output
    assert "missing: any one number may go missing or, where missing, appear" in " ".join(result.output.split())
    assert json.loads(run("certify", *arguments, "--json").stdout)["threat"]["missing"] == 1
    assert "--missing" in read_help("certify")
    refused = run(
        "certify", tmp_path / "whole.json", tmp_path / "whole.csv", "-o", tmp_path / "out.csv", "--missing", 1
    )
    assert refused.exit_code == 2
    assert "takes no missing numbers" in " ".join(refused.output.split())
    (tmp_path / "t.toml").write_text("missing = 1\n")
    assert run("certify", *arguments, "--threat", tmp_path / "t.toml").exit_code == 2
    assert run("certify", *arguments[:-2], "--threat", tmp_path / "t.toml").exit_code == 0


def test_a_model_of_numbers_gets_intervals(regressor: Path, prices: Path, tmp_path: Path) -> None:
    """At the training radius, at another one, or radii for a tolerance; the facts say which."""
    out = tmp_path / "out.csv"
    result = run("certify", regressor, prices, "-o", out, "--target", "price")
    assert result.exit_code == 0, result.output
    for fact in ("mean width of intervals at radius 0.1: ", "true values inside their interval: ", f"written: {out}"):
        assert fact in result.output
    assert out.read_text().startswith('"row","value","low","high"')
    told = json.loads(run("certify", regressor, prices, "-o", out, "--radius", "0.2", "--l0", "1", "--json").stdout)
    assert (told["radius"], told["threat"]["l0"], told["rows"]) == (0.2, 1, 200)
    result = run("certify", regressor, prices, "-o", out, "--tolerance", "5")
    assert "the value moves by +-5 at most: " in result.output
    assert out.read_text().startswith('"row","value","radius"')


def test_options_of_the_other_kind_of_model_are_one_line(
    data: Path, model: Path, regressor: Path, prices: Path, tmp_path: Path
) -> None:
    """By name, and without output."""
    out = tmp_path / "out.csv"
    cases = [
        ((regressor, prices, "--radii", "0.1"), "--radii is for classification"),
        ((regressor, prices, "--witness", tmp_path / "w.csv"), "--witness is for classification"),
        ((model, data, "--radius", "1"), "--radius is for regression"),
        ((model, data, "--tolerance", "1"), "--tolerance is for regression"),
    ]
    for arguments, message in cases:
        result = run("certify", *arguments, "-o", out)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert message in line
        assert not out.exists()


def test_an_id_units_and_a_noise_as_a_number(data: Path, model: Path, tmp_path: Path) -> None:
    """What people write first: the id stands in the file, and numbers need no words around them."""
    frame = pd.read_csv(data).head(20)
    frame.assign(patient=[f"P{row:04d}" for row in range(20)]).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    options = ("--id", "patient", "--keep", "constant", "--noise", "0.25", "--units", "mean radius=2", "--json")
    result = run("certify", model, tmp_path / "new.csv", "-o", out, *options)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["noise"] == "gaussian:0.25"
    assert summary["threat"]["units"]["mean radius"] == 2
    written = pd.read_csv(out)
    assert list(written.columns) == ["patient", "row", "label", "failure", "radius", "proof", "constant"]
    assert written["patient"].tolist()[:2] == ["P0000", "P0001"]
    for wrong, message in (
        (("--units", "radius=2"), "`units` of Threat names the column 'radius', which does not exist"),
        (("--units", "mean radius=0"), "The unit of 'mean radius' must be a positive number"),
        (("--id", "patent"), "Did you mean 'patient'?"),
        (("--keep", "label"), "'label' cannot be copied"),
        (("--radii", "0.5"), "--radii says where certified accuracy is measured, which needs the true labels"),
    ):
        refused = run("certify", model, tmp_path / "new.csv", "-o", out, *wrong)
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.split())


def test_whole_numbers_stay_whole(tmp_path: Path) -> None:
    """With --whole fewer decisions flip, witnesses hold whole numbers, and what stays whole is told."""
    lines = [f"{n % 42 + 6},{n % 2},{n * 37.5 + 900},{'late' if n % 42 > 20 else 'paid'}" for n in range(120)]
    table, model, flips = tmp_path / "loans.csv", tmp_path / "m.json", tmp_path / "flips.csv"
    table.write_text("\n".join(["months,phone,income,outcome", *lines]))
    trained = run("train", table, "--target", "outcome", "-o", model, "--model", "stumps", "--rule", "mean")
    assert trained.exit_code == 0, trained.output
    asked = ["certify", model, table, "-o", tmp_path / "out.csv", "--norm", "none", "--limits", "*=8%"]
    plain = json.loads(run(*asked, "--json").stdout)
    result = run(*asked, "--whole", "--witness", flips)
    assert result.exit_code == 0, result.output
    assert "whole numbers: months, phone: counts stay whole numbers" in result.output
    whole = json.loads(run(*asked, "--whole", "--json").stdout)
    assert whole["threat"]["whole"] == ["months", "phone"]
    assert whole["threat"]["domain"] == {"phone": [0.0, 1.0]}
    assert 0 < whole["verdicts"]["flips"] < plain["verdicts"]["flips"]
    changed = pd.read_csv(flips, dtype=str)
    assert changed.months.str.fullmatch(r"\d+").all()
    assert set(changed.phone) <= {"0", "1"}
    assert run("audit", model, table, tmp_path / "out.csv").exit_code == 0
    (tmp_path / "threat.toml").write_text('norm = "none"\nwhole = true\n[limits]\n"*" = "8%"\n')
    told = run("certify", model, table, "-o", tmp_path / "two.csv", "--threat", tmp_path / "threat.toml")
    assert told.exit_code == 0, told.output
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    both = run("certify", model, table, "-o", tmp_path / "two.csv", "--threat", tmp_path / "threat.toml", "--whole")
    assert "leave --whole out" in " ".join(both.output.split())
    page = tmp_path / "report.md"
    assert run("report", model, table, "-o", page, "--whole", "--target", "outcome").exit_code == 0
    assert "Counts stay whole numbers" in page.read_text()


def test_flips_are_summarised(tmp_path: Path) -> None:
    """In sentences and a table, by true class where a target is named; --json has the figures, --no-unseen its word."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(50, 10, 300).round(2), "job": rng.choice(["cook", "clerk"], 300)})
    frame["paid"] = np.where(frame["income"] + 4 * (frame["job"] == "cook") + rng.normal(0, 4, 300) > 52, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    model, out, witness = tmp_path / "m.json", tmp_path / "out.csv", tmp_path / "w.csv"
    assert run("train", tmp_path / "data.csv", "--target", "paid", "-o", model, "--model", "stumps").exit_code == 0
    asked = ["certify", model, tmp_path / "data.csv", "-o", out, "--norm", "none", "--limits", "income=5%", "--l0", "1"]
    asked += ["--rule", "mean", "--witness", witness]
    plain = run(*asked, "--target", "paid")
    assert plain.exit_code == 0, plain.output
    told = " ".join(plain.stdout.split())
    for words in ("truly 'no', ", "by one column alone", "to a seen value", "also one that training did not see"):
        assert words in told
    found = json.loads(run(*asked, "--json").stdout)
    assert found["flips_by_true_class"] is None
    flips = pd.read_csv(witness)
    assert found["flips"]["flips"] == len(flips) == found["verdicts"]["flips"]
    by_answer = {one["label"]: one["n_flips"] for one in found["flips"]["answers"]}
    assert by_answer == flips["label"].value_counts().to_dict()
    assert (flips["income"].round(2) == flips["income"]).mean() > 0.98
    sizes = (flips["income"] / frame["income"][flips["row"] - 1].to_numpy() - 1).abs() / 0.05
    sizes += flips["job"].ne(frame["job"][flips["row"] - 1].to_numpy())
    assert (np.diff(sizes) > -1e-9).all()
    seen = run(*asked, "--no-unseen")
    assert "to values that training saw" in " ".join(seen.stdout.split())
    assert not json.loads(run(*asked, "--no-unseen", "--json").stdout)["threat"]["unseen"]
    threat = tmp_path / "t.toml"
    threat.write_text('norm = "none"\n[limits]\nincome = "5%"\n')
    both = run("certify", model, tmp_path / "data.csv", "-o", out, "--threat", threat, "--no-unseen")
    assert both.exit_code == 2
    assert "leave --unseen/--no-unseen out" in " ".join(both.stderr.split())
