"""Importing model files of other libraries: what is told, what is refused, and what can be done with the result."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier

from derand import load
from derand.app.jobs import CertifySettings, audit_file, certify_file, import_file, report_file


def make_table(n_rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(50, 10, n_rows), "age": rng.uniform(18, 80, n_rows)})
    return frame.assign(label=np.where(frame["income"] + 0.3 * frame["age"] > 62, "yes", "no"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    make_table().to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def write_pickle(path: Path, model: Any) -> Path:
    path.write_bytes(pickle.dumps(model))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Trained on an array, with labels 0 and 1: it knows neither names nor words."""
    table = make_table()
    model = GradientBoostingClassifier(max_depth=1, n_estimators=15, random_state=0)
    model.fit(table[["income", "age"]].to_numpy(), (table["label"] == "yes").astype(int))
    return write_pickle(tmp_path / "model.pkl", model)


def test_an_imported_model_goes_the_way_of_any_other(source: Path, rows: Path, tmp_path: Path) -> None:
    """Certified within limits and under noise, audited, and reported, all from files."""
    model = tmp_path / "model.json"
    summary = import_file(
        source, model, trust_pickle=True, classes=["no", "yes"], data=rows, target="label", scaling="robust"
    )
    assert summary["source"] == "sklearn.GradientBoostingClassifier"
    assert summary["classes"] == ["no", "yes"]
    assert summary["columns"] == ["income", "age"]
    assert summary["rows"] == 200
    assert summary["accuracy"] > 0.9
    assert summary["terms"] == 2
    assert summary["cells"] > 4
    assert summary["largest_difference"] is not None
    assert summary["largest_difference"] <= summary["score_error"] < 1e-9
    assert summary["next_command"].startswith("derand certify ")
    limits = certify_file(
        model,
        rows,
        tmp_path / "limits.csv",
        CertifySettings(target="label", changes={"norm": None, "limits": {"income": "5%"}}),
    )
    assert limits["accuracy"] == summary["accuracy"]
    assert 0 < limits["proven_accuracy"] < limits["accuracy"]
    assert limits["verdicts"]["flips"] > 0
    assert audit_file(model, rows, tmp_path / "limits.csv", rows=5)["passed"]
    noisy = certify_file(
        model, rows, tmp_path / "noisy.csv", CertifySettings(target="label", noise="gaussian:0.25", rule="vote")
    )
    assert noisy["certified_rows"] > 150
    assert audit_file(model, rows, tmp_path / "noisy.csv", rows=2)["passed"]
    report_file(model, rows, tmp_path / "report.md", target="label")
    assert "income" in (tmp_path / "report.md").read_text()


def test_a_smoothed_import_keeps_its_noise_and_reports_its_laws(source: Path, rows: Path, tmp_path: Path) -> None:
    """Its scores are far too fine to list their law: the pictures are drawn on a coarser grid."""
    model = tmp_path / "model.json"
    options: dict[str, Any] = {"noise": "gaussian:0.25", "rule": "vote", "scaling": "robust"}
    summary = import_file(source, model, trust_pickle=True, data=rows, **options, classes=["no", "yes"], target="label")
    assert (summary["noise"], summary["rule"]) == ("gaussian:0.25", "vote")
    loaded = load(model)
    assert loaded.noise_.units == tuple(loaded.units_)
    assert loaded.ensemble_.levels > 2**30
    report_file(model, rows, tmp_path / "report.html", target="label")
    assert "log-odds" in (tmp_path / "report.html").read_text()


