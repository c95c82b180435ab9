"""Changes that flip, made smaller: they still flip, keep to the limits, and need every column that they change."""

from __future__ import annotations

import numpy as np
import pandas as pd

from derand import StumpClassifier, Threat
from derand.report import Report


def test_changes_are_as_small_as_was_found() -> None:
    """Without any one of its columns a change flips nothing; the sentence tells the other answer; names stay text."""
    rng = np.random.default_rng(0)
    hostile = "<script>alert(1)</script>"
    X = pd.DataFrame(rng.integers(0, 60, size=(150, 3)), columns=[hostile, "months", "noise"])
    X["job"] = rng.choice(["cook", "clerk"], size=150)
    y = (X[hostile] + X["months"] + 20 * (X["job"] == "cook") > 70).to_numpy().astype(int)
    clf = StumpClassifier(noise="gaussian:0.3", scaling="standard", rule="mean").fit(X[:100], y[:100])
    threat = Threat(norm=None, limits={hostile: 10, "months": 12, "noise": 30}, l0=1)
    report = Report(clf, X[100:], y[100:], threat=threat, noise="none", rule="mean", what_if=False)
    verdicts = report.to_dict()["verdicts"]
    assert verdicts["witnesses"]
    sizes = []
    for witness in verdicts["witnesses"]:
        row = X.iloc[[100 + witness["row"] - 1]] if witness["name"] is None else X.loc[[int(witness["name"])]]
        for left_out in [None, *witness["changes"]]:
            moved = row.copy()
            for change in witness["changes"]:
                if change is not left_out:
                    moved[change["name"]] = (
                        change["after_value"] if change["after_value"] is not None else change["after"]
                    )
            (label,) = clf.certify(moved, noise="none", rule="mean").label.tolist()
            assert str(label) == (witness["other"] if left_out is None else witness["label"])
        for change in witness["changes"]:
            if change["after_value"] is not None:
                assert change["after_value"].is_integer()
        assert f"It would get “{witness['other']}” if" in witness["sentence"]
        sizes.append(len(witness["changes"]))
    assert min(sizes) == 1
    page = report.to_html()
    assert "<script>alert" not in page
    assert f"Proven for {verdicts['counts'][0]['holds']} rows" in page
    assert len(verdicts["held"]) == min(12, verdicts["counts"][0]["holds"])
