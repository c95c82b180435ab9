"""`derand export`: what it prints, and what it refuses in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.app.commands.running import run


def test_what_was_written_is_printed(model: Path, tmp_path: Path) -> None:
    """Inputs, outputs, the check, and that smoothing is left out."""
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    result = run("export", model, "-o", tmp_path / "model.onnx")
    assert result.exit_code == 0, result.output
    for words in ("inputs: mean radius, ", "size", "outputs: score, label", "to the last bit", "smoothing: left out"):
        assert words in result.stdout
    summary = json.loads(run("export", model, "-o", tmp_path / "model.onnx", "--json").stdout)
    assert summary["checked_rows"] >= 2000


def test_bad_input_is_one_line(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that ends otherwise, no model, no library."""
    for arguments, message in (
        ((model, "-o", tmp_path / "model.txt"), "must end with .onnx"),
        ((tmp_path / "absent.json", "-o", tmp_path / "m.onnx"), "does not exist"),
    ):
        result = run("export", *arguments)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
        assert message in result.stderr
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", model, "-o", tmp_path / "m.onnx")
    assert result.exit_code == 2
    assert "derand[onnx]" in result.stderr
    assert not (tmp_path / "m.onnx").exists()
