"""Fitted estimators shown: plots of every kind of model, and what notebooks see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from derand import AdditiveClassifier, RobAdaBoostClassifier, StumpClassifier, StumpRegressor, Threat, load, save

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=200), "b": 100 * RNG.normal(size=200), "c": RNG.choice(["u", "v"], 200)})
LABEL = np.where(FRAME.a + 0.3 * (FRAME.c == "u") + 0.002 * FRAME.b > 0.1, "yes", "no")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def clf() -> StumpClassifier:
    return StumpClassifier(noise="gaussian:0.25", scaling="standard").fit(FRAME, LABEL)


def titles(axes: np.ndarray) -> list[str]:
    return [one.get_title(loc="left") for one in axes]


def test_columns_are_drawn_as_asked(clf: StumpClassifier) -> None:
    """All, the most important first; some, in their order; as many as there is room for, which is said."""
    every = clf.plot()
    assert set(titles(every)) == {"a", "b", "c"}
    assert titles(clf.plot(X=FRAME))[0] == "a"
    assert titles(clf.plot(["c", 0])) == ["c", "a"]
    assert titles(clf.plot("b")) == ["b"]
    few = clf.plot(max_columns=1)
    assert len(few) == 1
    assert "1 of 3 functions" in few[0].figure.get_supxlabel()


def test_what_makes_no_sense_is_refused(clf: StumpClassifier) -> None:
    """Unknown columns, no columns, radii below 0, and estimators that are not fitted."""
    with pytest.raises(ValueError, match=r"`columns` must be names or numbers .* got 'nothing': it has 3 columns"):
        clf.plot("nothing")
    with pytest.raises(ValueError, match="`max_columns` must be a whole number"):
        clf.plot(max_columns=0)
    with pytest.raises(ValueError, match="`radius` must be a number"):
        clf.plot(radius=-1)
    with pytest.raises(ValueError, match="not fitted"):
        StumpClassifier().plot()


def test_the_band_is_of_the_radius_and_the_threat(clf: StumpClassifier) -> None:
    """Of the noise where no radius was trained for; none for a frozen column, and nothing wider than a limit."""
    legend = [text.get_text() for text in clf.plot("a")[0].figure.legends[0].get_texts()]
    assert "within radius 0.25" in legend
    assert not clf.plot("a", threat=Threat(frozen=["a"]))[0].collections
    wide, narrow = (
        clf.plot("a", radius=1.0, threat=threat)[0].collections[0].get_paths()[0].vertices
        for threat in (None, Threat(limits={"a": 0.01}))
    )
    assert np.ptp(narrow[:, 1]) <= np.ptp(wide[:, 1])
    limits = clf.plot("a", threat=Threat(norm=None, limits={"a": 0.5}))[0].figure.legends[0].get_texts()
    assert "within the limits" in [text.get_text() for text in limits]


def test_training_rows_are_kept_as_counts_and_not_saved(clf: StumpClassifier, tmp_path: object) -> None:
    """After `fit` they lie beneath; a loaded model draws without them, and with rows that are given."""
    from pathlib import Path

    path = Path(str(tmp_path)) / "model.json"
    save(clf, path)
    loaded = load(path)
    drawn = [len(one.plot("a")[0].figure.axes) for one in (clf, loaded)]
    assert drawn == [2, 1]  # the data has axes of its own
    assert len(loaded.plot("a", X=FRAME)[0].figure.axes) == 2
    assert "_seen" not in path.read_text(encoding="utf-8")


def test_numbers_and_several_classes_have_shapes() -> None:
    """A regressor's in units of the target, from the mean; one line for each class."""
    y = 50 * FRAME.a.to_numpy() + 1000
    regressor = StumpRegressor(noise="gaussian:0.1", scaling="standard").fit(FRAME[["a", "b"]], y)
    axes = regressor.plot("a")
    assert axes[0].get_ylabel() == "added to the answer"
    (smooth,) = [line for line in axes[0].get_lines() if line.get_label() == "mean under noise"]
    assert 20 < np.ptp(smooth.get_ydata()) < 400
    classes = np.digitize(FRAME.a, [-0.5, 0.5])
    several = AdditiveClassifier(radius=0.1, regularization=0.1).fit(FRAME, classes)
    names = [text.get_text() for text in several.plot()[0].figure.legends[0].get_texts()]
    assert names[:3] == ["class 0", "class 1", "class 2"]


def test_pairs_are_maps() -> None:
    """Columns that are trained together share a panel."""
    X = RNG.normal(size=(200, 3))
    clf = AdditiveClassifier(radius=0.1, groups=[[0, 1]], regularization=1.0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert "feature 0 and feature 1" in titles(clf.plot())


def test_votes_of_several_models_have_no_shapes() -> None:
    """They say what can be drawn instead."""
    vote = RobAdaBoostClassifier(noise="gaussian:0.25", n_estimators=4).fit(FRAME[["a"]], LABEL)
    if len(vote.ensemble_.members) > 1:
        with pytest.raises(ValueError, match="`plot` draws one sum, got a vote of"):
            vote.plot()
    else:
        assert titles(vote.plot()) == ["a"]


def test_notebooks_see_what_was_learnt(clf: StumpClassifier) -> None:
    """scikit-learn's page, with a block beneath once it is fitted; nothing loaded from outside, text escaped."""
    page = clf._repr_html_()
    assert "sk-top-container" in page
    assert "3: 2 numbers and 1 category" in page
    assert page.endswith("</div>")
    assert clf._repr_mimebundle_()["text/html"].count('class="derand"') == 1
    assert 'class="derand"' not in StumpClassifier()._repr_html_()
    odd = StumpClassifier(noise="gaussian:0.25").fit(FRAME[["a"]], np.where(FRAME.a > 0, "<script>", "no"))
    assert "<script>" not in odd._repr_html_().split('class="derand"')[1]
