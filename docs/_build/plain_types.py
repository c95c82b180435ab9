"""Types in the API reference as the docstrings write them.

`Noise, str or None` is English for a reader and a pair for a parser of Python: here it becomes English again.
"""

from __future__ import annotations

from typing import Any

import griffe


class PlainTypes(griffe.Extension):
    """Takes the brackets off enumerations of types that were read as tuples."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Walk over all docstrings once they are loaded."""
        _walk(pkg)


def _walk(owner: griffe.Object) -> None:
    if owner.docstring:
        for section in owner.docstring.parsed:
            for element in section.value if isinstance(section.value, list) else ():
                _simplify(element)
    for member in owner.members.values():
        if not member.is_alias:
            _walk(member)


def _simplify(element: Any) -> None:
    annotation = getattr(element, "annotation", None)
    if isinstance(annotation, griffe.ExprTuple) and not annotation.implicit:
        annotation.implicit = True  # a tuple without brackets
