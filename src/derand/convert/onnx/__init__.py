"""Models in formats of others, to be served elsewhere: `export_onnx`.

Owns what a model means to a program that knows nothing of this package. Must not know training, noise or certificates:
what is written is the score as it is, without smoothing. A new format is one more file with its function.
"""

from __future__ import annotations

from derand.convert.onnx._onnx import OnnxExport, export_onnx

__all__ = ["OnnxExport", "export_onnx"]
