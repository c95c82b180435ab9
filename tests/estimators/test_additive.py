"""AdditiveClassifier: what it refuses, what it promises of its model, and that it is the same wherever it is made."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss

from derand import AdditiveClassifier, Gaussian, Threat, load, save
from derand.fitted import encode_rows
from derand.train import trainer


def make_rows(n_rows: int = 160, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers that matter, one that does not, and a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    frame["job"] = rng.choice(["clerk", "cook", "smith"], size=n_rows)
    score = 1.5 * frame["a"] - frame["b"] + (frame["job"] == "cook") + 0.5 * rng.normal(size=n_rows)
    return frame, np.where(score > 0.3, "yes", "no")


def fit(**parameters: Any) -> AdditiveClassifier:
    """A classifier of these rows, with a penalty of 1 where none is given."""
    return AdditiveClassifier(**{"regularization": 1.0, **parameters}).fit(*make_rows())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a negative radius": ({"radius": -0.1}, "`radius` must be a finite number, 0 or larger, got -0.1"),
    "no radius": ({"radius": math.nan}, "`radius` must be a finite number, 0 or larger, got nan"),
    "an endless radius": ({"radius": math.inf}, "`radius` must be a finite number"),
    "norm 0": ({"norm": 0}, "`norm` of AdditiveClassifier must be 1, 2 or inf, got 0"),
    "norm 3": ({"norm": 3}, "`norm` of AdditiveClassifier must be 1, 2 or inf, got 3"),
    "no cuts": ({"n_cuts": 0}, "`n_cuts` must be a whole number, 1 or larger, got 0"),
    "half a cut": ({"n_cuts": 1.5}, "`n_cuts` must be a whole number"),
    "a word for cuts": ({"n_cuts": "many"}, "`n_cuts` must be 'auto' or a number, got 'many'"),
    "no penalty": ({"regularization": 0}, "`regularization` must be positive and finite"),
    "a word for a penalty": ({"regularization": "much"}, "`regularization` must be 'cv' or a number, got 'much'"),
    "a threat beside a norm": ({"threat": Threat(), "norm": 1}, "Give `norm` or `threat`, got both"),
    "a threat beside l0": ({"threat": Threat(), "l0": 1}, "Give `l0` or `threat`, got both"),
    "a threat beside frozen": ({"threat": Threat(), "frozen": ["a"]}, "Give `frozen` or `threat`, got both"),
    "a negative budget": ({"l0": -1}, "`l0` must be a number of categorical features"),
    "a monotone category": ({"monotone": {"job": 1}}, "`monotone` must name numerical columns, got 'job'"),
    "an unknown monotone column": ({"monotone": {"d": 1}}, "`monotone` names the column 'd', which does not exist"),
    "a monotone number too far": ({"monotone": {7: 1}}, "number them from 0 to 3, got 7"),
    "no direction": ({"monotone": {"a": "up"}}, r"'increasing' \(1\) or 'decreasing' \(-1\), got 'up' for 'a'"),
    "an unknown frozen column": ({"frozen": ["d"]}, "`frozen` of Threat names the column 'd', which does not exist"),
    "a vote of nothing": ({"radius": 0, "rule": "vote"}, "`noise` must not be 'none' under the rule 'vote'"),
    "an unknown noise": ({"noise": "pink:1"}, "Unknown noise 'pink'"),
}


@pytest.mark.parametrize(("parameters", "message"), REFUSED.values(), ids=REFUSED)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], message: str) -> None:
    """By name, with what was given."""
    with pytest.raises(ValueError, match=message):
        fit(**parameters)


def test_one_class_is_refused() -> None:
    """There is nothing to learn."""
    frame, _ = make_rows()
    with pytest.raises(ValueError, match="only one class, 'yes'"):
        AdditiveClassifier().fit(frame, ["yes"] * len(frame))


def test_radius_0_is_a_plain_model() -> None:
    """No smoothing: the label is that of the score, and certificates are those of the model as deployed."""
    frame, target = make_rows()
    plain = fit(radius=0)
    assert plain.noise_ is None
    assert plain.units is not None
    positive = plain.ensemble_.score(encode_rows(plain, frame)) > (plain.ensemble_.threshold or 0)
    assert (plain.predict(frame) == plain.classes_[positive.astype(int)]).all()
    assert plain.score(frame, target) > 0.9
    own, asked = plain.certify(frame), plain.certify(frame, noise="none", rule="mean")
    assert own.radius.tolist() == asked.radius.tolist()
    assert (own.norm, own.noise) == (2, None)


KINDS: dict[str, dict[str, Any]] = {
    "usual": {},
    "linf": {"norm": math.inf, "l0": 1, "frozen": ["c"], "monotone": {"a": "increasing"}},
    "no noise": {"noise": "none", "norm": 1},
    "plain": {"radius": 0},
    "a vote": {"rule": "vote", "noise": Gaussian(0.2)},
    "a threat": {"threat": Threat(norm=math.inf, limits={"a": 0.5}, domain={"b": (-9, 9)}, l0=1)},
    "limits alone": {"threat": Threat(norm=None, limits={"*": 0.1})},
    "weights": {"class_weight": "balanced", "scaling": "standard"},
}


@pytest.mark.parametrize("parameters", KINDS.values(), ids=KINDS)
def test_a_saved_classifier_is_the_same(parameters: dict[str, Any], tmp_path: Path) -> None:
    """Labels, probabilities, certificates and what was found come back bit by bit, and so does the file."""
    frame, _ = make_rows(seed=1)
    clf = fit(**parameters)
    save(clf, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    save(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    assert again.default_threat == clf.default_threat
    assert again.units == clf.units
    assert again.noise_ == clf.noise_
    for method in ("predict", "predict_proba", "decision_function"):
        assert getattr(again, method)(frame).tolist() == getattr(clf, method)(frame).tolist()
    one, other = clf.certify(frame), again.certify(frame)
    assert (one.label.tolist(), one.radius.tolist()) == (other.label.tolist(), other.radius.tolist())
    assert again.regularization_ == clf.regularization_
    assert again.feature_importances_.tolist() == clf.feature_importances_.tolist()


def test_tables_of_every_kind_give_the_same_model() -> None:
    """pandas, polars, and arrays of objects."""
    frame, target = make_rows()
    tables: list[Any] = [frame, pl.from_pandas(frame), frame.to_numpy(dtype=object)]
    models = [AdditiveClassifier(regularization=1.0).fit(table, target) for table in tables]
    for model, table in zip(models, tables, strict=True):
        assert model.decision_function(table).tolist() == models[0].decision_function(frame).tolist()


def test_a_weight_of_2_is_the_row_twice() -> None:
    """Up to rounding, for a given penalty."""
    frame, target = make_rows(120)
    weights = np.random.default_rng(3).integers(1, 4, size=len(frame))
    clf = AdditiveClassifier(regularization=1.0)
    weighted = clf.fit(frame, target, sample_weight=weights).decision_function(frame)
    repeated = clf.fit(frame.loc[np.repeat(frame.index, weights)], np.repeat(target, weights)).decision_function(frame)
    assert np.abs(weighted - repeated).max() < 0.05
    assert np.corrcoef(weighted, repeated)[0, 1] > 0.999


def test_the_model_depends_on_neither_threads_nor_runs() -> None:
    """Also where the penalty is chosen."""
    frame, target = make_rows()
    fits = [AdditiveClassifier(n_jobs=n_jobs).fit(frame, target) for n_jobs in (1, 2, 2)]
    for one in fits[1:]:
        assert one.regularization_ == fits[0].regularization_
        assert one.decision_function(frame).tolist() == fits[0].decision_function(frame).tolist()


def test_class_weights_move_the_decision_and_not_the_probabilities() -> None:
    """The rarer class is found more often, while probabilities stay those of the data as they are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = (rng.random(1500) < 1 / (1 + np.exp(2.5 - 1.2 * X[:, 0] - X[:, 1]))).astype(int)
    train, test = slice(None, 800), slice(800, None)
    plain, even = (
        AdditiveClassifier(radius=0.03, class_weight=weight).fit(X[train], y[train]) for weight in (None, "balanced")
    )
    losses = [log_loss(y[test], clf.predict_proba(X[test])) for clf in (plain, even)]
    assert abs(losses[0] - losses[1]) < 0.02
    assert even.predict(X[test]).mean() > 1.5 * plain.predict(X[test]).mean()