def test_without_rows_columns_are_matched_by_order(source: Path, rows: Path, tmp_path: Path) -> None:
    """A table of the same number of columns will do."""
    summary = import_file(source, tmp_path / "model.json", trust_pickle=True)
    assert summary["columns"] is None
    assert summary["classes"] == [0, 1]
    assert "rows.csv" in summary["next_command"]
    pd.read_csv(rows).drop(columns="label").to_csv(tmp_path / "new.csv", index=False)
    assert certify_file(tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv")["rows"] == 200


def test_a_regressor_is_imported(rows: Path, tmp_path: Path) -> None:
    """Its error on the rows is told, and intervals are certified."""
    table = make_table().drop(columns="label")
    model = GradientBoostingRegressor(max_depth=1, n_estimators=5).fit(table[["income"]], table["age"])
    source = write_pickle(tmp_path / "model.pkl", model)
    summary = import_file(source, tmp_path / "model.json", trust_pickle=True, data=rows, target="age")
    assert (summary["task"], summary["classes"]) == ("number", [])
    assert summary["rmse"] == pytest.approx(np.sqrt(np.mean((model.predict(table[["income"]]) - table["age"]) ** 2)))
    found = certify_file(
        tmp_path / "model.json",
        rows,
        tmp_path / "out.csv",
        CertifySettings(changes={"norm": None, "limits": {"*": "5%"}}),
    )
    assert found["rows"] == 200
    with pytest.raises(ValueError, match=r"`classes` names classes, but .* predicts a number"):
        import_file(source, tmp_path / "model.json", trust_pickle=True, classes=["a", "b"])


def test_categories_and_gaps_are_read_as_the_table_holds_them(tmp_path: Path) -> None:
    """Text and numbers as categories, and missing numbers."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=300), "job": rng.choice(["cook", "clerk"], 300)})
    frame["floor"] = rng.integers(1, 4, 300)
    frame.loc[::9, "x"] = np.nan
    label = (frame["x"].fillna(1.0) + (frame["job"] == "cook") + (frame["floor"] == 2) > 1).astype(int)
    typed = frame.astype({"job": "category", "floor": "category"})
    model = HistGradientBoostingClassifier(max_depth=1, categorical_features="from_dtype").fit(typed, label)
    source = write_pickle(tmp_path / "model.pkl", model)
    frame.assign(label=label).to_csv(tmp_path / "rows.csv", index=False)
    summary = import_file(
        source, tmp_path / "model.json", trust_pickle=True, data=tmp_path / "rows.csv", target="label"
    )
    assert summary["accuracy"] == pytest.approx(model.score(typed, label))
    certified = certify_file(
        tmp_path / "model.json", tmp_path / "rows.csv", tmp_path / "out.csv", CertifySettings(target="label")
    )
    assert certified["accuracy"] == pytest.approx(summary["accuracy"])
    assert not certified["unseen_categories"]


def test_names_with_spaces_are_found_where_a_library_wrote_underscores(tmp_path: Path) -> None:
    """As LightGBM does in its files."""
    table = make_table()
    written = table.rename(columns={"income": "net_income"})[["net_income", "age"]]
    model = GradientBoostingClassifier(max_depth=1, n_estimators=3).fit(written, table["label"])
    source = write_pickle(tmp_path / "model.pkl", model)
    table.rename(columns={"income": "net income"}).to_csv(tmp_path / "rows.csv", index=False)
    options: dict[str, Any] = {"trust_pickle": True, "data": tmp_path / "rows.csv"}
    assert import_file(source, tmp_path / "model.json", **options)["columns"] == ["net income", "age"]
    table.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="has no column 'net_income'"):
        import_file(source, tmp_path / "model.json", **options)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not trusted": ({"trust_pickle": False}, "is a pickle, which runs whatever code .* `trust_pickle`"),
    "too few classes": ({"classes": ["a"]}, "must name 2 different classes"),
    "equal classes": ({"classes": ["a", "a"]}, "must name 2 different classes"),
    "scaling without rows": ({"scaling": "robust"}, "`scaling` is about rows: give `data`"),
    "target without rows": ({"target": "label"}, "`target` is about rows: give `data`"),
    "vote without noise": ({"rule": "vote"}, "`noise` must not be 'none'"),
    "no such noise": ({"noise": "pink:1"}, "pink"),
    "other columns": ({"data": "rows.csv"}, "has 3 columns of features, but the model was trained on 2"),
    "other labels": ({"data": "rows.csv", "target": "label"}, "the model knows '?0'?, '?1'?|text in the number column"),
    "no such table": ({"data": "absent.csv"}, r"absent\.csv does not exist"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused(
    options: dict[str, Any], message: str, source: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        import_file(source, "out.json", **{"trust_pickle": True, **options})
    assert not (tmp_path / "out.json").exists()


def test_files_that_hold_no_such_model_are_refused(source: Path, tmp_path: Path) -> None:
    """What is in them is said; a model of ours needs no import, and no input is lost."""
    for content, words in (({"a": 1}, "dict"), (GradientBoostingClassifier(), "must be fitted")):
        path = write_pickle(tmp_path / "other.pkl", content)
        with pytest.raises(ValueError, match=rf"other\.pkl cannot be imported: .*{words}"):
            import_file(path, tmp_path / "out.json", trust_pickle=True)
    (tmp_path / "model.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match=r"model\.csv .*must end with one of"):
        import_file(tmp_path / "model.csv", tmp_path / "out.json")
    import_file(source, tmp_path / "ours.json", trust_pickle=True)
    with pytest.raises(ValueError, match="is a model of derand already"):
        import_file(tmp_path / "ours.json", tmp_path / "out.json")
    with pytest.raises(ValueError, match="is also an input"):
        import_file(source, source, trust_pickle=True)
    own = GradientBoostingClassifier(max_depth=1, n_estimators=2).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="has its own, a, b"):
        import_file(
            write_pickle(tmp_path / "own.pkl", own), tmp_path / "out.json", trust_pickle=True, classes=["c", "d"]
        )
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("suffix", [".json", pytest.param(".ubj", marks=pytest.mark.long), ".txt", ".cbm"])
def test_native_files_are_imported(suffix: str, rows: Path, tmp_path: Path) -> None:
    """As their libraries write them; what is no such file is one line that names it."""
    table, path = make_table(), tmp_path / f"model{suffix}"
    X, y = table[["income", "age"]].to_numpy(), (table["label"] == "yes").astype(int).to_numpy()
    if suffix in (".json", ".ubj"):
        library = pytest.importorskip("xgboost")
        library.XGBClassifier(max_depth=1, n_estimators=5, n_jobs=1).fit(X, y).save_model(path)
    elif suffix == ".txt":
        library = pytest.importorskip("lightgbm")
        library.LGBMClassifier(max_depth=1, n_estimators=5, verbose=-1, n_jobs=1).fit(X, y).booster_.save_model(path)
    else:
        library = pytest.importorskip("catboost")
        model = library.CatBoostClassifier(depth=1, iterations=5, verbose=0, allow_writing_files=False, thread_count=1)
        model.fit(X, y).save_model(str(path))
    summary = import_file(path, tmp_path / "ours.json", classes=["no", "yes"], data=rows, target="label")
    assert summary["classes"] == ["no", "yes"]
    assert summary["columns"] == ["income", "age"]
    assert summary["accuracy"] > 0.8
    assert summary["largest_difference"] is not None
    assert summary["largest_difference"] <= summary["score_error"]
    path.write_bytes(b"{ nothing")
    with pytest.raises(ValueError, match="model"):
        import_file(path, tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
