"""tune: figures are those of cross-validation by hand, whatever the trainer, the table and the threat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold, cross_val_score

from derand import (
    Gaussian,
    Laplace,
    RobAdaBoostClassifier,
    RobTreeBoostClassifier,
    StumpClassifier,
    Threat,
    Uniform,
    make_certified_scorer,
    tune,
)
from derand.estimators import CertifiedClassifier
from derand.estimators.tuning._candidates import NOISE_FACTORS, TRAINING_RADII
from tests.estimators.tuning.examples import PLAIN, RadiusClassifier, make_rows

X, Y = make_rows()
PAPER: dict[str, CertifiedClassifier] = {
    "stumps": PLAIN,
    "tree-boost": RobTreeBoostClassifier(noise="uniform:1", n_estimators=2, split_step=0.05),
    "ada-boost": RobAdaBoostClassifier(noise="laplace:0.3", n_estimators=2, split_step=0.05),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("balanced", [False, True])
def test_figures_are_those_of_cross_validation(balanced: bool) -> None:
    """Means and standard errors over shuffled, stratified folds, of the same scorers."""
    tuning = tune(PLAIN, X, Y, values=[0.1, 0.6], radii=[0.2, 0.4], cv=4, balanced=balanced, random_state=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    for at, sigma in enumerate((0.1, 0.6)):
        clf = clone(PLAIN).set_params(noise=Gaussian(sigma))

        def score(how: Any, clf: CertifiedClassifier = clf) -> np.ndarray:
            return np.asarray(cross_val_score(clf, X, Y, cv=folds, scoring=how))

        assert tuning.natural[at] == pytest.approx(score(get_scorer("accuracy")).mean())
        assert tuning.natural_balanced[at] == pytest.approx(score(get_scorer("balanced_accuracy")).mean())
        natural = score(get_scorer("balanced_accuracy" if balanced else "accuracy"))
        assert tuning.natural_error[at] == pytest.approx(natural.std(ddof=1) / 2)
        for place, radius in enumerate((0.2, 0.4)):
            plain, even = (score(make_certified_scorer(radius, one)) for one in (False, True))
            assert tuning.certified[at, place] == pytest.approx(plain.mean())
            assert tuning.certified_error[at, place] == pytest.approx(plain.std(ddof=1) / 2)
            assert tuning.balanced[at, place] == pytest.approx(even.mean())
            assert tuning.balanced_error[at, place] == pytest.approx(even.std(ddof=1) / 2)
        own = float(Gaussian(sigma).radius(0.25))
        assert tuning.own_radii[at] == own
        assert tuning.own_certified[at, at] == pytest.approx(score(make_certified_scorer(own, balanced)).mean())


@pytest.mark.parametrize("name", PAPER)
def test_the_noise_of_the_paper_s_trainers_is_tuned(name: str) -> None:
    """Six magnitudes around the given one, radii up to twice of it; nothing is fitted or changed."""
    before = PAPER[name].get_params()
    tuning = tune(PAPER[name], X, Y, cv=2)
    given = float(str(before["noise"]).split(":")[1])
    assert tuning.parameter == "noise"
    assert [noise.magnitude for noise in tuning.values] == [factor * given for factor in NOISE_FACTORS]
    assert tuning.radii[-1] == pytest.approx(2 * given)
    assert PAPER[name].get_params() == before
    assert not hasattr(PAPER[name], "ensemble_")
    assert tuning.recommended in tuning.values
    assert tuning.best_estimator().fit(X, Y).noise == tuning.recommended
    assert f"{tuning.recommended} " in tuning.text


def test_a_training_radius_is_tuned_where_there_is_one() -> None:
    """Its usual values are tried and measured, in the norm that the classifier is trained for."""
    tuning = tune(RadiusClassifier(norm=1), X, Y, cv=2)
    assert tuning.parameter == "radius"
    assert tuning.values == TRAINING_RADII
    assert tuning.radii.tolist() == [0.05, 0.1, 0.25, 0.5, 1.0]
    assert tuning.own_radii.tolist() == list(TRAINING_RADII)
    assert tuning.norm == 1
    assert tuning.recommended in TRAINING_RADII
    few = tune(RadiusClassifier(), X, Y, cv=2, values=[0.3, 0], norm=np.inf)
    assert (few.values, few.radii.tolist(), few.norm) == ((0.0, 0.3), [0.3], np.inf)


def test_any_other_parameter_is_tuned_by_what_it_certifies() -> None:
    """At the largest radius that is asked for."""
    tuning = tune(PLAIN, X, Y, parameter="levels", values=[1, 50], radii=[0.1, 0.3], cv=2, accuracy_loss=0.5)
    assert tuning.own_radii.tolist() == [0.3, 0.3]
    assert tuning.recommended == tuning.values[int(tuning.certified[:, 1].argmax())]
    assert tuning.text.startswith("levels ")


def test_nothing_depends_on_threads_or_on_the_day() -> None:
    """The same rows give the same figures to the last bit; another seed gives other folds."""
    first, again = (tune(PLAIN, X, Y, values=[0.2, 0.5], cv=3, n_jobs=jobs) for jobs in (None, 1))
    assert first.to_dict() == again.to_dict()
    assert tune(PLAIN, X, Y, values=[0.2, 0.5], cv=3, random_state=1).to_dict() != first.to_dict()


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "pyarrow"])
def test_every_kind_of_table_is_cut_into_folds(kind: str) -> None:
    """Numbers and text, rows in any container."""
    job = np.where(Y == "b", "cook", "clerk").astype(object)
    job[::7] = "cook"
    columns = {"x": X[:, 0], "job": job}
    tables: dict[str, Any] = {
        "list": [[x, name] for x, name in zip(X[:, 0].tolist(), job.tolist(), strict=True)],
        "pandas": pd.DataFrame(columns, index=np.arange(len(Y))[::-1]),
        "polars": pl.DataFrame({"x": X[:, 0], "job": job.tolist()}),
        "pyarrow": pa.table(columns),
    }
    expected = tune(PLAIN, pd.DataFrame(columns), Y, values=[0.2], cv=2)
    found = tune(PLAIN, tables[kind], Y.tolist(), values=[0.2], cv=2)
    assert found.certified.tolist() == expected.certified.tolist()
    assert found.natural[0] > 0.8


def test_radii_in_another_norm_are_those_of_balls_that_fit() -> None:
    """linf balls in an l2 ball of two columns are smaller by the root of two; norm 0 counts columns."""
    two, inf, none = (tune(PLAIN, X, Y, values=[0.4], cv=2, norm=norm) for norm in (None, "inf", 0))
    assert inf.own_radii[0] == pytest.approx(two.own_radii[0] / np.sqrt(2))
    assert inf.radii.tolist() == [float(f"{radius / np.sqrt(2):.2g}") for radius in (0.1, 0.2, 0.4, 0.6, 0.8)]
    assert (two.norm, inf.norm, none.norm) == (2, np.inf, 0)
    assert none.radii.tolist() == none.own_radii.tolist() == [1.0]
    same = tune(PLAIN, X, Y, values=[0.4], cv=2, threat=Threat(norm=np.inf))
    assert same.to_dict() == inf.to_dict()
    frozen = tune(PLAIN, X, Y, values=[0.4], cv=2, radii=two.radii, threat=Threat(frozen=[0, 1]))
    assert frozen.certified[0] == pytest.approx(np.full(5, two.natural[0]))


def test_noises_are_given_as_they_are_written() -> None:
    """Numbers are magnitudes of the estimator's noise; text and noises are themselves."""
    tuning = tune(clone(PLAIN).set_params(noise=None), X, Y, values=[0.5, "uniform:1", Laplace(0.2)], radii=[0.1], cv=2)
    assert tuning.values == (Gaussian(0.5), Uniform(1.0), Laplace(0.2))


