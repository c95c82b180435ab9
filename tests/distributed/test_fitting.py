"""Models of tables in parts are those of the whole table, to the last bit, however the rows are cut and ordered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import AdditiveClassifier, Gaussian, RobTreeBoostClassifier, StumpClassifier, certified_accuracy
from derand.distributed import fit
from derand.storage import write_bytes
from derand.tables import ColumnWarning
from derand.train import strategies
from tests.distributed.conftest import make_table

dd = pytest.importorskip("dask.dataframe")

STUMPS: list[dict[str, Any]] = [
    {},
    {"class_weight": "balanced"},
    {"split_step": None, "categorical_leaf": None, "min_rows_per_category": 100},
    {"noise": "uniform:0.5", "class_weight": {"yes": 3.0}},
]


def shuffle(frame: Any, n_parts: int, seed: int) -> Any:
    return dd.from_pandas(frame.sample(frac=1, random_state=seed).reset_index(drop=True), npartitions=n_parts)


@pytest.mark.parametrize("options", STUMPS)
def test_stumps_of_parts_are_those_of_the_whole_table(frame: Any, options: dict[str, Any]) -> None:
    alone = StumpClassifier(**options).fit(frame.drop(columns="bad"), frame["bad"])
    for n_parts in (1, 4):
        parts = fit(StumpClassifier(**options), shuffle(frame, n_parts, n_parts), "bad")
        assert write_bytes(parts) == write_bytes(alone)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**16), n_parts=st.integers(1, 9))
def test_any_parts_and_order_give_the_same_stumps(seed: int, n_parts: int) -> None:
    frame = make_table(300, seed=seed)
    alone = StumpClassifier().fit(frame.drop(columns="bad"), frame["bad"])
    assert write_bytes(fit(StumpClassifier(), shuffle(frame, n_parts, seed), "bad")) == write_bytes(alone)


@pytest.mark.parametrize("scaling", ["standard", "range"])
@pytest.mark.parametrize("sample", [50, 65_536])
def test_units_of_scaling_are_those_of_all_rows(
    frame: Any, scaling: str, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where not all different rows are in the sample, in any number of parts and any order."""
    monkeypatch.setattr("derand.distributed._fitting.SAMPLE_ROWS", sample)
    alone = StumpClassifier(scaling=scaling).fit(frame.drop(columns="bad"), frame["bad"])
    for n_parts in (1, 7):
        parts = fit(StumpClassifier(scaling=scaling), shuffle(frame, n_parts, n_parts), "bad")
        assert write_bytes(parts) == write_bytes(alone)


def test_quartiles_come_from_the_sample(frame: Any) -> None:
    one = fit(StumpClassifier(scaling="robust"), frame, "bad")
    many = fit(StumpClassifier(scaling="robust"), shuffle(frame, 5, 1), "bad")
    assert write_bytes(one) == write_bytes(many)


def test_several_classes() -> None:
    frame = make_table(900)
    frame["kind"] = np.where(frame["amount"] > 1, 2, np.where(frame["job"] == "cook", 1, 0))
    frame = frame.drop(columns="bad")
    alone = StumpClassifier().fit(frame.drop(columns="kind"), frame["kind"])
    assert write_bytes(fit(StumpClassifier(), shuffle(frame, 3, 2), "kind")) == write_bytes(alone)
    with pytest.raises(ValueError, match="several classes"):
        fit(AdditiveClassifier(), frame, "kind")


def test_additive_models_of_a_table_that_is_all_in_the_sample(frame: Any) -> None:
    options: dict[str, Any] = {"radius": 0.1, "l0": 1, "regularization": 0.1, "n_cuts": 8}
    one = fit(AdditiveClassifier(**options), frame, "bad")
    many = fit(AdditiveClassifier(**options), shuffle(frame, 4, 1), "bad")
    assert write_bytes(one) == write_bytes(many)
    alone = AdditiveClassifier(**options).fit(frame.drop(columns="bad"), frame["bad"])
    X, y = frame.drop(columns="bad"), frame["bad"].to_numpy()
    shares = [certified_accuracy(y, clf.certify(X), [0.1])[0] for clf in (one, alone)]
    assert abs(shares[0] - shares[1]) < 0.005


