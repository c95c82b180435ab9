"""What all trainers share: the registry, where warnings point, parts of a fitted classifier, an untouched estimator."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import derand
from derand import RobTreeBoostClassifier, StumpClassifier, load, save
from derand.estimators import TRAINERS, CertifiedClassifier, assemble

DOCS = Path(__file__).resolve().parents[2] / "docs"
X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0], [5.5, 1.0], [0.2, 0.0]])
Y = np.array(["no", "no", "yes", "yes", "yes", "no"])


def make(kind: type[CertifiedClassifier], **parameters: Any) -> CertifiedClassifier:
    few = {"n_estimators": 2} if "n_estimators" in kind().get_params() else {}
    return kind(**few, **parameters)


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_is_exported_and_documented(name: str) -> None:
    """A row of the registry is a classifier that the package exports and the reference names."""
    kind = TRAINERS[name]
    assert issubclass(kind, CertifiedClassifier)
    assert getattr(derand, kind.__name__) is kind
    assert f"::: derand.{kind.__name__}\n" in (DOCS / "api.md").read_text(encoding="utf-8")


SEARCHING = {name: kind for name, kind in TRAINERS.items() if "split_step" in kind._get_param_names()}
"""Trainers that search splits, and so warn of steps that are too fine."""


@pytest.mark.parametrize("kind", SEARCHING.values(), ids=SEARCHING)
def test_warnings_point_at_the_call_of_fit(kind: type[CertifiedClassifier]) -> None:
    """Each warning of training is attributed to the line that calls `fit`, whatever trains."""
    wide = np.column_stack([np.linspace(0, 1e6, 60), np.zeros(60)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(kind).fit(wide, np.arange(60) > 30)  # the line that is blamed
    assert [re.match("A step of 0.01 would make more", str(one.message)) is not None for one in caught] == [True]
    assert caught[0].filename == __file__
    blamed = Path(__file__).read_text(encoding="utf-8").splitlines()[caught[0].lineno - 1]
    assert blamed.endswith("# the line that is blamed")


@pytest.mark.parametrize("kind", TRAINERS.values(), ids=TRAINERS)
def test_a_warning_made_an_error_leaves_the_estimator_as_it_was(kind: type[CertifiedClassifier]) -> None:
    """Where warnings are errors, `fit` fails as a whole."""
    clf = make(kind)
    before = vars(clf).copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="constant"):
            clf.fit(np.zeros((6, 2)), Y)
    assert vars(clf) == before


@pytest.mark.parametrize("kind", TRAINERS.values(), ids=TRAINERS)
def test_parts_restore_all_that_fit_found(kind: type[CertifiedClassifier], tmp_path: Path) -> None:
    """From its parts, or loaded, it has every attribute but its rows and which way it was trained."""
    clf = make(kind, noise="gaussian:0.5", scaling="standard").fit(X, Y)
    stated = {"ensemble_", "noise_", "classes_", "encoding_", "n_features_in_", "training_"}
    training = {name: value for name, value in vars(clf).items() if name.endswith("_") and name not in stated}
    assert training
    parts = (clf.ensemble_, clf.noise_, clf.encoding_, training, clf.get_params())
    again = assemble(kind, *parts, classes=clf.classes_)
    save(clf, tmp_path / "model.json")
    for other in (again, load(tmp_path / "model.json")):
        assert vars(other).keys() == vars(clf).keys() - {"_seen", "training_"}
        assert other.get_params() == clf.get_params()
        for name, value in training.items():
            np.testing.assert_array_equal(getattr(other, name), value)
        np.testing.assert_array_equal(other.certify(X).radius, clf.certify(X).radius)


def test_parts_with_parameters_that_make_no_sense_are_refused() -> None:
    """`assemble` checks parameters as `fit` does."""
    clf = StumpClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="`levels` must be a whole number"):
        assemble(StumpClassifier, clf.ensemble_, clf.noise_, clf.encoding_, {}, {"levels": 0}, classes=clf.classes_)


def test_what_fit_found_cannot_be_changed() -> None:
    """Arrays that training found are read-only."""
    clf = RobTreeBoostClassifier(n_estimators=2).fit(X, Y)
    for array in (clf.stump_thresholds_, clf.stump_left_, clf.train_score_, StumpClassifier().fit(X, Y).entropy_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_columns_of_the_same_name_are_refused_in_one_line() -> None:
    """When it is trained and when it is asked, whatever the library of the table."""
    twice = pd.concat([pd.Series(X[:, 0], name="age")] * 2, axis=1)
    for table in (twice, pa.table([X[:, 0], X[:, 1]], names=["age", "age"])):
        with pytest.raises(ValueError, match=r"^`X` must have columns of different names, got 'age' 2 times\.$"):
            StumpClassifier().fit(table, Y)
    fitted = StumpClassifier().fit(pd.DataFrame(X, columns=["age", "income"]), Y)
    with pytest.raises(ValueError, match="different names, got 'age' 2 times"):
        fitted.certify(twice)


@pytest.mark.parametrize(("odd", "kinds"), [(1.5, "float and str"), (1, "int and str")])
def test_labels_of_several_kinds_are_refused_in_one_line(odd: Any, kinds: str) -> None:
    """Wherever the odd one stands."""
    for place in (0, 3):
        labels = Y.astype(object)
        labels[place] = odd
        with pytest.raises(ValueError, match=rf"^`y` must hold labels of one kind, all of them there, got {kinds}\.$"):
            StumpClassifier().fit(X, labels)
