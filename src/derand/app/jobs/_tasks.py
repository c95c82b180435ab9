"""What a target asks for: classes to be told apart, or a number to be predicted.

Owns the guess and its reasons, and which trainers there are for either. Must not know files, nor the command line.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derand._core.origin import Cell
from derand.app import Spell, quote_parameter
from derand.app.settings import CLASSES, NUMBER, TASKS
from derand.estimators import REGRESSORS, TRAINERS
from derand.tables import MOST_CLASSES

FEW = 20
"""Up to how many different whole numbers are classes, unless it is said otherwise."""

_OF_THRESHOLDS = "its score is no probability, so leave it out, and weigh the classes by their class weight instead"
_ADVICE = {"decision_threshold": _OF_THRESHOLDS, "cost": _OF_THRESHOLDS}
"""What to do instead of setting a parameter that a trainer does not have, where there is more to say than to leave it
out."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of a model.

    Attributes
    ----------
    name : str
        CLASSES or NUMBER.
    reason : str
        "as asked", or what was found in the target.
    other : str or None
        What it would have to be called where the guess is wrong; None where there is nothing else.
    """

    name: str
    reason: str
    other: str | None = None


def guess_task(numbers: Sequence[Cell] | None) -> Task:
    """What a target asks for.

    `numbers`: its values; None where they are no numbers.

    Examples
    --------
    >>> guess_task(None)
    Task(name='classes', reason='text', other=None)
    >>> guess_task([0, 1, 1])
    Task(name='classes', reason='2 different whole numbers', other='number')
    >>> guess_task([0.5, 1.0])
    Task(name='number', reason='fractions', other='classes')
    """
    if numbers is None:
        return Task(CLASSES, "text")
    n_different = len(set(numbers))
    whole = all(value == int(value) for value in numbers)
    reason = f"{n_different:,} different whole numbers" if whole else "fractions"
    if whole and n_different <= FEW:
        return Task(CLASSES, reason, NUMBER)
    return Task(NUMBER, reason, CLASSES if n_different <= MOST_CLASSES else None)


def list_trainers(task: str | None = None) -> Mapping[str, type[Any]]:
    """The trainers of a task by name; of both, where it is not known, those of classes first."""
    if task is None:
        return ChainMap({}, TRAINERS, REGRESSORS)  # type: ignore[arg-type] # it is only read
    return TRAINERS if task == CLASSES else REGRESSORS


def require_task(task: str | None, spell: Spell = quote_parameter) -> None:
    """Refuse a task that there is not."""
    if task not in (None, *TASKS):
        raise ValueError(f"{spell('task')} must be one of {', '.join(TASKS)}, got {task!r}.")


def require_trainer(name: str, task: Task, column: str, n_classes: int, spell: Spell = quote_parameter) -> None:
    """Refuse a trainer that cannot do what a target asks for.

    `name`: of a trainer; `column`: name of the target; `n_classes`: how many different values there are.
    """
    known = list_trainers(task.name)
    several = {
        one: kind
        for one, kind in known.items()
        if task.name == NUMBER or kind().__sklearn_tags__().classifier_tags.multi_class
    }
    if name in several or (name in known and n_classes == 2):
        return
    what = "a number to be predicted" if task.name == NUMBER else f"{n_classes} classes"
    found = "" if task.reason in ("as asked", "text") else f" ({task.reason})"
    other = ""
    if task.name == NUMBER and task.other is not None and n_classes == 2:
        other = f" Where these are two classes, say so by {spell('task')} {task.other}."
    if name not in TRAINERS:
        raise ValueError(
            f"{spell('model')} must be one of {', '.join(known)}, got {name!r}: {column!r} holds {what}{found}."
        )
    raise ValueError(
        f"{spell('model')} {name} is for two classes, but {column!r} holds {what}{found}: use {' or '.join(several)}."
        f"{other}"
    )


def require_parameters(name: str, given: Mapping[str, str], task: str | None = CLASSES) -> None:
    """Refuse options that a trainer does not have.

    `name`: of a trainer; `given`: the options that were given, as the user writes them, with the parameter that each
    one sets; `task`: where it is None, options are refused that the trainers of both tasks lack.
    """
    own = [list_trainers(one)[name] for one in TASKS if task in (None, one) and name in list_trainers(one)]
    known = {parameter for kind in own for parameter in kind().get_params(deep=False)}
    for option, parameter in given.items():
        if parameter in known:
            continue
        trainers = list_trainers(task)
        owners = [one for one, kind in trainers.items() if parameter in kind().get_params(deep=False)]
        if not owners:  # of this task
            raise ValueError(f"{option} is for classes; a model of numbers has nothing of the kind: leave it out.")
        models = f"the model{'' if len(owners) == 1 else 's'} {', '.join(owners)}"
        advice = _ADVICE.get(parameter, "leave it out")
        raise ValueError(f"{option} belongs to {models}; {name} has nothing of the kind: {advice}.")
