"""Exporting a saved model. Must not know the format that is written, nor the command line."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from derand._core.files import PathLike, require_writable
from derand.app import Summary
from derand.convert.onnx import export_onnx
from derand.storage import load


def export_file(model: PathLike, output: PathLike) -> Summary:
    """Write the base score of a saved model, without smoothing, as ONNX.

    Parameters
    ----------
    model : path-like
        Any model that `save` wrote.
    output : path-like
        Ends with .onnx.

    Returns
    -------
    dict
        `model`: what was exported.
        `kind`: name of its class.
        `noise`: of the model: what is written knows none.
        `checked_rows`: on how many rows onnxruntime gave the same scores and labels; 0 where it is not
        installed.
        `probability_error`: by how much probabilities differed there at most; None without them.
    """
    start = time.perf_counter()
    if Path(output).suffix.lower() != ".onnx":
        raise ValueError(f"Cannot write {os.fspath(output)}: the name must end with .onnx.")
    require_writable(output, model)
    found: Any = load(model)
    done = export_onnx(found, output)
    ensemble, noise = getattr(found, "ensemble_", found), getattr(found, "noise_", None)
    return {
        "model": os.fspath(model),
        "kind": type(found).__name__,
        "terms": len(ensemble.member_terms),
        "inputs": list(done.inputs),
        "outputs": list(done.outputs),
        "noise": "none" if noise is None else str(noise),
        "output": os.fspath(output),
        "bytes": done.n_bytes,
        "checked_rows": done.checked_rows,
        "probability_error": done.probability_error,
        "seconds": time.perf_counter() - start,
    }
