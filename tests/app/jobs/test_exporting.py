"""Exporting a saved model from file to file."""

from __future__ import annotations

from pathlib import Path

import pytest

from derand import save
from derand.app.jobs import export_file
from tests.storage.models import make_vote

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")


def test_saved_models_of_every_kind_are_exported(model: Path, regressor: Path, tmp_path: Path) -> None:
    """Classifiers, regressors and bare models."""
    save(make_vote(), tmp_path / "vote.json")
    for source, outputs in (
        (model, ["score", "label"]),
        (regressor, ["value"]),
        (tmp_path / "vote.json", ["score", "label"]),
    ):
        summary = export_file(source, tmp_path / "model.onnx")
        assert summary["outputs"] == outputs
        assert summary["bytes"] == (tmp_path / "model.onnx").stat().st_size
    assert export_file(model, tmp_path / "model.onnx")["noise"] == "gaussian:0.25"
    assert {"x", "job", "floor"} <= set(export_file(model, tmp_path / "model.onnx")["inputs"])


def test_bad_names_are_refused(model: Path, tmp_path: Path) -> None:
    """Before any work, and no input is lost."""
    with pytest.raises(ValueError, match=r"must end with \.onnx"):
        export_file(model, tmp_path / "model.json")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_file(tmp_path / "absent.json", tmp_path / "model.onnx")
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(model.read_bytes())
    with pytest.raises(ValueError, match="is also an input"):
        export_file(copy, copy)
