"""A graph of ONNX that grows by one operation at a time. Must not know models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._core.origin import Cell

OPSETS = {"": 17, "ai.onnx.ml": 3}
"""Versions of the operators: those that runtimes of 2022 and later know."""
_IR_VERSION = 8
LABEL_ENCODER = "LabelEncoder"
"""Of the operators that are used, the one of "ai.onnx.ml"."""


class Graph:
    """Operations in the order in which they are applied; names of values are made up, and begin with "derand/"."""

    def __init__(self) -> None:
        self._nodes: list[Cell] = []
        self._constants: list[Cell] = []
        self._inputs: list[Cell] = []
        self._outputs: list[Cell] = []

    def add_input(self, name: str, n_columns: int, *, is_text: bool) -> str:
        """A matrix of doubles, or of text, of any number of rows."""
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if is_text else TensorProto.DOUBLE
        self._inputs.append(helper.make_tensor_value_info(name, kind, ["rows", n_columns]))
        return name

    def add_output(self, name: str, value: str, like: np.dtype[Cell], n_columns: int | None) -> None:
        """Give a value out under a name, as a vector or as a matrix."""
        from onnx import helper

        shape: list[str | int | None] = ["rows"] if n_columns is None else ["rows", n_columns]
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _map_type(like), shape))

    def hold(self, values: ArrayLike) -> str:
        """A constant: whole numbers, doubles, truth values or text."""
        from onnx import helper

        array = np.asarray(values)
        cells: Any = array.ravel().tolist()
        if array.dtype.kind in "UO":
            cells = [str(cell).encode() for cell in cells]
        name = f"derand/constant_{len(self._constants)}"
        self._constants.append(helper.make_tensor(name, _map_type(array.dtype), array.shape, cells))
        return name

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The value of an operation."""
        from onnx import helper

        name = f"derand/{operator}_{len(self._nodes)}"
        domain = "ai.onnx.ml" if operator == LABEL_ENCODER else ""
        self._nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def cast(self, value: str, dtype: type[np.generic]) -> str:
        """The same numbers of another type."""
        return self.apply("Cast", value, to=_map_type(np.dtype(dtype)))

    def serialize(self, facts: dict[str, str], version: str, about: str) -> bytes:
        """The whole as a file, checked against the rules of the format."""
        import onnx
        from onnx import helper

        graph = helper.make_graph(self._nodes, "derand", self._inputs, self._outputs, self._constants, about)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, number) for domain, number in OPSETS.items()],
            ir_version=_IR_VERSION,
            producer_name="derand",
            producer_version=version,
            doc_string=about,
        )
        helper.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())


def _map_type(dtype: np.dtype[Cell]) -> int:
    from onnx import TensorProto

    kinds = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "u": TensorProto.INT64, "b": TensorProto.BOOL}
    return int(kinds.get(dtype.kind, TensorProto.STRING))
