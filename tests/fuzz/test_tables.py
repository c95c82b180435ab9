"""Random frames: to train on, to certify, as frames and as files. A result, or one clear error."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, note

import derand
from derand.app.jobs import certify_file, train_file
from derand.estimators import TRAINERS
from tests.fuzz.strategies import RANDOMS, draw_frame, draw_labels, share

_RAISERS = (str(Path(derand.__file__).parent), "sklearn")


def try_clearly(work: Callable[[], Any]) -> Any:
    """What a call returns; None where it refuses its input by an error that derand or scikit-learn raises on purpose.

    An error from within another library says that nobody looked at the input: that is a fault.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return work()
        except (ValueError, TypeError) as error:
            innermost = traceback.extract_tb(error.__traceback__)[-1].filename
            is_meant = any(place in innermost for place in _RAISERS)
            if not (is_meant and 0 < len(str(error)) < 4000):
                raise AssertionError(f"{error!r} comes from {innermost}") from error
            return None


@pytest.mark.parametrize("trainer", sorted(TRAINERS))
@share(0.05)
@given(random=RANDOMS)
def test_odd_frames_are_trained_on_and_certified_or_refused(trainer: str, random: Random) -> None:
    """Mixed kinds, gaps, odd and double names, infinities, huge integers."""
    n_rows = random.choice((6, 12, 12, 1, 0))
    frame, labels = draw_frame(random, n_rows), draw_labels(random, n_rows)
    note(f"{list(frame.columns)!r}, {frame.to_numpy().tolist()!r}, {labels.tolist()!r}")
    options: dict[str, Any] = {"n_jobs": 1, "scaling": random.choice((None, "standard", "range", "robust"))}
    fitted = try_clearly(lambda: TRAINERS[trainer](**options).fit(frame, labels))
    if fitted is None:
        return
    for new in (frame, draw_frame(random, random.choice((0, 3)), like=frame)):
        note(f"certified: {list(new.columns)!r}, {new.to_numpy().tolist()!r}")
        found = try_clearly(lambda new=new: fitted.certify(new))
        if found is not None:
            assert len(found) == len(new)
            assert not (found.radius < 0).any()
            assert set(found.label.tolist()) <= set(fitted.classes_.tolist())


@share(0.05)
@given(random=RANDOMS)
def test_odd_frames_of_polars_are_taken_or_refused(random: Random) -> None:
    """Whatever polars itself holds."""
    frame = draw_frame(random, 12)
    try:
        other = pl.DataFrame({str(name): frame.iloc[:, at].tolist() for at, name in enumerate(frame.columns)})
    except Exception:  # polars does not hold everything
        return
    labels = draw_labels(random, 12)
    fitted = try_clearly(lambda: TRAINERS["stumps"](noise="gaussian:1", n_jobs=1).fit(other, labels))
    if fitted is not None:
        found = try_clearly(lambda: fitted.certify(other))
        assert found is None or len(found) == 12


@share(0.05)
@given(random=RANDOMS)
def test_odd_files_are_trained_on_and_certified_or_refused(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    """As CSV and Parquet, from file to file; what fails leaves no file behind."""
    folder = tmp_path_factory.mktemp("files")
    frame = draw_frame(random, 12)
    frame.columns = [str(name) for name in frame.columns]
    frame["y"] = draw_labels(random, 12)
    note(f"{list(frame.columns)!r}, {frame.to_numpy().tolist()!r}")
    path = folder / random.choice(("table.csv", "table.parquet"))
    try:
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    except Exception:  # neither format holds everything
        return
    model, output = folder / "model.json", folder / "out.csv"
    summary = try_clearly(lambda: train_file(path, "y", model, model="stumps"))
    assert model.exists() == (summary is not None)
    if summary is not None:
        certified = try_clearly(lambda: certify_file(model, path, output))
        assert output.exists() == (certified is not None)
    whole = (path.name, "model.json", "out.csv", "out.csv.json")  # the last says how the rows were certified
    assert {one.name for one in folder.iterdir()} <= set(whole)
