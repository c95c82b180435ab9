"""Options of a command from the fields of a settings class. Must not know any command, nor what settings do."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import Field, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from derand.app.settings import Option, list_options

_TYPES: dict[str, Any] = {
    "texts": list[str] | None,
    "number": float | None,
    "truth": bool,
    "whole": int | None,
    "count": int | None,
    "file": Path | None,
    "name": Path | None,
}
"""How kinds of options are read; all others are text."""


def take_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have the fields of each parameter that is a settings class as options, in its place."""
    own = inspect.signature(command, eval_str=True)
    classes = {name: one.annotation for name, one in own.parameters.items() if is_dataclass(one.annotation)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, settings in classes.items():
            given[name] = _make_settings(settings, given)  # type: ignore[arg-type]
        command(**given)

    made: list[inspect.Parameter] = []
    for name, one in own.parameters.items():
        options = list_options(classes[name]) if name in classes else ()  # type: ignore[arg-type]
        made += [_make_parameter(*option) for option in options if option[1].flag is not None]
        made += [] if name in classes else [one.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    run.__signature__ = own.replace(parameters=made)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in made}
    return run


def _make_parameter(one: Field[Any], option: Option) -> inspect.Parameter:
    """An option of a command; what is not given is None, or what the field's own default is where help shows that."""
    kind, default = _TYPES.get(option.kind, str | None), one.default or None
    if option.kind == "truth":
        kind, default = bool, False
    elif isinstance(default, str | int | float):
        kind = type(default)
    shown: Any = option.shown if option.shown is not None else default is not None
    made = typer.Option(option.flag, metavar=option.metavar, help=option.help, show_default=shown, min=option.least)
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, made]
    )


def _make_settings(settings: type, given: dict[str, Any]) -> Any:
    """The settings that are given; their options leave `given`."""
    found: dict[str, Any] = {}
    for one, option in list_options(settings):
        if option.flag is None:
            continue
        value = given.pop(one.name)
        if option.kind == "numbers" and value is not None:
            value = _parse_numbers(value, option.flag)
        if value is not None and value != []:
            found[one.name] = value
    return settings(**found)


def _parse_numbers(text: str, flag: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ValueError(f"{flag} must be numbers, 0 or larger, separated by commas, got {text!r}.")
    return numbers