def test_monotone_functions_are_monotone() -> None:
    """Whatever the data say."""
    clf = fit(monotone={"a": "decreasing", 1: 1, "c": 0})
    found = {term.features[0]: term.cell_scores for term in clf.ensemble_.terms}
    for feature, direction in ((0, -1), (1, 1)):
        if feature in found:
            assert (np.diff(found[feature]) * direction >= 0).all()
    assert clf.score(*make_rows()) < fit().score(*make_rows())


def test_frozen_columns_count_more() -> None:
    """A change cannot reach them: the model leans on them, and certifies more."""
    frame, target = make_rows()
    free, frozen = fit(radius=0.5), fit(radius=0.5, frozen=["a"])
    assert frozen.feature_importances_[0] > free.feature_importances_[0]
    held = [((c := clf.certify(frame)).radius >= 0.5) & (c.label == target) for clf in (free, frozen)]
    assert held[1].sum() > held[0].sum()


def test_a_collapse_is_told_with_a_radius() -> None:
    """Where the radius is so large that a constant answer is the best."""
    frame, target = make_rows()
    told = r"it has collapsed.* 0\.\d+ is the largest at which it did better: train with that"
    with pytest.warns(UserWarning, match=told):
        AdditiveClassifier(radius=3.0, regularization=1.0).fit(frame[["a", "b", "c"]], target)


