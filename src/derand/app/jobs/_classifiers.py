"""Classifiers as the jobs see them, and trainers by name.

Owns the loading of a saved one, and how an estimator is made. Must not know files
of data, nor which job asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from derand._core.files import PathLike
from derand._core.origin import Fitted
from derand.app import Spell, quote_parameter
from derand.app.settings import CLASSES, NUMBER, OWN, list_of_other_task
from derand.fitted import FittedModel, answers_numbers
from derand.model import is_model
from derand.storage import load, load_stored

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier, CertifiedRegressor


def choose_model() -> str:
    """The trainer to use where none is named: the finest that there is."""
    return "additive"


def find_trainer(name: str, task: str | None = CLASSES) -> type[Any]:
    """The trainer of a name, for a task; where that is None, one of any."""
    from derand.app.jobs._tasks import list_trainers  # slow to import: it needs scikit-learn

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
    from derand.app.jobs._tasks import require_parameters

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
    estimator: CertifiedClassifier | CertifiedRegressor = _refuse_bare(load(path), path)
    return estimator


def load_fitted(path: PathLike) -> FittedModel:
    """What predicts and certifies of a saved classifier or regressor: scikit-learn is not imported."""
    model: FittedModel = _refuse_bare(load_stored(path), path)
    return model


def _refuse_bare(model: Fitted, path: PathLike) -> Any:
    if is_model(model):
        raise ValueError(
            f"{path} holds a bare model ({type(model).__name__}), which knows no noise and no columns: "
            "certify it with `derand.certify`, or use a model that `derand train` saved."
        )
    return model


def refuse_other_task(settings: object, estimator: FittedModel, path: PathLike, spell: Spell) -> None:
    """Refuse settings that are for models of the other kind."""
    task = NUMBER if answers_numbers(estimator) else CLASSES
    for name in list_of_other_task(settings, task):
        whom, what = ("classification", "is a regressor") if task == NUMBER else ("regression", "is a classifier")
        raise ValueError(f"{spell(name)} is for {whom}, and {path} {what}: leave it out.")