@pytest.mark.parametrize("options", [{"radius": 0.05, "l0": 1, "class_weight": "balanced"}, {"radius": 0.0}])
def test_additive_models_of_rows_that_stay_in_parts(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    """With a small sample all rows are fitted by sums of integers: the same bits from one part and from five."""
    monkeypatch.setattr("derand.distributed._fitting.SAMPLE_ROWS", 800)
    monkeypatch.setattr(strategies, "LIMITS", replace(strategies.LIMITS, large_rows=500))
    frame = make_table(3_000)
    one = fit(AdditiveClassifier(regularization=0.1, **options), frame, "bad")
    many = fit(AdditiveClassifier(regularization=0.1, **options), shuffle(frame, 5, 3), "bad")
    assert write_bytes(one) == write_bytes(many)
    X, y = frame.drop(columns="bad"), frame["bad"].to_numpy()
    alone = AdditiveClassifier(regularization=0.1, **options).fit(X, y)
    shares = [certified_accuracy(y, clf.certify(X), [options["radius"]])[0] for clf in (one, alone)]
    assert shares[0] > shares[1] - 0.01


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced", "min_rows_per_category": 100}])
def test_stumps_with_weights_are_those_of_repeated_rows(frame: Any, options: dict[str, Any]) -> None:
    weighed = frame.assign(times=np.random.default_rng(0).integers(0, 4, len(frame)))
    repeated = frame.loc[np.repeat(frame.index, weighed["times"])].reset_index(drop=True)
    alone = StumpClassifier(**options).fit(repeated.drop(columns="bad"), repeated["bad"])
    for data in (weighed, pa.Table.from_pandas(weighed), shuffle(weighed, 4, 1)):
        assert write_bytes(fit(StumpClassifier(**options), data, "bad", weights="times")) == write_bytes(alone)


def test_additive_models_with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits from one part and from five, and nearly the model of repeated rows."""
    monkeypatch.setattr("derand.distributed._fitting.SAMPLE_ROWS", 800)
    monkeypatch.setattr(strategies, "LIMITS", replace(strategies.LIMITS, large_rows=500))
    frame = make_table(2_000)
    weighed = frame.assign(times=np.where(frame["bad"] == "yes", 5, 1 - (np.arange(2_000) % 7 == 0)))
    options: dict[str, Any] = {"radius": 0.05, "regularization": 0.1, "class_weight": {"no": 0.7}}
    one = fit(AdditiveClassifier(**options), weighed, "bad", weights="times")
    many = fit(AdditiveClassifier(**options), shuffle(weighed, 5, 3), "bad", weights="times")
    assert write_bytes(one) == write_bytes(many)
    repeated = frame.loc[np.repeat(frame.index, weighed["times"])].reset_index(drop=True)
    same = fit(AdditiveClassifier(**options), repeated, "bad")
    plain = fit(AdditiveClassifier(**options), frame, "bad")
    X = frame.drop(columns="bad")
    assert (one.predict(X) == same.predict(X)).mean() > 0.99
    assert (plain.predict(X) == same.predict(X)).mean() < 0.97


def test_weights_that_are_refused(frame: Any) -> None:
    for wrong in (0.5, -1.0, np.nan, 1e7):
        with pytest.raises(ValueError, match=r"the weights in 'times' must be whole numbers from 0 to 1,000,000"):
            fit(StumpClassifier(), frame.assign(times=wrong), "bad", weights="times")
    with pytest.raises(ValueError, match=r"there is no column 'times' of weights"):
        fit(StumpClassifier(), frame, "bad", weights="times")
    with pytest.raises(ValueError, match=r'`scaling` must not be "standard" beside `weights`'):
        fit(StumpClassifier(scaling="standard"), frame.assign(times=1), "bad", weights="times")


def test_files_and_workers_give_the_same_model(folder: Path, cluster: Any) -> None:
    import pandas as pd

    table = pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())])
    alone = StumpClassifier().fit(table.drop(columns="bad"), table["bad"])
    assert write_bytes(fit(StumpClassifier(), folder, "bad")) == write_bytes(alone)
    options: dict[str, Any] = {"radius": 0.1, "regularization": 0.1}
    by_workers = fit(AdditiveClassifier(**options), str(folder / "*.parquet"), "bad")
    assert write_bytes(by_workers) == write_bytes(fit(AdditiveClassifier(**options), table, "bad"))


def test_a_rare_gap_is_known_though_it_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("derand.distributed._fitting.SAMPLE_ROWS", 50)
    monkeypatch.setattr(strategies, "LIMITS", replace(strategies.LIMITS, large_rows=40))
    frame = make_table(2_000)
    frame["amount"] = np.where(np.arange(2_000) == 1_234, np.nan, frame["amount"])
    clf = fit(AdditiveClassifier(radius=0.05, regularization=0.1), frame, "bad")
    clf.certify(frame.drop(columns="bad").iloc[1_234:1_235])


def test_columns_are_looked_at_and_chosen(frame: Any) -> None:
    with_id = frame.assign(customer=[f"C{at:05d}" for at in range(len(frame))])
    with pytest.warns(ColumnWarning, match="customer"):
        fit(StumpClassifier(), with_id, "bad")
    columns = [name for name in frame.columns if name != "bad"]
    for data in (with_id, shuffle(with_id, 3, 1)):
        chosen = fit(StumpClassifier(), data, "bad", columns=columns)
        assert write_bytes(chosen) == write_bytes(fit(StumpClassifier(), frame, "bad"))


def test_a_failed_fit_leaves_the_estimator_as_it_was(frame: Any) -> None:
    clf = fit(StumpClassifier(), frame, "bad")
    before = write_bytes(clf)
    with pytest.raises(ValueError, match="no column 'good' of labels"):
        fit(clf, frame, "good")
    assert write_bytes(clf) == before


def test_bad_input(frame: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="StumpClassifier or an AdditiveClassifier"):
        fit(RobTreeBoostClassifier(noise=Gaussian(0.25)), frame, "bad")  # type: ignore[type-var]
    with pytest.raises(ValueError, match="`groups`"):
        fit(AdditiveClassifier(groups="auto"), frame, "bad")
    with pytest.raises(TypeError, match="Dask dataframe, Parquet files"):
        fit(StumpClassifier(), 3, "bad")
    with pytest.raises(FileNotFoundError, match="names no file"):
        fit(StumpClassifier(), tmp_path / "*.parquet", "bad")
    with pytest.raises(ValueError, match="only one label"):
        fit(StumpClassifier(), frame[frame["bad"] == "no"], "bad")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda frame: frame.drop(columns="age"), "part-9.parquet lacks 'age'"),
        (lambda frame: frame.assign(more=1.0), "has 'more' as well"),
        (
            lambda frame: frame.assign(count="many"),
            "part-9.parquet: the column 'count' holds text, but numbers in .*part-0.parquet",
        ),
        (lambda frame: frame.assign(bad=1), "part-9.parquet: .* labels of one type"),
        (lambda frame: frame.assign(bad=None), "no label"),
        (lambda frame: frame.assign(age=np.inf), "age"),
    ],
)
def test_parts_that_do_not_belong_together(folder: Path, spoil: Any, message: str) -> None:
    spoil(make_table(50)).to_parquet(folder / "part-9.parquet")
    with pytest.raises(ValueError, match=message):
        fit(StumpClassifier(), folder, "bad")


def test_labels_of_several_types_are_refused_with_the_name_of_the_part(frame: Any) -> None:
    mixed = frame.assign(bad=[1, "yes"] * (len(frame) // 2))
    with pytest.raises(ValueError, match="the table: the labels in 'bad' are of several types"):
        fit(StumpClassifier(), mixed, "bad")


def test_a_damaged_part_is_named(folder: Path) -> None:
    (folder / "part-1.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match=r"part-1.parquet is not a Parquet file"):
        fit(StumpClassifier(), folder, "bad")


def test_files_without_rows_and_columns_that_are_not_there(frame: Any, folder: Path) -> None:
    """A file without rows changes nothing; a misspelt column is named, with those of the file."""
    alone = fit(StumpClassifier(), folder, "bad")
    frame.head(0).to_parquet(folder / "part-9.parquet")
    assert write_bytes(fit(StumpClassifier(), folder, "bad")) == write_bytes(alone)
    with pytest.raises(ValueError, match=r"part-0\.parquet has no column 'agee': it has .*age"):
        fit(StumpClassifier(), folder, "bad", columns=["agee"])