def test_a_model_that_always_says_the_same_is_not_recommended() -> None:
    """The larger class is counted on the same folds, so that a constant model never seems to beat it."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(103, 2))
    y = np.arange(103) % 10 == 0
    tuning = tune(StumpClassifier(), noise, y, values=[1.0, 50.0], cv=3)
    assert tuning.natural[1] == pytest.approx(tuning.constant, abs=1e-15)
    assert tuning.recommended is None


def test_progress_is_told() -> None:
    """Before each training, how many are done."""
    seen: list[tuple[int, int]] = []
    tune(PLAIN, X, Y, values=[0.2, 0.4], cv=2, advance=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4)]


ERRORS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "another estimator": ({"estimator": LogisticRegression()}, TypeError, "`estimator` must be a classifier of derand"),
    "no parameter": ({"parameter": "sigma"}, ValueError, "`parameter` must be 'auto' or one of StumpClassifier: "),
    "no usual values": ({"parameter": "levels"}, ValueError, "`values` and `radii` must be given for the parameter"),
    "no values": ({"values": []}, ValueError, "`values` must hold at least one value"),
    "text as values": ({"values": "0.5"}, TypeError, "`values` must be a list"),
    "no noise": ({"values": ["pink:1"]}, ValueError, "Unknown noise 'pink'"),
    "noise of zero": ({"values": [0.0]}, ValueError, "sigma"),
    "radius below 0": ({"radii": [0.1, -1]}, ValueError, r"`radii` must be a list of radii, finite and 0 or larger"),
    "no radii": ({"radii": []}, ValueError, "`radii` must be a list of radii"),
    "text as radii": ({"radii": ["far"]}, ValueError, "`radii` must be a list of radii"),
    "one fold": ({"cv": 1}, ValueError, "`cv` must be a whole number of folds, 2 or larger, got 1"),
    "many folds": (
        {"cv": 100},
        ValueError,
        r"at most \d+, the number of rows of the class 'b', got 100",
    ),
    "one class": ({"y": ["a"] * 120}, ValueError, "`y` must hold two classes at least, got 1"),
    "few labels": ({"y": Y[:50]}, ValueError, "inconsistent numbers of samples"),
    "a loss of all": ({"accuracy_loss": 1.0}, ValueError, "`accuracy_loss` must be a share of rows"),
    "norm and threat": ({"norm": 2, "threat": Threat()}, ValueError, "Give `norm` or `threat`, got both"),
    "no threat": ({"threat": "l2"}, TypeError, "`threat` must be a Threat"),
    "no ball": ({"threat": Threat(norm=None, limits={0: 1})}, ValueError, "`threat` must have a ball to tune for"),
    "no such norm": ({"norm": "l2"}, ValueError, "`norm` of Threat must be"),
}


@pytest.mark.parametrize(("options", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    """One error that names the parameter."""
    with pytest.raises(kind, match=message):
        tune(**{"estimator": PLAIN, "X": X, "y": Y, **options})
