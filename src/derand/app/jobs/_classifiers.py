"""Classifiers as the jobs see them, and trainers by name.

Owns the loading of a saved one, and how an estimator is made. Must not know files
of data, nor which job asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from derand._core.files import PathLike
from derand.app.jobs._tasks import Spell, list_trainers, quote_parameter, require_parameters
from derand.app.settings import CLASSES, NUMBER, OWN, list_of_other_task
from derand.estimators import TRAINERS, CertifiedClassifier, CertifiedRegressor
from derand.model import is_model
from derand.storage import load


def choose_model() -> str:
    """The trainer to use where none is named: the finest that there is."""
    return "additive" if "additive" in TRAINERS else "stumps"


def find_trainer(name: str, task: str | None = CLASSES) -> type[Any]:
    """The trainer of a name, for a task; where that is None, one of any."""
    known = list_trainers(task)
    if name not in known:
        raise ValueError(f"`model` must be one of {', '.join(known)}, got {name!r}.")
    return known[name]


def make_estimator(
    name: str,
    options: Mapping[str, object],
    scaling: str | None = OWN,
    *,
    task: str = CLASSES,
    spell: Spell = quote_parameter,
) -> Any:
    """An estimator that is not fitted yet, with what was asked for."""
    trainer = find_trainer(name, task)
    require_parameters(name, {spell(parameter): parameter for parameter in options}, task)
    estimator = trainer(**options)
    if scaling != OWN:
        estimator.set_params(scaling=None if scaling == "none" else scaling)
    elif estimator.scaling is None:
        estimator.set_params(scaling="standard")
    return estimator


def load_estimator(path: PathLike) -> CertifiedClassifier | CertifiedRegressor:
    """A saved classifier or regressor."""
    model: Any = load(path)
    if is_model(model):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    estimator: CertifiedClassifier | CertifiedRegressor = model
    return estimator


def refuse_other_task(
    settings: object, estimator: CertifiedClassifier | CertifiedRegressor, path: PathLike, spell: Spell
) -> None:
    """Refuse settings that are for models of the other kind."""
    task = NUMBER if isinstance(estimator, CertifiedRegressor) else CLASSES
    for name in list_of_other_task(settings, task):
        whom, what = ("classification", "is a regressor") if task == NUMBER else ("regression", "is a classifier")
        raise ValueError(f"{spell(name)} is for {whom}, and {path} {what}: leave it out.")
