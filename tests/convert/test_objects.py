"""Files that hold Python objects: pickles, and skops with its check of types."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from derand.convert import load_pickle, load_skops

X = np.linspace(-1, 1, 30)[:, None]
Y = (X[:, 0] > 0.1).astype(int)


class Broken:
    """What cannot be opened again."""

    def __reduce__(self) -> Any:
        return (int, ("no number",))


def test_pickles_of_pickle_and_joblib_are_opened(tmp_path: Path) -> None:
    """Compressed ones as well."""
    model = GradientBoostingClassifier(max_depth=1, n_estimators=3).fit(X, Y)
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(model))
    joblib.dump(model, tmp_path / "small.joblib", compress=3)
    for name in ("plain.pkl", "small.joblib"):
        assert np.array_equal(load_pickle(tmp_path / name).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "content",
    [b"", b"not a pickle", pickle.dumps(Broken()), b"cno_such_library\nModel\n."],
    ids=["empty", "text", "an error inside", "a library that is not there"],
)
def test_what_cannot_be_opened_is_one_line(content: bytes, tmp_path: Path) -> None:
    """Whatever goes wrong in the code of others, the error names the file."""
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.pkl cannot be opened") as told:
        load_pickle(path)
    assert len(str(told.value)) < 500
    with pytest.raises(FileNotFoundError, match="absent"):
        load_pickle(tmp_path / "absent.pkl")


def test_skops_files_are_opened_where_all_types_are_trusted(tmp_path: Path) -> None:
    """Types that are not known to be harmless are named, and may be trusted one by one."""
    io = pytest.importorskip("skops.io", reason="the extra `skops` is not installed")
    model = LogisticRegression().fit(X, Y)
    io.dump(model, tmp_path / "line.skops")
    assert np.array_equal(load_skops(tmp_path / "line.skops").coef_, model.coef_)
    io.dump(GradientBoostingClassifier(max_depth=1, n_estimators=3).fit(X, Y), tmp_path / "trees.skops")
    with pytest.raises(ValueError, match=r"--trusted sklearn\.tree\._tree\.Tree"):
        load_skops(tmp_path / "trees.skops")
    assert load_skops(tmp_path / "trees.skops", ["sklearn.tree._tree.Tree"]).n_estimators_ == 3
    (tmp_path / "none.skops").write_bytes(b"PK no zip")
    with pytest.raises(ValueError, match=r"none\.skops cannot be opened as a skops file"):
        load_skops(tmp_path / "none.skops")


def test_skops_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(__import__("sys").modules, "skops", None)
    with pytest.raises(ImportError, match=r"derand\[skops\]"):
        load_skops(tmp_path / "model.skops")
