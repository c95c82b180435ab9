"""Classes by the names that people have for them: a model and labels, renamed before anything is told of them.

Must not know what a report says.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from derand._core.arrays import Numbers
from derand._core.origin import Fitted


def rename_classes(model: Fitted, names: Mapping[object, str]) -> object:
    """A copy of a fitted classifier that answers with other names; classes that are not named keep their own."""
    if not hasattr(model, "classes_"):
        raise ValueError(
            f"`class_names` is for a fitted classifier, got a {type(model).__name__}, which has no classes."
        )
    called, known = (
        {str(label): str(name) for label, name in names.items()},
        [str(one) for one in model.classes_.tolist()],
    )
    strange = [label for label in called if label not in known]
    if strange:
        raise ValueError(f"`class_names` must name classes of the model, {', '.join(known)}, got {strange[0]!r}.")
    found = [called.get(label, label) for label in known]
    if len(set(found)) < len(found):
        raise ValueError(f"`class_names` must give each class a name of its own, got {', '.join(found)}.")
    renamed = copy.copy(model)
    renamed.classes_ = np.array(found)
    renamed._named_from = model  # what checksums speak of
    return renamed


def rename_labels(y: Any, model: Fitted, renamed: Any) -> Any:
    """Labels of a model as its renamed copy has them; those that it does not have are refused."""
    called = dict(zip(model.classes_.tolist(), renamed.classes_.tolist(), strict=True))
    labels: Numbers = np.asarray(y)
    strange = labels[~np.isin(labels, model.classes_)]
    if strange.size:
        raise ValueError(f"`y` must hold labels among {model.classes_.tolist()}, got {strange.tolist()[0]!r}.")
    return y.map(called) if hasattr(y, "iloc") else np.array([called[label] for label in labels.tolist()])
