"""What is asked about a file: rules, proofs and threats mean what they mean of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import Threat, load, save
from derand.app.jobs import CertifySettings, certify_file, train_file
from derand.estimators import StumpClassifier
from tests.app.jobs.tables import make_frame

OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the paper's proof": {"proof": "paper"},
    "linf": {"threat": Threat(norm=np.inf)},
    "columns": {"threat": Threat(norm=0, l0=1)},
    "limits in a ball": {"threat": Threat(limits={"x": "20%"}, frozen=["job"], l0=1, unseen=False)},
    "values": {
        "threat": Threat(norm=None, steps={"floor": 1}, limits={"floor": 1}, may_become={"job": ["cook"]}, l0=1)
    },
    "limits alone": {"threat": Threat(norm=None, limits={"*": 0.5}, domain={"floor": (0, 9)}, l0=1)},
}


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_file_is_certified_as_its_rows_are(rule: str, options: dict[str, Any], data: Path, tmp_path: Path) -> None:
    """Labels, radii or verdicts, and proofs, by any rule and under any threat; labels are those without a threat."""
    if rule == "mean" and "proof" in options:
        return
    train_file(data, "label", tmp_path / "model.json", model="stumps")
    summary = certify_file(
        tmp_path / "model.json", data, tmp_path / "out.csv", CertifySettings(target="label", rule=rule, **options)
    )
    # as text: an older pandas reads numbers with an error in the last bit
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False, dtype={"radius": str})
    classifier, frame = load(tmp_path / "model.json"), make_frame()
    rows = frame[list(classifier.feature_names_in_)].astype({"floor": float, "member": str})
    expected = classifier.certify(rows, rule=rule, **options)
    assert written["label"].tolist() == expected.label.tolist() == classifier.certify(rows, rule=rule).label.tolist()
    assert written["proof"].tolist() == expected.proof.tolist()
    assert summary["proofs"] == {name: int((expected.proof == name).sum()) for name in sorted(set(expected.proof))}
    assert (summary["rule"], summary["norm"], summary["l0"]) == (rule, expected.norm, expected.l0)
    held = expected.radius > 0
    if expected.verdict is None:
        assert written["radius"].astype(float).tolist() == expected.radius.tolist()
        assert "verdicts" not in summary
        return
    assert list(written.columns) == ["row", "label", "failure", "verdict", "proof"]
    assert written["verdict"].tolist() == expected.verdict.tolist()
    assert summary["verdicts"] == {name: int((expected.verdict == name).sum()) for name in summary["verdicts"]}
    assert sum(summary["verdicts"].values()) == 300
    assert summary["proven_accuracy"] == pytest.approx((held & (expected.label == frame["label"].to_numpy())).mean())
    assert "certified_accuracy" not in summary


def test_a_threat_in_a_file_is_that_of_the_library(model: Path, data: Path, tmp_path: Path) -> None:
    """Also units by name, where columns that are not named keep those of the noise; the file is never an output."""
    path = tmp_path / "threat.toml"
    path.write_text('norm = 1\nl0 = 1\nfrozen = ["job"]\n[units]\nx = 2\n[limits]\nx = [0.5, 1]\n')
    units = list(load(model).noise_.units)
    units[0] = 2.0
    same = Threat(norm=1, l0=1, frozen=("job",), units=tuple(units), limits={"x": (0.5, 1)})
    summaries = [
        certify_file(model, data, tmp_path / f"out{k}.csv", CertifySettings(threat=t))
        for k, t in enumerate([path, same])
    ]
    assert (tmp_path / "out0.csv").read_bytes() == (tmp_path / "out1.csv").read_bytes()
    assert summaries[0]["threat"] == summaries[1]["threat"]
    assert summaries[0]["threat"]["units"] == {"x": 2.0}
    with pytest.raises(ValueError, match="is also an input"):
        certify_file(model, data, path, CertifySettings(threat=path))


@pytest.mark.parametrize("noise", [None, "none"])
def test_a_model_is_certified_against_what_it_was_trained_for(noise: str | None, data: Path, tmp_path: Path) -> None:
    """Norm, budget and frozen columns are its own; what is asked for takes their place, one by one."""
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    asked: dict[str, Any] = {"norm": np.inf, "l0": 1, "frozen": ["job"], "regularization": 1.0, "noise": noise}
    train_file(data, "label", model, radius=0.1, ignored=["floor"], **asked)
    classifier, frame = load(model), make_frame()
    rows = frame[list(classifier.feature_names_in_)].astype({"member": str})
    threats: list[tuple[dict[str, Any], Threat]] = [
        ({}, Threat(norm=np.inf, l0=1, frozen=("job",))),
        ({"l0": 0}, Threat(norm=np.inf, frozen=("job",))),
        ({"changes": {"norm": 1, "frozen": ["member"]}}, Threat(norm=1, l0=1, frozen=("member",))),
        (
            {"changes": {"norm": None, "limits": {"x": 0.2}}},
            Threat(norm=None, l0=1, frozen=("job",), limits={"x": 0.2}),
        ),
        ({"threat": Threat(norm=2)}, Threat(norm=2)),
    ]
    for options, threat in threats:
        summary = certify_file(model, data, out, CertifySettings(**options))
        expected = classifier.certify(rows, threat=threat)
        assert (summary["norm"], summary["l0"], summary["threat"]["frozen"]) == (
            expected.norm,
            threat.l0,
            list(threat.frozen),
        )
        if expected.verdict is None:
            written = pd.read_csv(out, dtype={"radius": str})["radius"].astype(float)
            assert written.tolist() == expected.radius.tolist()
        else:
            assert pd.read_csv(out)["verdict"].tolist() == expected.verdict.tolist()
    with pytest.raises(ValueError, match="Give `norm` or `threat`, got both"):
        certify_file(model, data, out, CertifySettings(threat=Threat(), changes={"norm": 1}))


def test_units_in_a_file_stand_beside_those_of_a_model_without_noise(data: Path, tmp_path: Path) -> None:
    """Columns that are not named keep the units of training."""
    model, path = tmp_path / "model.json", tmp_path / "threat.toml"
    train_file(data, "label", model, radius=0, regularization=1.0)
    path.write_text("norm = 2\n[units]\nx = 2\n")
    units = certify_file(model, data, tmp_path / "out.csv", CertifySettings(threat=path))["threat"]["units"]
    own = load(model).units
    assert own is not None
    assert units == {"x": 2.0, "floor": own[load(model).encoding_.names.index("floor")]}


def test_columns_of_a_nameless_model_are_named_as_in_the_file(tmp_path: Path) -> None:
    """A threat names what the user sees."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    save(StumpClassifier().fit(X, X[:, 0] > 0), tmp_path / "model.json")
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "data.csv", index=False)
    for threat in (Threat(norm=None, limits={"a": 1}), Threat(norm=None, limits={0: 1})):
        summary = certify_file(
            tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", CertifySettings(threat=threat)
        )
        assert summary["threat"]["limits"] == {"a": 1.0}
        assert summary["threat"]["fixed"] == ["b"]
        assert summary["verdicts"]["flips"] > 0