def test_a_collapse_that_is_measured_on_some_rows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of a sample is not called one of the training rows."""
    frame, target = make_rows()
    clf = AdditiveClassifier(radius=3.0, regularization=1.0)
    with pytest.warns(UserWarning, match=r"certifies \d+\.\d % of the training rows, no more"):
        clf.fit(frame[["a", "b", "c"]], target)
    monkeypatch.setattr(trainer, "CHECKED_ROWS", 150)
    with pytest.warns(UserWarning, match=r"certifies \d+\.\d % of a sample of 150 training rows, no more"):
        clf.fit(frame[["a", "b", "c"]], target)


def test_scores_probabilities_and_labels_agree() -> None:
    """Signs and sides; importances are shares; what was tried is listed."""
    frame, target = make_rows()
    clf = AdditiveClassifier().fit(frame, target)
    is_one = clf.predict(frame) == clf.classes_[1]
    assert ((clf.decision_function(frame) > 0) == is_one).all()
    assert ((clf.predict_proba(frame)[:, 1] > 0.5) == is_one).all()
    assert clf.predict_proba(frame).sum(axis=1) == pytest.approx(1)
    assert clf.feature_importances_.sum() == pytest.approx(1)
    assert clf.feature_importances_.argmax() == 0
    assert set(clf.path_) == {"regularization", "ramp", "loss", "error"}
    assert len({len(values) for values in clf.path_.values()}) == 1
    assert clf.regularization_ in clf.path_["regularization"]


def test_the_fitted_model_tells_how_it_was_trained(capsys: pytest.CaptureFixture[str]) -> None:
    """Strategy, reason, sizes, penalty and steps; `verbose` prints them, and files do not hold them."""
    frame, target = make_rows()
    clf = AdditiveClassifier(regularization=1.0, verbose=True).fit(frame, target)
    assert clf.training_.strategy == "margins, all rows, all columns"
    assert "two classes" in clf.training_.reason
    assert clf.training_.sizes["n_rows"] == len(frame)
    assert (clf.training_.regularization, clf.training_.n_iterations > 0) == (1.0, True)
    assert str(clf.training_) in capsys.readouterr().err


def test_a_vote_is_certified_by_both_proofs() -> None:
    """Its labels are those of most noisy copies, its failure masses numbers."""
    frame, target = make_rows()
    clf = fit(rule="vote", radius=0.25)
    certificates = clf.certify(frame)
    assert (certificates.label == clf.predict(frame)).all()
    assert np.isfinite(certificates.failure).all()
    assert ((certificates.label == target) & (certificates.radius > 0.25)).mean() > 0.5


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_certificates_are_in_the_norm_that_was_trained_for(norm: float) -> None:
    """And so is "auto"; other norms are for the asking."""
    frame, _ = make_rows()
    clf = fit(norm=norm, l0=1)
    own = clf.certify(frame)
    assert (own.norm, own.l0) == (norm, 1)
    assert clf.certify(frame, l0=0).norm == clf.certify(frame, threat=Threat()).norm == norm
    assert clf.certify(frame, threat=Threat(norm=0)).norm == 0


def test_what_is_learnt_from_little_is_no_error() -> None:
    """Constant columns, few rows, and a column of one value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = AdditiveClassifier().fit([[0.0, 1.0], [0.0, 2.0], [0.0, 8.0], [0.0, 9.0]], [0, 0, 1, 1])
    assert clf.predict([[5.0, 0.0], [5.0, 10.0]]).tolist() == [0, 1]
